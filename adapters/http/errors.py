"""Why an outbound request came to nothing, each with the `kind` that callers tell apart."""

from typing import ClassVar


class OutboundError(Exception):
    """The request came to nothing. The message names no address and no secret; it may be shown.

    `redirected` says that it was not the host that was asked first, but one that it leads to.
    """

    kind: ClassVar[str] = "connect"
    redirected: bool = False


class RefusedAddress(OutboundError):
    """The address, port or scheme is none that may be reached (docs/conventions.md#outbound-safety)."""

    kind = "refused_address"


class DnsFailed(OutboundError):
    """The host's name has no address."""

    kind = "dns"


class TlsFailed(OutboundError):
    """No secure connection could be made, or the certificate is not valid."""

    kind = "tls"


class ConnectFailed(OutboundError):
    """No connection could be made."""

    kind = "connect"


class TimedOut(OutboundError):
    """The server did not answer in time."""

    kind = "timeout"


class ConnectTimedOut(TimedOut):
    """No connection was made in time, so that nothing was sent."""


class Aborted(OutboundError):
    """The server broke off before its answer was whole."""

    kind = "aborted"


class TooLarge(OutboundError):
    """The answer is larger than may be taken in."""

    kind = "too_large"


class TooSlow(OutboundError):
    """The answer comes too slowly."""

    kind = "too_slow"


class RedirectRefused(OutboundError):
    """The redirect leads in circles, away from https, nowhere, or with the credentials to another host."""

    kind = "redirect"


class BadEncoding(OutboundError):
    """The answer is packed in a way that cannot be, or may not be, unpacked."""

    kind = "bad_encoding"


class HostBusy(OutboundError):
    """Nothing was asked: it is not our turn at this host, which may come in so many `seconds`."""

    kind = "host_busy"

    def __init__(self, message: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(message)
