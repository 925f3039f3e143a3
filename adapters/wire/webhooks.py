"""JSON of webhook endpoints and deliveries, and of the requests to endpoints (docs/conventions.md#endpoints)."""

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
"""Decoder with exact decimals, so that numbers keep the digits of the log."""
_encode = msgspec.json.Encoder(decimal_format="number").encode
_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _enum_with_example(example: StrEnum) -> Schema:
    """Return a schema of the enum's values, with this one as the example."""
    return enum(example, *(value for value in type(example) if value != example))


LONGEST_OVERLAP = 72
USUAL_OVERLAP = 24

SECRET = text(
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
    description="The signing secret, returned only once. The key is the base64-decoded text after `whsec_`.",
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
                description="Why the service disabled the endpoint: the receiver answered 410 (`gone`), or no delivery succeeded for "
                "72 hours (`failing`).",
            )
        ),
        "rotation": optional(
            computed(
                record(
                    None,
                    {"expires_at": timestamp(), "last4": LAST4},
                    description="Present while the previous secret signs in addition to the current one.",
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
        "failure": optional(_enum_with_example(AttemptFailure.HTTP_STATUS)),
        "response_status": optional(integer(503)),
        "response_body": optional(
            text("upstream busy", longest=4096, shortest=0, description="The first 1 KiB of the response.")
        ),
        "response_headers": optional(
            computed(
                map_of({"type": "string"}, {"retry-after": "30"}, "Headers of the response that help to explain it."),
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
        "event": id_of("evt", "The ID in the header webhook-id."),
        "type": text("offer.changed"),
        "subject": text("ofr_01J8ZQ5T3V7XK2M9RB4CDW"),
        "status": _enum_with_example(DeliveryStatus.SUCCEEDED),
        "body": optional(
            computed(
                text(
                    '{"id":"evt_01J8ZQ5T3V7XK2M9RB4CDW","type":"offer.changed"}',
                    longest=1 << 24,
                    description="The exact request body; omitted until the first attempt.",
                ),
                lambda delivery, _: delivery.body.decode() if delivery.body is not None else None,
            )
        ),
        "attempts": parts(ATTEMPT, lambda delivery: delivery.attempts, "Attempts, oldest first."),
        "next_attempt_at": optional(timestamp("Present while an attempt is scheduled.")),
        "created_at": timestamp(),
        "completed_at": optional(timestamp("When the delivery succeeded or finally failed.")),
    },
    path="/v1/webhook-endpoints/{endpoint}/deliveries/{id}",
)
FORECAST = {
    "forecast": record(
        None,
        {
            "days": integer(7, least=1),
            "events": integer(1840, least=0, description="Number of events that the endpoint would have received."),
            "peak_per_minute": integer(310, least=0, description="Maximum number of events in one minute."),
            "deliveries": integer(
                1275, least=0, description="Number of deliveries after combining by coalesce_seconds."
            ),
        },
        description="Estimate from the organisation's events of the last days.",
    )
}
"""Additional preview in `explain`, besides changes, events and jobs."""
RECOVER = Body(
    strict_object(
        {
            "since": timestamp("Only deliveries created at or after this time."),
            "until": timestamp("Only deliveries created at or before this time; by default now.")
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
        "requeued": integer(42, least=0, description="Number of deliveries that will be sent again."),
        "has_more": boolean(
            False, "Whether the range has more deliveries. Repeat the request when these are complete."
        ),
    },
)
ROTATE = Body(
    strict_object(
        {
            "overlap_hours": integer(
                USUAL_OVERLAP,
                least=0,
                most=LONGEST_OVERLAP,
                description="Hours during which the current secret signs in addition to the new one; 0 revokes it at once.",
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
                "description": "An event type that has a sample.",
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
"""Response of POST /v1/test/events."""


def described(endpoint: Endpoint, livemode: bool, now: datetime) -> Mapping[str, Any]:
    """Render the endpoint for events."""
    return ENDPOINT.render(endpoint, View(Tenant("", livemode), now))


def sample_to_wire(event: Event, tenant: Tenant, now: datetime) -> dict[str, Any]:
    """Render an emitted sample event."""
    envelope = events.envelope(event, tenant, now)
    return {"object": "test_event", "id": event.id, "type": event.type, "subject": event.subject, "event": envelope}


class WirePayloadRendering:
    """PayloadRendering port."""

    def __init__(self, versions: Versions = SUPPORTED) -> None:
        self._versions = versions

    def shaped(self, body: bytes, version: str) -> bytes:
        """Convert the body to the API version."""
        return body if self._versions.unchanged(version) else _encode(self._versions.shape(_decode(body), version))

    def whole(self, envelope: Mapping[str, Any]) -> bytes:
        """Encode the envelope of a combined event."""
        return events.bounded(envelope)

    def fat(self, body: bytes, object: bytes | None) -> bytes:
        """Add the resource's JSON as `data.object`; None leaves the body unchanged."""
        if object is None:
            return body
        envelope = _raw_members(body)
        data = _raw_members(envelope["data"])
        data["object"] = msgspec.Raw(object)
        envelope["data"] = msgspec.Raw(_encode(data))
        return _encode(envelope)
