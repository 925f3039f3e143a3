"""Errors of outbound requests.

The `kind` of each class is the error code that the connector SDK and the log of webhook attempts use.
"""

from typing import ClassVar


class OutboundError(Exception):
    """Failure of an outbound request. The message contains no URL and no secret.

    `has_followed_redirect` is true if the request that failed followed a redirect.
    """

    kind: ClassVar[str] = "connect"
    has_followed_redirect: bool = False


class RefusedAddress(OutboundError):
    """URL with an IP address, port or scheme that may not be requested (docs/conventions.md#outbound-safety)."""

    kind = "refused_address"


class DnsFailed(OutboundError):
    """Host name without an IP address."""

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
    """Response below the minimum rate."""

    kind = "too_slow"


class RedirectRefused(OutboundError):
    """Redirect to http after https or to an invalid URL, redirect with credentials to another host, or too many."""

    kind = "redirect"


class BadEncoding(OutboundError):
    """Content coding that is invalid or not permitted."""

    kind = "bad_encoding"


class HostBusy(OutboundError):
    """Host with too many waiting requests, or in a pause that it requested. Nothing was sent; retry after `seconds`."""

    kind = "host_busy"

    def __init__(self, message: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(message)
