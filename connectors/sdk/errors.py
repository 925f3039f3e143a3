"""Errors of connectors, one class for each reaction of the run, such as a retry or a failure."""

from datetime import datetime
from typing import Literal

WaitReason = Literal["rate_limited", "upstream_busy", "retry"]
"""Reason why a run waits (docs/conventions.md#enumerations)."""


class ConnectorError(Exception):
    """Base class of the errors of a connector. The message is shown to users and contains no secret."""


class RetryLater(ConnectorError):
    """Request of the source to wait. The run is paused and retried.

    `until` is the time in UTC at which the source permits the next request; None if the source stated no time.
    """

    def __init__(self, message: str, *, until: datetime | None = None, reason: WaitReason = "rate_limited") -> None:
        self.until = until
        self.reason = reason
        super().__init__(message)


class Refused(ConnectorError):
    """Refusal by the source. No further run starts until a person changes a setting.

    Attributes:
        is_credentials_error: True if the source refused the credentials, false if it refused the request for another reason.
    """

    def __init__(self, message: str, *, is_credentials_error: bool = False) -> None:
        self.is_credentials_error = is_credentials_error
        super().__init__(message)


class Unreachable(ConnectorError):
    """Missing or unusable response. The run fails; the next run requests the data again."""


class BadData(ConnectorError):
    """Data that the connector cannot parse. The run fails; the message states what to send instead."""


class TooLarge(BadData):
    """Response above the size limit. A request for fewer items may succeed."""
