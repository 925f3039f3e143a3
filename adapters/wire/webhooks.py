"""The JSON of webhook endpoints and deliveries, and the bytes that are POSTed (specification, Webhook endpoint)."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import msgspec

from adapters.wire import events
from adapters.wire.changes import EVENT
from adapters.wire.schema import (
    Schema,
    array,
    closed,
    flag,
    id_of,
    instant,
    integer,
    list_of,
    map_of,
    nullable,
    present,
    record,
    text,
    timestamp,
    url,
    word,
)
from adapters.wire.versions import SUPPORTED, Versions
from domain.events.model import Event
from domain.kernel.tenancy import Tenant
from domain.webhooks.audit_fields import filters_told
from domain.webhooks.model import (
    EVERY_TYPE,
    MOST_TYPES,
    PAYLOADS,
    Attempt,
    AttemptFailure,
    AttemptStatus,
    Delivery,
    DeliveryStatus,
    DisabledReason,
    Endpoint,
    EndpointStatus,
)
from domain.webhooks.samples import TYPES_WITH_SAMPLE
from domain.webhooks.subscription import SUBSCRIBABLE

_decode = msgspec.json.Decoder(dict, float_hook=Decimal).decode
"""Exact: a number is sent with the digits that the log has."""
_encode = msgspec.json.Encoder(decimal_format="number").encode
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _first(example: StrEnum) -> Schema:
    """One of the values of its kind, with this one as the example."""
    return word(example, *(value for value in type(example) if value != example))


_TYPES: Final = ("offer.changed", *sorted(SUBSCRIBABLE - {"offer.changed"}))
MOST_SOURCES: Final = 100
MOST_CATEGORIES: Final = 100
MOST_CATALOGUES: Final = 50
LONGEST_WINDOW: Final = 300
LONGEST_OVERLAP: Final = 72
USUAL_OVERLAP: Final = 24

URL: Final[Schema] = url("https://shop.example/hooks/joinery") | {
    "description": "Where events are POSTed: HTTPS in live mode, in test mode plain HTTP and any port as well. It must "
    "be a public address. Redirects are not followed."
}
EVENT_TYPES: Final[Schema] = array(
    {"type": "string", "enum": [*_TYPES, EVERY_TYPE], "examples": ["offer.changed"]},
    least=1,
    most=MOST_TYPES,
    description='The types wanted, or `["*"]` for every public type, present and future.',
) | {"uniqueItems": True}
FILTERS: Final = closed(
    {
        "sources": array(
            id_of("src"),
            least=1,
            most=MOST_SOURCES,
            description="Of offers' and sources' events only those of these sources. Products' and variants' all come.",
        ),
        "categories": array(
            id_of("ctg"),
            least=1,
            most=MOST_CATEGORIES,
            description="Of products', variants' and offers' events only those filed under or below these.",
        ),
        "catalogues": array(
            id_of("cat"),
            least=1,
            most=MOST_CATALOGUES,
            description="Only events of these catalogues. One that you cannot see has no events for you.",
        ),
    },
    description="Which events are wanted beside their types; a filter that is left out lets everything through. Types "
    "that only webhooks carry are not narrowed.",
)
PAYLOAD: Final = word(*PAYLOADS) | {
    "description": "`thin` names the fields that changed, `fat` also carries the product, variant or offer as `data."
    "object`, and needs the plan feature `fat_webhooks`."
}
COALESCE: Final = integer(
    0,
    least=0,
    most=LONGEST_WINDOW,
    description="Seconds that each delivery waits, combining what changes meanwhile about the same product, variant or "
    "offer into one event; 0 sends every change as it happens.",
)
API_VERSION: Final = word(*reversed(SUPPORTED.dates)) | {
    "description": "The version whose shape the events have; that of the creating request unless given."
}
DESCRIPTION: Final = text("The shop's price cache", longest=500)
SECRET: Final = text(
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
    description="The signing secret, told this once: keep it. The key is what follows `whsec_`, decoded from base64.",
)
LAST4: Final = text("KYo=", longest=4, shortest=4)
ENDPOINT: Final = record(
    "webhook_endpoint",
    {
        "id": id_of("whe"),
        "livemode": {"type": "boolean", "examples": [True]},
        "url": URL,
        "event_types": EVENT_TYPES,
        "filters": record(
            None, dict(FILTERS["properties"]), optional=("sources", "categories", "catalogues"),
            description="Empty when nothing is narrowed.",
        ),
        "payload": PAYLOAD,
        "coalesce_seconds": COALESCE,
        "api_version": API_VERSION,
        "description": DESCRIPTION,
        "status": word(*EndpointStatus),
        "status_reason": record(
            None,
            {"code": word(*DisabledReason)},
            description="Why the service disabled it: the receiver answered 410 (`gone`), or nothing succeeded for 72 "
            "hours (`failing`).",
        ),
        "secret_last4": LAST4,
        "rotation": record(
            None,
            {"expires_at": timestamp(), "last4": LAST4},
            description="Present while the replaced secret goes on signing beside the present one.",
        ),
        "version": integer(3, least=1, description="What If-Match compares."),
        "created_at": timestamp(),
        "updated_at": timestamp(),
        "last_success_at": timestamp("When a delivery last succeeded."),
        "failing_since": timestamp("The first failed attempt since the last success."),
    },
    optional=("description", "status_reason", "rotation", "last_success_at", "failing_since"),
)  # fmt: skip
ENDPOINT_WITH_SECRET: Final = ENDPOINT | {
    "title": "webhook_endpoint_with_secret",
    "properties": ENDPOINT["properties"] | {"secret": SECRET},
    "required": [*ENDPOINT["required"], "secret"],
}
ENDPOINTS: Final = list_of(ENDPOINT)
_SETTINGS: Final = {
    "url": URL,
    "event_types": EVENT_TYPES,
    "filters": FILTERS,
    "payload": PAYLOAD,
    "coalesce_seconds": COALESCE,
    "api_version": API_VERSION,
}
CREATE: Final = closed({**_SETTINGS, "description": DESCRIPTION}, ("url", "event_types"))
PATCH: Final = closed(
    {
        **_SETTINGS,
        "event_types": EVENT_TYPES | {"description": "Replaces the types as a whole."},
        "filters": FILTERS | {"description": "Replaces the filters as a whole; `{}` lets everything through."},
        "description": nullable(DESCRIPTION) | {"description": "null takes it away."},
        "status": word(*EndpointStatus),
    }
)
ATTEMPT: Final = record(
    None,
    {
        "at": timestamp(),
        "status": word(*AttemptStatus),
        "duration_ms": integer(84, least=0),
        "failure": _first(AttemptFailure.HTTP_STATUS),
        "response_status": integer(503),
        "response_body": text("upstream busy", longest=4096, shortest=0, description="The answer's first 1 KiB."),
        "response_headers": map_of({"type": "string"}, {"retry-after": "30"}, "Of the answer, what explains it."),
    },
    optional=("failure", "response_status", "response_body", "response_headers"),
)
DELIVERY: Final = record(
    "webhook_delivery",
    {
        "id": id_of("dlv"),
        "endpoint": id_of("whe"),
        "event": id_of("evt", "What the header webhook-id says."),
        "type": text("offer.changed"),
        "subject": text("ofr_01J8ZQ5T3V7XK2M9RB4CDW"),
        "status": _first(DeliveryStatus.SUCCEEDED),
        "body": text(
            '{"id":"evt_01J8ZQ5T3V7XK2M9RB4CDW","type":"offer.changed"}',
            longest=1 << 24,
            description="Exactly what is POSTed; absent until the first attempt.",
        ),
        "attempts": array(ATTEMPT, description="Oldest first."),
        "next_attempt_at": timestamp("Present while an attempt is planned."),
        "created_at": timestamp(),
        "completed_at": timestamp("When it succeeded, or was given up."),
    },
    optional=("body", "next_attempt_at", "completed_at"),
)
DELIVERIES: Final = list_of(DELIVERY)
RECOVER: Final = closed(
    {
        "since": timestamp("Deliveries made at that time or later."),
        "until": timestamp("Deliveries made at that time or before; now unless given.")
        | {"examples": ["2026-11-20T15:08:00.000Z"]},
    },
    ("since",),
)
RECOVERY: Final = record(
    "webhook_recovery",
    {
        "endpoint": id_of("whe"),
        "requeued": integer(42, least=0, description="How many."),
        "has_more": flag(False, "Whether others of the range are left: ask again once these are through."),
    },
)
ROTATE: Final = closed(
    {
        "overlap_hours": integer(
            USUAL_OVERLAP,
            least=0,
            most=LONGEST_OVERLAP,
            description="How long the present secret goes on signing beside the new one; 0 ends it at once.",
        )
    }
)
SAMPLE: Final = closed(
    {
        "type": {
            "type": "string",
            "enum": list(TYPES_WITH_SAMPLE),
            "examples": ["offer.changed"],
            "description": "A type that there is a sample of.",
        }
    },
    ("type",),
)
TEST_EVENT: Final = record(
    "test_event",
    {"id": id_of("evt"), "type": text("offer.changed"), "subject": text("ofr_01J8ZQ5T3V7XK2M9RB4CDW"), "event": EVENT},
)
"""What POST /v1/test/events answers."""


def to_wire(endpoint: Endpoint, livemode: bool, now: datetime) -> dict[str, Any]:
    """An endpoint as it stands now, without its secret."""
    wire: dict[str, Any] = {
        "object": "webhook_endpoint",
        "id": endpoint.id,
        "livemode": livemode,
        "url": endpoint.url,
        "event_types": list(endpoint.event_types),
        "filters": filters_told(endpoint.filters),
        "payload": endpoint.payload,
        "coalesce_seconds": endpoint.coalesce_seconds,
        "api_version": endpoint.api_version,
        "status": endpoint.status,
        "secret_last4": endpoint.secret_last4,
        "version": endpoint.version,
        "created_at": instant(endpoint.created_at),
        "updated_at": instant(endpoint.updated_at),
    }
    rotation = endpoint.rotation if endpoint.rotation and now < endpoint.rotation.expires_at else None
    return wire | present(
        description=endpoint.description,
        status_reason={"code": endpoint.disabled_for} if endpoint.disabled_for else None,
        rotation=rotation and {"expires_at": instant(rotation.expires_at), "last4": rotation.last4},
        last_success_at=_moment(endpoint.last_success_at),
        failing_since=_moment(endpoint.failing_since),
    )


def delivery_to_wire(delivery: Delivery) -> dict[str, Any]:
    """A delivery with all its attempts."""
    wire: dict[str, Any] = {
        "object": "webhook_delivery",
        "id": delivery.id,
        "endpoint": delivery.endpoint,
        "event": delivery.event,
        "type": delivery.type,
        "subject": delivery.subject,
        "status": delivery.status,
        "attempts": [_attempt(attempt) for attempt in delivery.attempts],
        "created_at": instant(delivery.created_at),
    }
    return wire | present(
        body=delivery.body.decode() if delivery.body is not None else None,
        next_attempt_at=_moment(delivery.next_attempt_at),
        completed_at=_moment(delivery.completed_at),
    )


def _attempt(attempt: Attempt) -> dict[str, Any]:
    wire = {"at": instant(attempt.at), "status": attempt.status, "duration_ms": attempt.duration_ms}
    return wire | present(
        failure=attempt.failure,
        response_status=attempt.response_status,
        response_body=attempt.response_body,
        response_headers=dict(attempt.response_headers) or None,
    )


def _moment(moment: datetime | None) -> str | None:
    return instant(moment) if moment else None


def sample_to_wire(event: Event, tenant: Tenant, now: datetime) -> dict[str, Any]:
    """A sample that was emitted, with the envelope that everybody gets."""
    envelope = events.envelope(event, tenant, now)
    return {"object": "test_event", "id": event.id, "type": event.type, "subject": event.subject, "event": envelope}


class WirePayloadRendering:
    """PayloadRendering."""

    def __init__(self, versions: Versions = SUPPORTED) -> None:
        self._versions = versions

    def shaped(self, body: bytes, version: str) -> bytes:
        """The body in the shape of that dated version."""
        return body if self._versions.unchanged(version) else _encode(self._versions.shape(_decode(body), version))

    def fat(self, body: bytes, object: bytes | None) -> bytes:
        """The envelope with the resource's JSON as `data.object`."""
        if object is None:
            return body
        envelope = _parts(body)
        data = _parts(envelope["data"])
        data["object"] = msgspec.Raw(object)
        envelope["data"] = msgspec.Raw(_encode(data))
        return _encode(envelope)
