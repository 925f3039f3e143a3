"""JSON of webhook endpoints and deliveries, and of the requests to endpoints (docs/conventions.md#endpoints)."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec

from adapters.api_json import events
from adapters.api_json.changes import EVENT
from adapters.api_json.resource import Body, JsonResource, create_decoder, create_nested_list_field
from domain.events.model import Event
from domain.kernel.resource import RenderContext, computed, optional
from domain.kernel.schema import (
    Schema,
    boolean,
    enum,
    id_schema,
    integer,
    map_schema,
    response_object,
    strict_object,
    text,
    timestamp,
)
from domain.kernel.tenancy import Tenant
from domain.kernel.versions import SUPPORTED, Versions
from domain.webhooks.model import (
    LAST4,
    AttemptFailure,
    AttemptStatus,
    Delivery,
    DeliveryAttempt,
    DeliveryStatus,
    DisabledReason,
    Endpoint,
    RecoveryRange,
)
from domain.webhooks.samples import TYPES_WITH_SAMPLE

_decode = msgspec.json.Decoder(dict, float_hook=Decimal).decode
"""Decoder that returns numbers with a fraction or an exponent as exact decimals, with the same digits as in the log."""
_encode = msgspec.json.Encoder(decimal_format="number").encode
_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _enum_with_example(example: StrEnum) -> Schema:
    """Return the schema of the enum class of `example`, with `example` as the schema's example."""
    return enum(example, *(value for value in type(example) if value != example))


MAX_OVERLAP_HOURS = 72
DEFAULT_OVERLAP_HOURS = 24

