"""Small responses from addresses that third parties have named, through the guarded client."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from adapters.http import errors
from adapters.http.client import Bounds, GuardedClient
from ports.outbound import OutboundAnswer, OutboundFailed

MOST = 512 * 1024
"""Maximum bytes of a response."""
_BOUNDS = Bounds(
    total_seconds=10.0,
    connect_seconds=5.0,
    answer_seconds=8.0,
    idle_seconds=5.0,
    wire_bytes=MOST,
    body_bytes=MOST,
    redirects=0,
)
MODELS = Bounds(
    total_seconds=100.0, answer_seconds=90.0, idle_seconds=100.0, wire_bytes=1 << 20, body_bytes=1 << 20, redirects=0
)
"""Limits of requests to model providers."""
_UNSENT = (
    errors.ConnectFailed,
    errors.ConnectTimedOut,
    errors.DnsFailed,
    errors.RefusedAddress,
    errors.TlsFailed,
)


class HttpOutbound:
    """ports.outbound.Outbound. `allowed_hosts` (`host` or `host:port`) may also be reached by http."""

    def __init__(
        self, client: GuardedClient, allowed_hosts: frozenset[str] = frozenset(), bounds: Bounds = _BOUNDS
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
        named = not {host, bracketed, f"{bracketed}:{port}"}.isdisjoint(self._allowed)
        return parts.scheme == "https" or (parts.scheme == "http" and named)

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> OutboundAnswer:
        if not self.permits(url):
            raise OutboundFailed("The address must be https.", is_unsent=True)
        begun: OutboundAnswer | None = None
        try:
            async with (
                asyncio.timeout(self._bounds.total_seconds),
                self._client.request(method, url, headers=headers, body=body, bounds=self._bounds) as answer,
            ):
                kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
                begun = OutboundAnswer(answer.status, b"", kind, answer.headers)
                return replace(begun, body=b"".join([chunk async for chunk in answer.chunks]))
        except errors.OutboundError as error:
            is_cut = isinstance(error, (errors.TooLarge, errors.BadEncoding))
            raise OutboundFailed(
                str(error), is_unsent=isinstance(error, _UNSENT), begun=begun if is_cut else None
            ) from None
        except TimeoutError:
            raise OutboundFailed("The server did not answer in time.") from None
