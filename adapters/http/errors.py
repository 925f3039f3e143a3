"""Errors of outbound requests, each with its `kind` for callers."""

from typing import ClassVar


class OutboundError(Exception):
    """Failure of an outbound request. The message names no address and no secret; it may be shown.

    `redirected` states that the failing host is the target of a redirect.
    """

    kind: ClassVar[str] = "connect"
    redirected: bool = False


class RefusedAddress(OutboundError):
    """Address, port or scheme that may not be reached (docs/conventions.md#outbound-safety)."""

    kind = "refused_address"


class DnsFailed(OutboundError):
    """Host name without an address."""

    kind = "dns"


class TlsFailed(OutboundError):
    """Failed TLS handshake, or invalid certificate."""

    kind = "tls"


class ConnectFailed(OutboundError):
    """Failed connection."""

    kind = "connect"


class TimedOut(OutboundError):
    """Server that did not respond in time."""

    kind = "timeout"


class ConnectTimedOut(TimedOut):
    """Connection that was not established in time, so that nothing was sent."""


class Aborted(OutboundError):
    """Connection that was closed before the response was complete."""

    kind = "aborted"


class TooLarge(OutboundError):
    """Response above the size limit."""

    kind = "too_large"


class TooSlow(OutboundError):
    """Response below the lowest rate."""

    kind = "too_slow"


class RedirectRefused(OutboundError):
    """Redirect in a cycle, away from https, to an invalid URL, or with the credentials to another host."""

    kind = "redirect"


class BadEncoding(OutboundError):
    """Content coding that is invalid or not permitted."""

    kind = "bad_encoding"


class HostBusy(OutboundError):
    """Host without a free turn, which was not requested; a turn may be free in `seconds`."""

    kind = "host_busy"

    def __init__(self, message: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(message)
