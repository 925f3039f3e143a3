"""The parts of pushed batches in memory."""

from datetime import datetime

from adapters.memory.runs import RUNS
from adapters.memory.storage import PUSH_PARTS, MemoryStorageLedger, PushPart
from adapters.memory.table import Transaction
from domain.runs.model import PushInput, Run, RunStatus, RunTrigger
from domain.storage.model import StoredKind, StoredObject, push_key


class MemoryPushes:
    """PushStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._rows = transaction.rows(PUSH_PARTS)
        self._runs = transaction.rows(RUNS)
        self._ledger, self._tenant = MemoryStorageLedger(transaction), transaction.tenant

    async def collecting(self, source: str, batch: str) -> Run | None:
        found = self._runs.where(
            lambda run: (
                (run.source, run.trigger, run.status) == (source, RunTrigger.PUSH, RunStatus.QUEUED)
                and isinstance(run.input, PushInput)
                and run.input.open
                and run.input.batch == batch
            )
        )
        return found[0] if found else None

    async def newest(self, source: str, batch: str) -> Run | None:
        found = self._runs.where(
            lambda run: run.source == source and isinstance(run.input, PushInput) and run.input.batch == batch
        )
        return max(found, key=lambda run: run.id, default=None)

    async def add_part(self, run: str, sequence: int, records: bytes, free_after: datetime | None = None) -> bool:
        part = PushPart(run, sequence, records)
        if not await self._ledger.fits(part.bytes):
            return False
        if free_after is not None:
            key = push_key(self._tenant, run)
            await self._ledger.note(StoredObject(key, StoredKind.PUSH, 0, free_after, run=run))
        await self._rows.add(part)
        return True

    async def part(self, run: str, sequence: int) -> bytes | None:
        found = self._rows.get(f"{run}/{sequence:09d}")
        return found.records if found else None

    async def forget(self, run: str) -> None:
        for part in self._rows.where(lambda part: part.run == run):
            await self._rows.remove(PUSH_PARTS.key(part))
        await self._ledger.forget(push_key(self._tenant, run))
