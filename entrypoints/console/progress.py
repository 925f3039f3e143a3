"""Moving progress: a part of a page sent anew whenever it looks different, as server-sent events, while its session is in force."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Final

from entrypoints.console.page import Answer
from entrypoints.console.policy import GUARDED
from entrypoints.console.rendering import rendered
from entrypoints.console.visit import Visit
from entrypoints.http.exchange import Response

PERIOD: Final = 0.7
"""Seconds between two looks."""
HEARTBEAT: Final = 15.0
LIFETIME: Final = 300.0
"""Seconds after which a stream ends; the browser opens another one, and is asked who it is again."""
MOST: Final = 6
"""Streams that one session may have open at a process; a further one is told to stay away."""
_OPEN: Final[Counter[str]] = Counter()

Look = Callable[[], Awaitable[tuple[Mapping[str, Any], bool]]]
"""What the part shows now, and whether it will never change again."""


def followed(visit: Visit, template: str, block: str, look: Look) -> Answer:
    """The stream of a template's block: events `show` with its HTML, and `end` when there is no more to come."""
    if is_full(visit):
        return Response(204, list(GUARDED))
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
        *GUARDED,
    ]
    return Response(200, headers, stream=counted(visit, _pieces(visit, template, block, look)))


def is_full(visit: Visit) -> bool:
    """Whether the session has all the streams that it may have; 204 tells a browser to ask no more."""
    return _OPEN[visit.person.session.id] >= MOST


async def counted(visit: Visit, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The pieces, while they are one of the session's streams; none when others that came at once were faster."""
    session = visit.person.session.id
    if is_full(visit):
        return
    _OPEN[session] += 1
    try:
        async for piece in pieces:
            yield piece
    finally:
        await pieces.aclose()
        _OPEN[session] -= 1
        if not _OPEN[session]:
            del _OPEN[session]


async def _pieces(visit: Visit, template: str, block: str, look: Look) -> AsyncGenerator[bytes, None]:
    loop, last = asyncio.get_running_loop(), ""
    until, due = loop.time() + LIFETIME, loop.time() + HEARTBEAT
    while loop.time() < until:
        values, over = await look()
        html = rendered(template, block, {"visit": visit, **values})
        moved, beats = html != last, loop.time() >= due
        if (moved or beats) and not await _still_signed_in(visit):
            yield _event("end", "reload")
            return
        if moved:
            last = html
            yield _event("show", html)
        if over:
            yield _event("end", "reload")
            return
        if beats:
            due = loop.time() + HEARTBEAT
            yield b": still here\n\n"
        await asyncio.sleep(PERIOD)


async def _still_signed_in(visit: Visit) -> bool:
    """Whether the session still shows this organisation and mode to this person in this role."""
    now = await visit.dependencies.sessions.find(visit.asked.cookies.get(visit.console.cookies.session, ""))
    return now is not None and now.principal == visit.principal


def _event(name: str, data: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"event: {name}\n{lines}\n".encode("utf-8", "replace")
