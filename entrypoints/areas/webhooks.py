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
    "status": enum(*DeliveryStatus) | {"description": "Only deliveries in this state."},
    "type": text("offer.changed", longest=100, description="Only deliveries of this event type."),
    "event": id_of("evt", "Only the deliveries of this event."),
}
_DELIVERIES = "/v1/webhook-endpoints/{id}/deliveries"


async def create(call: Writing) -> Reply:
    """A new endpoint with its secret."""
    endpoint, secret = await call.service.create_with_secret(call.tx, call.command, call.version)
    return call.made(wire.ENDPOINT, endpoint, secret=secret)


async def recover(call: Writing) -> Reply:
    """Send again what failed."""
    recovery = await call.service.recover(call.tx, call.ids["id"], call.command)
    return Reply({"object": "webhook_recovery", "endpoint": call.ids["id"], **asdict(recovery)})


async def rotate_secret(call: Writing) -> Reply:
    """A new secret."""
    endpoint, secret = await call.service.rotate_secret(call.tx, call.ids["id"], call.command)
    return call.one(wire.ENDPOINT, endpoint, secret=secret)


async def emit_sample(call: Writing) -> Reply:
    """Append a sample event to the sandbox's log."""
    event = await call.service.emit_sample(call.tx, call.command)
    return Reply(wire.sample_to_wire(event, call.tx.tenant, call.tx.now))


def service(settings: Settings, vault: Vault, rendering: EventRendering) -> WebhookService:
    """The use cases of endpoints and deliveries."""
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
    "Events POSTed to your own address, signed, in order, until they arrive.",
    service=service,
    operations=(
        ENDPOINTS.list(
            "List webhook endpoints",
            "Your endpoints in this mode, newest first. Of secrets only the last four characters are shown.",
            dataset="webhook_endpoints",
        ),
        ENDPOINTS.create(
            "Create a webhook endpoint",
            "Events that happen from now on are POSTed to the URL, signed to the Standard Webhooks "
            "specification. The answer carries the signing secret: keep it, it is never shown again. At most 20 endpoints "
            "per organisation and mode. `Service-Dry-Run: explain` forecasts how many events the endpoint would have got in "
            "the last 7 days.",
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
            "An endpoint with how it is doing: when a delivery last succeeded and since when attempts fail.",
        ),
        ENDPOINTS.update(
            "Change a webhook endpoint",
            "Fields that are left out stay; `event_types` and `filters` are replaced as wholes. Changed settings "
            "hold for events from then on. Setting the status to `disabled` fails what is on its way, and nothing is stored "
            "while it lasts; setting it to `enabled` starts anew with what happens from then on: have failed deliveries sent "
            "again with recover, and read what was never stored from the change feed.",
            body_feature="fat_webhooks",
            errors=("unprocessable",),
            preview=wire.FORECAST,
            agent=Tool(approval=True),
            undo=Undoing(
                "The settings that were changed are as before; what was failed by disabling stays failed.",
                WebhookService.undo,
            ),
        ),
        ENDPOINTS.delete(
            "Delete a webhook endpoint",
            "Stops every delivery and forgets the secrets. Its deliveries cannot be read any more.",
            undo=Undoing(
                "The endpoint comes back under its id, with its settings and secrets, for 30 days; it gets what happens from then on.",
                WebhookService.undo,
            ),
        ),
        DELIVERIES.list(
            "List an endpoint's deliveries",
            "What was sent to the endpoint, newest first, with every attempt. Kept for 30 days, or for as long as "
            "your plan keeps deliveries.",
            WebhookService.deliveries,
            filter=DeliveryFilter,
            id="webhooks.list_deliveries",
            path=_DELIVERIES,
            query=_FILTERS,
            dataset="webhook_deliveries",
        ),
        DELIVERIES.read(
            "Read a delivery",
            "The body exactly as it was sent, and of every attempt when it was made, how long it took and what came back.",
            WebhookService.delivery,
            id="webhooks.read_delivery",
            path=f"{_DELIVERIES}/{{delivery}}",
        ),
        DELIVERIES.write(
            "resend",
            "Send a delivery again",
            "A failed or succeeded delivery is sent again at once: the same bytes under the same webhook-id, "
            "signed anew, with a fresh schedule of attempts. A disabled endpoint, and a delivery that is on its way, answer "
            "409.",
            WebhookService.resend,
            path=f"{_DELIVERIES}/{{delivery}}/resend",
            errors=("conflict",),
            agent=Tool(approval=True, outside=True),
            undo="What was sent is sent.",
        ),
        ENDPOINTS.write(
            "recover",
            "Send failed deliveries again",
            "Every failed delivery that was made in the range is sent again, the oldest of each subject first, "
            "each with a fresh schedule; at most 50,000 are on their way at a time, and `has_more` tells of others. Events that happened while the endpoint was disabled were never stored: read them "
            "from the change feed.",
            handler=recover,
            body=wire.RECOVER,
            reply=wire.RECOVERY,
            errors=("conflict",),
            agent=Tool(approval=True, outside=True),
            undo="What was sent is sent.",
        ),
        ENDPOINTS.write(
            "rotate_secret",
            "Rotate an endpoint's secret",
            "Answers a new secret, told this once. For the overlap every delivery carries both signatures, so "
            "that receivers can be changed over without missing one. Rotating again during an overlap ends the older of the "
            "two secrets at once.",
            handler=rotate_secret,
            body=wire.ROTATE,
            reply=wire.ENDPOINT_WITH_SECRET,
            encrypt_replay=True,
            undo=Undoing(
                "The former secret signs again, for 30 days, and the new one counts no longer.", WebhookService.undo
            ),
        ),
        DELIVERIES.write(
            "test",
            "Send a test event",
            "A signed `webhook.test` event is sent now, whatever the endpoint subscribes to. Read the delivery to "
            "see what came back. A disabled endpoint answers 409.",
            WebhookService.test,
            made=True,
            path="/v1/webhook-endpoints/{id}/test",
            status=202,
            errors=("conflict",),
            agent=Tool(approval=True, outside=True),
            undo="What was sent is sent.",
        ),
        ENDPOINTS.write(
            "emit_sample",
            "Emit a sample event",
            "In test mode, appends a made-up event of a real type to the log, about things that do not exist, in "
            "your own catalogue. Change feed, stream and every test endpoint that wants it get it like any other. Endpoints "
            "that are narrowed to sources or categories are not sent samples about other ones. Live mode answers 409.",
            handler=emit_sample,
            path="/v1/test/events",
            body=wire.SAMPLE,
            reply=wire.TEST_EVENT,
            status=202,
            errors=("conflict",),
            agent=Tool(approval=True, outside=True),
            undo="An event stays in the log for as long as every other.",
        ),
    ),
    ticks=_ticks,
    webhooks=WEBHOOKS,
)
