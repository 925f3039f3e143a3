"""Giving up batches that no further part came for, so that what they hold is free again."""

from dataclasses import dataclass
from typing import Final

from domain.kernel import retention
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.runs.batches import expired, waits_for_more
from domain.runs.model import OPEN
from domain.runs.ports import PushStore, RunStore
from domain.sources.ports import SourceStore
from domain.storage.model import StoredKind
from domain.storage.ports import StorageLedger, StorageUpkeep
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

_CONTEXT: Final = AuditContext(Actor("service", "scheduler"), "runs.expire")
_BATCH: Final = 100


@dataclass(frozen=True, slots=True)
class BatchExpiry:
    """What the leading scheduler ticks."""

    uow: UnitOfWork
    upkeep: StorageUpkeep
    clock: Clock

    async def expire(self) -> int:
        """Give up every open batch whose last part is too old; answers how many. Each in a transaction of its own."""
        given_up = 0
        while due := await self.upkeep.due({StoredKind.PUSH}, self.clock.now(), _BATCH):
            for tenant, key in due:
                given_up += await self._expire(tenant, key)
        return given_up

    async def _expire(self, tenant: Tenant, key: str) -> bool:
        """The source is locked like by a push, so a part that comes now either saves the batch or finds it given up."""
        async with self.uow.begin(tenant, _CONTEXT) as tx:
            id = key.rpartition("/")[2]
            run = await tx[RunStore].get(id)
            if run is not None:
                await tx[SourceStore].get(run.source, lock=True)
                run = await tx[RunStore].get(id)
            entry = await tx[StorageLedger].get(key)
            if entry is None or entry.free_after > tx.now:
                return False
            if run is not None and waits_for_more(run):
                await tx[RunStore].save(expired(run, tx.now))
                await tx[PushStore].forget(id)
                return True
            if run is not None and run.status in OPEN:
                await tx[StorageLedger].free_due([key], tx.now + retention.OPEN_BATCHES)
            else:
                await tx[PushStore].forget(id)
        return False
