"""Deletion of unneeded entries by age, of their objects, and of objects without an entry."""

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
"""Delay until an old entry that is still needed is checked again."""


@dataclass(frozen=True, slots=True)
class Orphans:
    """Total of objects that belong to nothing and are old enough to delete."""

    count: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class StorageSweeper:
    """Tick of the leading scheduler. Steps can be interrupted and repeated; concurrent runs are harmless."""

    uow: UnitOfWork
    upkeep: StorageUpkeep
    objects: Objects
    clock: Clock

    async def free(self) -> int:
        """Free due entries, then delete the objects of all freed ones; return the bytes that were due."""
        freed = 0
        while due := await self.upkeep.due(_SWEPT, self.clock.now(), _BATCH):
            for tenant, keys in _by_tenant(due).items():
                async with self.uow.begin(tenant, _CONTEXT) as tx:
                    freed += await tx[StorageLedger].free_due(keys, tx.now + _AGAIN)
        await self._delete_freed()
        return freed

    async def _delete_freed(self) -> None:
        """Delete each object before its entry, so that no object is forgotten."""
        after = ""
        while freed := await self.upkeep.freed(after, _BATCH):
            after = freed[-1][1]
            for tenant, keys in _by_tenant(freed).items():
                await self.upkeep.forget(tenant, [key for key in keys if await self._delete(key)])

    async def _delete(self, key: str) -> bool:
        try:
            await self.objects.delete(key)
        except Exception:
            _LOG.exception("object could not be deleted, retrying at the next sweep", extra={"key": key})
            return False
        return True

    async def sweep(self) -> Orphans:
        """Delete orphaned objects and files of killed writers; return the total of orphans."""
        found = await self.orphans(delete=True)
        await self.objects.tidy(retention.ORPHANS)
        return found

    async def orphans(self, *, delete: bool = False) -> Orphans:
        """Return the total of old objects of known organisations that neither an entry nor a run names.

        An entry is committed before its object is written and no key is used twice, so none of them can be in progress.
        """
        count = bytes = 0
        before = self.clock.now() - retention.ORPHANS
        for prefix in KEPT_IN_OBJECTS:
            async for page in self.objects.list(f"{prefix}/"):
                old = {info.key: info for info in page if info.modified_at < before}
                for key in await self.upkeep.orphans(_group_keys(list(old))):
                    count, bytes = count + 1, bytes + old[key].bytes
                    if delete:
                        await self._delete(key)
        return Orphans(count, bytes)


def _by_tenant(entries: Sequence[tuple[Tenant, str]]) -> dict[Tenant, list[str]]:
    grouped: defaultdict[Tenant, list[str]] = defaultdict(list)
    for tenant, key in entries:
        grouped[tenant].append(key)
    return grouped


def _group_keys(keys: Collection[str]) -> dict[Tenant, list[str]]:
    """Group keys by tenant; keys of another form are ignored."""
    return _by_tenant([(tenant, key) for key in keys if (tenant := tenant_of(key)) is not None])
