"""GET /v1/changes, /v1/changes/recent, /v1/stream."""

from dataclasses import dataclass
from typing import TypeAlias

from adapters.wire import changes as wire
from adapters.wire.cursors import FeedCursors
from domain.changes.model import EventFilter, FeedPosition
from domain.changes.usecases.service import ChangesService
from domain.kernel import schema
from domain.kernel.errors import FieldError, InvalidRequest
from entrypoints.operations.event_stream import EventStream
from entrypoints.operations.operation import (
    Area,
    DetachedContext,
    DetachedRead,
    Reply,
    RequestContext,
    Stream,
    StreamContext,
)


@dataclass(frozen=True, slots=True)
class Feed:
    """Use cases of the log, and the signer of its cursors."""

    changes: ChangesService
    cursors: FeedCursors


Context: TypeAlias = RequestContext[Feed]
_FILTERS = {"types": wire.TYPES_ASKED, "catalogues": wire.CATALOGUES_ASKED}
LIMIT = 100


def _filter(call: Context) -> EventFilter:
    types, catalogues = call.query.get("types"), call.query.get("catalogues")
    return EventFilter(frozenset(types) if types else None, frozenset(catalogues) if catalogues else None)


def _position_of(call: Context, text: str | None, field: str) -> FeedPosition | None:
    """Return the position of a cursor, or None without one. Raises InvalidRequest with code invalid_cursor."""
    feed, tenant = call.service, call.principal.tenant
    after = feed.cursors.open(tenant, text) if text is not None else None
    if text is not None and after is None:
        detail = wire.wrong_cursor(text)
        raise InvalidRequest(detail, fields=(FieldError(field, "invalid_cursor", detail),))
    return after


async def page(call: DetachedContext[Feed]) -> Reply:
    """Return a page of the feed, immediately or after waiting for an event."""
    changes, tenant, filter = call.service.changes, call.principal.tenant, _filter(call)
    limit, wait = call.query.get("limit", LIMIT), call.query.get("wait", 0)
    now = call.query.get("cursor") == wire.NOW
    after = await changes.now(tenant) if now else _position_of(call, call.query.get("cursor"), "query.cursor")
    if wait:
        start = after if after and now else await changes.start(tenant, after)
        batch = await changes.long_poll(tenant, start, limit, filter, wait, call.idle)
    else:
        batch = await changes.page(tenant, after, limit, filter)
    return Reply(wire.to_wire(batch, call.service.cursors.sign(tenant, batch.position)))


async def recent(call: DetachedContext[Feed]) -> Reply:
    """Return the newest events."""
    batch = await call.service.changes.recent(call.principal.tenant, call.page_request, _filter(call))
    return call.listing(batch, wire.raw)


async def stream(call: StreamContext[Feed]) -> Reply:
    """Stream events from a position on."""
    tenant, cursors, changes = call.principal.tenant, call.service.cursors, call.service.changes
    cursor, field = call.query.get("cursor", wire.NOW), "query.cursor"
    if call.last_event_id:
        cursor, field = call.last_event_id, "header.Last-Event-ID"
    position = None if cursor == wire.NOW else _position_of(call, cursor, field)
    after = await changes.now(tenant) if position is None else await changes.resume(tenant, position)
    event_stream = EventStream(changes.tailer, tenant, after, _filter(call), cursors)
    return Reply(stream=event_stream, headers={"Service-Stream-From": cursors.sign(tenant, after)})


AREA = Area(
    "changes",
    "Changes",
    "Every change as an event: by page, by long polling, or as a stream.",
    service=Feed,
    operations=(
        DetachedRead(
            id="changes.page",
            path="/v1/changes",
            summary="Follow changes",
            description="Returns every event visible to you, oldest first, each exactly once: no event ever appears before one that "
            "was already visible. Save `next_cursor` and continue from it. Without a cursor, the feed starts at the oldest event kept "
            "(30 days); with `now`, after the newest. With `wait`, the response is delayed by up to that many seconds until an event arrives.",
            handler=page,
            scope="products:read",
            reply=wire.CHANGE_PAGE,
            paging="log",
            query={
                "cursor": wire.CURSOR,
                "wait": schema.integer(
                    25, least=0, most=30, description="Maximum seconds to wait for an event. Default 0."
                ),
                "limit": schema.integer(100, least=1, most=1000, description="Maximum number of events. Default 100."),
                **_FILTERS,
            },
            errors=("cursor_expired",),
        ),
        DetachedRead(
            id="changes.recent",
            path="/v1/changes/recent",
            summary="List recent changes",
            description="Returns events, newest first. With filters, a page can be short even if `has_more` is true: continue with `next_cursor`.",
            handler=recent,
            scope="products:read",
            reply=wire.EVENTS,
            paging="forward",
            query=_FILTERS,
            apart="Changes are in the change feed; an export contains the cursor from which to read it.",
        ),
        Stream(
            id="changes.stream",
            path="/v1/stream",
            summary="Stream changes",
            description="Sends the change feed as server-sent events, from `Last-Event-ID`, from `cursor`, or from now on; "
            "`Service-Stream-From` is the cursor before the first event. The stream ends with `stream.end` if you read too slowly "
            "(`slow_consumer`), if the credential becomes invalid (`credential`), after about an hour (`lifetime`), and if the server "
            "stops (`shutdown`): reconnect, and no event is lost. It ends with `cursor_expired` if events would be lost.",
            handler=stream,
            scope="products:read",
            feature="stream",
            reply=wire.STREAM,
            query={"cursor": wire.CURSOR, **_FILTERS},
            errors=("cursor_expired",),
        ),
    ),
)
