"""Giving back what nothing needs: entries by their age, their objects, and objects that no entry names."""

import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from domain.kernel import retention
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.storage.model import KEPT_IN_OBJECTS, StoredKind, tenant_of
from domain.storage.ports import StorageLedger, StorageUpkeep
from ports.clock import Clock
from ports.objects import Objects
from ports.unit_of_work import UnitOfWork

_LOG = logging.getLogger("joinery.storage")
_CONTEXT = AuditContext(Actor("service", "scheduler"), "storage.sweep")
_BATCH = 200
_SWEPT = frozenset({StoredKind.SNAPSHOT, StoredKind.UPLOAD, StoredKind.IMAGE, StoredKind.EXPORT})
_AGAIN = timedelta(days=1)
"""When an entry is looked at again that is old enough to go and still needed."""


@dataclass(frozen=True, slots=True)
class Orphans:
    """Objects that belong to nothing, and are old enough to go."""

    count: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class StorageSweeper:
    """What the leading scheduler ticks. Each step may be broken off and done again; two at once do no harm."""

    uow: UnitOfWork
    upkeep: StorageUpkeep
    objects: Objects
    clock: Clock

    async def free(self) -> int:
        """Free what is due, then delete the objects of all that was freed; answers how many bytes were due."""
        freed = 0
        while due := await self.upkeep.due(_SWEPT, self.clock.now(), _BATCH):
            for tenant, keys in _by_tenant(due).items():
                async with self.uow.begin(tenant, _CONTEXT) as tx:
                    freed += await tx[StorageLedger].free_due(keys, tx.now + _AGAIN)
        await self._delete_freed()
        return freed

    async def _delete_freed(self) -> None:
        """Delete freed objects, and then their entries, so that no object is forgotten."""
        after = ""
        while freed := await self.upkeep.freed(after, _BATCH):
            after = freed[-1][1]
            for tenant, keys in _by_tenant(freed).items():
                await self.upkeep.forget(tenant, [key for key in keys if await self._deleted(key)])

    async def _deleted(self, key: str) -> bool:
        try:
            await self.objects.delete(key)
        except Exception:
            _LOG.exception("an object could not be deleted; the next sweep tries again", extra={"key": key})
            return False
        return True

    async def sweep(self) -> Orphans:
        """Delete objects that belong to nothing, and what writers that were killed left; answers which objects."""
        found = await self.orphans(delete=True)
        await self.objects.tidy(retention.ORPHANS)
        return found

    async def orphans(self, *, delete: bool = False) -> Orphans:
        """Objects that no entry and no run names although their organisation is known, older than a day.

        An entry is committed before its object is written and no key is used twice, so none of them can be on its way.
        """
        count = bytes = 0
        before = self.clock.now() - retention.ORPHANS
        for prefix in KEPT_IN_OBJECTS:
            async for page in self.objects.list(f"{prefix}/"):
                old = {info.key: info for info in page if info.modified_at < before}
                for key in await self.upkeep.orphans(_of_tenants(list(old))):
                    count, bytes = count + 1, bytes + old[key].bytes
                    if delete:
                        await self._deleted(key)
        return Orphans(count, bytes)


def _by_tenant(entries: Sequence[tuple[Tenant, str]]) -> dict[Tenant, list[str]]:
    grouped: defaultdict[Tenant, list[str]] = defaultdict(list)
    for tenant, key in entries:
        grouped[tenant].append(key)
    return grouped


def _of_tenants(keys: Collection[str]) -> dict[Tenant, list[str]]:
    """Keys that are not of this service's making are left alone."""
    return _by_tenant([(tenant, key) for key in keys if (tenant := tenant_of(key)) is not None])
