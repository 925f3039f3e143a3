"""GET /v1/changes, /v1/changes/recent, /v1/stream."""

from typing import Any, Final

from adapters.wire import changes as wire
from adapters.wire import schema as words
from domain.changes.model import EventFilter
from domain.kernel.errors import FieldError, InvalidRequest
from entrypoints.http.event_stream import EventStream
from entrypoints.http.operation import Operation, Reply, RequestContext, Tool

_FILTERS: Final = {"types": wire.TYPES_ASKED, "catalogues": wire.CATALOGUES_ASKED}
LIMIT: Final = 100


def _filter(call: RequestContext) -> EventFilter:
    types, catalogues = call.query.get("types"), call.query.get("catalogues")
    return EventFilter(frozenset(types) if types else None, frozenset(catalogues) if catalogues else None)


async def _position(call: RequestContext, text: str | None, field: str) -> int:
    """The position that a cursor means. Raises InvalidRequest with code invalid_cursor, or CursorExpired."""
    if text == wire.NOW:
        return await call.use.changes.now()
    after = call.feed.open(call.principal.tenant, text) if text is not None else None
    if text is not None and after is None:
        detail = "This is no cursor of your change feed in this mode."
        raise InvalidRequest(detail, fields=(FieldError(field, "invalid_cursor", detail),))
    return await call.use.changes.start(after)


async def page(call: RequestContext) -> Reply:
    """A page of the feed, now or when there is one."""
    changes, tenant, wanted = call.use.changes, call.principal.tenant, _filter(call)
    limit, wait = call.query.get("limit", LIMIT), call.query.get("wait", 0)

    async def later() -> Any:
        after = await _position(call, call.query.get("cursor"), "query.cursor")
        if wait:
            found = await changes.long_poll(tenant, after, limit, wanted, wait, call.idle)
        else:
            found = await changes.page(tenant, after, limit, wanted)
        return wire.to_wire(found, call.feed.sign(tenant, found.position))

    return Reply(later=later)


async def recent(call: RequestContext) -> Reply:
    """The newest events."""
    tenant, page_request, wanted = call.principal.tenant, call.page_request, _filter(call)

    async def later() -> Any:
        return call.listing(await call.use.changes.recent(tenant, page_request, wanted), wire.raw).body

    return Reply(later=later)


async def stream(call: RequestContext) -> Reply:
    """The events from some position on, as they come."""
    tenant, resumed = call.principal.tenant, call.last_event_id

    async def later() -> Reply:
        if resumed:
            after = await _position(call, resumed, "header.Last-Event-ID")
        else:
            after = await _position(call, call.query.get("cursor", wire.NOW), "query.cursor")
        made = EventStream(call.use.changes.tailer, tenant, after, _filter(call), call.feed)
        return Reply(stream=made, headers={"Service-Stream-From": call.feed.sign(tenant, after)})

    return Reply(later=later)


OPERATIONS: Final = (
    Operation(
        id="changes.page",
        method="GET",
        path="/v1/changes",
        summary="Follow changes",
        description="Every event that you may see, oldest first, each exactly once: once an event is visible, nothing later "
        "appears before it. Save `next_cursor` and come back with it. Without a cursor the feed starts with the oldest event "
        "kept (30 days), with `now` behind the newest. With `wait` an empty page is answered only after that many seconds.",
        handler=page,
        scope="products:read",
        reply=wire.CHANGE_PAGE,
        rate="read",
        paging="log",
        query={
            "cursor": wire.CURSOR,
            "wait": words.integer(25, least=0, most=30, description="Seconds to wait for an event. Default 0."),
            "limit": words.integer(100, least=1, most=1000, description="How many events at most. Default 100."),
            **_FILTERS,
        },
        errors=("cursor_expired",),
        agent=Tool(),
        outside=True,
    ),
    Operation(
        id="changes.recent",
        method="GET",
        path="/v1/changes/recent",
        summary="List recent changes",
        description="Newest first. A page with filters may be short although `has_more`: go on with `next_cursor`.",
        handler=recent,
        scope="products:read",
        reply=wire.EVENTS,
        rate="read",
        paging="forward",
        query=_FILTERS,
        agent=Tool(),
        outside=True,
    ),
    Operation(
        id="changes.stream",
        method="GET",
        path="/v1/stream",
        summary="Stream changes",
        description="The change feed as server-sent events. It goes on from `Last-Event-ID`, or from `cursor`, or starts now; "
        "`Service-Stream-From` tells the position before the first event. It ends with `stream.end` when you read too slowly "
        "(`slow_consumer`), when the credential ends (`credential`), after an hour (`lifetime`) and when the server stops "
        "(`shutdown`): connect again and nothing is missed.",
        handler=stream,
        scope="products:read",
        feature="stream",
        reply=wire.STREAM,
        rate="stream",
        query={"cursor": wire.CURSOR, **_FILTERS},
        errors=("cursor_expired",),
        outside=True,
        stream=True,
    ),
)
