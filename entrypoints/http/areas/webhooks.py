"""/v1/webhook-endpoints with their deliveries, and POST /v1/test/events."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from adapters.wire import webhooks as wire
from adapters.wire.schema import id_of, text, word
from domain.webhooks.model import DeliveryFilter, DeliveryStatus, Endpoint
from entrypoints.http.operation import Operation, Reply, RequestContext, Schema, Tool

_FILTERS: Final[dict[str, Schema]] = {
    "status": word(*DeliveryStatus) | {"description": "Only deliveries in this state."},
    "type": text("offer.changed", longest=100, description="Only deliveries of this event type."),
    "event": id_of("evt", "Only the deliveries of this event."),
}
_ONE: Final = {"id": "whe"}
_DELIVERY: Final = {"id": "whe", "delivery": "dlv"}


def _told(call: RequestContext, endpoint: Endpoint) -> dict[str, Any]:
    return wire.to_wire(endpoint, call.tx.tenant.livemode, call.tx.now)


async def list_all(call: RequestContext) -> Reply:
    """The tenant's endpoints."""
    return call.listing(
        await call.use.webhooks.page(call.tx, call.page_request), lambda endpoint: _told(call, endpoint)
    )


async def create(call: RequestContext) -> Reply:
    """A new endpoint with its secret."""
    endpoint, secret = await call.use.webhooks.create(call.tx, call.body, call.version)
    headers = {"Location": f"{call.base_url}/v1/webhook-endpoints/{endpoint.id}"}
    return Reply(_told(call, endpoint) | {"secret": secret}, headers=headers, version=endpoint.version)


async def read(call: RequestContext) -> Reply:
    """One endpoint."""
    endpoint = await call.use.webhooks.get(call.tx, call.ids["id"])
    return Reply(_told(call, endpoint), version=endpoint.version)


async def update(call: RequestContext) -> Reply:
    """Change an endpoint."""
    endpoint = await call.use.webhooks.update(call.tx, call.ids["id"], call.body, call.expected_version)
    return Reply(_told(call, endpoint), version=endpoint.version)


async def delete(call: RequestContext) -> Reply:
    """Forget an endpoint."""
    await call.use.webhooks.delete(call.tx, call.ids["id"])
    return Reply()


async def list_deliveries(call: RequestContext) -> Reply:
    """An endpoint's deliveries."""
    wanted = DeliveryFilter(**call.query)
    page = await call.use.webhooks.deliveries(call.tx, call.ids["id"], wanted, call.page_request)
    return call.listing(page, wire.delivery_to_wire)


async def read_delivery(call: RequestContext) -> Reply:
    """One delivery."""
    found = await call.use.webhooks.delivery(call.tx, call.ids["id"], call.ids["delivery"])
    return Reply(wire.delivery_to_wire(found))


async def resend(call: RequestContext) -> Reply:
    """Send a finished delivery again."""
    found = await call.use.webhooks.resend(call.tx, call.ids["id"], call.ids["delivery"])
    return Reply(wire.delivery_to_wire(found))


async def recover(call: RequestContext) -> Reply:
    """Send again what failed."""
    since = datetime.fromisoformat(call.body["since"]).astimezone(UTC)
    until = datetime.fromisoformat(call.body["until"]).astimezone(UTC) if "until" in call.body else None
    recovery = await call.use.webhooks.recover(call.tx, call.ids["id"], since, until)
    return Reply({"object": "webhook_recovery", "endpoint": call.ids["id"], **asdict(recovery)})


async def rotate_secret(call: RequestContext) -> Reply:
    """A new secret."""
    hours = (call.body or {}).get("overlap_hours", wire.USUAL_OVERLAP)
    endpoint, secret = await call.use.webhooks.rotate_secret(call.tx, call.ids["id"], hours)
    return Reply(_told(call, endpoint) | {"secret": secret}, version=endpoint.version)


async def test(call: RequestContext) -> Reply:
    """Send a test event."""
    delivery = await call.use.webhooks.test(call.tx, call.ids["id"])
    place = f"{call.base_url}/v1/webhook-endpoints/{delivery.endpoint}/deliveries/{delivery.id}"
    return Reply(wire.delivery_to_wire(delivery), headers={"Location": place})


async def emit_sample(call: RequestContext) -> Reply:
    """Append a sample event to the sandbox's log."""
    event = await call.use.webhooks.emit_sample(call.tx, call.body["type"])
    return Reply(wire.sample_to_wire(event, call.tx.tenant, call.tx.now))


