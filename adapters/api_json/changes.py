"""JSON of the change feed, and lines of the event stream (Server-sent events in WHATWG HTML)."""

import random
from typing import Any

import msgspec

from adapters.api_json.cursors import CURSOR_FORMAT, MAX_CURSOR_LENGTH
from domain.changes.model import ChangePage
from domain.events.model import OFF_THE_FEED, TYPES, LoggedEvent
from domain.kernel import schema
from domain.kernel.ids import find_noun

FEED_TYPES = tuple(sorted(set(TYPES) - set(OFF_THE_FEED)))
NOW = "now"
RECONNECT_MILLISECONDS = (1_000, 4_000)
"""Minimum and maximum of a client's random reconnection delay, which prevents all clients from reconnecting at once."""
HEARTBEAT = b": \n"
"""Comment line of the stream. No empty line follows, because some clients would dispatch it as an event."""

_CURSOR = "q83vASNFZ4mrze8BMTIzNA"


def build_envelope_schema(
    type: schema.Schema, data: schema.Schema, subject: schema.Schema, example_source: str
) -> schema.Schema:
    """Return the schema of an event's envelope.

    Args:
        type: Schema of the event type.
        data: Schema of the data.
        subject: Schema of the ID of the object that changed.
        example_source: Example of the member `source`, which names the part of the service that emitted the event.
    """
    return schema.response_object(
        None,
        {
            "id": schema.id_schema("evt", "The event's ID; use it to discard duplicates."),
            "type": type,
            "spec_version": schema.text("1.0"),
            "source": schema.text(example_source, description="The part of the service that emitted the event."),
            "subject": subject | {"description": "The ID of the object that changed."},
            "time": schema.timestamp(),
            "tenant_id": schema.id_schema("org"),
            "version": schema.integer(
                7,
                minimum=1,
                description="The subject's version after this change. Apply changes in the order of versions.",
            ),
            "schema_version": schema.integer(1, minimum=1),
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


EVENT = schema.with_title(
    "event",
    build_envelope_schema(
        schema.text("offer.changed", description="The event type. Ignore unknown types."),
        schema.map_schema(
            {},
            {"id": "ofr_01J8ZQ5T3V7XK2M9RB4CDW", "version": 7, "previous_version": 6, "facets": ["stock"]},
            "The IDs of the subject and its parents, and its `version`. `previous_version` is present if you receive every "
            "version. `fields` lists each change with `path`, `old`, `new` and `provenance`. `typed_event` describes the "
            "data of each type.",
        ),
        schema.text("ofr_01J8ZQ5T3V7XK2M9RB4CDW"),
        "service/catalog",
    ),
)
EVENTS = schema.list_response(EVENT)
CHANGE_PAGE = schema.response_object(
    "change_page",
    {
        "data": schema.array(EVENT, max_items=1000, description="Events, oldest first."),
        "next_cursor": schema.text(_CURSOR, description="The cursor of the next page, valid for 30 days."),
        "caught_up": schema.boolean(
            description="Whether the page reaches the end of the feed. If false, request the next page at once."
        ),
    },
    description="A page of the change feed.",
)
CURSOR = schema.text(
    _CURSOR,
    max_length=MAX_CURSOR_LENGTH,
    min_length=0,
    description="Where to continue: a `next_cursor`, the `id` of an event on the stream, or `now`.",
) | {"format": CURSOR_FORMAT}
TYPES_PARAMETER = schema.array(
    schema.with_title("feed_event_type", {"type": "string", "enum": list(FEED_TYPES), "examples": ["offer.changed"]}),
    min_items=1,
    description="Only events of these types.",
)
CATALOGUES_PARAMETER = schema.array(
    schema.id_schema("cat"),
    min_items=1,
    max_items=50,
    description="Only events of these catalogues. A catalogue that you cannot read has no events.",
)
STREAM = {
    "type": "string",
    "description": "Server-sent events: `id` is a cursor of the change feed, `event` the type, `data` the event. A comment is "
    "sent every 15 s. The last event is `stream.end`, whose data has the `reason` and the `cursor` to continue from.",
    "examples": [f'id: {_CURSOR}\nevent: offer.changed\ndata: {{"id": "evt_01J8ZQ5T3V7XK2M9RB4CDW"}}\n\n'],
}


def describe_invalid_cursor(text: str) -> str:
    """Return the error detail for an invalid cursor of the change feed."""
    looks_like = find_noun(text)
    problem = (
        f"This is the ID of {looks_like}, not a cursor"
        if looks_like
        else "This is not a cursor of your change feed in this mode"
    )
    return (
        f"{problem}. Send an unchanged next_cursor of GET /v1/changes, an `id` of an event on the stream, or `now`. The cursor must be of the same "
        "organisation and mode. Omit it to start at the beginning."
    )


def encode_page(page: ChangePage, cursor: str) -> bytes:
    """Encode a page of the change feed; the stored JSON of the events is inserted unchanged."""
    caught_up = b"true" if page.caught_up else b"false"
    return b'{"object":"change_page","data":[%b],"next_cursor":"%b","caught_up":%b}' % (
        page.body,
        cursor.encode(),
        caught_up,
    )


def embed_event(event: LoggedEvent) -> Any:
    """Return the event's stored JSON as an object that the encoding of a list inserts unchanged."""
    return msgspec.Raw(event.body)


def encode_stream_start() -> bytes:
    """Return the first lines of an event stream: the client's reconnection delay, and a comment."""
    return b"retry: %d\n: \n" % random.randint(*RECONNECT_MILLISECONDS)  # noqa: S311  spreads load, not security


def encode_stream_event(event: LoggedEvent, cursor: str) -> bytes:
    """Encode an event as lines of the event stream. The event's JSON must not contain line breaks."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (cursor.encode(), event.type.encode(), event.body)


def encode_stream_end(reason: str, cursor: str) -> bytes:
    """Encode the last event of the event stream, `stream.end`."""
    data = msgspec.json.encode({"reason": reason, "cursor": cursor})
    return b"id: %b\nevent: stream.end\ndata: %b\n\n" % (cursor.encode(), data)
