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
    """The log's use cases, and the cursors that stand for positions."""

    changes: ChangesService
    cursors: FeedCursors


Context: TypeAlias = RequestContext[Feed]
_FILTERS = {"types": wire.TYPES_ASKED, "catalogues": wire.CATALOGUES_ASKED}
LIMIT = 100


def _filter(call: Context) -> EventFilter:
    types, catalogues = call.query.get("types"), call.query.get("catalogues")
    return EventFilter(frozenset(types) if types else None, frozenset(catalogues) if catalogues else None)


def _opened(call: Context, text: str | None, field: str) -> FeedPosition | None:
    """The position that a cursor means, None for none. Raises InvalidRequest with code invalid_cursor."""
    feed, tenant = call.service, call.principal.tenant
    after = feed.cursors.open(tenant, text) if text is not None else None
    if text is not None and after is None:
        detail = wire.wrong_cursor(text)
        raise InvalidRequest(detail, fields=(FieldError(field, "invalid_cursor", detail),))
    return after


async def page(call: DetachedContext[Feed]) -> Reply:
    """A page of the feed, now or when there is one."""
    changes, tenant, wanted = call.service.changes, call.principal.tenant, _filter(call)
    limit, wait = call.query.get("limit", LIMIT), call.query.get("wait", 0)
    now = call.query.get("cursor") == wire.NOW
    after = await changes.now(tenant) if now else _opened(call, call.query.get("cursor"), "query.cursor")
    if wait:
        start = after if after and now else await changes.start(tenant, after)
        found = await changes.long_poll(tenant, start, limit, wanted, wait, call.idle)
    else:
        found = await changes.page(tenant, after, limit, wanted)
    return Reply(wire.to_wire(found, call.service.cursors.sign(tenant, found.position)))


async def recent(call: DetachedContext[Feed]) -> Reply:
    """The newest events."""
    found = await call.service.changes.recent(call.principal.tenant, call.page_request, _filter(call))
    return call.listing(found, wire.raw)


async def stream(call: StreamContext[Feed]) -> Reply:
    """The events from some position on, as they come."""
    tenant, cursors, changes = call.principal.tenant, call.service.cursors, call.service.changes
    given, field = call.query.get("cursor", wire.NOW), "query.cursor"
    if call.last_event_id:
        given, field = call.last_event_id, "header.Last-Event-ID"
    asked = None if given == wire.NOW else _opened(call, given, field)
    after = await changes.now(tenant) if asked is None else await changes.resume(tenant, asked)
    made = EventStream(changes.tailer, tenant, after, _filter(call), cursors)
    return Reply(stream=made, headers={"Service-Stream-From": cursors.sign(tenant, after)})


AREA = Area(
    "changes",
    "Changes",
    "Every change as an event: page by page, waiting for the next one, or as a stream.",
    service=Feed,
    operations=(
        DetachedRead(
            id="changes.page",
            path="/v1/changes",
            summary="Follow changes",
            description="Every event that you may see, oldest first, each exactly once: once an event is visible, nothing later "
            "appears before it. Save `next_cursor` and come back with it. Without a cursor the feed starts with the oldest event "
            "kept (30 days), with `now` behind the newest. With `wait` an empty page is answered only after that many seconds.",
            handler=page,
            scope="products:read",
            reply=wire.CHANGE_PAGE,
            paging="log",
            query={
                "cursor": wire.CURSOR,
                "wait": schema.integer(25, least=0, most=30, description="Seconds to wait for an event. Default 0."),
                "limit": schema.integer(100, least=1, most=1000, description="How many events at most. Default 100."),
                **_FILTERS,
            },
            errors=("cursor_expired",),
        ),
        DetachedRead(
            id="changes.recent",
            path="/v1/changes/recent",
            summary="List recent changes",
            description="Newest first. A page with filters may be short although `has_more`: go on with `next_cursor`.",
            handler=recent,
            scope="products:read",
            reply=wire.EVENTS,
            paging="forward",
            query=_FILTERS,
            apart="What has changed is the change feed's: an export has the position from which to read it.",
        ),
        Stream(
            id="changes.stream",
            path="/v1/stream",
            summary="Stream changes",
            description="The change feed as server-sent events. It goes on from `Last-Event-ID`, or from `cursor`, or starts now; "
            "`Service-Stream-From` tells the position before the first event. It ends with `stream.end` when you read too slowly "
            "(`slow_consumer`), when the credential ends (`credential`), after an hour (`lifetime`) and when the server stops "
            "(`shutdown`): connect again and nothing is missed. `cursor_expired` ends it when you would miss something.",
            handler=stream,
            scope="products:read",
            feature="stream",
            reply=wire.STREAM,
            query={"cursor": wire.CURSOR, **_FILTERS},
            errors=("cursor_expired",),
        ),
    ),
)
