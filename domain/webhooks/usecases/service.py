"""Use cases of webhook endpoints and deliveries."""

import base64
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.audit.resources import NOTHING, ResourceService
from domain.catalogue import categories
from domain.changes.model import OPEN_END, FeedPosition
from domain.changes.ports import EventRendering
from domain.events.model import Event, LogPosition
from domain.events.ports import EventLog
from domain.kernel.errors import (
    Conflict,
    FeatureUnavailable,
    InvalidRequest,
    Unavailable,
    Unprocessable,
)
from domain.kernel.ids import new_id
from domain.kernel.json_values import format_time, to_json_value
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import fields_of, require_found, with_changes
from domain.kernel.suggestions import WordSuggester
from domain.kernel.tenancy import Actor, AuditContext
from domain.orgs.ports import OrgStore
from domain.secrets.ports import Vault
from domain.sources.ports import SourceStore
from domain.webhooks import samples
from domain.webhooks.model import (
    AUDITED,
    MAX_ENDPOINTS,
    MAX_OPEN_DELIVERIES,
    Delivery,
    DeliveryFilter,
    DeliveryStatus,
    DisabledReason,
    EncryptedSecrets,
    Endpoint,
    EndpointStatus,
    Filters,
    PayloadKind,
    Recovery,
    RecoveryRange,
    Rotation,
    refuse_forbidden_url,
    refuse_invalid_types,
)
from domain.webhooks.ports import DeliveryStore, EndpointRendering, WebhookStore
from domain.webhooks.usecases.secrets import SIGNING_PREFIX, PreviousSecrets, create_secret_fields
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

FORECAST_PERIOD = timedelta(days=7)
"""Period of past events from which the future deliveries of an endpoint are estimated."""
_SECRET_BYTES = 32


