"""The events of the organisation's log: newest first, and live as they come."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from adapters.wire.changes import FEED_TYPES
from domain.changes.model import EventFilter, FeedPosition
from domain.changes.usecases.service import ChangesService
from domain.events.model import LoggedEvent
from domain.kernel.bounds import STREAM_BYTES
from domain.kernel.errors import CursorExpired, NotFound
from domain.kernel.paging import PageRequest
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.policy import GUARDED
from entrypoints.console.portions import piece_of, shortened
from entrypoints.console.progress import counted, is_full
from entrypoints.console.refusals import Refused
from entrypoints.console.rendering import environment
from entrypoints.console.visit import Visit
from entrypoints.http.exchange import Response

PLACE: Final = "/console/developers/events"
EVERY: Final = "all"
_LIMIT: Final = 30
WAIT: Final = 10.0
"""Seconds after which something is sent, if only a comment."""
_PAUSE: Final = 0.5
"""Seconds between two showings, however much happens."""
_LIFETIME: Final = 3600.0
"""Seconds after which a stream ends; browsers come again by themselves."""
_JSON: Final = 40_000
"""Bytes of a page that an event's JSON may fill."""
_FIELDS: Final = 4
"""Fields of an event that are told in its line."""
_VALUE: Final = 60
"""Bytes of a page that a value of them may fill."""
_LATEST: Final = 200
"""Events of one subject among which one is looked for."""
_SCOPE: Final = "products:read"
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode
_decode: Final = msgspec.json.Decoder(dict, float_hook=Decimal).decode


async def events(visit: Visit) -> Answer:
    """The newest, or a page of older ones."""
    types = visit.query.get("types")
    cursor = visit.query.get("cursor") or None
    found: Any = {"data": [], "has_more": False, "next_cursor": None}
    refused = None
    try:
        found = await visit.api.get("/v1/changes/recent", limit=_LIMIT, starting_after=cursor, types=types or None)
    except Refused as error:
        refused = error
    return visit.render(
        "events/list.html",
        found=found,
        refused=refused,
        shown=[shown(event) for event in found["data"]],
        types=FEED_TYPES,
        chosen=types,
        live=cursor is None and refused is None,
        query={"types": types, "cursor": visit.query["cursor"]},
    )


def shown(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event with what of it is told in a line: the first of its changed fields, and how many there are more."""
    changed = event["data"].get("fields") or ()
    fields = [
        {"path": one["path"], "old": _said(one.get("old")), "new": _said(one.get("new"))} for one in changed[:_FIELDS]
    ]
    return {"event": event, "fields": fields, "more": len(changed) - len(fields)}


async def event(visit: Visit) -> Answer:
    """One event, with all that it says."""
    subject, id = visit.ids["subject"], visit.ids["event"]
    found = await _found(visit, subject, id)
    text = msgspec.json.format(found, indent=2).decode()
    return visit.render(
        "events/event.html",
        one=shown(_decode(found)),
        json=piece_of(text, visit.query.number("from"), _JSON),
        id=id,
    )


async def _found(visit: Visit, subject: str, id: str) -> bytes:
    """The event's JSON: among its subject's own, or else the newest that others publish. Raises NotFound."""
    tenant = visit.principal.tenant
    own = await visit.dependencies.events.later(tenant, subject, 0, _LATEST)
    if (found := next((one.body for one in own if one.id == id), None)) is not None:
        return found
    newest = await visit.api.get("/v1/changes/recent", limit=100)
    published = next((one for one in newest["data"] if one["id"] == id), None)
    if published is None:
        raise NotFound("The event is not there, or lies further back than is looked through here.")
    return _encode(published)


def _said(value: Any) -> str | None:
    """A value in a line."""
    if value is None:
        return None
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = ", ".join(value)
    return shortened(value if isinstance(value, str) else _encode(value).decode(), _VALUE)


async def stream(visit: Visit) -> Answer:
    """The same list, shown again with what is new, for as long as the session lasts; it needs nothing of the plan."""
    types = None if visit.ids["types"] == EVERY else frozenset({visit.ids["types"]})
    parts, tenant = visit.dependencies, visit.principal.tenant
    changes, wanted = ChangesService(parts.events, parts.tailer), EventFilter(types)
    if is_full(visit):
        return Response(204, list(GUARDED))
    visit.console.pipeline.waiters.check(tenant.org)
    after = await changes.now(tenant)
    latest = await changes.recent(tenant, PageRequest(limit=_LIMIT), wanted)
    kept = deque((shown(_decode(event.body)) for event in latest.items), maxlen=_LIMIT)
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), *GUARDED]
    return Response(200, headers, stream=counted(visit, _pieces(visit, kept, after, wanted)))


async def _pieces(
    visit: Visit, kept: deque[dict[str, Any]], after: FeedPosition, wanted: EventFilter
) -> AsyncGenerator[bytes, None]:
    tailer, tenant, until = visit.dependencies.tailer, visit.principal.tenant, time.monotonic() + _LIFETIME
    yield b"retry: 3000\n: \n\n"
    with visit.console.pipeline.waiters.holding(tenant.org, checked=False):
        async with tailer.follow(tenant, after, wanted) as subscription:
            while time.monotonic() < until and not tailer.closing and not subscription.overflowed:
                try:
                    batch = await subscription.next(_LIMIT, WAIT, STREAM_BYTES)
                except CursorExpired:
                    break
                if not await _still(visit):
                    yield piece("end", "reload")
                    return
                if _added(kept, batch.events):
                    yield piece("show", environment().get_template("events/feed.html").render(shown=kept))
                    await asyncio.sleep(_PAUSE)
                else:
                    yield b": \n\n"


def _added(kept: deque[dict[str, Any]], events: Sequence[LoggedEvent]) -> bool:
    """Put what is not shown yet in front."""
    known = {one["event"]["id"] for one in kept}
    new = [event for event in events if event.id not in known]
    kept.extendleft(shown(_decode(event.body)) for event in new)
    return bool(new)


async def _still(visit: Visit) -> bool:
    """Whether the session goes on, in the same organisation and mode, and may yet see events."""
    cookie = visit.asked.cookies.get(visit.console.cookies.session, "")
    now = await visit.dependencies.sessions.find(cookie)
    principal = now.principal if now is not None else None
    return principal is not None and principal.tenant == visit.principal.tenant and _SCOPE in principal.scopes


def piece(event: str, text: str) -> bytes:
    """One server-sent event (WHATWG HTML)."""
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {event}\n{lines}\n".encode()


PAGES: Final = (
    Page(PLACE, events, scope=_SCOPE, menu=Entry("Developers", "Events")),
    Page(f"{PLACE}/<subject>/<event>", event, scope=_SCOPE, menu="Developers"),
    Page(f"{PLACE}/stream/<types>", stream, scope=_SCOPE, menu="Developers"),
)
