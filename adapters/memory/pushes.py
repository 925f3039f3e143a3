"""The parts of pushed batches in memory."""

from dataclasses import dataclass
from typing import Final

from adapters.memory.runs import RUNS
from adapters.memory.table import Table, Transaction
from domain.runs.model import PushInput, Run, RunStatus, RunTrigger


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

    async def add_part(self, run: str, sequence: int, records: bytes) -> None:
        await self._rows.add(PushPart(run, sequence, records))

    async def part(self, run: str, sequence: int) -> bytes | None:
        found = self._rows.get(f"{run}/{sequence:09d}")
        return found.records if found else None

    async def forget(self, run: str) -> None:
        for part in self._rows.where(lambda part: part.run == run):
            await self._rows.remove(_key(part))
