"""Requests to third parties: only to permitted addresses, with limits of time and size, without following redirects."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OutboundResponse:
    """Response to an outbound request; `media_type` has no parameters, names of headers are case-insensitive."""

    status: int
    body: bytes
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


class OutboundFailed(Exception):
    """There was no complete response. The message contains no URL and no secret, so that users may see it."""


class OutboundClient(Protocol):
    """HTTP client that connects only to public addresses, and to hosts that the operator permits."""

    def permits(self, url: str) -> bool:
        """Return whether requests to the URL are permitted: https, or http for a host that the operator permits."""
        ...

    async def request(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> OutboundResponse:
        """Send one request. Raises OutboundFailed."""
        ...


class OutboundSockets(Protocol):
    """TCP connections to public addresses, and to hosts that the operator permits."""

    async def connect(self, host: str, port: int) -> socket.socket:
        """Return a connected, non-blocking socket, which the caller must close. Raises OutboundFailed."""
        ...