@dataclass(frozen=True)
class WebhookService(ResourceService[Endpoint]):
    """Use cases of webhook endpoints.

    Attributes:
        vault: Encrypts the endpoints' secrets.
        rendering: Renders events as bodies of requests.
        render_endpoint: Renders an endpoint as a resource.
        allowed_hosts: Hosts (`host`, `host:port`) that are permitted although their addresses are private.
    """

    kind: ClassVar = Endpoint
    prefix: ClassVar = "whe"
    audited: ClassVar = AUDITED
    vault: Vault
    rendering: EventRendering
    render_endpoint: EndpointRendering
    allowed_hosts: frozenset[str] = frozenset()

    def _store(self, tx: Tx) -> WebhookStore:
        return tx[WebhookStore]

    async def create_with_secret(self, tx: Tx, values: Mapping[str, Any], api_version: str) -> tuple[Endpoint, str]:
        """Create an endpoint, which receives events from now on; return the endpoint and its secret.

        Args:
            tx: The transaction.
            values: The endpoint's fields.
            api_version: API version of the endpoint's events, unless `values` contains one.

        Raises:
            InvalidRequest: `*` is combined with other types.
            Unprocessable: The URL is not allowed, or filters contain unknown sources or categories.
            FeatureUnavailable: The plan does not include fat payloads.
            Conflict: The tenant has MAX_ENDPOINTS endpoints.
        """
        secret = _create_secret()
        endpoint = self._create_row(tx, {"api_version": api_version, "secret_last4": secret[-4:], **values})
        endpoint = await self._validate(tx, endpoint, fields_of(Endpoint).keys())
        await self._add(tx, endpoint, EncryptedSecrets(self._encrypt_secret(secret, endpoint.id)))
        await _add_forecast(tx, endpoint)
        return endpoint, secret

    async def _add(self, tx: Tx, endpoint: Endpoint, secrets: EncryptedSecrets) -> None:
        if await tx[WebhookStore].count() >= MAX_ENDPOINTS:
            raise Conflict(f"You have {MAX_ENDPOINTS} endpoints, which is the maximum. Delete an endpoint first.")
        await tx[WebhookStore].add(endpoint, secrets, await self._find_log_ends(tx))
        await tx[AuditLog].add(AUDITED.describe_creation(endpoint))

    async def _find_log_ends(self, tx: Tx) -> FeedPosition:
        """Return the ends of the organisation's log and the network log, after which the endpoint receives events."""
        own = LogPosition(position=await tx[EventLog].get_high_watermark())
        try:
            async with tx.savepoint():
                return FeedPosition(own, await tx[EventLog].get_network_end())
        except Unavailable:
            return FeedPosition(own, LogPosition(position=OPEN_END))  # the end of the network log once it is available

    async def update(
        self,
        tx: Tx,
        id: str,
        changes: Mapping[str, Any],
        expected_version: int | None = None,
        restored_values: Mapping[str, Any] = NOTHING,
    ) -> Endpoint:
        """Change an endpoint as ResourceService.update does, with the errors of `create_with_secret`.

        An endpoint that is enabled receives events from now on. If an endpoint is disabled, its open deliveries fail.
        """
        after = await super().update(tx, id, changes, expected_version, restored_values)
        await _add_forecast(tx, after)
        return after

    def _with_derived_fields(self, before: Endpoint, changes: dict[str, Any]) -> Mapping[str, Any]:
        """Return the changes; if they set the status, also clear the service's reason for disabling the endpoint."""
        return {**changes, "disabled_for": None, "failing_since": None} if "status" in changes else changes

    async def _save(self, tx: Tx, before: Endpoint, after: Endpoint) -> Endpoint:
        status = after.status if after.status != before.status else None
        checkpoint = await self._find_log_ends(tx) if status == EndpointStatus.ENABLED else None
        await tx[WebhookStore].save(after, checkpoint=checkpoint)
        if status == EndpointStatus.DISABLED:
            await tx[WebhookStore].fail_open_deliveries(after.id, tx.now)
        await tx[AuditLog].add(AUDITED.describe_update(before, after))
        return after

    async def delete(self, tx: Tx, id: str) -> None:
        """Delete an endpoint and its secrets; its open deliveries fail. Raises NotFound."""
        endpoint = await self.get(tx, id, lock=True)
        secrets_ = await self._previous_secrets.open_current(tx, endpoint)
        await tx[WebhookStore].remove(id)
        await self._previous_secrets.store(tx, await tx[AuditLog].add(AUDITED.describe_deletion(endpoint)), secrets_)

    def _decode_recorded(self, values: Mapping[str, Any]) -> dict[str, Any]:
        fields = {name: value for name, value in values.items() if name != "status_reason"}
        reason = values.get("status_reason")
        return super()._decode_recorded({**fields, "disabled_for": reason["code"]} if reason else fields)

    async def _restore(self, tx: Tx, id: str, values: Mapping[str, Any], entry: str) -> None:
        """Recreate a deleted endpoint with its ID and the secrets stored with the audit entry of the deletion.

        Raises UndoUnavailable if the secrets are no longer stored, and the errors of `create_with_secret`.
        """
        stored = await self._previous_secrets.load_stored(tx, entry)
        identity = {
            "id": id,
            "created_at": datetime.fromisoformat(stored["created_at"]),
            "version": stored["version"] + 1,
        }
        endpoint = self._create_row(tx, {**values, **identity, **create_secret_fields(stored, tx.now)})
        endpoint = await self._validate(tx, endpoint, values.keys())
        await self._add(tx, endpoint, self._previous_secrets.encrypt_for_endpoint(endpoint, stored))

    async def _revert(
        self, tx: Tx, id: str, changes: Mapping[str, Any], restored_values: Mapping[str, Any], entry: str
    ) -> None:
        if "secret_last4" in restored_values:
            await self._restore_secret(tx, id, entry)
        else:
            await self.update(tx, id, changes, restored_values=restored_values)

    async def _restore_secret(self, tx: Tx, id: str, entry: str) -> None:
        """Restore the secrets that were replaced in the audit entry `entry`.

        Raises NotFound; UndoUnavailable if the secrets are no longer stored.
        """
        before = await self.get(tx, id, lock=True)
        stored = await self._previous_secrets.load_stored(tx, entry)
        after = with_changes(before, tx.now, **create_secret_fields(stored, tx.now))
        await self._replace_secrets(tx, before, after, self._previous_secrets.encrypt_for_endpoint(after, stored))

    async def _replace_secrets(self, tx: Tx, before: Endpoint, after: Endpoint, new_secrets: EncryptedSecrets) -> None:
        """Save the endpoint with other secrets, and store the replaced secrets with the audit entry."""
        replaced = await self._previous_secrets.open_current(tx, before)
        await tx[WebhookStore].save(after, expected_version=before.version)
        await tx[WebhookStore].replace_secrets(before.id, new_secrets)
        await self._previous_secrets.store(tx, await tx[AuditLog].add(AUDITED.describe_update(before, after)), replaced)

    async def rotate_secret(self, tx: Tx, id: str, overlap_hours: int) -> tuple[Endpoint, str]:
        """Replace the endpoint's secret; return the endpoint and the new secret. Raises NotFound.

        For `overlap_hours`, requests are also signed with the replaced secret.
        """
        before = await self.get(tx, id, lock=True)
        sealed = await tx[WebhookStore].get_secrets(id)
        secret, until = _create_secret(), tx.now + timedelta(hours=overlap_hours)
        rotation = Rotation(until, before.secret_last4) if overlap_hours else None
        after = with_changes(before, tx.now, secret_last4=secret[-4:], rotation=rotation)
        previous = sealed.current if sealed and rotation else None
        await self._replace_secrets(tx, before, after, EncryptedSecrets(self._encrypt_secret(secret, id), previous))
        return after, secret

    async def list_deliveries(
        self, tx: Tx, id: str, delivery_filter: DeliveryFilter, page_request: PageRequest
    ) -> Page[Delivery]:
        """Return a page of the endpoint's deliveries, newest first. Raises NotFound."""
        await self.get(tx, id)
        return await tx[WebhookStore].list_deliveries(replace(delivery_filter, endpoint=id), page_request)

    async def get_delivery(self, tx: Tx, id: str, delivery_id: str) -> Delivery:
        """Return a delivery of the endpoint. Raises NotFound."""
        await self.get(tx, id)
        return require_found(await tx[WebhookStore].get_delivery(id, delivery_id))

    async def resend(self, tx: Tx, id: str, delivery: str) -> Delivery:
        """Requeue a finished delivery with the same body and webhook-id, and with a new retry schedule.

        Raises NotFound; Conflict if the endpoint is disabled or the delivery is open.
        """
        endpoint = await self.get(tx, id, lock=True)
        before = require_found(await tx[WebhookStore].get_delivery(id, delivery, lock=True))
        _refuse_disabled(endpoint)
        if before.is_open:
            raise Conflict(_describe_open_delivery(before))
        after = before.with_new_schedule(tx.now)
        await tx[WebhookStore].requeue(before, tx.now)
        old, new = {"status": before.status}, {"status": after.status}
        await tx[AuditLog].add(Change("webhook_delivery", delivery, "update", old, new))
        return after

    async def recover(self, tx: Tx, id: str, creation_range: RecoveryRange) -> Recovery:
        """Requeue failed deliveries that were created in the range, oldest first, up to MAX_OPEN_DELIVERIES open deliveries.

        Raises:
            NotFound: The endpoint does not exist.
            InvalidRequest: `since` is not before `until`.
            Conflict: The endpoint is disabled.
        """
        endpoint = await self.get(tx, id, lock=True)
        since, until = creation_range.since, creation_range.until or tx.now
        if since >= until:
            detail = "`since` must be before `until`, which defaults to now."
            raise InvalidRequest.for_field("since", "invalid_value", detail)
        _refuse_disabled(endpoint)
        recovery = await tx[WebhookStore].recover(id, since, until, tx.now, MAX_OPEN_DELIVERIES)
        recovered = {"since": since.isoformat(), "until": until.isoformat(), "requeued": recovery.requeued}
        await tx[AuditLog].add(Change("webhook_endpoint", id, "update", {}, {"recovered": recovered}))
        return recovery

    async def send_test_event(self, tx: Tx, id: str) -> Delivery:
        """Queue a delivery of a `webhook.test` event, even if the endpoint does not subscribe to this type.

        Raises NotFound; Conflict if the endpoint is disabled.
        """
        endpoint = await self.get(tx, id, lock=True)
        _refuse_disabled(endpoint)
        data = {"id": id, "url": endpoint.url}
        event = Event("webhook.test", id, endpoint.version, data)
        event.assign_ids(tx.context)
        delivery = Delivery(
            id=new_id("dlv"),
            endpoint=id,
            event=event.id,
            type=event.type,
            subject=id,
            positions=(),
            status=DeliveryStatus.PENDING,
            created_at=tx.now,
            body=self.rendering.encode_event(event, tx.tenant, tx.now),
            next_attempt_at=tx.now,
        )
        await tx[WebhookStore].add_delivery(delivery)
        created = {"endpoint": id, "type": event.type, "status": delivery.status}
        await tx[AuditLog].add(Change("webhook_delivery", delivery.id, "create", {}, created))
        return delivery

    async def append_sample(self, tx: Tx, type: str) -> Event:
        """Append a sample event of the type to the event log, in test mode.

        Raises Conflict in live mode, and InvalidRequest if there is no sample of the type.
        """
        if tx.tenant.livemode:
            raise Conflict("Samples are available in test mode only. Use a test key (svc_test_…).")
        if type not in samples.TYPES_WITH_SAMPLE:
            known = WordSuggester().format_by_similarity(type, sorted(samples.TYPES_WITH_SAMPLE))
            detail = f"This type has no sample. Use one of these types: {known}."
            raise InvalidRequest.for_field("type", "invalid_value", detail)
        org = await tx[OrgStore].get_organisation()
        event = samples.create_sample(type, org.get_catalogue_id(livemode=False), tx.now)
        await tx[EventLog].append([event])
        return event

    async def disable(self, tx: Tx, id: str, reason: DisabledReason) -> None:
        """Disable an endpoint for this reason, and append a `delivery.disabled` event; open deliveries fail.

        An endpoint that is deleted or already disabled is ignored.
        """
        before = await tx[WebhookStore].get(id, lock=True)
        if before is None or before.status != EndpointStatus.ENABLED:
            return
        after = with_changes(before, tx.now, status=EndpointStatus.DISABLED, disabled_for=reason)
        await tx[WebhookStore].save(after, expected_version=before.version)
        await tx[WebhookStore].fail_open_deliveries(id, tx.now)
        await tx[AuditLog].add(AUDITED.describe_update(before, after))
        data = self.render_endpoint(after, tx.tenant.livemode, tx.now)
        await tx[EventLog].append([Event("delivery.disabled", id, after.version, data)])

    async def end_rotation(self, tx: Tx, id: str) -> None:
        """Delete the previous secret of an endpoint whose secret rotation has ended; ignore other endpoints."""
        before, sealed = await tx[WebhookStore].get(id, lock=True), await tx[WebhookStore].get_secrets(id)
        if before is None or sealed is None or before.rotation is None or before.rotation_at(tx.now):
            return
        await tx[WebhookStore].save(replace(before, rotation=None), expected_version=before.version)
        await tx[WebhookStore].replace_secrets(id, EncryptedSecrets(sealed.current))
        await tx[AuditLog].add(
            Change("webhook_endpoint", id, "update", {"rotation": to_json_value(before.rotation)}, {})
        )

    @property
    def _previous_secrets(self) -> PreviousSecrets:
        return PreviousSecrets(self.vault)

    def _encrypt_secret(self, secret: str, endpoint: str) -> bytes:
        return self.vault.encrypt({"secret": secret}, endpoint)

    async def _validate(self, tx: Tx, row: Endpoint, names: Collection[str]) -> Endpoint:
        if "payload" in names and row.payload == PayloadKind.FAT:
            org = await tx[OrgStore].get_organisation()
            if "fat_webhooks" not in org.plan.features:
                detail = (
                    f"Your organisation's plan ({org.plan.code}) does not include fat_webhooks. Use payload "
                    f"thin, or change the plan."
                )
                raise FeatureUnavailable.for_field("payload", "invalid_value", detail)
        if "event_types" in names:
            refuse_invalid_types(row.event_types)
        if "url" in names:
            refuse_forbidden_url(row.url, self.allowed_hosts, livemode=tx.tenant.livemode)
        if "filters" in names:
            await _refuse_unknown(tx, row.filters)
        return row


