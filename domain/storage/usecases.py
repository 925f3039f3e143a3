"""Deletion of old ledger entries with their objects, and of orphaned objects."""

import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from domain.kernel import retention
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.storage.model import OBJECT_PREFIXES, StoredKind, parse_tenant
from domain.storage.ports import StorageLedger, StorageUpkeep
from ports.clock import Clock
from ports.objects import ObjectStore
from ports.unit_of_work import UnitOfWork

_LOG = logging.getLogger("joinery.storage")
_CONTEXT = AuditContext(Actor("service", "scheduler"), "storage.sweep")
_BATCH = 200
_SWEPT_KINDS = frozenset({StoredKind.SNAPSHOT, StoredKind.UPLOAD, StoredKind.IMAGE, StoredKind.EXPORT})
_RECHECK_AFTER = timedelta(days=1)
"""Delay after which an entry that was due but still needed is due again."""


@dataclass(frozen=True, slots=True)
class OrphanTotal:
    """Number and total size of orphaned objects, to which neither a ledger entry nor a run refers."""

    count: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class StorageSweeper:
    """Scheduled tasks that delete unneeded objects; they can be interrupted, repeated and run concurrently."""

    uow: UnitOfWork
    upkeep: StorageUpkeep
    objects: ObjectStore
    clock: Clock

    async def free_due(self) -> int:
        """Free the entries that are due, and delete all freed objects; return the number of bytes freed."""
        freed = 0
        while due := await self.upkeep.list_due(_SWEPT_KINDS, self.clock.now(), _BATCH):
            for tenant, keys in _group_by_tenant(due).items():
                async with self.uow.begin(tenant, _CONTEXT) as tx:
                    freed += await tx[StorageLedger].free_due(keys, tx.now + _RECHECK_AFTER)
        await self._delete_freed()
        return freed

    async def _delete_freed(self) -> None:
        """Delete the objects of freed entries, and then the entries."""
        after = ""
        while freed := await self.upkeep.list_freed(after, _BATCH):
            after = freed[-1][1]
            for tenant, keys in _group_by_tenant(freed).items():
                await self.upkeep.delete_entries(tenant, [key for key in keys if await self._delete(key)])

    async def _delete(self, key: str) -> bool:
        try:
            await self.objects.delete(key)
        except Exception:
            _LOG.exception("object could not be deleted, retrying at the next sweep", extra={"key": key})
            return False
        return True

    async def delete_orphans(self) -> OrphanTotal:
        """Delete orphaned objects and temporary files of killed processes; return the total of the orphaned objects."""
        found = await self._process_orphans(should_delete=True)
        await self.objects.delete_temporary_files(retention.ORPHANS)
        return found

    async def sum_orphans(self) -> OrphanTotal:
        """Return the total of orphaned objects that are older than retention.ORPHANS, without deleting them."""
        return await self._process_orphans(should_delete=False)

    async def _process_orphans(self, *, should_delete: bool) -> OrphanTotal:
        """Find orphaned objects that are older than retention.ORPHANS, and delete them if `should_delete`; return their total."""
        # entries are committed before objects are written, and keys are never used again: no orphan is being written
        count = bytes = 0
        before = self.clock.now() - retention.ORPHANS
        for prefix in OBJECT_PREFIXES:
            async for page in self.objects.list_objects(f"{prefix}/"):
                old = {info.key: info for info in page if info.modified_at < before}
                for key in await self.upkeep.select_orphans(_group_keys(list(old))):
                    count, bytes = count + 1, bytes + old[key].bytes
                    if should_delete:
                        await self._delete(key)
        return OrphanTotal(count, bytes)


def _group_by_tenant(entries: Sequence[tuple[Tenant, str]]) -> dict[Tenant, list[str]]:
    grouped: defaultdict[Tenant, list[str]] = defaultdict(list)
    for tenant, key in entries:
        grouped[tenant].append(key)
    return grouped


def _group_keys(keys: Collection[str]) -> dict[Tenant, list[str]]:
    """Group keys by tenant; keys that contain no tenant are ignored."""
    return _group_by_tenant([(tenant, key) for key in keys if (tenant := parse_tenant(key)) is not None])
