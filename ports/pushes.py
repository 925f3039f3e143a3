"""The parts of a pushed batch, kept until the run that reads them is over."""

from datetime import datetime
from typing import Protocol

from domain.runs.model import Run


class PushStore(Protocol):
    """In a tenant's transaction."""

    async def collecting(self, source: str, batch: str) -> Run | None:
        """The source's queued push run that still collects the batch of that name (PushInput)."""
        ...

    async def newest(self, source: str, batch: str) -> Run | None:
        """The source's newest run that was handed a batch of that name."""
        ...

    async def add_part(self, run: str, sequence: int, records: bytes, free_after: datetime | None = None) -> bool:
        """Keep one part (a JSON array of records in UTF-8), which counts; False when there is no room for it.

        For a batch, the ledger has an entry: from `free_after` on it may expire. Raises Conflict when the run has a part of that sequence.
        """
        ...

    async def part(self, run: str, sequence: int) -> bytes | None:
        """The run's part of that sequence (from 0)."""
        ...

    async def forget(self, run: str) -> None:
        """Drop the run's parts, which count no more; a run without any is no error."""
        ...
