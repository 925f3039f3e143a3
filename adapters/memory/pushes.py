"""The parts of pushed batches in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapters.memory.runs import RUNS
from adapters.memory.storage import MemoryStorageLedger
from adapters.memory.table import Table, Transaction
from domain.runs.model import PushInput, Run, RunStatus, RunTrigger
from domain.storage.model import StoredKind, StoredObject, push_key


@dataclass(frozen=True, slots=True)
class PushPart:
    """One part of a batch."""

    run: str
    sequence: int
    records: bytes


def _key(part: PushPart) -> str:
    return f"{part.run}/{part.sequence:09d}"


PUSH_PARTS: Final = Table[PushPart]("push_parts", _key, descending=False, conflict="The batch has that part already.")


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

    async def add_part(self, run: str, sequence: int, records: bytes, free_after: datetime) -> bool:
        wanted = StoredObject(push_key(self._tenant, run), StoredKind.PUSH, len(records) + 1, free_after, run=run)
        if not await self._ledger.grow(wanted):
            return False
        await self._rows.add(PushPart(run, sequence, records))
        return True

    async def parts(self, run: str) -> Sequence[bytes]:
        return [part.records for part in self._rows.sorted(lambda part: part.run == run)]

    async def forget(self, run: str) -> None:
        for part in self._rows.where(lambda part: part.run == run):
            await self._rows.remove(_key(part))
        await self._ledger.forget(push_key(self._tenant, run))
