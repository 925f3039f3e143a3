"""Short answers from addresses that somebody else has named, through the guarded client."""

import asyncio
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from adapters.http import errors
from adapters.http.client import Bounds, GuardedClient
from ports.outbound import OutboundAnswer, OutboundFailed

MOST: Final = 512 * 1024
"""Bytes of an answer."""
SECONDS: Final = 10.0
_BOUNDS: Final = Bounds(
    total_seconds=SECONDS,
    connect_seconds=5.0,
    answer_seconds=8.0,
    idle_seconds=5.0,
    wire_bytes=MOST,
    body_bytes=MOST,
    redirects=0,
)


class HttpOutbound:
    """ports.outbound.Outbound. `allowed_hosts` are JOINERY_ALLOW_PRIVATE_HOSTS."""

    def __init__(self, client: GuardedClient, allowed_hosts: frozenset[str] = frozenset()) -> None:
        self._client, self._allowed = client, frozenset(name.strip().lower() for name in allowed_hosts)

    def permits(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            return False
        if not host or parts.username or parts.password or parts.fragment or any(not "!" <= one <= "~" for one in url):
            return False
        return parts.scheme == "https" or (
            parts.scheme == "http" and not {host, f"{host}:{port}"}.isdisjoint(self._allowed)
        )

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> OutboundAnswer:
        if not self.permits(url):
            raise OutboundFailed("The address must be https.")
        try:
            async with (
                asyncio.timeout(SECONDS),
                self._client.request(method, url, headers=headers, body=body, bounds=_BOUNDS) as answer,
            ):
                taken = bytearray()
                async for chunk in answer.chunks:
                    taken += chunk
                kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
                return OutboundAnswer(answer.status, bytes(taken), kind)
        except errors.OutboundError as error:
            raise OutboundFailed(str(error)) from None
        except TimeoutError:
            raise OutboundFailed("The server did not answer in time.") from None
