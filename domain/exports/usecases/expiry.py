"""Expiry of exports: the export is marked first, then the storage sweeper deletes its files."""

import logging
from dataclasses import dataclass

from domain.audit.ports import AuditLog
from domain.exports.model import AUDITED, KEPT_EXPORTS, Export, ExportStatus
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
    """Tick of the leading scheduler; concurrent runs are harmless."""

    uow: UnitOfWork
    upkeep: ExportUpkeep
    clock: Clock

    async def tick(self) -> int:
        """Expire all exports that are due; return their number."""
        count = 0
        while due := await self.upkeep.due(self.clock.now(), _BATCH):
            gone = [await self._expire_due(tenant, id) for tenant, id in due]
            count += sum(gone)
            if not all(gone):
                return count  # exports of unreachable tenants remain due for the next tick
        return count

    async def _expire_due(self, tenant: Tenant, id: str) -> bool:
        """Expire one export; return False if its tenant is unreachable, which does not delay other tenants."""
        try:
            async with self.uow.begin(tenant, _CONTEXT) as tx:
                export = await tx[ExportStore].get(id, lock=True)
                if export is not None and export.status == ExportStatus.SUCCEEDED:
                    await _expired(tx, export)
        except Unavailable as error:
            _LOG.warning("export could not expire: %s", error, extra={"export": id})
            return False
        return True


async def expire_older(tx: Tx) -> None:
    """Expire all but the newest exports, to make room for another."""
    for export in (await tx[ExportStore].kept())[KEPT_EXPORTS - 1 :]:
        await _expired(tx, export)


async def expire(tx: Tx, export: Export) -> None:
    """Free the export's objects in the object store."""
    for key in export.keys:
        await tx[StorageLedger].free(key)


async def _expired(tx: Tx, export: Export) -> None:
    await expire(tx, export)
    after = export.expired(tx.now)
    await tx[ExportStore].save(after)
    await tx[AuditLog].add(AUDITED.updated(export, after))
