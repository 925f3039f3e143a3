"""/v1/webhook-endpoints with their deliveries, and POST /v1/test/events."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final, TypeAlias

from adapters.wire import webhooks as wire
from domain.changes.ports import EventRendering
from domain.jobs.usecases.ticks import Tick
from domain.kernel.schema import Schema, enum, id_of, text
from domain.secrets.ports import Vault
from domain.webhooks.model import DeliveryFilter, DeliveryStatus
from domain.webhooks.ports import DeliveryLog
from domain.webhooks.usecases.service import Rotations, WebhookService
from entrypoints.dependencies import Dependencies
from entrypoints.operations.collection import Collection
from entrypoints.operations.openapi import WEBHOOKS
from entrypoints.operations.operation import Area, Reply, Tool, Undoing, WriteContext
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.maintenance import Maintenance
from ports.unit_of_work import UnitOfWork

Writing: TypeAlias = WriteContext[WebhookService]

_FILTERS: Final[dict[str, Schema]] = {
    "status": enum(*DeliveryStatus) | {"description": "Only deliveries with this status."},
    "type": text("offer.changed", longest=100, description="Only deliveries of this event type."),
    "event": id_of("evt", "Only deliveries of this event."),
}
_DELIVERIES = "/v1/webhook-endpoints/{id}/deliveries"


async def create(call: Writing) -> Reply:
    """Create an endpoint with its secret."""
    endpoint, secret = await call.service.create_with_secret(call.tx, call.command, call.version)
    return call.made(wire.ENDPOINT, endpoint, secret=secret)


async def recover(call: Writing) -> Reply:
    """Send failed deliveries again."""
    recovery = await call.service.recover(call.tx, call.ids["id"], call.command)
    return Reply({"object": "webhook_recovery", "endpoint": call.ids["id"], **asdict(recovery)})


async def rotate_secret(call: Writing) -> Reply:
    """Create a new secret."""
    endpoint, secret = await call.service.rotate_secret(call.tx, call.ids["id"], call.command)
    return call.one(wire.ENDPOINT, endpoint, secret=secret)


async def emit_sample(call: Writing) -> Reply:
    """Append a sample event to the sandbox's log."""
    event = await call.service.emit_sample(call.tx, call.command)
    return Reply(wire.sample_to_wire(event, call.tx.tenant, call.tx.now))


def service(settings: Settings, vault: Vault, rendering: EventRendering) -> WebhookService:
    """Create the use cases of endpoints and deliveries."""
    return WebhookService(vault, rendering, wire.described, settings.allow_private_hosts)


def _ticks(
    dependencies: Dependencies, uow: UnitOfWork, log: DeliveryLog, clock: Clock, maintenance: Maintenance
) -> Sequence[Tick]:
    rotations = Rotations(uow, log, dependencies.call(service), clock)
    return [
        Tick("old deliveries", 3600, maintenance.purge_deliveries, purges=True),
        Tick("lapsed rotations", 60, rotations.end_lapsed),
    ]


ENDPOINTS = Collection("webhooks", wire.ENDPOINT, "webhooks")
DELIVERIES = Collection("webhooks", wire.DELIVERY, "webhooks")

