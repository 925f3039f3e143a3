"""Errors of connectors, by the runner's next step."""

from datetime import datetime
from typing import Literal

WaitReason = Literal["rate_limited", "upstream_busy", "retry"]
"""Why a run waits (docs/conventions.md#enumerations)."""


class ConnectorError(Exception):
    """Base of the errors of a connector. The message is shown to the source's owner and contains no secret."""


class RetryLater(ConnectorError):
    """Request of the source to wait: the run pauses and is retried.

    `until` is the time that the source named (aware, UTC), or None if the runner chooses.
    """

    def __init__(self, message: str, *, until: datetime | None = None, reason: WaitReason = "rate_limited") -> None:
        self.until = until
        self.reason = reason
        super().__init__(message)


class Refused(ConnectorError):
    """Refusal by the source, which stays blocked until a person changes a setting.

    `credentials` states that the credentials were refused, not the request as such.
    """

    def __init__(self, message: str, *, credentials: bool = False) -> None:
        self.credentials = credentials
        super().__init__(message)


class Unreachable(ConnectorError):
    """Missing or unusable response: the run fails, the next one tries again."""


class BadData(ConnectorError):
    """Data that the connector cannot parse: the run fails, the message states what to send instead."""


class TooLarge(BadData):
    """Response above the size limit; a request for a smaller part may succeed."""
