"""The ledger of what is stored, in memory."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from adapters.memory.orgs import ORGS, PLANS
from adapters.memory.runs import RUNS
from adapters.memory.table import EVERYWHERE, MemoryDatabase, Table, Transaction, table_of
from domain.kernel import retention
from domain.kernel.tenancy import Tenant
from domain.runs.model import OPEN, REPLAYABLE, Run
from domain.storage.model import METER, RECENT, Holding, StoredKind, StoredObject, push_key
from domain.uploads.model import Upload


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the ledger; a freed one waits for its object to be deleted."""

    stored: StoredObject
    created_at: datetime
    freed: bool = False


ENTRIES: Final = Table[Entry](
    "stored_objects",
    lambda entry: entry.stored.key,
    unique=lambda entry: None if entry.freed else entry.stored.content,
    descending=False,
)


@dataclass(frozen=True, slots=True)
class PushPart:
    """One part of a batch; it counts until the snapshot takes its place."""

    run: str
    sequence: int
    records: bytes
    counted: bool = True

    @property
    def bytes(self) -> int:
        """What it counts: as many as it takes in a snapshot."""
        return len(self.records) + 1 if self.counted else 0


PUSH_PARTS: Final = Table[PushPart](
    "push_parts",
    lambda part: f"{part.run}/{part.sequence:09d}",
    descending=False,
    conflict="The batch has that part already.",
)


