"""The webhooks section of the OpenAPI description: what is POSTed to receivers, and what their answers mean."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from adapters.wire.event_types import EVENT_TYPES
from domain.kernel import schema
from domain.kernel.versions import SUPPORTED

Json = dict[str, Any]

HEADERS: Final[dict[str, Json]] = {
    "webhook-id": schema.id_of("evt", "The event's id, the same in every attempt: deduplicate by it."),
    "webhook-timestamp": schema.text(
        "1795180080", description="Unix seconds of this attempt. Refuse what is more than five minutes off."
    ),
    "webhook-signature": schema.text(
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        description="`v1,` and the base64 of HMAC-SHA256 over `<webhook-id>.<webhook-timestamp>.<body>`, keyed with the "
        "decoded secret (Standard Webhooks 1.0.0). While a secret is being rotated there are two, with a blank between: "
        "any one that fits is enough.",
    ),
    "Service-Version": schema.enum(*reversed(SUPPORTED.dates))
    | {"description": "The version whose shape the body has."},
    "Service-Feed-Cursor": schema.text(
        "q83vASNFZ4mrze8BMTIzNA",
        description="A cursor of the change feed: everything before it has been delivered to this endpoint or is none of "
        "its events. Go on from it with GET /v1/changes after an outage of your own.",
    ),
    "User-Agent": schema.text("Joinery/1.0"),
}
_ANSWERS: Final[Json] = {
    "2XX": {"description": "Taken. Answer within 15 seconds; work on it afterwards."},
    "410": {"description": "Nobody receives here any more: the endpoint is disabled at once."},
    "default": {
        "description": "Anything else, and no answer, is tried again: after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h, "
        "14 h, 14 h and 14 h. Redirects are not followed. After 72 hours without a success the endpoint is disabled.",
        "headers": {
            "Retry-After": {
                "description": "With 429, 502 and 504: when to try again instead.",
                "schema": schema.text("30"),
            },
            "webhook-delivery": {
                "description": "`abort-message` has this one event not tried again.",
                "schema": schema.enum("abort-message"),
            },
        },
    },
}


PARAMETERS: Final[dict[str, Json]] = {
    f"event-{name}": {"name": name, "in": "header", "required": True, "schema": described}
    for name, described in HEADERS.items()
}
"""The headers of every POST, as components."""


def event_webhook(type: str, reference: Callable[[Any, str], Any]) -> Json:
    """The path item of the POST of one type's events; `reference` makes a schema's resources references."""
    described = EVENT_TYPES[type]
    name = type.replace(".", "_")
    content = {"schema": reference(described, name), "examples": {"usual": {"value": schema.example(described)}}}
    return {
        "post": {
            "operationId": f"receive_{name}",
            "tags": ["events"],
            "summary": f"{type}: POSTed to your endpoint",
            "description": "Events of one product, variant or offer arrive in order, others beside them; apply by "
            "`version`. The same event may come more than once. Thin payloads have only the paths in `data.fields`, fat "
            "ones old and new values and the product, variant or offer as `data.object`.",
            "parameters": [{"$ref": f"#/components/parameters/{key}"} for key in PARAMETERS],
            "requestBody": {"required": True, "content": {"application/json": content}},
            "responses": _ANSWERS,
            "security": [],
        }
    }


WEBHOOKS: Final[dict[str, Callable[[Callable[[Any, str], Any]], Json]]] = {
    type: partial(event_webhook, type) for type in EVENT_TYPES
}
"""What an area tells of the requests that the service sends: a path item for each type of event."""
