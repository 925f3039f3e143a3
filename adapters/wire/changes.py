"""JSON of the change feed, and lines of the event stream (WHATWG HTML, Server-sent events)."""

import random
from typing import Any

import msgspec

from adapters.wire.cursors import CURSOR_FORMAT, LONGEST_CURSOR
from domain.changes.model import ChangePage
from domain.events.model import OFF_THE_FEED, TYPES, LoggedEvent
from domain.kernel import schema
from domain.kernel.ids import kind_of

FEED_TYPES = tuple(sorted(set(TYPES) - set(OFF_THE_FEED)))
NOW = "now"
RETRY = (1_000, 4_000)
"""Range of the reconnection delay in milliseconds; it is random, so that clients do not reconnect all at once."""
HEARTBEAT = b": \n"
"""Comment line without a following empty line, which some clients would dispatch as an event."""

_CURSOR = "q83vASNFZ4mrze8BMTIzNA"


def envelope_schema(type: schema.Schema, data: schema.Schema, subject: schema.Schema, area: str) -> schema.Schema:
    """Return the schema of an event with the given `data`; `area` is the example of its `source`."""
    return schema.record(
        None,
        {
            "id": schema.id_of("evt", "The event's ID; use it to discard duplicates."),
            "type": type,
            "spec_version": schema.text("1.0"),
            "source": schema.text(area, description="The part of the service that emitted the event."),
            "subject": subject | {"description": "The ID of the object that changed."},
            "time": schema.timestamp(),
            "tenant_id": schema.id_of("org"),
            "version": schema.integer(
                7,
                least=1,
                description="The subject's version after this change. Apply changes in the order of versions.",
            ),
            "schema_version": schema.integer(1, least=1),
            "livemode": schema.boolean(),
            "data": data,
            "correlation_id": schema.text(
                "run_01J8ZQ5T3V7XK2M9RB4CDW",
                description="The ID of the run, request or job that caused the change, or else the event's own ID.",
            ),
            "causation_id": schema.nullable(schema.text("evt_01J8ZQ5T3V7XK2M9RB4CDW")),
        },
        description="One change.",
    )


EVENT = schema.named(
    "event",
    envelope_schema(
        schema.text("offer.changed", description="The event type. Ignore unknown types."),
        schema.map_of(
            {},
            {"id": "ofr_01J8ZQ5T3V7XK2M9RB4CDW", "version": 7, "previous_version": 6, "facets": ["stock"]},
            "The IDs of the subject and its parents, its `version`, its `previous_version` if you receive every version, and "
            "`fields`: each change as `path`, `old`, `new` and `provenance`. `typed_event` describes it for each type.",
        ),
        schema.text("ofr_01J8ZQ5T3V7XK2M9RB4CDW"),
        "service/catalog",
    ),
)
EVENTS = schema.list_of(EVENT)
CHANGE_PAGE = schema.record(
    "change_page",
    {
        "data": schema.array(EVENT, most=1000, description="The events, oldest first."),
        "next_cursor": schema.text(_CURSOR, description="The cursor of the next page, valid for 30 days."),
        "caught_up": schema.boolean(
            description="Whether the page reaches the end of the feed. If false, request the next page at once."
        ),
    },
    description="A page of the change feed.",
)
CURSOR = schema.text(
    _CURSOR,
    longest=LONGEST_CURSOR,
    shortest=0,
    description="Where to continue: a `next_cursor`, the `id` of an event on the stream, or `now`.",
) | {"format": CURSOR_FORMAT}
TYPES_ASKED = schema.array(
    schema.named("feed_event_type", {"type": "string", "enum": list(FEED_TYPES), "examples": ["offer.changed"]}),
    least=1,
    description="Only events of these types.",
)
CATALOGUES_ASKED = schema.array(
    schema.id_of("cat"),
    least=1,
    most=50,
    description="Only events of these catalogues. A catalogue that you cannot read has no events.",
)
STREAM = {
    "type": "string",
    "description": "Server-sent events: `id` is a cursor of the change feed, `event` the type, `data` the event. A comment is "
    "sent every 15 s. The last event is `stream.end`, whose data has the `reason` and the `cursor` to continue from.",
    "examples": [f'id: {_CURSOR}\nevent: offer.changed\ndata: {{"id": "evt_01J8ZQ5T3V7XK2M9RB4CDW"}}\n\n'],
}


def wrong_cursor(text: str) -> str:
    """Return the error detail for an invalid cursor of the change feed."""
    looks_like = kind_of(text)
    problem = (
        f"This is the ID of {looks_like}, not a cursor"
        if looks_like
        else "This is not a cursor of your change feed in this mode"
    )
    return (
        f"{problem}. Send an unchanged next_cursor of GET /v1/changes, an `id` of an event on the stream, or `now`. The cursor must be of the same "
        "organisation and mode. Omit it to start at the beginning."
    )


def to_wire(page: ChangePage, cursor: str) -> bytes:
    """Encode a page of the feed around the events' stored bytes."""
    caught_up = b"true" if page.caught_up else b"false"
    return b'{"object":"change_page","data":[%b],"next_cursor":"%b","caught_up":%b}' % (
        page.body,
        cursor.encode(),
        caught_up,
    )


def raw(event: LoggedEvent) -> Any:
    """Return the event's stored bytes for embedding in a list."""
    return msgspec.Raw(event.body)


def opening() -> bytes:
    """Return the stream's first lines."""
    return b"retry: %d\n: \n" % random.randint(*RETRY)  # noqa: S311  spreads load, not security


def streamed(event: LoggedEvent, cursor: str) -> bytes:
    """Encode one event of the stream; its JSON has no line breaks."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (cursor.encode(), event.type.encode(), event.body)


def ending(reason: str, cursor: str) -> bytes:
    """Encode the stream's last event."""
    data = msgspec.json.encode({"reason": reason, "cursor": cursor})
    return b"id: %b\nevent: stream.end\ndata: %b\n\n" % (cursor.encode(), data)
