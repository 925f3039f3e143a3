"""Runs in memory."""

from collections.abc import Callable
from typing import Final

from adapters.memory.table import Table, Transaction
from domain.catalogue.model import Stream
from domain.kernel.errors import NotFound
from domain.kernel.paging import Page, PageRequest
from domain.runs.model import CONCLUDED, OPEN, Run, RunStatus, RunTrigger


def _claim(run: Run) -> tuple[str, str] | None:
    """What an open run holds alone; pushed runs queue one behind the other and hold nothing."""
    return (run.source, run.stream) if run.status in OPEN and run.trigger != RunTrigger.PUSH else None


RUNS: Final = Table[Run](
    "runs", lambda run: run.id, unique=_claim, conflict="Another run of this source and stream is queued or running."
)


class MemoryRuns:
    """RunStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._rows = transaction.rows(RUNS)

    async def get(self, id: str) -> Run | None:
        """One run."""
        return self._rows.get(id)

    async def add(self, run: Run) -> None:
        """Keep a new run."""
        await self._rows.add(run)

    async def save(self, run: Run) -> None:
        """Keep the run's new state."""
        if self._rows.get(run.id) is None:
            raise NotFound
        await self._rows.put(run)

    async def page(self, source: str, page_request: PageRequest) -> Page[Run]:
        """A source's runs, newest first."""
        return self._rows.page(page_request, lambda run: run.source == source)

    def _newest(self, matches: Callable[[Run], bool]) -> Run | None:
        return max(self._rows.where(matches), key=lambda run: run.id, default=None)

    async def open(self, source: str, stream: Stream | None = None) -> Run | None:
        """The newest open run of the source and stream."""
        return self._newest(lambda run: run.source == source and run.status in OPEN and stream in (None, run.stream))

    async def last_good(self, source: str, stream: Stream) -> Run | None:
        """The newest succeeded run that kept a snapshot."""
        sought = (source, stream, RunStatus.SUCCEEDED)
        return self._newest(lambda run: (run.source, run.stream, run.status) == sought and run.snapshot is not None)

    async def last_ended(self, source: str, stream: Stream) -> Run | None:
        """The newest run that ended, well or not."""
        return self._newest(lambda run: (run.source, run.stream) == (source, stream) and run.status in CONCLUDED)
