"""The JSON of the change feed, and the lines of the stream (WHATWG HTML, Server-sent events)."""

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
"""Milliseconds between which clients are told to wait before they connect again, so that not all come at once."""
HEARTBEAT = b": \n"
"""A comment. No empty line follows: some clients would take that for an event."""

_CURSOR = "q83vASNFZ4mrze8BMTIzNA"


def envelope_schema(type: schema.Schema, data: schema.Schema, subject: schema.Schema, area: str) -> schema.Schema:
    """What every event has around its `data`; `area` is the example of its `source`."""
    return schema.record(
        None,
        {
            "id": schema.id_of("evt", "Deduplicate by it."),
            "type": type,
            "spec_version": schema.text("1.0"),
            "source": schema.text(area, description="The part of the service that it comes from."),
            "subject": subject | {"description": "What it is about."},
            "time": schema.timestamp(),
            "tenant_id": schema.id_of("org"),
            "version": schema.integer(
                7, least=1, description="The subject's version with this change; apply by version."
            ),
            "schema_version": schema.integer(1, least=1),
            "livemode": schema.boolean(),
            "data": data,
            "correlation_id": schema.text(
                "run_01J8ZQ5T3V7XK2M9RB4CDW",
                description="The run, request or job that caused the change; the event's own id where there is none.",
            ),
            "causation_id": schema.nullable(schema.text("evt_01J8ZQ5T3V7XK2M9RB4CDW")),
        },
        description="One change.",
    )


EVENT = schema.named(
    "event",
    envelope_schema(
        schema.text("offer.changed", description="Ignore types that you do not know."),
        schema.map_of(
            {},
            {"id": "ofr_01J8ZQ5T3V7XK2M9RB4CDW", "version": 7, "previous_version": 6, "facets": ["stock"]},
            "The ids of the subject and its parents, its `version`, `previous_version` where every version is told, and "
            "`fields`: each change as `path`, `old`, `new` and `provenance`. `typed_event` has it for each type.",
        ),
        schema.text("ofr_01J8ZQ5T3V7XK2M9RB4CDW"),
        "service/catalog",
    ),
)
EVENTS = schema.list_of(EVENT)
CHANGE_PAGE = schema.record(
    "change_page",
    {
        "data": schema.array(EVENT, most=1000, description="Oldest first."),
        "next_cursor": schema.text(_CURSOR, description="Go on from here; keep it as long as you like, up to 30 days."),
        "caught_up": schema.boolean(description="Whether this was all there is; false means: ask again at once."),
    },
    description="A page of the change feed.",
)
CURSOR = schema.text(
    _CURSOR,
    longest=LONGEST_CURSOR,
    shortest=0,
    description="Where to go on: a `next_cursor`, an event's id on the stream, or `now`.",
) | {"format": CURSOR_FORMAT}
TYPES_ASKED = schema.array(
    schema.named("feed_event_type", {"type": "string", "enum": list(FEED_TYPES), "examples": ["offer.changed"]}),
    least=1,
    description="Only events of these types.",
)
CATALOGUES_ASKED = schema.array(
    schema.id_of("cat"), least=1, most=50, description="Only events of these catalogues; one you cannot see has none."
)
STREAM = {
    "type": "string",
    "description": "Server-sent events: `id` is a cursor of the change feed, `event` the type, `data` the event. Comments "
    "come every 15 s. The last event is `stream.end`, whose data tells the `reason` and the `cursor` to go on from.",
    "examples": [f'id: {_CURSOR}\nevent: offer.changed\ndata: {{"id": "evt_01J8ZQ5T3V7XK2M9RB4CDW"}}\n\n'],
}


def wrong_cursor(text: str) -> str:
    """Why a cursor of the feed is refused, and what to give instead."""
    looks_like = kind_of(text)
    said = (
        f"This is the id of {looks_like}, not a cursor"
        if looks_like
        else "This is not a cursor of your change feed in this mode"
    )
    return (
        f"{said}. Give a next_cursor of GET /v1/changes, the `id` of an event on the stream, or `now`, whole and unchanged, from the same organisation and "
        "mode; or leave it out to begin."
    )


def to_wire(page: ChangePage, cursor: str) -> bytes:
    """A page of the feed around the events' own bytes."""
    caught_up = b"true" if page.caught_up else b"false"
    return b'{"object":"change_page","data":[%b],"next_cursor":"%b","caught_up":%b}' % (
        page.body,
        cursor.encode(),
        caught_up,
    )


def raw(event: LoggedEvent) -> Any:
    """An event inside a list, its bytes as they are."""
    return msgspec.Raw(event.body)


def opening() -> bytes:
    """The stream's first lines."""
    return b"retry: %d\n: \n" % random.randint(*RETRY)  # noqa: S311  spreads load, guards nothing


def streamed(event: LoggedEvent, cursor: str) -> bytes:
    """One event on the stream; its JSON has no line breaks."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (cursor.encode(), event.type.encode(), event.body)


def ending(reason: str, cursor: str) -> bytes:
    """The stream's last event."""
    data = msgspec.json.encode({"reason": reason, "cursor": cursor})
    return b"id: %b\nevent: stream.end\ndata: %b\n\n" % (cursor.encode(), data)
