"""Management of endpoints and deliveries."""

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
from domain.kernel.closeness import Closeness
from domain.kernel.errors import (
    Conflict,
    FeatureUnavailable,
    InvalidRequest,
    Unavailable,
    Unprocessable,
)
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.plain import instant, plain
from domain.kernel.resource import changed, existing, fields_of
from domain.kernel.tenancy import Actor, AuditContext
from domain.orgs.ports import OrgStore
from domain.secrets.ports import Vault
from domain.sources.ports import SourceStore
from domain.webhooks import samples
from domain.webhooks.model import (
    AUDITED,
    MOST_ENDPOINTS,
    MOST_OPEN,
    Delivery,
    DeliveryFilter,
    DeliveryStatus,
    DisabledReason,
    Endpoint,
    EndpointStatus,
    Filters,
    PayloadKind,
    Recovery,
    RecoveryRange,
    Rotation,
    SealedSecrets,
    refuse_types,
    refuse_url,
)
from domain.webhooks.ports import DeliveryLog, EndpointRendering, WebhookStore
from domain.webhooks.usecases.secrets import PREFIX, FormerSecrets, signing
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

FORECAST = timedelta(days=7)
"""Period of events that a forecast covers."""
_SECRET_BYTES = 32


@dataclass(frozen=True)
class WebhookService(ResourceService[Endpoint]):
    """Management of endpoints.

    `allowed_hosts` (`host`, `host:port`) may be private; `describe` returns the resource for events.
    """

    kind: ClassVar = Endpoint
    prefix: ClassVar = "whe"
    audited: ClassVar = AUDITED
    vault: Vault
    rendering: EventRendering
    describe: EndpointRendering
    allowed_hosts: frozenset[str] = frozenset()

    def _store(self, tx: Tx) -> WebhookStore:
        return tx[WebhookStore]

    async def create_with_secret(self, tx: Tx, new: Mapping[str, Any], version: str) -> tuple[Endpoint, str]:
        """Create an endpoint with a secret that is shown once.

        Events have the shape of `version` unless `new` sets one. The endpoint receives events that are appended from
        now on.

        Raises:
            InvalidRequest: `*` is combined with other types.
            Unprocessable: The URL is not allowed, or filters name unknown sources or categories.
            FeatureUnavailable: The plan does not include fat payloads.
            Conflict: There are MOST_ENDPOINTS endpoints.
        """
        secret = _new_secret()
        endpoint = self._row(tx, {"api_version": version, "secret_last4": secret[-4:], **new})
        endpoint = await self._complete(tx, endpoint, fields_of(Endpoint).keys())
        await self._add(tx, endpoint, SealedSecrets(self._sealed(secret, endpoint.id)))
        await _forecast(tx, endpoint)
        return endpoint, secret

    async def _add(self, tx: Tx, endpoint: Endpoint, secrets: SealedSecrets) -> None:
        if await tx[WebhookStore].count() >= MOST_ENDPOINTS:
            raise Conflict(f"There are {MOST_ENDPOINTS} endpoints, the maximum. Delete one first.")
        await tx[WebhookStore].add(endpoint, secrets, await self._now(tx))
        await tx[AuditLog].add(AUDITED.created(endpoint))

    async def _now(self, tx: Tx) -> FeedPosition:
        """Return the present end of the logs, from which an endpoint is served."""
        own = LogPosition(position=await tx[EventLog].high_watermark())
        try:
            async with tx.savepoint():
                return FeedPosition(own, await tx[EventLog].network_end())
        except Unavailable:
            return FeedPosition(own, LogPosition(position=OPEN_END))  # the network's end, once it answers

    async def update(
        self,
        tx: Tx,
        id: str,
        changes: Mapping[str, Any],
        expected: int | None = None,
        exact: Mapping[str, Any] = NOTHING,
    ) -> Endpoint:
        """Change an endpoint, as ResourceService.update does.

        Enabling it clears why it was disabled, and it receives events from now on; disabling it fails open deliveries.
        Raises what `create_with_secret` raises for settings as well.
        """
        after = await super().update(tx, id, changes, expected, exact)
        await _forecast(tx, after)
        return after

    def _derive(self, before: Endpoint, changes: dict[str, Any]) -> Mapping[str, Any]:
        """Clear the reason of the service when the status changes."""
        return {**changes, "disabled_for": None, "failing_since": None} if "status" in changes else changes

    async def _save(self, tx: Tx, before: Endpoint, after: Endpoint) -> Endpoint:
        status = after.status if after.status != before.status else None
        checkpoint = await self._now(tx) if status == EndpointStatus.ENABLED else None
        await tx[WebhookStore].save(after, checkpoint=checkpoint)
        if status == EndpointStatus.DISABLED:
            await tx[WebhookStore].fail_open(after.id, tx.now)
        await tx[AuditLog].add(AUDITED.updated(before, after))
        return after

    async def delete(self, tx: Tx, id: str) -> None:
        """Delete the endpoint and its secrets; its open deliveries fail. Raises NotFound."""
        endpoint = await self.get(tx, id, lock=True)
        kept = await self._former.opened(tx, endpoint)
        await tx[WebhookStore].remove(id)
        await self._former.keep(tx, await tx[AuditLog].add(AUDITED.deleted(endpoint)), kept)

    def _load(self, values: Mapping[str, Any]) -> dict[str, Any]:
        fields = {name: value for name, value in values.items() if name != "status_reason"}
        reason = values.get("status_reason")
        return super()._load({**fields, "disabled_for": reason["code"]} if reason else fields)

    async def _restore(self, tx: Tx, id: str, values: Mapping[str, Any], entry: str) -> None:
        """Recreate a deleted endpoint with its id and the secrets stored with that audit entry.

        It receives events from now on. Raises UndoUnavailable if the secrets are no longer kept, and what
        `create_with_secret` raises.
        """
        kept = await self._former.kept(tx, entry)
        made = {"id": id, "created_at": datetime.fromisoformat(kept["created_at"]), "version": kept["version"] + 1}
        endpoint = self._row(tx, {**values, **made, **signing(kept, tx.now)})
        endpoint = await self._complete(tx, endpoint, values.keys())
        await self._add(tx, endpoint, self._former.resealed(endpoint, kept))

    async def _revert(self, tx: Tx, id: str, changes: Mapping[str, Any], exact: Mapping[str, Any], entry: str) -> None:
        if "secret_last4" in exact:
            await self._restore_secret(tx, id, entry)
        else:
            await self.update(tx, id, changes, exact=exact)

    async def _restore_secret(self, tx: Tx, id: str, entry: str) -> None:
        """Restore the secret that was replaced with that audit entry, and its predecessor during its overlap.

        Raises NotFound; UndoUnavailable if the secret is no longer kept.
        """
        before = await self.get(tx, id, lock=True)
        kept = await self._former.kept(tx, entry)
        after = changed(before, tx.now, **signing(kept, tx.now))
        await self._replace_secrets(tx, before, after, self._former.resealed(after, kept))

    async def _replace_secrets(self, tx: Tx, before: Endpoint, after: Endpoint, sealed: SealedSecrets) -> None:
        """Save the endpoint with other secrets; the former ones are stored with the audit entry."""
        replaced = await self._former.opened(tx, before)
        await tx[WebhookStore].save(after, expected_version=before.version)
        await tx[WebhookStore].seal(before.id, sealed)
        await self._former.keep(tx, await tx[AuditLog].add(AUDITED.updated(before, after)), replaced)

    async def rotate_secret(self, tx: Tx, id: str, overlap_hours: int) -> tuple[Endpoint, str]:
        """Create a new secret, shown once; the present one also signs during the overlap, earlier ones do not.

        Raises NotFound.
        """
        before = await self.get(tx, id, lock=True)
        sealed = await tx[WebhookStore].secrets(id)
        secret, until = _new_secret(), tx.now + timedelta(hours=overlap_hours)
        rotation = Rotation(until, before.secret_last4) if overlap_hours else None
        after = changed(before, tx.now, secret_last4=secret[-4:], rotation=rotation)
        previous = sealed.current if sealed and rotation else None
        await self._replace_secrets(tx, before, after, SealedSecrets(self._sealed(secret, id), previous))
        return after, secret

    async def deliveries(self, tx: Tx, id: str, wanted: DeliveryFilter, page_request: PageRequest) -> Page[Delivery]:
        """Return a page of the endpoint's deliveries, newest first. Raises NotFound."""
        await self.get(tx, id)
        return await tx[WebhookStore].deliveries(replace(wanted, endpoint=id), page_request)

    async def delivery(self, tx: Tx, id: str, delivery: str) -> Delivery:
        """Return a delivery of the endpoint. Raises NotFound."""
        await self.get(tx, id)
        return existing(await tx[WebhookStore].delivery(id, delivery))

    async def resend(self, tx: Tx, id: str, delivery: str) -> Delivery:
        """Resend a finished delivery at once, with the same bytes and webhook-id and a new schedule.

        Raises NotFound; Conflict for a disabled endpoint and for an open delivery.
        """
        endpoint = await self.get(tx, id, lock=True)
        before = existing(await tx[WebhookStore].delivery(id, delivery, lock=True))
        _refuse_disabled(endpoint)
        if before.is_open:
            raise Conflict(_on_its_way(before))
        after = before.resent(tx.now)
        await tx[WebhookStore].resend(before, tx.now)
        old, new = {"status": before.status}, {"status": after.status}
        await tx[AuditLog].add(Change("webhook_delivery", delivery, "update", old, new))
        return after

    async def recover(self, tx: Tx, id: str, made: RecoveryRange) -> Recovery:
        """Requeue failed deliveries created in that range, oldest first, up to the maximum of open ones.

        Raises NotFound; InvalidRequest unless since is before until; Conflict for a disabled endpoint.
        """
        endpoint = await self.get(tx, id, lock=True)
        since, until = made.since, made.until or tx.now
        if since >= until:
            detail = "`since` must lie before `until`, which is now unless it is given."
            raise InvalidRequest.of("since", "invalid_value", detail)
        _refuse_disabled(endpoint)
        recovery = await tx[WebhookStore].recover(id, since, until, tx.now, MOST_OPEN)
        recovered = {"since": since.isoformat(), "until": until.isoformat(), "requeued": recovery.requeued}
        await tx[AuditLog].add(Change("webhook_endpoint", id, "update", {}, {"recovered": recovered}))
        return recovery

    async def test(self, tx: Tx, id: str) -> Delivery:
        """Send a `webhook.test` event now, whatever the endpoint subscribes to.

        Raises NotFound; Conflict for a disabled endpoint.
        """
        endpoint = await self.get(tx, id, lock=True)
        _refuse_disabled(endpoint)
        data = {"id": id, "url": endpoint.url}
        event = Event("webhook.test", id, endpoint.version, data)
        event.identify(tx.context)
        delivery = Delivery(
            id=new_id("dlv"),
            endpoint=id,
            event=event.id,
            type=event.type,
            subject=id,
            positions=(),
            status=DeliveryStatus.PENDING,
            created_at=tx.now,
            body=self.rendering.event(event, tx.tenant, tx.now),
            next_attempt_at=tx.now,
        )
        await tx[WebhookStore].add_delivery(delivery)
        created = {"endpoint": id, "type": event.type, "status": delivery.status}
        await tx[AuditLog].add(Change("webhook_delivery", delivery.id, "create", {}, created))
        return delivery

    async def emit_sample(self, tx: Tx, type: str) -> Event:
        """Append a sample event of the type to the test mode's log.

        Feed, stream and endpoints receive it like a real one. Raises Conflict in live mode, InvalidRequest for a type
        without a sample.
        """
        if tx.tenant.livemode:
            raise Conflict("Samples are sent in test mode only; use a test key (svc_test_…).")
        if type not in samples.TYPES_WITH_SAMPLE:
            known = Closeness().listed(type, sorted(samples.TYPES_WITH_SAMPLE))
            detail = f"There is no sample of this type. Types with a sample: {known}."
            raise InvalidRequest.of("type", "invalid_value", detail)
        org = await tx[OrgStore].own()
        event = samples.sample(type, org.catalogue(livemode=False), tx.now)
        await tx[EventLog].append([event])
        return event

    async def disable(self, tx: Tx, id: str, reason: DisabledReason) -> None:
        """Disable an endpoint on the service's behalf: open deliveries fail and an event reports it.

        A deleted or disabled endpoint is ignored.
        """
        before = await tx[WebhookStore].get(id, lock=True)
        if before is None or before.status != EndpointStatus.ENABLED:
            return
        after = changed(before, tx.now, status=EndpointStatus.DISABLED, disabled_for=reason)
        await tx[WebhookStore].save(after, expected_version=before.version)
        await tx[WebhookStore].fail_open(id, tx.now)
        await tx[AuditLog].add(AUDITED.updated(before, after))
        data = self.describe(after, tx.tenant.livemode, tx.now)
        await tx[EventLog].append([Event("delivery.disabled", id, after.version, data)])

    async def end_rotation(self, tx: Tx, id: str) -> None:
        """Delete the former secret once its overlap has ended, which changes nothing visible.

        Deleted endpoints and running rotations are ignored.
        """
        before, sealed = await tx[WebhookStore].get(id, lock=True), await tx[WebhookStore].secrets(id)
        if before is None or sealed is None or before.rotation is None or before.rotation_at(tx.now):
            return
        await tx[WebhookStore].save(replace(before, rotation=None), expected_version=before.version)
        await tx[WebhookStore].seal(id, SealedSecrets(sealed.current))
        await tx[AuditLog].add(Change("webhook_endpoint", id, "update", {"rotation": plain(before.rotation)}, {}))

    @property
    def _former(self) -> FormerSecrets:
        return FormerSecrets(self.vault)

    def _sealed(self, secret: str, endpoint: str) -> bytes:
        return self.vault.seal({"secret": secret}, endpoint)

    async def _complete(self, tx: Tx, row: Endpoint, names: Collection[str]) -> Endpoint:
        if "payload" in names and row.payload == PayloadKind.FAT:
            org = await tx[OrgStore].own()
            if "fat_webhooks" not in org.plan.features:
                detail = f"Your organisation's plan ({org.plan.code}) does not include fat_webhooks. Use payload thin, or a larger plan."
                raise FeatureUnavailable.of("payload", "invalid_value", detail)
        if "event_types" in names:
            refuse_types(row.event_types)
        if "url" in names:
            refuse_url(row.url, self.allowed_hosts, livemode=tx.tenant.livemode)
        if "filters" in names:
            await _refuse_unknown(tx, row.filters)
        return row


