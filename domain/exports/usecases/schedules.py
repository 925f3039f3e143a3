"""Scheduled exports: their changes by people, and the creation of due exports by the scheduler."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from domain.access.usecases import find_member_scopes
from domain.audit.ports import AuditLog
from domain.exports.model import Export, ExportKind, ExportStatus
from domain.exports.ports import DeliveryFailed, FileTargets, ScheduledExportStore, ScheduledExportUpkeep
from domain.exports.schedules import (
    AUDITED,
    MAX_SCHEDULES,
    ExportTarget,
    NewScheduledExport,
    ScheduledExport,
    ScheduleStatus,
    create_delivery_job,
    validate_schedule,
    validate_target,
)
from domain.exports.usecases.service import ExportRequester, check_product_export, create_export, validate_view
from domain.jobs.ports import JobStore
from domain.jobs.usecases.ticks import log_errors
from domain.kernel.errors import Conflict, DomainError, InvalidRequest
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import require_found
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.orgs.ports import OrgStore
from domain.secrets.ports import Vault
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

_CONTEXT = AuditContext(Actor("service", "scheduler"), "exports.schedule")
_BATCH = 100
_RETRY_DELAY = timedelta(minutes=5)
"""Delay of a due export while the maximum number of exports is open."""
_SCOPES = frozenset({"exports:write", "products:read"})
_LOG = logging.getLogger("joinery.exports")


@dataclass(frozen=True, slots=True)
class ScheduledExportService:
    """Use cases of a tenant's scheduled exports.

    Attributes:
        max_test_seconds: Seconds after which the test of a target fails.
    """

    targets: FileTargets
    vault: Vault
    max_test_seconds: float = 30.0

    async def page(self, tx: Tx, request: PageRequest) -> Page[ScheduledExport]:
        """Return a page of the scheduled exports, newest first."""
        return await tx[ScheduledExportStore].page(request)

    async def test_target(self, target: ExportTarget, credentials: Mapping[str, Any]) -> ExportTarget:
        """Test a target; return it, with the server's key if it has one. Raises InvalidRequest or DeliveryFailed."""
        if errors := validate_target(target, credentials):
            raise InvalidRequest(errors[0].detail, fields=tuple(errors))
        client = self.targets.get(target.kind)
        if client is None:
            return target
        try:
            async with asyncio.timeout(self.max_test_seconds):
                return await client.test(target, credentials)
        except TimeoutError as error:
            raise DeliveryFailed("The target did not respond in time.") from error

    async def create(
        self, tx: Tx, new: NewScheduledExport, credentials: Mapping[str, Any], requester: ExportRequester
    ) -> ScheduledExport:
        """Store a new schedule, whose target was tested, and return it with its first time.

        Raises:
            InvalidRequest, Unprocessable: A value is invalid.
            PermissionDenied, FeatureUnavailable: The owner may not export products.
            Conflict: There are MAX_SCHEDULES.
        """
        check_product_export(requester)
        validate_view(new["filters"], new["layout"])
        if errors := [*validate_schedule(new), *validate_target(new["target"], credentials)]:
            raise InvalidRequest(errors[0].detail, fields=tuple(errors))
        await tx[ScheduledExportStore].lock_creation()
        if await tx[ScheduledExportStore].count() >= MAX_SCHEDULES:
            raise Conflict(f"There are {MAX_SCHEDULES} scheduled exports, the maximum. Delete one first.")
        id = new_id("sxp")
        sealed = self.vault.encrypt(credentials, id) if credentials else b""
        schedule = ScheduledExport(id=id, credentials=sealed, created_at=tx.now, updated_at=tx.now, **new)
        stored = schedule.with_next(tx.now)
        await tx[ScheduledExportStore].add(stored)
        await tx[AuditLog].add(AUDITED.describe_creation(stored))
        return stored

    async def set_paused(self, tx: Tx, id: str, paused: bool) -> ScheduledExport:
        """Pause or resume a schedule. Raises NotFound."""
        before = require_found(await tx[ScheduledExportStore].get(id, lock=True))
        after = replace(before, next_at=None) if paused else before.with_next(tx.now)
        if before.is_paused != paused:
            after = replace(after, version=before.version + 1, updated_at=tx.now)
            await tx[ScheduledExportStore].save(after)
            await tx[AuditLog].add(AUDITED.describe_update(before, after))
        return after

    async def delete(self, tx: Tx, id: str) -> None:
        """Delete a schedule; an export in progress is completed and not sent. Raises NotFound."""
        schedule = require_found(await tx[ScheduledExportStore].get(id, lock=True))
        await tx[ScheduledExportStore].remove(id)
        await tx[AuditLog].add(AUDITED.describe_deletion(schedule))

    async def run_now(self, tx: Tx, id: str, requester: ExportRequester) -> ScheduledExport:
        """Create an export now, in addition to the due ones. Raises NotFound, Conflict, or the errors of `create_export`."""
        schedule = require_found(await tx[ScheduledExportStore].get(id, lock=True))
        if schedule.is_in_progress:
            raise Conflict("The last export is not sent yet. Wait until it has ended.")
        return await self.start(tx, schedule, requester)

    async def start(self, tx: Tx, schedule: ScheduledExport, requester: ExportRequester) -> ScheduledExport:
        """Create an export of the schedule, and return the saved schedule. Raises the errors of `create_export`."""
        created = await create_export(
            tx, ExportKind.PRODUCTS, schedule.filters, schedule.layout, requester, schedule.id
        )
        after = schedule.with_export(created.id, tx.now)
        await tx[ScheduledExportStore].save(after)
        return after