async def _refuse_unknown(tx: Tx, filters: Filters) -> None:
    """Raise Unprocessable for unknown sources and categories."""
    # catalogues are not checked, because the tenant may get access to them later
    for index, category in enumerate(filters.categories):
        if category not in categories.category_by_id():
            detail = "This category does not exist. GET /v1/categories lists all categories."
            raise Unprocessable.for_field(f"filters.categories.{index}", "invalid_value", detail)
    for index, source in enumerate(filters.sources):
        if await tx[SourceStore].get(source) is None:
            detail = f"This source does not exist in {tx.tenant.mode} mode. GET /v1/sources lists your sources."
            raise Unprocessable.for_field(f"filters.sources.{index}", "invalid_value", detail)


async def _add_forecast(tx: Tx, endpoint: Endpoint) -> None:
    """Add a forecast of the endpoint's deliveries to the preview, if the transaction is a dry run."""
    if tx.is_dry_run:
        tx.recorded.extra_previews["forecast"] = await tx[WebhookStore].compute_forecast(
            endpoint, tx.now - FORECAST_PERIOD
        )


def _create_secret() -> str:
    return SIGNING_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


async def request_endpoint_reload(tx: Tx) -> None:
    """Notify workers to reload the tenant's endpoints, after the tenant was suspended or reactivated."""
    for endpoint in (await tx[WebhookStore].page(PageRequest(limit=100))).items:
        await tx[WebhookStore].notify_worker(endpoint.id)