async def _refuse_unknown(tx: Tx, filters: Filters) -> None:
    """Refuse unknown sources and categories; catalogues may be ones that the tenant cannot see yet."""
    for place, category in enumerate(filters.categories):
        if category not in categories.everything():
            detail = "There is no such category; GET /v1/categories has them all."
            raise Unprocessable.of(f"filters.categories.{place}", "invalid_value", detail)
    for place, source in enumerate(filters.sources):
        if await tx[SourceStore].get(source) is None:
            detail = f"You have no such source in {tx.tenant.mode} mode; GET /v1/sources has yours."
            raise Unprocessable.of(f"filters.sources.{place}", "invalid_value", detail)


async def _forecast(tx: Tx, endpoint: Endpoint) -> None:
    """Add the endpoint's forecast to a dry run."""
    if tx.dry:
        tx.recorded.forecasts["forecast"] = await tx[WebhookStore].forecast(endpoint, tx.now - FORECAST)


def _new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


async def wake_endpoints(tx: Tx) -> None:
    """Notify workers to reload the tenant's endpoints, because they serve only those that are not held back."""
    for endpoint in (await tx[WebhookStore].page(PageRequest(limit=100))).items:
        await tx[WebhookStore].wake(endpoint.id)


def _on_its_way(delivery: Delivery) -> str:
    if delivery.next_attempt_at is None:
        return "The delivery is being sent now; wait until it has succeeded or failed."
    return (
        f"The delivery is tried again by itself at {instant(delivery.next_attempt_at)}. To have all that waits sent at once, "
        "disable the endpoint (PATCH status), enable it again, and recover (POST …/recover)."
    )


def _refuse_disabled(endpoint: Endpoint) -> None:
    if endpoint.status != EndpointStatus.ENABLED:
        raise Conflict("The endpoint is disabled; set its status to enabled first (PATCH), then try again.")


_CONTEXT = AuditContext(Actor("service", "scheduler"), "webhooks.end_rotation")
_BATCH = 100


@dataclass(frozen=True, slots=True)
class Rotations:
    """Tick of the leading scheduler. A former secret never signs beyond its overlap, even before this runs."""

    uow: UnitOfWork
    log: DeliveryLog
    service: WebhookService
    clock: Clock

    async def end_lapsed(self) -> int:
        """End rotations whose overlap is over, in one transaction each; return their number."""
        ended = 0
        while lapsed := await self.log.lapsed_rotations(self.clock.now(), _BATCH):
            for tenant, endpoint in lapsed:
                async with self.uow.begin(tenant, _CONTEXT) as tx:
                    await self.service.end_rotation(tx, endpoint)
            ended += len(lapsed)
        return ended