OPERATIONS: Final = (
    Operation(
        id="webhooks.list",
        method="GET",
        path="/v1/webhook-endpoints",
        summary="List webhook endpoints",
        description="Your endpoints in this mode, newest first. Of secrets only the last four characters are shown.",
        handler=list_all,
        scope="webhooks:read",
        reply=wire.ENDPOINTS,
        rate="read",
        paging="both",
        agent=Tool(),
    ),
    Operation(
        id="webhooks.create",
        method="POST",
        path="/v1/webhook-endpoints",
        summary="Create a webhook endpoint",
        description="Events that happen from now on are POSTed to the URL, signed to the Standard Webhooks "
        "specification. The answer carries the signing secret: keep it, it is never shown again. At most 20 endpoints "
        "per organisation and mode. `Service-Dry-Run: explain` forecasts how many events the endpoint would have got in "
        "the last 7 days.",
        handler=create,
        scope="webhooks:write",
        body=wire.CREATE,
        reply=wire.ENDPOINT_WITH_SECRET,
        status=201,
        rate="write",
        errors=("feature_unavailable", "conflict", "unprocessable"),
        sealed=True,
    ),
    Operation(
        id="webhooks.read",
        method="GET",
        path="/v1/webhook-endpoints/{id}",
        ids=_ONE,
        summary="Read a webhook endpoint",
        description="An endpoint with how it is doing: when a delivery last succeeded and since when attempts fail.",
        handler=read,
        scope="webhooks:read",
        reply=wire.ENDPOINT,
        rate="read",
        agent=Tool(),
    ),
    Operation(
        id="webhooks.update",
        method="PATCH",
        path="/v1/webhook-endpoints/{id}",
        ids=_ONE,
        summary="Change a webhook endpoint",
        description="Fields that are left out stay; `event_types` and `filters` are replaced as wholes. Changed settings "
        "hold for events from then on. Setting the status to `disabled` fails what is on its way, and nothing is stored "
        "while it lasts; setting it to `enabled` starts anew with what happens from then on: have failed deliveries sent "
        "again with recover, and read what was never stored from the change feed.",
        handler=update,
        scope="webhooks:write",
        body=wire.PATCH,
        reply=wire.ENDPOINT,
        rate="write",
        if_match=True,
        errors=("feature_unavailable", "unprocessable"),
        agent=Tool(approval=True),
    ),
    Operation(
        id="webhooks.delete",
        method="DELETE",
        path="/v1/webhook-endpoints/{id}",
        ids=_ONE,
        summary="Delete a webhook endpoint",
        description="Stops every delivery and forgets the secrets. Its deliveries cannot be read any more.",
        handler=delete,
        scope="webhooks:write",
        reply=None,
        status=204,
        rate="write",
    ),
    Operation(
        id="webhooks.list_deliveries",
        method="GET",
        path="/v1/webhook-endpoints/{id}/deliveries",
        ids=_ONE,
        summary="List an endpoint's deliveries",
        description="What was sent to the endpoint, newest first, with every attempt. Kept for 30 days, or for as long as "
        "your plan keeps deliveries.",
        handler=list_deliveries,
        scope="webhooks:read",
        reply=wire.DELIVERIES,
        query=_FILTERS,
        rate="read",
        paging="both",
        agent=Tool(),
    ),
    Operation(
        id="webhooks.read_delivery",
        method="GET",
        path="/v1/webhook-endpoints/{id}/deliveries/{delivery}",
        ids=_DELIVERY,
        summary="Read a delivery",
        description="The body exactly as it was sent, and of every attempt when it was made, how long it took and what "
        "came back.",
        handler=read_delivery,
        scope="webhooks:read",
        reply=wire.DELIVERY,
        rate="read",
        agent=Tool(),
    ),
    Operation(
        id="webhooks.resend",
        method="POST",
        path="/v1/webhook-endpoints/{id}/deliveries/{delivery}/resend",
        ids=_DELIVERY,
        summary="Send a delivery again",
        description="A failed or succeeded delivery is sent again at once: the same bytes under the same webhook-id, "
        "signed anew, with a fresh schedule of attempts. A disabled endpoint, and a delivery that is on its way, answer "
        "409.",
        handler=resend,
        scope="webhooks:write",
        reply=wire.DELIVERY,
        rate="write",
        errors=("conflict",),
        agent=Tool(approval=True),
    ),
    Operation(
        id="webhooks.recover",
        method="POST",
        path="/v1/webhook-endpoints/{id}/recover",
        ids=_ONE,
        summary="Send failed deliveries again",
        description="Every failed delivery that was made in the range is sent again, the oldest of each subject first, "
        "each with a fresh schedule; at most 50,000 are on their way at a time, and `has_more` tells of others. Events that happened while the endpoint was disabled were never stored: read them "
        "from the change feed.",
        handler=recover,
        scope="webhooks:write",
        body=wire.RECOVER,
        reply=wire.RECOVERY,
        rate="write",
        errors=("conflict",),
        agent=Tool(approval=True),
    ),
    Operation(
        id="webhooks.rotate_secret",
        method="POST",
        path="/v1/webhook-endpoints/{id}/rotate-secret",
        ids=_ONE,
        summary="Rotate an endpoint's secret",
        description="Answers a new secret, told this once. For the overlap every delivery carries both signatures, so "
        "that receivers can be changed over without missing one. Rotating again during an overlap ends the older of the "
        "two secrets at once.",
        handler=rotate_secret,
        scope="webhooks:write",
        body=wire.ROTATE,
        body_required=False,
        reply=wire.ENDPOINT_WITH_SECRET,
        rate="write",
        sealed=True,
    ),
    Operation(
        id="webhooks.test",
        method="POST",
        path="/v1/webhook-endpoints/{id}/test",
        ids=_ONE,
        summary="Send a test event",
        description="A signed `webhook.test` event is sent now, whatever the endpoint subscribes to. Read the delivery to "
        "see what came back. A disabled endpoint answers 409.",
        handler=test,
        scope="webhooks:write",
        reply=wire.DELIVERY,
        status=202,
        rate="write",
        errors=("conflict",),
        agent=Tool(approval=True),
    ),
    Operation(
        id="webhooks.emit_sample",
        method="POST",
        path="/v1/test/events",
        summary="Emit a sample event",
        description="In test mode, appends a made-up event of a real type to the log, about things that do not exist, in "
        "your own catalogue. Change feed, stream and every test endpoint that wants it get it like any other. Endpoints "
        "that are narrowed to sources or categories are not sent samples about other ones. Live mode answers 409.",
        handler=emit_sample,
        scope="webhooks:write",
        body=wire.SAMPLE,
        reply=wire.TEST_EVENT,
        status=202,
        rate="write",
        errors=("conflict",),
        agent=Tool(approval=True),
    ),
)