def _describe_open_delivery(delivery: Delivery) -> str:
    if delivery.next_attempt_at is None:
        return "The delivery is being sent. Wait until it has succeeded or failed."
    return (
        f"The delivery will be retried automatically at {format_time(delivery.next_attempt_at)}. To send all "
        f"waiting deliveries now, disable the endpoint (PATCH status), enable it again, and recover (POST …/recover)."
    )


def _refuse_disabled(endpoint: Endpoint) -> None:
    if endpoint.status != EndpointStatus.ENABLED:
        raise Conflict("The endpoint is disabled. Set its status to enabled (PATCH), then try again.")


_CONTEXT = AuditContext(Actor("service", "scheduler"), "webhooks.end_rotation")
_BATCH = 100


@dataclass(frozen=True, slots=True)
class RotationExpiry:
    """Scheduled task that deletes the previous secrets of ended secret rotations."""

    uow: UnitOfWork
    store: DeliveryStore
    service: WebhookService
    clock: Clock

    async def end_rotations(self) -> int:
        """Delete the previous secrets of all ended rotations; return the number of rotations."""
        ended = 0
        while lapsed := await self.store.list_ended_rotations(self.clock.now(), _BATCH):
            for tenant, endpoint in lapsed:
                async with self.uow.begin(tenant, _CONTEXT) as tx:
                    await self.service.end_rotation(tx, endpoint)
            ended += len(lapsed)
        return ended
