"""Server-sent events that update parts of pages while the session is valid."""

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
"""Seconds between two reads."""
HEARTBEAT = 15.0
LIFETIME = 300.0
"""Seconds after which a stream ends; the browser reconnects and is authenticated again."""
MOST = 6
"""Maximum number of open streams of a session in a process."""
_OPEN: Final[Counter[str]] = Counter()


def followed(
    page: PageContext,
    template: str,
    find: Callable[[Tx], Awaitable[Any]],
    resource: Any,
    state_of: Callable[[Any], dict[str, Any]],
) -> Response:
    """Stream a template's block `progress` as events `show`, followed by `end` when the state is no longer `open`.

    Args:
        page: The context of the session that the stream depends on.
        template: The template with the block.
        find: Reads the object; None raises NotFound.
        resource: Renders the object as the API does.
        state_of: Returns the variables of the block for the API's object.

    """

    async def state() -> dict[str, Any]:
        async with page.read() as tx:
            if (found := await find(tx)) is None:
                raise NotFound
            return state_of(resource.render(found, View(page.principal.tenant, tx.now)))

    return stream_of(page, _changes(page, template, state))


def is_full(page: PageContext) -> bool:
    """Return whether the session has reached its maximum number of streams."""
    return _OPEN[page.person.session.id] >= MOST


def stream_of(page: PageContext, events: AsyncGenerator[bytes, None]) -> Response:
    """Return a response with the events; 204 keeps the browser from reconnecting if the session has MOST streams."""
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
    """Yield the events and count the stream; yield nothing if concurrent streams reached the maximum first."""
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
    """Return whether the session still has the same person, role, organisation and mode."""
    now = await page.sessions.find(page.request.cookies.get(page.cookies.session, ""))
    return now is not None and now.principal == page.principal


def event_of(name: str, data: str) -> bytes:
    """Return one server-sent event (WHATWG HTML)."""
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"event: {name}\n{lines}\n".encode("utf-8", "replace")
