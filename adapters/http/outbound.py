"""Requests for small documents at untrusted URLs, such as those of identity providers."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from adapters.http import errors
from adapters.http.client import GuardedClient, HttpBounds
from ports.outbound import OutboundFailed, OutboundResponse

MAX_RESPONSE_BYTES = 512 * 1024
"""Maximum size of a response in bytes."""
_BOUNDS = HttpBounds(
    total_seconds=10.0,
    connect_seconds=5.0,
    response_seconds=8.0,
    idle_seconds=5.0,
    max_received_bytes=MAX_RESPONSE_BYTES,
    max_body_bytes=MAX_RESPONSE_BYTES,
    max_redirects=0,
)
UPLOAD_BOUNDS = replace(_BOUNDS, total_seconds=300.0, response_seconds=240.0, idle_seconds=60.0)
"""Limits of a request that uploads a part of a file."""


class HttpOutbound:
    """HTTP client for small documents, an implementation of the port OutboundClient (ports/outbound.py).

    Hosts in `allowed_hosts` (`host` or `host:port`) may also be requested without TLS. `bounds` are the limits of a request.
    """

    def __init__(
        self, client: GuardedClient, allowed_hosts: frozenset[str] = frozenset(), bounds: HttpBounds = _BOUNDS
    ) -> None:
        self._client, self._bounds = client, bounds
        self._allowed = frozenset(name.strip().lower() for name in allowed_hosts)

    def permits(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            return False
        if not host or parts.username or parts.password or parts.fragment or any(not "!" <= one <= "~" for one in url):
            return False
        bracketed = f"[{host}]" if ":" in host else host
        is_allowed_host = not {host, bracketed, f"{bracketed}:{port}"}.isdisjoint(self._allowed)
        return parts.scheme == "https" or (parts.scheme == "http" and is_allowed_host)

    async def request(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> OutboundResponse:
        if not self.permits(url):
            raise OutboundFailed("The URL must start with https://.")
        try:
            async with (
                asyncio.timeout(self._bounds.total_seconds),
                self._client.request(method, url, headers=headers, body=body, bounds=self._bounds) as answer,
            ):
                kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
                body_received = b"".join([chunk async for chunk in answer.chunks])
                return OutboundResponse(answer.status, body_received, kind, answer.headers)
        except errors.OutboundError as error:
            raise OutboundFailed(str(error)) from None
        except TimeoutError:
            raise OutboundFailed("The server did not respond in time.") from None