@dataclass(frozen=True, slots=True)
class ExportScheduler:
    """Scheduled task that creates the due exports."""

    uow: UnitOfWork
    upkeep: ScheduledExportUpkeep
    clock: Clock
    service: ScheduledExportService

    async def create_due_exports(self) -> int:
        """Create an export for each schedule that is due; return their number."""
        count = 0
        for tenant, id in await self.upkeep.list_due(self.clock.now(), _BATCH):
            with log_errors(_LOG, "a scheduled export could not be created", tenant):
                count += await self._create_due(tenant, id)
        return count

    async def _create_due(self, tenant: Tenant, id: str) -> bool:
        """Create an export if one is still due, and set the next time, in one transaction; return whether it was created."""
        async with self.uow.begin(tenant, _CONTEXT) as tx:
            schedule = await tx[ScheduledExportStore].get(id, lock=True)
            if schedule is None or schedule.next_at is None or schedule.next_at > tx.now:
                return False
            following = schedule.with_next(tx.now)
            if schedule.is_in_progress:  # at most one at a time; missed times are skipped
                await tx[ScheduledExportStore].save(following)
                return False
            plan = (await tx[OrgStore].get_organisation()).plan
            requester = ExportRequester(plan, await find_member_scopes(tx, schedule.owner))
            if not requester.scopes >= _SCOPES:
                error = "The member who created this schedule may no longer export products. Create the schedule again."
                await tx[ScheduledExportStore].save(following.with_status(ScheduleStatus.FAILED, tx.now, error))
                return False
            try:
                async with tx.savepoint():
                    await self.service.start(tx, following, requester)
            except Conflict:
                await tx[ScheduledExportStore].save(replace(schedule, next_at=tx.now + _RETRY_DELAY))
                return False
            except DomainError as refusal:
                failed = following.with_status(ScheduleStatus.FAILED, tx.now, refusal.detail)
                await tx[ScheduledExportStore].save(failed)
                return False
            return True


async def continue_schedule(tx: Tx, export: Export) -> None:
    """Queue the delivery of a scheduled export that has ended, or record its failure, in the transaction of its end."""
    schedule = await tx[ScheduledExportStore].get(export.schedule, lock=True) if export.schedule else None
    if schedule is None or schedule.last_export != export.id:
        return
    if export.status == ExportStatus.SUCCEEDED:
        after = schedule.with_status(ScheduleStatus.DELIVERING, tx.now)
        await tx[JobStore].add(create_delivery_job(schedule.id, export, tx.tenant))
    else:
        after = schedule.with_status(ScheduleStatus.FAILED, tx.now, export.error)
    await tx[ScheduledExportStore].save(after)
