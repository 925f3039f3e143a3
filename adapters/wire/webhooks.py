"""The JSON of webhook endpoints and deliveries, and the bytes that are POSTed (docs/conventions.md#endpoints)."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec

from adapters.wire import events
from adapters.wire.changes import EVENT
from adapters.wire.resource import Body, Resource, into, parts
from domain.events.model import Event
from domain.kernel.resource import View, computed, optional
from domain.kernel.schema import (
    Schema,
    boolean,
    enum,
    id_of,
    integer,
    map_of,
    record,
    strict_object,
    text,
    timestamp,
)
from domain.kernel.tenancy import Tenant
from domain.kernel.versions import SUPPORTED, Versions
from domain.webhooks.model import (
    LAST4,
    Attempt,
    AttemptFailure,
    AttemptStatus,
    Delivery,
    DeliveryStatus,
    DisabledReason,
    Endpoint,
    RecoveryRange,
)
from domain.webhooks.samples import TYPES_WITH_SAMPLE

_decode = msgspec.json.Decoder(dict, float_hook=Decimal).decode
"""Exact: a number is sent with the digits that the log has."""
_encode = msgspec.json.Encoder(decimal_format="number").encode
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _first(example: StrEnum) -> Schema:
    """One of the values of its kind, with this one as the example."""
    return enum(example, *(value for value in type(example) if value != example))


LONGEST_OVERLAP = 72
USUAL_OVERLAP = 24

SECRET = text(
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
    description="The signing secret, told this once: keep it. The key is what follows `whsec_`, decoded from base64.",
)
ENDPOINT = Resource.of(
    Endpoint,
    "webhook_endpoint",
    {
        "livemode": computed(boolean(), lambda _, view: view.tenant.livemode),
        "status_reason": optional(
            record(
                None,
                {"code": enum(*DisabledReason)},
                description="Why the service disabled it: the receiver answered 410 (`gone`), or nothing succeeded for 72 "
                "hours (`failing`).",
            )
        ),
        "rotation": optional(
            computed(
                record(
                    None,
                    {"expires_at": timestamp(), "last4": LAST4},
                    description="Present while the replaced secret goes on signing beside the present one.",
                ),
                lambda endpoint, view: endpoint.rotation_at(view.now),
            )
        ),
    },
    path="/v1/webhook-endpoints/{id}",
)
ENDPOINT_WITH_SECRET = ENDPOINT.schema | {
    "title": "webhook_endpoint_with_secret",
    "properties": ENDPOINT.schema["properties"] | {"secret": SECRET},
    "required": [*ENDPOINT.schema["required"], "secret"],
}
ATTEMPT = Resource[Attempt](
    None,
    {
        "at": timestamp(),
        "status": enum(*AttemptStatus),
        "duration_ms": integer(84, least=0),
        "failure": optional(_first(AttemptFailure.HTTP_STATUS)),
        "response_status": optional(integer(503)),
        "response_body": optional(
            text("upstream busy", longest=4096, shortest=0, description="The answer's first 1 KiB.")
        ),
        "response_headers": optional(
            computed(
                map_of({"type": "string"}, {"retry-after": "30"}, "Of the answer, what explains it."),
                lambda attempt, _: attempt.response_headers or None,
            )
        ),
    },
)
DELIVERY = Resource[Delivery](
    "webhook_delivery",
    {
        "id": id_of("dlv"),
        "endpoint": id_of("whe"),
        "event": id_of("evt", "What the header webhook-id says."),
        "type": text("offer.changed"),
        "subject": text("ofr_01J8ZQ5T3V7XK2M9RB4CDW"),
        "status": _first(DeliveryStatus.SUCCEEDED),
        "body": optional(
            computed(
                text(
                    '{"id":"evt_01J8ZQ5T3V7XK2M9RB4CDW","type":"offer.changed"}',
                    longest=1 << 24,
                    description="Exactly what is POSTed; absent until the first attempt.",
                ),
                lambda delivery, _: delivery.body.decode() if delivery.body is not None else None,
            )
        ),
        "attempts": parts(ATTEMPT, lambda delivery: delivery.attempts, "Oldest first."),
        "next_attempt_at": optional(timestamp("Present while an attempt is planned.")),
        "created_at": timestamp(),
        "completed_at": optional(timestamp("When it succeeded, or was given up.")),
    },
    path="/v1/webhook-endpoints/{endpoint}/deliveries/{id}",
)
FORECAST = {
    "forecast": record(
        None,
        {
            "days": integer(7, least=1),
            "events": integer(1840, least=0, description="Events that it would have got."),
            "peak_per_minute": integer(310, least=0, description="The most of them in one minute."),
            "deliveries": integer(1275, least=0, description="POSTs after combining by coalesce_seconds."),
        },
        description="What the last days' own events would have come to.",
    )
}
"""What `explain` tells beside changes, events and jobs."""
RECOVER = Body(
    strict_object(
        {
            "since": timestamp("Deliveries made at that time or later."),
            "until": timestamp("Deliveries made at that time or before; now unless given.")
            | {"examples": ["2026-11-20T15:08:00.000Z"]},
        },
        ("since",),
    ),
    into(RecoveryRange),
)
RECOVERY = record(
    "webhook_recovery",
    {
        "endpoint": id_of("whe"),
        "requeued": integer(42, least=0, description="How many."),
        "has_more": boolean(False, "Whether others of the range are left: ask again once these are through."),
    },
)
ROTATE = Body(
    strict_object(
        {
            "overlap_hours": integer(
                USUAL_OVERLAP,
                least=0,
                most=LONGEST_OVERLAP,
                description="How long the present secret goes on signing beside the new one; 0 ends it at once.",
            )
        }
    ),
    lambda body: body.get("overlap_hours", USUAL_OVERLAP),
    required=False,
)
SAMPLE = Body(
    strict_object(
        {
            "type": {
                "title": "feed_event_type",
                "type": "string",
                "enum": list(TYPES_WITH_SAMPLE),
                "examples": ["offer.changed"],
                "description": "A type that there is a sample of.",
            }
        },
        ("type",),
    ),
    lambda body: body["type"],
)
TEST_EVENT = record(
    "test_event",
    {"id": id_of("evt"), "type": text("offer.changed"), "subject": text("ofr_01J8ZQ5T3V7XK2M9RB4CDW"), "event": EVENT},
)
"""What POST /v1/test/events answers."""


def described(endpoint: Endpoint, livemode: bool, now: datetime) -> Mapping[str, Any]:
    """The endpoint as the resource that events carry."""
    return ENDPOINT.render(endpoint, View(Tenant("", livemode), now))


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

    def whole(self, envelope: Mapping[str, Any]) -> bytes:
        """A combined envelope's bytes."""
        return events.bounded(envelope)

    def fat(self, body: bytes, object: bytes | None) -> bytes:
        """The envelope with the resource's JSON as `data.object`."""
        if object is None:
            return body
        envelope = _parts(body)
        data = _parts(envelope["data"])
        data["object"] = msgspec.Raw(object)
        envelope["data"] = msgspec.Raw(_encode(data))
        return _encode(envelope)
