"""Runs in store."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from domain.catalogue.model import Stream
from domain.runs.model import NewestRun, Run, RunDay
from ports.unit_of_work import Store


class RunStore(Store[Run], Protocol):
    """In a tenant's transaction. Adding raises Conflict while another run of the source and stream is open."""

    async def open(self, source: str, stream: Stream | None = None) -> Run | None:
        """The source's open run (queued, running or waiting) of that stream, or of any; stock checks apart."""
        ...

    async def open_checks(self, source: str, limit: int) -> Sequence[Run]:
        """The source's open runs that ask for one item's stock, at most so many, oldest first."""
        ...

    async def last_good(self, source: str, stream: Stream) -> Run | None:
        """The newest succeeded run of the stream that kept a snapshot."""
        ...

    async def replayable(self, source: str, stream: Stream) -> Sequence[Run]:
        """The runs of the stream whose snapshot is kept to be read again (REPLAYABLE), newest first.

        They are the newest that succeeded, and the newest that waits for a mapping if it is newer.
        """
        ...

    async def refused(self, source: str, stream: Stream) -> Run | None:
        """The newest run of the stream that the shrink guard stopped and that kept a snapshot; None once another run succeeded or failed."""
        ...

    async def days(self, since: datetime) -> Sequence[RunDay]:
        """Return how the runs of each source ended on each day (UTC) since the moment, among the newest MOST_RUNS runs."""
        ...

    async def newest(self, sources: Collection[str], since: datetime) -> Sequence[NewestRun]:
        """The newest run since the moment of each of these sources that has one, those for one item's stock apart; in no order."""
        ...

    async def last_ended(self, source: str, stream: Stream) -> Run | None:
        """The newest run of the stream that ended, well or not (CONCLUDED), those that read no feed (BESIDE) apart."""
        ...


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


class Spool(Protocol):
    """Lines by bucket, in the order they came; a line holds no line break."""

    def put(self, bucket: int, line: bytes) -> None:
        """Put a line aside."""
        ...

    def lines(self, bucket: int) -> Sequence[bytes]:
        """The bucket's lines, in the order they were put."""
        ...


class Spools(Protocol):
    """Where spools are made."""

    def open(self, buckets: int) -> AbstractContextManager[Spool]:
        """A spool of that many buckets, gone with the context."""
        ...
