"""Expiry of exports: an export is marked as expired, and later the storage sweeper deletes its files."""

import logging
from dataclasses import dataclass

from domain.audit.ports import AuditLog
from domain.exports.model import AUDITED, MAX_STORED_EXPORTS, Export, ExportStatus
from domain.exports.ports import ExportStore, ExportUpkeep
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.storage.ports import StorageLedger
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

_CONTEXT = AuditContext(Actor("service", "scheduler"), "exports.expire")
_BATCH = 100
_LOG = logging.getLogger("joinery.exports")


@dataclass(frozen=True, slots=True)
class ExportExpiry:
    """Scheduled task that marks exports as expired. Several processes may run it concurrently."""

    uow: UnitOfWork
    upkeep: ExportUpkeep
    clock: Clock

    async def expire_due(self) -> int:
        """Mark the exports that are due to expire as expired; return the number of exports."""
        count = 0
        while due := await self.upkeep.list_due(self.clock.now(), _BATCH):
            gone = [await self._expire_one(tenant, id) for tenant, id in due]
            count += sum(gone)
            if not all(gone):
                return count  # exports of unreachable tenants remain due for the next tick
        return count

    async def _expire_one(self, tenant: Tenant, id: str) -> bool:
        """Mark an export as expired; return False if the database of the export's tenant is unavailable."""
        try:
            async with self.uow.begin(tenant, _CONTEXT) as tx:
                export = await tx[ExportStore].get(id, lock=True)
                if export is not None and export.status == ExportStatus.SUCCEEDED:
                    await _mark_expired(tx, export)
        except Unavailable as error:
            _LOG.warning("export could not be marked as expired: %s", error, extra={"export": id})
            return False
        return True


async def expire_excess(tx: Tx) -> None:
    """Mark the oldest exports as expired, so that at most MAX_STORED_EXPORTS have files once a new export is added."""
    for export in (await tx[ExportStore].list_with_files())[MAX_STORED_EXPORTS - 1 :]:
        await _mark_expired(tx, export)


async def free_objects(tx: Tx, export: Export) -> None:
    """Mark the export's objects in the object store as free, so that the storage sweeper deletes them."""
    for key in export.keys:
        await tx[StorageLedger].free(key)


async def _mark_expired(tx: Tx, export: Export) -> None:
    await free_objects(tx, export)
    after = export.with_expiry(tx.now)
    await tx[ExportStore].save(after)
    await tx[AuditLog].add(AUDITED.describe_update(export, after))
