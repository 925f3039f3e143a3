"""Why a connector could not go on, named by what the runner does next."""

from datetime import datetime
from typing import Literal

WaitReason = Literal["rate_limited", "upstream_busy", "retry"]
"""Why a run waits (docs/conventions.md#enumerations)."""


class ConnectorError(Exception):
    """The connector could not go on. The message is shown to the source's owner, so it holds no secret."""


class RetryLater(ConnectorError):
    """The source asks to be left alone for a while: the run waits and is tried again.

    `until` is the time the source named (aware, UTC), or None when it named none and the runner chooses.
    """

    def __init__(self, message: str, *, until: datetime | None = None, reason: WaitReason = "rate_limited") -> None:
        self.until = until
        self.reason = reason
        super().__init__(message)


class Refused(ConnectorError):
    """The source turns us away: the source is blocked until a person changes something.

    `credentials` tells that the credentials were refused, not the visit as such.
    """

    def __init__(self, message: str, *, credentials: bool = False) -> None:
        self.credentials = credentials
        super().__init__(message)


class Unreachable(ConnectorError):
    """The source gave no usable answer: the run fails, the next one tries again."""


class BadData(ConnectorError):
    """What came is not what this connector reads: the run fails, the message tells the person what to send instead."""


class TooLarge(BadData):
    """One answer is larger than is read at once; asking for less of it at a time may help."""
