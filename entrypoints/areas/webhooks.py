"""Webhook endpoints, deliveries and sample events: /v1/webhook-endpoints and POST /v1/test/events."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final, TypeAlias

from adapters.api_json import webhooks as wire
from domain.changes.ports import EventRendering
from domain.jobs.usecases.ticks import Tick
from domain.kernel.schema import Schema, enum, id_schema, text
from domain.secrets.ports import Vault
from domain.webhooks.model import DeliveryFilter, DeliveryStatus
from domain.webhooks.ports import DeliveryStore
from domain.webhooks.usecases.service import RotationExpiry, WebhookService
from entrypoints.dependencies import Dependencies
from entrypoints.operations.collection import Collection
from entrypoints.operations.openapi import WEBHOOK_BUILDERS
from entrypoints.operations.operation import AgentToolSettings, Area, Reply, UndoSupport, WriteContext
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.maintenance import Maintenance
from ports.unit_of_work import UnitOfWork

WebhookWriteContext: TypeAlias = WriteContext[WebhookService]

_FILTERS: Final[dict[str, Schema]] = {
    "status": enum(*DeliveryStatus) | {"description": "Only deliveries with this status."},
    "type": text("offer.changed", max_length=100, description="Only deliveries of this event type."),
    "event": id_schema("evt", "Only deliveries of this event."),
}
_DELIVERIES = "/v1/webhook-endpoints/{id}/deliveries"


async def create_endpoint(context: WebhookWriteContext) -> Reply:
    """Create a webhook endpoint, and return it with its signing secret."""
    endpoint, secret = await context.service.create_with_secret(context.tx, context.command, context.version)
    return context.build_created_reply(wire.ENDPOINT, endpoint, secret=secret)


async def resend_failed_deliveries(context: WebhookWriteContext) -> Reply:
    """Resend the failed deliveries of an endpoint that were created in a time range."""
    recovery = await context.service.recover(context.tx, context.ids["id"], context.command)
    return Reply({"object": "webhook_recovery", "endpoint": context.ids["id"], **asdict(recovery)})


async def rotate_secret(context: WebhookWriteContext) -> Reply:
    """Create a new signing secret for an endpoint, and return the endpoint with the secret."""
    endpoint, secret = await context.service.rotate_secret(context.tx, context.ids["id"], context.command)
    return context.build_resource_reply(wire.ENDPOINT, endpoint, secret=secret)


async def emit_sample(context: WebhookWriteContext) -> Reply:
    """Append a sample event to the tenant's event log, in test mode only."""
    event = await context.service.append_sample(context.tx, context.command)
    return Reply(wire.render_sample(event, context.tx.tenant, context.tx.now))


def create_webhook_service(settings: Settings, vault: Vault, rendering: EventRendering) -> WebhookService:
    """Create the use cases of webhook endpoints and deliveries."""
    return WebhookService(vault, rendering, wire.render_endpoint, settings.allow_private_hosts)


def _create_ticks(
    dependencies: Dependencies, uow: UnitOfWork, log: DeliveryStore, clock: Clock, maintenance: Maintenance
) -> Sequence[Tick]:
    rotations = RotationExpiry(uow, log, dependencies.call(create_webhook_service), clock)
    return [
        Tick("old deliveries", 3600, maintenance.purge_deliveries, is_purge=True),
        Tick("expired rotations", 60, rotations.end_rotations),
    ]


ENDPOINTS = Collection("webhooks", wire.ENDPOINT, "webhooks")
DELIVERIES = Collection("webhooks", wire.DELIVERY, "webhooks")

