"""Requests of a probe through the guarded client: each redirect vetted, each body truncated."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from multidict import MultiMapping

from adapters.http import errors
from adapters.http.body import Pace
from adapters.http.client import Answer, Bounds, GuardedClient
from domain.probes.facts import Response
from domain.probes.ports import Unreachable

_ENDLESS = 1 << 50
"""The announced length is ignored: reading stops at `most`."""
_BOUNDS = Bounds(
    connect_seconds=10.0,
    answer_seconds=15.0,
    idle_seconds=10.0,
    wire_bytes=_ENDLESS,
    body_bytes=_ENDLESS,
    redirects=0,
    pace=Pace(bytes_per_second=512.0, grace_seconds=5.0),
)
_HEADERS = 100
_LONGEST_HEADER = 2_000
_COOKIES = 50


class HttpWeb:
    """ports.web.Web."""

    def __init__(self, client: GuardedClient, bounds: Bounds = _BOUNDS) -> None:
        self._client, self._bounds = client, bounds

    async def get(self, url: str, *, accept: str, most: int, seconds: float) -> Response:
        bounds = replace(self._bounds, total_seconds=seconds)
        responses: list[Response] = []
        body = bytearray()
        whole = False
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.request("GET", url, headers={"Accept": accept}, bounds=bounds) as answer,
            ):
                responses.append(_head(url, answer))
                whole = await _take(answer, body, most)
        except errors.OutboundError as error:
            if not responses:
                raise Unreachable(str(error), refused=isinstance(error, errors.RefusedAddress)) from None
        except TimeoutError:
            if not responses:
                raise Unreachable("The server did not answer in time.") from None
        return replace(responses[0], body=bytes(body), whole=whole)


async def _take(answer: Answer, body: bytearray, most: int) -> bool:
    """Append at most `most` bytes to the body; return whether the response is complete."""
    async for chunk in answer.chunks:
        body += chunk[: most - len(body)]
        if len(body) == most:
            return False
    return True


def _head(url: str, answer: Answer) -> Response:
    """Return the response without its body; long headers and surplus ones are cut."""
    headers = {name.lower()[:200]: value[:_LONGEST_HEADER] for name, value in list(answer.headers.items())[:_HEADERS]}
    headers.pop("set-cookie", None)
    return Response(url, answer.status, headers, _cookies(answer.headers))


def _cookies(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the cookies that are set; their values are not used."""
    if not isinstance(headers, MultiMapping):
        return ()
    set_cookies = headers.getall("Set-Cookie", [])[:_COOKIES]
    return tuple(text.partition("=")[0].strip()[:200] for text in set_cookies)