SECRET = text(
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
    description="The signing secret, returned only once. The key is the base64-decoded text after `whsec_`.",
)
ENDPOINT = JsonResource.from_dataclass(
    Endpoint,
    "webhook_endpoint",
    {
        "livemode": computed(boolean(), lambda _, view: view.tenant.livemode),
        "status_reason": optional(
            response_object(
                None,
                {"code": enum(*DisabledReason)},
                description="Why the service disabled the endpoint: the receiver returned 410 (`gone`), or no delivery succeeded for "
                "72 hours (`failing`).",
            )
        ),
        "rotation": optional(
            computed(
                response_object(
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
ATTEMPT = JsonResource[DeliveryAttempt](
    None,
    {
        "at": timestamp(),
        "status": enum(*AttemptStatus),
        "duration_ms": integer(84, minimum=0),
        "failure": optional(_enum_with_example(AttemptFailure.HTTP_STATUS)),
        "response_status": optional(integer(503)),
        "response_body": optional(
            text("upstream busy", max_length=4096, min_length=0, description="The first 1 KiB of the response.")
        ),
        "response_headers": optional(
            computed(
                map_schema(
                    {"type": "string"},
                    {"retry-after": "30"},
                    "Headers of the response that help to explain the failure.",
                ),
                lambda attempt, _: attempt.response_headers or None,
            )
        ),
    },
)
DELIVERY = JsonResource[Delivery](
    "webhook_delivery",
    {
        "id": id_schema("dlv"),
        "endpoint": id_schema("whe"),
        "event": id_schema("evt", "The ID in the header webhook-id."),
        "type": text("offer.changed"),
        "subject": text("ofr_01J8ZQ5T3V7XK2M9RB4CDW"),
        "status": _enum_with_example(DeliveryStatus.SUCCEEDED),
        "body": optional(
            computed(
                text(
                    '{"id":"evt_01J8ZQ5T3V7XK2M9RB4CDW","type":"offer.changed"}',
                    max_length=1 << 24,
                    description="The exact request body; omitted until the first attempt.",
                ),
                lambda delivery, _: delivery.body.decode() if delivery.body is not None else None,
            )
        ),
        "attempts": create_nested_list_field(ATTEMPT, lambda delivery: delivery.attempts, "Attempts, oldest first."),
        "next_attempt_at": optional(timestamp("Present while an attempt is scheduled.")),
        "created_at": timestamp(),
        "completed_at": optional(timestamp("When the delivery succeeded or finally failed.")),
    },
    path="/v1/webhook-endpoints/{endpoint}/deliveries/{id}",
)
FORECAST_PREVIEW_PROPERTIES = {
    "forecast": response_object(
        None,
        {
            "days": integer(7, minimum=1, description="Number of past days from which the forecast is computed."),
            "events": integer(1840, minimum=0, description="Number of events that the endpoint would have received."),
            "peak_per_minute": integer(310, minimum=0, description="Number of these events in the busiest minute."),
            "deliveries": integer(
                1275, minimum=0, description="Number of deliveries after coalescing by `coalesce_seconds`."
            ),
        },
        description="Estimate of the events and deliveries of the endpoint, computed from the organisation's past events.",
    )
}
"""Property `forecast` that previews of a webhook endpoint have in addition to those of all previews."""
RECOVER_BODY = Body(
    strict_object(
        {
            "since": timestamp("Only deliveries created at or after this time."),
            "until": timestamp("Only deliveries created at or before this time. The default is the current time.")
            | {"examples": ["2026-11-20T15:08:00.000Z"]},
        },
        ("since",),
    ),
    create_decoder(RecoveryRange),
)
RECOVERY = response_object(
    "webhook_recovery",
    {
        "endpoint": id_schema("whe"),
        "requeued": integer(42, minimum=0, description="Number of deliveries that will be sent again."),
        "has_more": boolean(
            False,
            "Whether the range contains failed deliveries that were not requeued. If so, repeat the request when the requeued deliveries have succeeded or failed.",
        ),
    },
)
ROTATE_BODY = Body(
    strict_object(
        {
            "overlap_hours": integer(
                DEFAULT_OVERLAP_HOURS,
                minimum=0,
                maximum=MAX_OVERLAP_HOURS,
                description="Hours during which the current secret signs in addition to the new secret. With 0, the current secret is revoked at once.",
            )
        }
    ),
    lambda body: body.get("overlap_hours", DEFAULT_OVERLAP_HOURS),
    is_required=False,
)
SAMPLE_BODY = Body(
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
TEST_EVENT = response_object(
    "test_event",
    {
        "id": id_schema("evt"),
        "type": text("offer.changed"),
        "subject": text("ofr_01J8ZQ5T3V7XK2M9RB4CDW"),
        "event": EVENT,
    },
)
"""Schema of the response of POST /v1/test/events."""


def render_endpoint(endpoint: Endpoint, livemode: bool, now: datetime) -> Mapping[str, Any]:
    """Render a webhook endpoint as the data of an event."""
    return ENDPOINT.render(endpoint, RenderContext(Tenant("", livemode), now))


def render_sample(event: Event, tenant: Tenant, now: datetime) -> dict[str, Any]:
    """Render the response of POST /v1/test/events, which sends a sample event."""
    envelope = events.render_envelope(event, tenant, now)
    return {"object": "test_event", "id": event.id, "type": event.type, "subject": event.subject, "event": envelope}


class JsonPayloadRendering:
    """Encoding of webhook payloads as JSON; implements the port PayloadRendering."""

    def __init__(self, versions: Versions = SUPPORTED) -> None:
        self._versions = versions

    def convert_to_version(self, body: bytes, version: str) -> bytes:
        """Convert the body of an event to the format of an API version."""
        return (
            body
            if self._versions.has_latest_shape(version)
            else _encode(self._versions.convert(_decode(body), version))
        )

    def encode_combined_envelope(self, envelope: Mapping[str, Any]) -> bytes:
        """Encode the envelope of an event that combines several events; shorten it above EVENT_BYTES bytes."""
        return events.encode_bounded_envelope(envelope)

    def add_object(self, body: bytes, object: bytes | None) -> bytes:
        """Add the JSON of a resource to the body of an event as `data.object`; None leaves the body unchanged."""
        if object is None:
            return body
        envelope = _raw_members(body)
        data = _raw_members(envelope["data"])
        data["object"] = msgspec.Raw(object)
        envelope["data"] = msgspec.Raw(_encode(data))
        return _encode(envelope)
