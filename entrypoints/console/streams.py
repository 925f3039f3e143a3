"""Parts of pages that are sent anew as they change, as server-sent events, while their session is in force."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final

from domain.kernel.errors import NotFound
from domain.kernel.resource import View
from entrypoints.console.context import PageContext
from entrypoints.console.rendering import rendered
from entrypoints.console.security import GUARDED
from entrypoints.http.exchange import Response
from ports.unit_of_work import Tx

PERIOD = 0.7
"""Seconds between two readings."""
HEARTBEAT = 15.0
LIFETIME = 300.0
"""Seconds after which a stream ends; the browser opens another one, and is authenticated again."""
MOST = 6
"""Streams that one session may have open at a process."""
_OPEN: Final[Counter[str]] = Counter()


def followed(
    page: PageContext,
    template: str,
    find: Callable[[Tx], Awaitable[Any]],
    resource: Any,
    state_of: Callable[[Any], dict[str, Any]],
) -> Response:
    """Stream a template's block `progress`: events `show` with its HTML, and `end` once the state is not `open` any more.

    Args:
        page: Whose session it lasts with.
        template: That with the block.
        find: Reads the object that is followed; None raises NotFound.
        resource: Renders it as the API does.
        state_of: What the block shows of the API's object.

    """

    async def state() -> dict[str, Any]:
        async with page.read() as tx:
            if (found := await find(tx)) is None:
                raise NotFound
            return state_of(resource.render(found, View(page.principal.tenant, tx.now)))

    return stream_of(page, _changes(page, template, state))


def is_full(page: PageContext) -> bool:
    """Return whether the session has all the streams that it may have."""
    return _OPEN[page.person.session.id] >= MOST


def stream_of(page: PageContext, events: AsyncGenerator[bytes, None]) -> Response:
    """Answer with the events; 204 stops the browser of a session that has MOST streams."""
    if is_full(page):
        return Response(204, list(GUARDED))
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
        *GUARDED,
    ]
    return Response(200, headers, stream=_counted(page, events))


async def _counted(page: PageContext, events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield the events, while they are one of the session's streams; none when others that came at once were faster."""
    session = page.person.session.id
    if is_full(page):
        return
    _OPEN[session] += 1
    try:
        async for event in events:
            yield event
    finally:
        await events.aclose()
        _OPEN[session] -= 1
        if not _OPEN[session]:
            del _OPEN[session]


async def _changes(
    page: PageContext, template: str, state: Callable[[], Awaitable[dict[str, Any]]]
) -> AsyncGenerator[bytes, None]:
    loop, last = asyncio.get_running_loop(), ""
    until, due = loop.time() + LIFETIME, loop.time() + HEARTBEAT
    while loop.time() < until:
        values = await state()
        html = rendered(template, "progress", {"page": page, **values})
        moved, beats = html != last, loop.time() >= due
        if (moved or beats) and not await is_in_force(page):
            yield event_of("end", "reload")
            return
        if moved:
            last = html
            yield event_of("show", html)
        if not values["open"]:
            yield event_of("end", "reload")
            return
        if beats:
            due = loop.time() + HEARTBEAT
            yield b": still here\n\n"
        await asyncio.sleep(PERIOD)


async def is_in_force(page: PageContext) -> bool:
    """Return whether the session still shows this organisation and mode to this person in this role."""
    now = await page.sessions.find(page.request.cookies.get(page.cookies.session, ""))
    return now is not None and now.principal == page.principal


def event_of(name: str, data: str) -> bytes:
    """Return one server-sent event (WHATWG HTML)."""
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"event: {name}\n{lines}\n".encode("utf-8", "replace")
