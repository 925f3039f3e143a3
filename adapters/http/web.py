"""HTTP requests of website checks. Redirects are not followed, and bodies are read up to a maximum size."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from multidict import MultiMapping

from adapters.http import errors
from adapters.http.body import MinimumResponseRate
from adapters.http.client import GuardedClient, HttpBounds, StreamedResponse
from domain.probes.facts import ProbeResponse
from domain.probes.ports import Unreachable

_UNLIMITED_BYTES = 1 << 50
"""Size that no response exceeds, so that GuardedClient accepts long responses; a check reads only their beginning."""
_BOUNDS = HttpBounds(
    connect_seconds=10.0,
    response_seconds=15.0,
    idle_seconds=10.0,
    max_received_bytes=_UNLIMITED_BYTES,
    max_body_bytes=_UNLIMITED_BYTES,
    max_redirects=0,
    minimum_rate=MinimumResponseRate(bytes_per_second=512.0, grace_seconds=5.0),
)
_MAX_HEADERS = 100
_MAX_HEADER_CHARS = 2_000
_MAX_COOKIES = 50


class HttpWeb:
    """HTTP client of website checks, an implementation of the port WebClient (domain/probes/ports.py)."""

    def __init__(self, client: GuardedClient, bounds: HttpBounds = _BOUNDS) -> None:
        self._client, self._bounds = client, bounds

    async def get(self, url: str, *, accept: str, max_bytes: int, seconds: float) -> ProbeResponse:
        bounds = replace(self._bounds, total_seconds=seconds)
        responses: list[ProbeResponse] = []
        body = bytearray()
        is_complete = False
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.request("GET", url, headers={"Accept": accept}, bounds=bounds) as response,
            ):
                responses.append(_build_response(url, response))
                is_complete = await _append_body(response, body, max_bytes)
        except errors.OutboundError as error:
            if not responses:
                raise Unreachable(str(error), is_forbidden=isinstance(error, errors.RefusedAddress)) from None
        except TimeoutError:
            if not responses:
                raise Unreachable("The server did not respond in time.") from None
        return replace(responses[0], body=bytes(body), is_complete=is_complete)


async def _append_body(response: StreamedResponse, body: bytearray, max_bytes: int) -> bool:
    """Append a response's body to `body`, which grows to at most `max_bytes`; return whether the body is complete."""
    async for chunk in response.chunks:
        body += chunk[: max_bytes - len(body)]
        if len(body) == max_bytes:
            return False
    return True


def _build_response(url: str, response: StreamedResponse) -> ProbeResponse:
    """Return a response without its body, with the names of its cookies and at most 100 truncated headers."""
    headers = {
        name.lower()[:200]: value[:_MAX_HEADER_CHARS] for name, value in list(response.headers.items())[:_MAX_HEADERS]
    }
    headers.pop("set-cookie", None)
    return ProbeResponse(url, response.status, headers, _list_cookie_names(response.headers))


def _list_cookie_names(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the cookies that a response sets."""
    if not isinstance(headers, MultiMapping):
        return ()
    set_cookies = headers.getall("Set-Cookie", [])[:_MAX_COOKIES]
    return tuple(text.partition("=")[0].strip()[:200] for text in set_cookies)
