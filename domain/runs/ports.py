"""Stores of runs and pushed records, and the spool."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from domain.catalogue.model import Stream
from domain.runs.model import NewestRun, Run, RunDay
from ports.unit_of_work import Store


class RunStore(Store[Run], Protocol):
    """Runs within a tenant's transaction. Adding raises Conflict if another run of the source and stream is open."""

    async def open(self, source: str, stream: Stream | None = None) -> Run | None:
        """Return the source's open run (queued, running or waiting) of the stream, or of any stream; stock checks are excluded."""
        ...

    async def open_checks(self, source: str, limit: int) -> Sequence[Run]:
        """Return up to `limit` open stock checks of the source, oldest first."""
        ...

    async def last_good(self, source: str, stream: Stream) -> Run | None:
        """Return the newest succeeded run of the stream with a stored snapshot."""
        ...

    async def replayable(self, source: str, stream: Stream) -> Sequence[Run]:
        """Return the runs of the stream whose stored snapshots can be read again (REPLAYABLE), newest first.

        They are the newest that succeeded, and the newest that waits for a mapping if it is newer.
        """
        ...

    async def refused(self, source: str, stream: Stream) -> Run | None:
        """Return the newest run of the stream that the shrink guard stopped and whose snapshot is stored; None after a later run succeeded or failed."""
        ...

    async def days(self, since: datetime) -> Sequence[RunDay]:
        """Return how the runs of each source ended on each day (UTC) since the moment, among the newest MOST_RUNS runs."""
        ...

    async def newest(self, sources: Collection[str], since: datetime) -> Sequence[NewestRun]:
        """Return the newest run since a time of each of the sources, except stock checks, in no order."""
        ...

    async def last_ended(self, source: str, stream: Stream) -> Run | None:
        """Return the newest finished run of the stream (CONCLUDED), except runs that read no feed (BESIDE)."""
        ...


class PushStore(Protocol):
    """Pushed records within a tenant's transaction."""

    async def collecting(self, source: str, batch: str) -> Run | None:
        """Return the source's queued push run that still collects the batch (PushInput)."""
        ...

    async def newest(self, source: str, batch: str) -> Run | None:
        """Return the source's newest run of the batch."""
        ...

    async def add_part(self, run: str, sequence: int, records: bytes, free_after: datetime | None = None) -> bool:
        """Store one part (a JSON array of records in UTF-8) and count it; return False if storage is exhausted.

        The ledger entry of a batch can expire from `free_after` on. Raises Conflict if the run has a part of that sequence.
        """
        ...

    async def part(self, run: str, sequence: int) -> bytes | None:
        """Return the run's part with the sequence number (from 0)."""
        ...

    async def forget(self, run: str) -> None:
        """Delete the run's parts and their ledger entries, if any."""
        ...


class Spool(Protocol):
    """Lines by bucket, in the order in which they were added; a line has no line break."""

    def put(self, bucket: int, line: bytes) -> None:
        """Add a line to a bucket."""
        ...

    def lines(self, bucket: int) -> Sequence[bytes]:
        """Return the bucket's lines in the order in which they were added."""
        ...


class Spools(Protocol):
    """Factory of spools."""

    def open(self, buckets: int) -> AbstractContextManager[Spool]:
        """Open a spool with this number of buckets; it is deleted when the context ends."""
        ...
