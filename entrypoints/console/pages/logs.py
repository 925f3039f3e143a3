"""Pages of the request logs and of the events; the list of events is updated live."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from adapters.api_json.changes import FEED_TYPES
from domain.access.model import ApiKey
from domain.access.ports import KeyStore
from domain.changes.model import EventFilter, FeedPosition
from domain.changes.ports import EventReader
from domain.changes.usecases.log_tailer import LogTailer
from domain.changes.usecases.service import ChangesService
from domain.kernel.bounds import STREAM_BYTES
from domain.kernel.errors import CursorExpired, NotFound
from domain.kernel.paging import PageRequest
from domain.people.usecases.keys import KEY_CREATOR_ROLES
from entrypoints.console.context import PageContext, Pages, encode_json
from entrypoints.console.pages.catalogue import NamedItem, find_named_items
from entrypoints.console.rendering import render_template
from entrypoints.console.request import convert_to_utc
from entrypoints.console.streams import build_stream_response, encode_event, has_max_streams, is_session_unchanged
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response

_PAGE_SIZE = 30
HEARTBEAT_SECONDS = 10.0
"""Seconds without an event after which the stream sends a comment, and checks the session."""
_MIN_UPDATE_SECONDS = 0.5
"""Minimum seconds between two updates."""
_LIFETIME_SECONDS = 3600.0
"""Seconds after which a stream ends; browsers reconnect automatically."""
_MAX_SEARCHED_EVENTS = 200
"""Number of a subject's newest events among which the requested event is looked up."""
_decode = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode

request_pages = Pages("/console/developers/requests", section="Developers", scope="request_logs:read")
event_pages = Pages("/console/developers/events", section="Developers", scope="products:read")


@request_pages.register_get(title=N_("Request logs"))
async def list_requests(page: PageContext) -> Response:
    """Show the logged API requests that match the filters."""
    filters = page.query.select("status", "method", "route", "actor", "error_code")
    times = page.query.select("since", "until")
    query = filters | {name: convert_to_utc(text) for name, text in times.items()}
    found = await page.get_filtered_page("/v1/request-logs", _PAGE_SIZE, query)
    if page.refused:
        page.refused.fields = {name.removeprefix("query."): text for name, text in page.refused.fields.items()}
    keys: Sequence[ApiKey] = ()
    if page.principal.role in KEY_CREATOR_ROLES:
        async with page.open_read_transaction() as tx:
            keys = (await tx[KeyStore].page(PageRequest(limit=100))).items
    return page.render("request_logs/list.html", results=found, filters=filters | times, keys=keys)


request_pages.register_template(
    "/<request>", "request_logs/log.html", operation_paths={"log": "/v1/request-logs/{request}"}
)


@event_pages.register_get(title=N_("Events"))
async def list_events(page: PageContext) -> Response:
    """Show the newest events, or a page of older ones."""
    found = await page.get_filtered_page("/v1/changes/recent", _PAGE_SIZE, page.query.select("types"))
    is_live = page.cursor is None and page.refused is None
    return page.render(
        "events/list.html",
        status=200,
        image_origins=page.console.object_origins,
        is_live=is_live,
        results=found,
        events=found["data"],
        items=await _find_items(page, found["data"]),
        types=FEED_TYPES,
        selected_type=page.query.get("types"),
    )


async def _find_items(page: PageContext, events: Iterable[Mapping[str, Any]]) -> dict[str, NamedItem]:
    """Return the products of events, with titles and pictures, by the ID of the event."""
    product_by_event = {event["id"]: _find_product(event) for event in events}
    items = await find_named_items(page, product_by_event.values())
    return {event: items[product] for event, product in product_by_event.items() if product in items}


def _find_product(event: Mapping[str, Any]) -> str | None:
    """Return the ID of the product of an event, or of the survivor if the product was merged; None without a product."""
    data = event["data"]
    id: str | None = (
        data.get("merged_into") if event["type"] == "product.merged" else data.get("product", data.get("id"))
    )
    return id


@event_pages.register_get("/<subject>/<event>")
async def show_event(page: PageContext) -> Response:
    """Show an event with its payload. Raises NotFound if it is not among the latest events or those of its subject."""
    subject, id = page.path_parameters["subject"], page.path_parameters["event"]
    subject_events = await page.dependencies[EventReader].get_about_subject(
        page.principal.tenant, subject, 0, _MAX_SEARCHED_EVENTS
    )
    if (body := next((event.body for event in subject_events if event.id == id), None)) is None:
        newest = (await page.api.get("/v1/changes/recent", limit=100))["data"]
        body = next((encode_json(event) for event in newest if event["id"] == id), None)
    if body is None:
        raise NotFound(
            gettext("This event does not exist or is too old to show here. Read older events from the change feed.")
        )
    return page.render("events/event.html", event=_decode(body), payload=msgspec.json.format(body, indent=2).decode())


@event_pages.register_get("/stream/<types>")
async def stream_events(page: PageContext) -> Response:
    """Stream the list of events, rendered again with each new event, while the session is valid."""
    types = None if page.path_parameters["types"] == "all" else frozenset({page.path_parameters["types"]})
    tenant, filter = page.principal.tenant, EventFilter(types)
    changes = page.dependencies[ChangesService]
    if not has_max_streams(page):
        page.console.pipeline.waiting_requests.check(tenant.org)
    position = await changes.find_end(tenant)
    latest = await changes.list_recent(tenant, PageRequest(limit=_PAGE_SIZE), filter)
    newest_events = deque((_decode(event.body) for event in latest.items), maxlen=_PAGE_SIZE)
    return build_stream_response(page, _stream_list(page, newest_events, position, filter))


async def _stream_list(
    page: PageContext, newest_events: deque[dict[str, Any]], position: FeedPosition, filter: EventFilter
) -> AsyncGenerator[bytes, None]:
    """Yield the rendered list as server-sent events.

    Args:
        page: The context with the session.
        newest_events: The events in the list, newest first; new ones are added.
        position: The position in the event log after which new events are read.
        filter: The event types in the list.
    """
    tailer, tenant = page.dependencies[LogTailer], page.principal.tenant
    end_time = time.monotonic() + _LIFETIME_SECONDS
    yield b"retry: 3000\n: \n\n"
    with page.console.pipeline.waiting_requests.immediate_slot(tenant.org):
        async with tailer.subscribe(tenant, position, filter) as subscription:
            while time.monotonic() < end_time and not tailer.is_closing and not subscription.overflow_count:
                try:
                    batch = await subscription.next_batch(_PAGE_SIZE, HEARTBEAT_SECONDS, STREAM_BYTES)
                except CursorExpired:
                    break
                if not await is_session_unchanged(page):
                    yield encode_event("end", "reload")
                    return
                listed_ids = {event["id"] for event in newest_events}
                new = [_decode(event.body) for event in batch.events if event.id not in listed_ids]
                if not new:
                    yield b": \n\n"
                    continue
                newest_events.extendleft(new)
                values = {"events": newest_events, "items": await _find_items(page, newest_events)}
                yield encode_event("show", render_template("events/feed.html", None, values))
                await asyncio.sleep(_MIN_UPDATE_SECONDS)
