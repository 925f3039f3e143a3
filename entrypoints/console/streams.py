"""Server-sent events that update parts of pages while the session is valid."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

from domain.kernel.errors import NotFound
from domain.kernel.resource import RenderContext
from entrypoints.console.context import PageContext
from entrypoints.console.rendering import render_template
from entrypoints.console.security import SECURITY_HEADERS
from entrypoints.http.exchange import Response
from ports.unit_of_work import Tx

POLL_SECONDS = 0.7
"""Seconds between two reads of the object whose progress is streamed."""
HEARTBEAT_SECONDS = 15.0
"""Seconds between two heartbeats. At a heartbeat, the session is checked and a comment is sent."""
LIFETIME_SECONDS = 300.0
"""Seconds after which a stream ends; the browser reconnects and is authenticated again."""
MAX_STREAMS = 6
"""Maximum number of open streams of a session in a process."""
_STREAM_COUNTS: Final[Counter[str]] = Counter()
"""Number of open streams by session ID."""


def stream_progress(
    page: PageContext,
    template: str,
    find_object: Callable[[Tx], Awaitable[Any]],
    resource: Any,
    build_values: Callable[[Any], dict[str, Any]],
) -> Response:
    """Stream the progress of an object, such as a run.

    After each change, the event `show` contains the rendered block `progress` of the template. The event `end` follows
    when the work is complete, or when the session has changed or ended.

    Args:
        page: The context with the session.
        template: The template with the block `progress`.
        find_object: Function that reads the object; if it returns None, NotFound is raised.
        resource: The API resource that renders the object as JSON.
        build_values: Function that returns the variables of the block from the JSON. The variable `is_open` must
            be present: true while work is in progress.
    """

    async def read_values() -> dict[str, Any]:
        async with page.open_read_transaction() as tx:
            if (found := await find_object(tx)) is None:
                raise NotFound
            return build_values(resource.render(found, RenderContext(page.principal.tenant, tx.now)))

    return build_stream_response(page, _stream_changes(page, template, read_values))


def has_max_streams(page: PageContext) -> bool:
    """Return whether the session has reached the maximum number of open streams."""
    return _STREAM_COUNTS[page.person.session.id] >= MAX_STREAMS


def build_stream_response(page: PageContext, events: AsyncGenerator[bytes, None]) -> Response:
    """Return a response that streams the events, or status 204 if the session has too many open streams."""
    if has_max_streams(page):
        return Response(204, list(SECURITY_HEADERS))  # browsers do not reconnect after 204
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
        *SECURITY_HEADERS,
    ]
    return Response(200, headers, stream=_count_stream(page, events))


async def _count_stream(page: PageContext, events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield the events, and count the stream as open until they end. Yield nothing if the session has too many streams."""
    session = page.person.session.id
    if has_max_streams(page):
        return
    _STREAM_COUNTS[session] += 1
    try:
        async for event in events:
            yield event
    finally:
        await events.aclose()
        _STREAM_COUNTS[session] -= 1
        if not _STREAM_COUNTS[session]:
            del _STREAM_COUNTS[session]


async def _stream_changes(
    page: PageContext, template: str, read_values: Callable[[], Awaitable[dict[str, Any]]]
) -> AsyncGenerator[bytes, None]:
    """Yield the events of `stream_progress`. `read_values` returns the variables of the block."""
    loop, last_html = asyncio.get_running_loop(), ""
    end_time, heartbeat_at = loop.time() + LIFETIME_SECONDS, loop.time() + HEARTBEAT_SECONDS
    while loop.time() < end_time:
        values = await read_values()
        html = render_template(template, "progress", {"page": page, **values})
        has_changed, is_heartbeat_due = html != last_html, loop.time() >= heartbeat_at
        if (has_changed or is_heartbeat_due) and not await is_session_unchanged(page):
            yield encode_event("end", "reload")
            return
        if has_changed:
            last_html = html
            yield encode_event("show", html)
        if not values["is_open"]:
            yield encode_event("end", "reload")
            return
        if is_heartbeat_due:
            heartbeat_at = loop.time() + HEARTBEAT_SECONDS
            yield b": still here\n\n"
        await asyncio.sleep(POLL_SECONDS)


async def stream_while_signed_in(
    page: PageContext, chunks: AsyncGenerator[bytes, None], stop: Callable[[], Awaitable[Any]]
) -> AsyncGenerator[bytes, None]:
    """Yield the chunks of an operation's stream; when the session has changed or ended, call `stop` and end.

    Args:
        page: The context with the session.
        chunks: The stream, which yields a chunk at least every HEARTBEAT_SECONDS.
        stop: Function that stops the work whose result is streamed.
    """
    loop = asyncio.get_running_loop()
    check_at = loop.time() + HEARTBEAT_SECONDS
    async with aclosing(chunks):
        async for chunk in chunks:
            if loop.time() >= check_at:
                if not await is_session_unchanged(page):
                    await stop()
                    return
                check_at = loop.time() + HEARTBEAT_SECONDS
            yield chunk


async def is_session_unchanged(page: PageContext) -> bool:
    """Return whether the session is still valid, with the same person, role, organisation and mode as in the request."""
    current, former = await page.find_current_principal(), page.principal
    if current is None:
        return False
    # Other data of the organisation, such as its plan, may change.
    return (current.tenant, current.actor, current.role) == (former.tenant, former.actor, former.role)


def encode_event(name: str, data: str) -> bytes:
    """Return a server-sent event (WHATWG HTML) with the name and data, encoded for the response."""
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"event: {name}\n{lines}\n".encode("utf-8", "replace")
