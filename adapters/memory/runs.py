"""Runs in memory."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapters.memory.table import Table, TableStore, Transaction
from domain.catalogue.model import Stream
from domain.runs.model import (
    BESIDE,
    CONCLUDED,
    MOST_RUNS,
    OPEN,
    QUEUEING,
    NewestRun,
    Run,
    RunDay,
    RunStatus,
    RunTrigger,
    days_of,
    newest_first,
)


def _claim(run: Run) -> tuple[str, str] | None:
    """What an open run holds alone; pushed and mailed ones queue one behind the other and hold nothing."""
    return (run.source, run.stream) if run.status in OPEN and run.trigger not in QUEUEING else None


def _reads(run: Run) -> bool:
    return run.trigger != RunTrigger.STOCK_CHECK


@dataclass(frozen=True, slots=True)
class TracedRun:
    """What a run was traced as last."""

    run: str
    trace: str


TRACED: Final = Table[TracedRun]("traced_runs", lambda traced: traced.run)
RUNS: Final = Table[Run](
    "runs", lambda run: run.id, unique=_claim, conflict="Another run of this source and stream is queued or running."
)


class MemoryRuns(TableStore[Run]):
    """RunStore."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(transaction, RUNS)
        self._traced = transaction.rows(TRACED)
        self._trace = transaction.trace

    async def add(self, row: Run) -> None:
        await super().add(row)
        await self._note(row)

    async def save(self, row: Run, *, expected_version: int | None = None) -> None:
        await super().save(row, expected_version=expected_version)
        await self._note(row)

    async def _note(self, run: Run) -> None:
        if self._trace is not None:
            await self._traced.put(TracedRun(run.id, self._trace))

    def _newest(self, matches: Callable[[Run], bool]) -> Run | None:
        return max(self.rows.where(matches), key=lambda run: run.id, default=None)

    async def open(self, source: str, stream: Stream | None = None) -> Run | None:
        return self._newest(
            lambda run: run.source == source and _reads(run) and run.status in OPEN and stream in (None, run.stream)
        )

    async def open_checks(self, source: str, limit: int) -> Sequence[Run]:
        found = self.rows.where(lambda run: run.source == source and run.status in OPEN and not _reads(run))
        return sorted(found, key=lambda run: run.id)[:limit]

    async def last_good(self, source: str, stream: Stream) -> Run | None:
        sought = (source, stream, RunStatus.SUCCEEDED)
        return self._newest(lambda run: (run.source, run.stream, run.status) == sought and run.snapshot is not None)

    async def replayable(self, source: str, stream: Stream) -> Sequence[Run]:
        good = await self.last_good(source, stream)
        sought = (source, stream, RunStatus.NEEDS_MAPPING)
        asking = self._newest(lambda run: (run.source, run.stream, run.status) == sought and run.snapshot is not None)
        return newest_first(asking, good)

    async def refused(self, source: str, stream: Stream) -> Run | None:
        ended = self._newest(
            lambda run: (
                (run.source, run.stream) == (source, stream) and run.status in CONCLUDED and run.snapshot is not None
            )
        )
        return ended if ended is not None and ended.was_refused else None

    async def days(self, since: datetime) -> Sequence[RunDay]:
        found = sorted(self.rows.where(lambda run: run.created_at >= since), key=lambda run: run.id)
        return days_of(found[-MOST_RUNS:])

    async def last_ended(self, source: str, stream: Stream) -> Run | None:
        return self._newest(
            lambda run: (
                (run.source, run.stream) == (source, stream) and run.status in CONCLUDED and run.trigger not in BESIDE
            )
        )

    async def newest(self, sources: Collection[str], since: datetime) -> Sequence[NewestRun]:
        rows = self.rows.where(lambda run: run.source in sources and run.created_at >= since and _reads(run))
        found = {run.source: run for run in sorted(rows, key=lambda run: run.id)}
        return [NewestRun(run.source, run.id, run.status) for run in found.values()]