AREA = Area(
    "webhooks",
    "Webhooks",
    "Signed events sent to your own URL in order, with retries.",
    create_service=create_webhook_service,
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
            handler=create_endpoint,
            reply=wire.ENDPOINT_WITH_SECRET,
            body_feature="fat_webhooks",
            errors=("conflict", "unprocessable"),
            preview=wire.FORECAST_PREVIEW_PROPERTIES,
            encrypts_replay=True,
            undo=UndoSupport("The endpoint is deleted.", WebhookService.undo),
        ),
        ENDPOINTS.read(
            "Read a webhook endpoint",
            "Returns an endpoint with its health: when a delivery last succeeded, and since when attempts have failed.",
        ),
        ENDPOINTS.update(
            "Change a webhook endpoint",
            "Omitted fields keep their values; `event_types` and `filters` are replaced as a whole. The settings apply to "
            "future events. Setting the status to `disabled` marks the pending deliveries as failed, and no further events "
            "are stored for the endpoint. When the status is `enabled` again, the endpoint receives only later events: resend "
            "the failed deliveries, and read the missed events from the change feed.",
            body_feature="fat_webhooks",
            errors=("unprocessable",),
            preview=wire.FORECAST_PREVIEW_PROPERTIES,
            agent=AgentToolSettings(requires_approval=True),
            undo=UndoSupport(
                "The previous settings are restored; deliveries that failed when the endpoint was disabled remain failed.",
                WebhookService.undo,
            ),
        ),
        ENDPOINTS.delete(
            "Delete a webhook endpoint",
            "Stops all deliveries and deletes the secrets. The deliveries can no longer be read.",
            undo=UndoSupport(
                "The endpoint is restored with its ID, settings and secrets, within 30 days of the deletion. It receives "
                "events from the time of the restoration.",
                WebhookService.undo,
            ),
        ),
        DELIVERIES.list(
            "List an endpoint's deliveries",
            "Returns the deliveries of the endpoint, newest first, with every attempt. They are kept for 30 days, unless "
            "the plan states another period.",
            WebhookService.list_deliveries,
            create_filter=DeliveryFilter,
            id="webhooks.list_deliveries",
            path=_DELIVERIES,
            query=_FILTERS,
            dataset="webhook_deliveries",
        ),
        DELIVERIES.read(
            "Read a delivery",
            "Returns the body exactly as sent, and the time, duration and response of every attempt.",
            WebhookService.get_delivery,
            id="webhooks.read_delivery",
            path=f"{_DELIVERIES}/{{delivery}}",
        ),
        DELIVERIES.write(
            "resend",
            "Resend a delivery",
            "Resends a failed or succeeded delivery immediately: the same bytes with the same webhook-id and a new "
            "signature and retry schedule. Returns 409 if the endpoint is disabled, or the delivery is pending.",
            WebhookService.resend,
            path=f"{_DELIVERIES}/{{delivery}}/resend",
            errors=("conflict",),
            agent=AgentToolSettings(requires_approval=True, contacts_external_systems=True),
            undo="A sent event cannot be recalled.",
        ),
        ENDPOINTS.write(
            "recover",
            "Resend failed deliveries",
            "Resends the failed deliveries that were created in the range, each with a new retry schedule. Deliveries of "
            "the same subject are sent oldest first. An endpoint can have at most 50,000 pending deliveries at a time. If "
            "`has_more` is true, failed deliveries remain in the range: repeat the request when the resent deliveries have "
            "succeeded or failed. Events that occurred while the endpoint was disabled were not stored: read them from the "
            "change feed.",
            handler=resend_failed_deliveries,
            body=wire.RECOVER_BODY,
            reply=wire.RECOVERY,
            errors=("conflict",),
            agent=AgentToolSettings(requires_approval=True, contacts_external_systems=True),
            undo="A sent event cannot be recalled.",
        ),
        ENDPOINTS.write(
            "rotate_secret",
            "Rotate an endpoint's secret",
            "Returns a new secret, which is not returned again. For `overlap_hours`, deliveries are signed with both the previous "
            "and the new secret, so that receivers can switch without missing a delivery. Another rotation in this period revokes "
            "the older of the two secrets immediately.",
            handler=rotate_secret,
            body=wire.ROTATE_BODY,
            reply=wire.ENDPOINT_WITH_SECRET,
            encrypts_replay=True,
            undo=UndoSupport(
                "The previous secret signs again, and the new one is revoked, within 30 days of the rotation.",
                WebhookService.undo,
            ),
        ),
        DELIVERIES.write(
            "test",
            "Send a test event",
            "Sends a signed `webhook.test` event immediately, regardless of the endpoint's subscriptions. Read the "
            "delivery to see the response. Returns 409 if the endpoint is disabled.",
            WebhookService.send_test_event,
            is_creation=True,
            path="/v1/webhook-endpoints/{id}/test",
            status=202,
            errors=("conflict",),
            agent=AgentToolSettings(requires_approval=True, contacts_external_systems=True),
            undo="A sent event cannot be recalled.",
        ),
        ENDPOINTS.write(
            "emit_sample",
            "Emit a sample event",
            "In test mode, appends a sample event of a real type to the log, about fictitious resources in your own "
            "catalogue. The change feed, event streams and all subscribed webhook endpoints of test mode receive the sample "
            "like any other event. The resources do not exist, so a source or category filter that applies to the type "
            "excludes the sample. Returns 409 in live mode.",
            handler=emit_sample,
            path="/v1/test/events",
            body=wire.SAMPLE_BODY,
            reply=wire.TEST_EVENT,
            status=202,
            errors=("conflict",),
            agent=AgentToolSettings(requires_approval=True, contacts_external_systems=True),
            undo="Events stay in the log for their usual retention.",
        ),
    ),
    create_ticks=_create_ticks,
    webhook_builders=WEBHOOK_BUILDERS,
)