AREA = Area(
    "webhooks",
    "Webhooks",
    "Signed events sent to your own URL in order, with retries.",
    service=service,
    operations=(
        ENDPOINTS.list(
            "List webhook endpoints",
            "Returns your endpoints in this mode, newest first. Only the last four characters of secrets are included.",
            dataset="webhook_endpoints",
        ),
        ENDPOINTS.create(
            "Create a webhook endpoint",
            "Future events are sent to the URL by POST, signed according to the Standard Webhooks specification. The response "
            "contains the signing secret. Save it now: it is not returned again. At most 20 endpoints per organisation and mode. "
            "`Service-Dry-Run: explain` returns how many events the endpoint would have received in the last 7 days.",
            handler=create,
            reply=wire.ENDPOINT_WITH_SECRET,
            body_feature="fat_webhooks",
            errors=("conflict", "unprocessable"),
            preview=wire.FORECAST,
            encrypt_replay=True,
            undo=Undoing("The endpoint is deleted.", WebhookService.undo),
        ),
        ENDPOINTS.read(
            "Read a webhook endpoint",
            "Returns an endpoint with its health: when a delivery last succeeded, and since when attempts have failed.",
        ),
        ENDPOINTS.update(
            "Change a webhook endpoint",
            "Omitted fields keep their values; `event_types` and `filters` are replaced as a whole. The settings apply to future "
            "events. Setting the status to `disabled` fails the pending deliveries, and no further events are stored for the endpoint; "
            "setting it to `enabled` starts with the events after that time. Resend failed deliveries with recover, and read the "
            "missed events from the change feed.",
            body_feature="fat_webhooks",
            errors=("unprocessable",),
            preview=wire.FORECAST,
            agent=Tool(approval=True),
            undo=Undoing(
                "The previous settings are restored; deliveries that failed by disabling stay failed.",
                WebhookService.undo,
            ),
        ),
        ENDPOINTS.delete(
            "Delete a webhook endpoint",
            "Stops all deliveries and deletes the secrets. The deliveries can no longer be read.",
            undo=Undoing(
                "The endpoint is restored with its ID, settings and secrets, for 30 days; it receives events from then on.",
                WebhookService.undo,
            ),
        ),
        DELIVERIES.list(
            "List an endpoint's deliveries",
            "Returns the deliveries of the endpoint, newest first, with every attempt. Kept for 30 days, or as long as the plan keeps "
            "deliveries.",
            WebhookService.deliveries,
            filter=DeliveryFilter,
            id="webhooks.list_deliveries",
            path=_DELIVERIES,
            query=_FILTERS,
            dataset="webhook_deliveries",
        ),
        DELIVERIES.read(
            "Read a delivery",
            "Returns the body exactly as sent, and the time, duration and response of every attempt.",
            WebhookService.delivery,
            id="webhooks.read_delivery",
            path=f"{_DELIVERIES}/{{delivery}}",
        ),
        DELIVERIES.write(
            "resend",
            "Resend a delivery",
            "Resends a failed or succeeded delivery immediately: the same bytes with the same webhook-id and a new signature and "
            "retry schedule. If the endpoint is disabled, or the delivery is pending: 409.",
            WebhookService.resend,
            path=f"{_DELIVERIES}/{{delivery}}/resend",
            errors=("conflict",),
            agent=Tool(approval=True, outside=True),
            undo="A sent event cannot be recalled.",
        ),
        ENDPOINTS.write(
            "recover",
            "Resend failed deliveries",
            "Resends every failed delivery that was created in the range, the oldest of each subject first, each with a new retry "
            "schedule. At most 50,000 are pending at a time; `has_more` states whether there are others. Events that occurred while "
            "the endpoint was disabled were not stored: read them from the change feed.",
            handler=recover,
            body=wire.RECOVER,
            reply=wire.RECOVERY,
            errors=("conflict",),
            agent=Tool(approval=True, outside=True),
            undo="A sent event cannot be recalled.",
        ),
        ENDPOINTS.write(
            "rotate_secret",
            "Rotate an endpoint's secret",
            "Returns a new secret, which is not returned again. During the overlap, every delivery has both signatures, so that "
            "receivers can switch without missing one. Rotating again during an overlap ends the older of the two secrets immediately.",
            handler=rotate_secret,
            body=wire.ROTATE,
            reply=wire.ENDPOINT_WITH_SECRET,
            encrypt_replay=True,
            undo=Undoing(
                "The previous secret signs again, for 30 days, and the new one is revoked.", WebhookService.undo
            ),
        ),
        DELIVERIES.write(
            "test",
            "Send a test event",
            "Sends a signed `webhook.test` event immediately, whatever the endpoint's subscriptions. Read the delivery to see the "
            "response. If the endpoint is disabled: 409.",
            WebhookService.test,
            made=True,
            path="/v1/webhook-endpoints/{id}/test",
            status=202,
            errors=("conflict",),
            agent=Tool(approval=True, outside=True),
            undo="A sent event cannot be recalled.",
        ),
        ENDPOINTS.write(
            "emit_sample",
            "Emit a sample event",
            "In test mode, appends a sample event of a real type to the log, about fictitious resources in your own catalogue. The "
            "change feed, streams and all test endpoints that subscribe to it receive it like any other event. Endpoints with filters "
            "by source or category receive no samples of others. In live mode: 409.",
            handler=emit_sample,
            path="/v1/test/events",
            body=wire.SAMPLE,
            reply=wire.TEST_EVENT,
            status=202,
            errors=("conflict",),
            agent=Tool(approval=True, outside=True),
            undo="Events stay in the log for their usual retention.",
        ),
    ),
    ticks=_ticks,
    webhooks=WEBHOOKS,
)