class MemoryStorageLedger:
    """StorageLedger."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows = transaction.rows(ENTRIES)
        self._parts = transaction.rows(PUSH_PARTS)
        self._runs = transaction.rows(RUNS)
        self._orgs = transaction.rows(ORGS, EVERYWHERE)
        self._plans = transaction.rows(PLANS, EVERYWHERE)

    async def get(self, key: str) -> StoredObject | None:
        entry = self._rows.get(key)
        return entry.stored if entry and not entry.freed else None

    async def used(self) -> int:
        return sum(entry.stored.bytes for entry in self._live()) + sum(part.bytes for part in self._parts.where())

    async def make_room(self, bytes: int) -> bool:
        await self._transaction.lock()
        most = self._included()
        if most is None:
            return True
        unused = self._transaction.now + retention.SNAPSHOTS - RECENT
        for entry in sorted(self._live(), key=lambda entry: (entry.stored.free_after, entry.stored.key)):
            if await self.used() + bytes <= most:
                break
            stored = entry.stored
            if stored.kind == StoredKind.SNAPSHOT and stored.free_after <= unused and not self._needed(stored):
                await self._rows.put(replace(entry, freed=True))
        return await self.used() + bytes <= most

    async def keep(self, wanted: StoredObject, instead_of: str | None = None) -> StoredObject | None:
        await self._transaction.lock()
        for entry in self._live():
            if wanted.content is not None and entry.stored.content == wanted.content:
                later = max(entry.stored.free_after, wanted.free_after)
                same = replace(entry.stored, free_after=later, run=wanted.run)
                await self._rows.put(replace(entry, stored=same))
                return same
        moved = self._rows.get(instead_of) if instead_of is not None else None
        run = (instead_of or "").rpartition("/")[2]
        parts = self._parts.where(lambda part: part.run == run)
        bytes = wanted.bytes - (moved.stored.bytes if moved else 0) - sum(part.bytes for part in parts)
        if bytes > 0 and not await self.make_room(bytes):
            return None
        for part in parts:
            await self._parts.put(replace(part, counted=False))
        if moved:
            await self._rows.put(replace(moved, stored=replace(moved.stored, bytes=0)))
        await self._rows.add(Entry(wanted, self._transaction.now))
        return wanted

    async def count(self, kind: StoredKind) -> int:
        return sum(entry.stored.kind == kind and entry.stored.run is None for entry in self._live())

    async def assign(self, key: str, run: str) -> None:
        entry = self._rows.get(key)
        if entry and not entry.freed:
            await self._rows.put(replace(entry, stored=replace(entry.stored, run=run)))

    async def fits(self, bytes: int) -> bool:
        """Whether the plan has room for so many bytes more as it is."""
        await self._transaction.lock()
        most = self._included()
        return most is None or await self.used() + bytes <= most

    async def note(self, wanted: StoredObject) -> None:
        """Put down the entry of a batch, or until when it may go on."""
        entry = self._rows.get(wanted.key) or Entry(wanted, self._transaction.now)
        await self._rows.put(replace(entry, stored=wanted))

    async def forget(self, key: str) -> None:
        """Drop the entry of a batch."""
        await self._rows.remove(key)

    def _included(self) -> int | None:
        """How much the plan includes; None: any amount."""
        org = self._orgs.get(self._transaction.tenant.org)
        plan = self._plans.get(org.plan.code) or org.plan if org else None
        return plan.included(METER) if plan else None

    async def settle(self, key: str) -> bool:
        entry = self._rows.get(key)
        if entry is None or entry.freed:
            return False
        await self._rows.put(replace(entry, stored=replace(entry.stored, free_after=retention.UNTIL_FREED)))
        return True

    async def holds(self, key: str) -> bool:
        entry = self._rows.get(key)
        return entry is not None and not entry.freed

    async def free(self, key: str) -> None:
        await self._transaction.lock()
        entry = self._rows.get(key)
        if entry:
            await self._rows.put(replace(entry, freed=True))

    async def free_due(self, keys: Collection[str], again: datetime) -> int:
        await self._transaction.lock()
        freed = 0
        for entry in self._live():
            if entry.stored.key not in keys or entry.stored.free_after > self._transaction.now:
                continue
            if self._needed(entry.stored):
                await self._rows.put(replace(entry, stored=replace(entry.stored, free_after=again)))
            else:
                await self._rows.put(replace(entry, freed=True))
                freed += entry.stored.bytes
        return freed

    def _live(self) -> list[Entry]:
        return self._rows.where(lambda entry: not entry.freed)

    def _needed(self, stored: StoredObject) -> bool:
        """An open run reads it, or it is the newest that a stream could be read from again."""
        reader = self._runs.get(stored.run) if stored.run else None
        if reader and reader.status in OPEN:
            return True
        return any(run.status in OPEN or self._replayable(run) for run in self._snapshots_of(stored.key))

    def _snapshots_of(self, key: str) -> list[Run]:
        return self._runs.where(lambda run: run.snapshot == key)

    def _replayable(self, run: Run) -> bool:
        if run.status not in REPLAYABLE:
            return False
        alike = (run.source, run.stream, run.status)
        return not self._runs.where(
            lambda other: (
                (other.source, other.stream, other.status) == alike and other.snapshot is not None and other.id > run.id
            )
        )


class MemoryStorageUpkeep:
    """StorageUpkeep."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store

    async def due(self, kinds: Collection[StoredKind], now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        due = [
            (entry.stored.free_after, tenant, entry.stored.key)
            for tenant, entry in self._store.everyone(ENTRIES)
            if entry.stored.kind in kinds and entry.stored.free_after <= now and not entry.freed
        ]
        return [(tenant, key) for _, tenant, key in sorted(due, key=lambda one: (one[0], one[2]))[:limit]]

    async def freed(self, after: str, limit: int) -> Sequence[tuple[Tenant, str]]:
        freed = [
            (entry.stored.key, tenant)
            for tenant, entry in self._store.everyone(ENTRIES)
            if entry.freed and entry.stored.key > after
        ]
        return [(tenant, key) for key, tenant in sorted(freed, key=lambda one: one[0])[:limit]]

    async def forget(self, tenant: Tenant, keys: Collection[str]) -> None:
        for key in keys:
            entry = self._store.committed(ENTRIES, tenant).get(key)
            if entry and entry.freed:
                self._store.erase(ENTRIES, tenant, key)

    async def orphans(self, keys: Mapping[Tenant, Collection[str]]) -> Collection[str]:
        found: set[str] = set()
        for tenant, own in keys.items():
            if tenant.org not in self._store.committed(ORGS, EVERYWHERE):
                continue
            runs = self._store.committed(RUNS, tenant)
            named = {run.snapshot for run in runs.values()} | self._store.committed(ENTRIES, tenant).keys()
            for upload in self._store.committed(table_of(Upload), tenant).values():
                reader = runs.get(upload.run or "")
                named |= {upload.key} if reader and reader.status in OPEN else set()
            found |= set(own) - named
        return found

    async def holdings(self, now: datetime) -> Sequence[Holding]:
        live = [entry.stored for _, entry in self._store.everyone(ENTRIES) if not entry.freed]
        live = [stored for stored in live if stored.kind != StoredKind.PUSH] + list(self._pushed(now))
        made = []
        for kind in sorted({stored.kind for stored in live}):
            bytes = [stored.bytes for stored in live if stored.kind == kind]
            due = [stored.bytes for stored in live if stored.kind == kind and stored.free_after <= now]
            made.append(Holding(kind, len(bytes), sum(bytes), len(due), sum(due)))
        return made

    def _pushed(self, now: datetime) -> Iterator[StoredObject]:
        """What each run's parts count together."""
        counted: defaultdict[tuple[Tenant, str], int] = defaultdict(int)
        for tenant, part in self._store.everyone(PUSH_PARTS):
            counted[tenant, part.run] += part.bytes
        for (tenant, run), bytes in counted.items():
            entry = self._store.committed(ENTRIES, tenant).get(push_key(tenant, run))
            free_after = entry.stored.free_after if entry else now + retention.OPEN_BATCHES
            if bytes:
                yield StoredObject(push_key(tenant, run), StoredKind.PUSH, bytes, free_after)

    async def waiting(self) -> tuple[int, int]:
        freed = [entry.stored.bytes for _, entry in self._store.everyone(ENTRIES) if entry.freed]
        return len(freed), sum(freed)

    async def batches(self) -> Sequence[tuple[Tenant, str, int, datetime]]:
        found = [
            (tenant, entry.stored.run or "", self._bytes_of(tenant, entry.stored.run), entry.created_at)
            for tenant, entry in self._store.everyone(ENTRIES)
            if entry.stored.kind == StoredKind.PUSH and not entry.freed
        ]
        return sorted(found, key=lambda one: (one[3], one[1]))[:100]

    def _bytes_of(self, tenant: Tenant, run: str | None) -> int:
        return sum(part.bytes for whose, part in self._store.everyone(PUSH_PARTS) if (whose, part.run) == (tenant, run))
