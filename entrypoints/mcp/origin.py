"""From where browsers may call /mcp: a page of another site is refused, whatever name it has got to lead here (DNS rebinding)."""

import ipaddress
from collections.abc import Iterable
from typing import Final
from urllib.parse import SplitResult, urlsplit

from domain.kernel.errors import PermissionDenied

_PORTS: Final = {"http": 80, "https": 443}


class OwnOrigin:
    """The service's own origin. One that runs on this machine alone goes by all names of this machine."""

    def __init__(self, base_url: str) -> None:
        self._own = urlsplit(base_url)
        self._local = _is_loopback(self._own.hostname)

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raises PermissionDenied for a page of another origin, and for a foreign name of a service on this machine alone."""
        for name, value in headers:
            text = value.decode("latin-1")
            if name == b"origin" and not self._is_own(_split(text)):
                raise PermissionDenied("Pages of other sites may not call this address; call it from a program.")
            if name == b"host" and self._local and not _is_loopback(_split(f"//{text}").hostname):
                raise PermissionDenied(
                    "This service is meant for this machine alone; call it as 127.0.0.1 or localhost. An operator who serves others "
                    "names its address in JOINERY_BASE_URL."
                )

    def _is_own(self, given: SplitResult) -> bool:
        if given.scheme != self._own.scheme or _port(given) != _port(self._own):
            return False
        return given.hostname == self._own.hostname or (self._local and _is_loopback(given.hostname))


def _split(text: str) -> SplitResult:
    """The parts of an origin; of what is none, nothing."""
    try:
        parts = urlsplit(text.strip())
        _ = parts.port, parts.hostname
    except ValueError:
        return urlsplit("")
    return parts


def _port(parts: SplitResult) -> int | None:
    return parts.port or _PORTS.get(parts.scheme)


def _is_loopback(host: str | None) -> bool:
    if host is None or host == "localhost":
        return host is not None
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
