"""Pages of the request logs and of the events, which also update live."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from adapters.wire.changes import FEED_TYPES
from domain.access.model import ApiKey
from domain.access.ports import KeyStore
from domain.changes.model import EventFilter, FeedPosition
from domain.changes.ports import EventReader
from domain.changes.usecases.service import ChangesService
from domain.changes.usecases.tailing import LogTailer
from domain.kernel.bounds import STREAM_BYTES
from domain.kernel.errors import CursorExpired, NotFound
from domain.kernel.paging import PageRequest
from domain.people.usecases.keys import KEY_MAKERS
from entrypoints.console.context import PageContext, Pages, encode
from entrypoints.console.rendering import rendered
from entrypoints.console.request import moment_of
from entrypoints.console.streams import event_of, is_full, is_in_force, stream_of
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response

_LIMIT = 30
WAIT = 10.0
"""Seconds after which a comment is sent if nothing else was."""
_PAUSE = 0.5
"""Minimum seconds between two updates."""
_LIFETIME = 3600.0
"""Seconds after which a stream ends; browsers reconnect automatically."""
_LATEST = 200
"""Number of events of a subject that are searched for one event."""
_decode = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode

requests = Pages("/console/developers/requests", section="Developers", scope="request_logs:read")
events = Pages("/console/developers/events", section="Developers", scope="products:read")


@requests.get(title=N_("Request logs"))
async def list_requests(page: PageContext) -> Response:
    """Show the requests that match the filters."""
    filters = page.query.given("status", "method", "route", "actor", "error_code")
    times = page.query.given("since", "until")
    query = filters | {name: moment_of(text) for name, text in times.items()}
    found = await page.filtered("/v1/request-logs", _LIMIT, query)
    if page.refused:
        page.refused.fields = {name.removeprefix("query."): text for name, text in page.refused.fields.items()}
    keys: Sequence[ApiKey] = ()
    if page.principal.role in KEY_MAKERS:
        async with page.read() as tx:
            keys = (await tx[KeyStore].page(PageRequest(limit=100))).items
    return page.render("request_logs/list.html", found=found, filters=filters | times, keys=keys)


requests.show("/<request>", "request_logs/one.html", read={"log": "/v1/request-logs/{request}"})


@events.get(title=N_("Events"))
async def list_events(page: PageContext) -> Response:
    """Show the newest events, or a page of older ones."""
    found = await page.filtered("/v1/changes/recent", _LIMIT, page.query.given("types"))
    live = page.cursor is None and page.refused is None
    values = {"found": found, "shown": found["data"], "types": FEED_TYPES, "chosen": page.query.get("types")}
    return page.render("events/list.html", status=200, live=live, **values)


@events.get("/<subject>/<event>")
async def show_event(page: PageContext) -> Response:
    """Show an event with its payload, searched in the log of its subject and in the latest events of others."""
    subject, id = page.ids["subject"], page.ids["event"]
    own = await page.dependencies[EventReader].later(page.principal.tenant, subject, 0, _LATEST)
    if (body := next((one.body for one in own if one.id == id), None)) is None:
        newest = (await page.api.get("/v1/changes/recent", limit=100))["data"]
        body = next((encode(one) for one in newest if one["id"] == id), None)
    if body is None:
        raise NotFound(
            gettext("This event does not exist or is too old to show here. Read older events from the change feed.")
        )
    return page.render("events/event.html", one=_decode(body), json=msgspec.json.format(body, indent=2).decode())


@events.get("/stream/<types>")
async def stream_events(page: PageContext) -> Response:
    """Stream the list again with each new event while the session is valid; plan features are not required."""
    types = None if page.ids["types"] == "all" else frozenset({page.ids["types"]})
    tenant, wanted = page.principal.tenant, EventFilter(types)
    changes = page.dependencies[ChangesService]
    if not is_full(page):
        page.console.pipeline.waiters.check(tenant.org)
    after = await changes.now(tenant)
    latest = await changes.recent(tenant, PageRequest(limit=_LIMIT), wanted)
    kept = deque((_decode(event.body) for event in latest.items), maxlen=_LIMIT)
    return stream_of(page, _shows(page, kept, after, wanted))


async def _shows(
    page: PageContext, kept: deque[dict[str, Any]], after: FeedPosition, wanted: EventFilter
) -> AsyncGenerator[bytes, None]:
    tailer, tenant, until = page.dependencies[LogTailer], page.principal.tenant, time.monotonic() + _LIFETIME
    yield b"retry: 3000\n: \n\n"
    with page.console.pipeline.waiters.holding(tenant.org):
        async with tailer.follow(tenant, after, wanted) as subscription:
            while time.monotonic() < until and not tailer.closing and not subscription.overflowed:
                try:
                    batch = await subscription.next(_LIMIT, WAIT, STREAM_BYTES)
                except CursorExpired:
                    break
                if not await is_in_force(page):
                    yield event_of("end", "reload")
                    return
                known = {one["id"] for one in kept}
                new = [_decode(one.body) for one in batch.events if one.id not in known]
                if not new:
                    yield b": \n\n"
                    continue
                kept.extendleft(new)
                yield event_of("show", rendered("events/feed.html", None, {"shown": kept}))
                await asyncio.sleep(_PAUSE)
