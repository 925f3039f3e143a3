"""Change feed and event stream: GET /v1/changes, /v1/changes/recent, /v1/stream."""

from dataclasses import dataclass
from typing import TypeAlias

from adapters.api_json import changes as wire
from adapters.api_json.cursors import FeedCursorSigner
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
    StreamContext,
    StreamOperation,
)


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """Use cases of the change feed, and the signer of the feed's cursors."""

    changes: ChangesService
    cursors: FeedCursorSigner


FeedContext: TypeAlias = RequestContext[ChangeFeed]
_FILTERS = {"types": wire.TYPES_PARAMETER, "catalogues": wire.CATALOGUES_PARAMETER}
DEFAULT_PAGE_SIZE = 100


def _build_filter(context: FeedContext) -> EventFilter:
    types, catalogues = context.query.get("types"), context.query.get("catalogues")
    return EventFilter(frozenset(types) if types else None, frozenset(catalogues) if catalogues else None)


def _read_position(context: FeedContext, cursor: str | None, field: str) -> FeedPosition | None:
    """Return the feed position that the cursor contains; None without a cursor.

    Raises InvalidRequest with the code invalid_cursor; `field` names the parameter or header in the field error.
    """
    feed, tenant = context.service, context.principal.tenant
    after = feed.cursors.verify(tenant, cursor) if cursor is not None else None
    if cursor is not None and after is None:
        detail = wire.describe_invalid_cursor(cursor)
        raise InvalidRequest(detail, fields=(FieldError(field, "invalid_cursor", detail),))
    return after


async def read_feed_page(context: DetachedContext[ChangeFeed]) -> Reply:
    """Return a page of the change feed. An empty page is delayed by up to `wait` seconds until an event arrives."""
    changes, tenant, filter = context.service.changes, context.principal.tenant, _build_filter(context)
    limit, wait = context.query.get("limit", DEFAULT_PAGE_SIZE), context.query.get("wait", 0)
    now = context.query.get("cursor") == wire.NOW
    after = (
        await changes.find_end(tenant) if now else _read_position(context, context.query.get("cursor"), "query.cursor")
    )
    if wait:
        start = after if after and now else await changes.find_start(tenant, after)
        batch = await changes.long_poll(tenant, start, limit, filter, wait, context.count_as_waiting)
    else:
        batch = await changes.read_page(tenant, after, limit, filter)
    return Reply(wire.encode_page(batch, context.service.cursors.sign(tenant, batch.position)))


async def list_recent_events(context: DetachedContext[ChangeFeed]) -> Reply:
    """Return a page of events, newest first."""
    batch = await context.service.changes.list_recent(
        context.principal.tenant, context.page_request, _build_filter(context)
    )
    return context.build_page_reply(batch, wire.embed_event)


async def stream_events(context: StreamContext[ChangeFeed]) -> Reply:
    """Return the stream of the events after the cursor in the request; by default, of future events."""
    tenant, cursors, changes = context.principal.tenant, context.service.cursors, context.service.changes
    cursor, field = context.query.get("cursor", wire.NOW), "query.cursor"
    if context.last_event_id:
        cursor, field = context.last_event_id, "header.Last-Event-ID"
    position = None if cursor == wire.NOW else _read_position(context, cursor, field)
    after = (
        await changes.find_end(tenant) if position is None else await changes.check_resume_position(tenant, position)
    )
    event_stream = EventStream(changes.tailer, tenant, after, _build_filter(context), cursors)
    return Reply(stream=event_stream, headers={"Service-Stream-From": cursors.sign(tenant, after)})


AREA = Area(
    "changes",
    "Changes",
    "Every change as an event: by page, by long polling, or as a stream.",
    create_service=ChangeFeed,
    operations=(
        DetachedRead(
            id="changes.page",
            path="/v1/changes",
            summary="Follow changes",
            description="Returns every event visible to you, oldest first, each exactly once. New events appear only after "
            "those that you have already read. Save `next_cursor` and continue from it. Without a cursor, the "
            "feed starts at the oldest event kept (30 days); with `cursor=now`, after the newest. With `wait`, the "
            "response is delayed by up to that many seconds until an event arrives.",
            handler=read_feed_page,
            scope="products:read",
            reply=wire.CHANGE_PAGE,
            paging="log",
            query={
                "cursor": wire.CURSOR,
                "wait": schema.integer(
                    25, minimum=0, maximum=30, description="Maximum seconds to wait for an event. Default 0."
                ),
                "limit": schema.integer(
                    100, minimum=1, maximum=1000, description="Maximum number of events. Default 100."
                ),
                **_FILTERS,
            },
            errors=("cursor_expired",),
        ),
        DetachedRead(
            id="changes.recent",
            path="/v1/changes/recent",
            summary="List recent changes",
            description="Returns events, newest first. With filters, a page can be short even if `has_more` is true: continue with `next_cursor`.",
            handler=list_recent_events,
            scope="products:read",
            reply=wire.EVENTS,
            paging="forward",
            query=_FILTERS,
            no_dataset_reason="The change feed contains the events; `changes_cursor` of an export marks the position from which to read the feed.",
        ),
        StreamOperation(
            id="changes.stream",
            path="/v1/stream",
            summary="Stream changes",
            description="Sends the change feed as server-sent events, from `Last-Event-ID`, from `cursor`, or from now on. "
            "The response header `Service-Stream-From` is the cursor before the first event. The last event is `stream.end` with "
            "`reason` and `cursor`. Reasons are `slow_consumer` (you read too slowly), `credential` (no longer valid), `lifetime` (after "
            "about an hour) and `shutdown` (the server stops). Reconnect with the cursor, and no event is lost. After `cursor_expired`, "
            "the next events are no longer available: read the catalogue again.",
            handler=stream_events,
            scope="products:read",
            feature="stream",
            reply=wire.STREAM,
            query={"cursor": wire.CURSOR, **_FILTERS},
            errors=("cursor_expired",),
        ),
    ),
)
