"""Files of exports go with time: the export says so first, then the storage sweeper deletes them."""

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
    """What the leading scheduler ticks; two at once do no harm."""

    uow: UnitOfWork
    upkeep: ExportUpkeep
    clock: Clock

    async def tick(self) -> int:
        """Let go of the files of all exports that are due; answers how many."""
        count = 0
        while due := await self.upkeep.due(self.clock.now(), _BATCH):
            gone = [await self._one(tenant, id) for tenant, id in due]
            count += sum(gone)
            if not all(gone):
                return count  # who cannot be reached is due still, and looked at with the next tick
        return count

    async def _one(self, tenant: Tenant, id: str) -> bool:
        """Whether the export's files are let go; a tenant that cannot be reached keeps nobody else waiting."""
        try:
            async with self.uow.begin(tenant, _CONTEXT) as tx:
                export = await tx[ExportStore].get(id, lock=True)
                if export is not None and export.status == ExportStatus.SUCCEEDED:
                    await _expired(tx, export)
        except Unavailable as error:
            _LOG.warning("an export could not expire now: %s", error, extra={"export": id})
            return False
        return True


async def expire_older(tx: Tx) -> None:
    """Let go of the files of all but the newest exports: one more is about to be kept."""
    for export in (await tx[ExportStore].kept())[KEPT_EXPORTS - 1 :]:
        await _expired(tx, export)


async def expire(tx: Tx, export: Export) -> None:
    """Let go of what an export has in the object store."""
    for key in export.keys:
        await tx[StorageLedger].free(key)


async def _expired(tx: Tx, export: Export) -> None:
    await expire(tx, export)
    after = export.expired(tx.now)
    await tx[ExportStore].save(after)
    await tx[AuditLog].add(AUDITED.updated(export, after))
