"""Ports of runs: storage of runs and pushed records, and spool files."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from domain.catalogue.model import Stream
from domain.runs.model import OpenReview, Run, RunDay, RunSummary, SourceRuns
from ports.unit_of_work import Store


class RunStore(Store[Run], Protocol):
    """Storage of runs in a tenant's transaction.

    `add` raises Conflict if another run of the same source and stream is open.
    """

    async def find_open(self, source: str, stream: Stream | None = None) -> Run | None:
        """Return the source's open run (queued, running or waiting), or None; stock checks are ignored.

        Args:
            source: ID of the source.
            stream: Stream of the run; None for any.
        """
        ...

    async def list_open_checks(self, source: str, limit: int) -> Sequence[Run]:
        """Return up to `limit` open runs for stock checks of the source, oldest first."""
        ...

    async def find_last_successful(self, source: str, stream: Stream) -> Run | None:
        """Return the newest successful run of the stream whose snapshot is stored, or None."""
        ...

    async def list_replayable(self, source: str, stream: Stream) -> Sequence[Run]:
        """Return the runs of the stream whose snapshots can be replayed, newest first.

        These are the newest successful run and, if it is newer, the newest run that needs a mapping.
        """
        ...

    async def find_run_over_removal_limit(self, source: str, stream: Stream) -> Run | None:
        """Return the newest run of the stream if it was refused by the removal limit and its snapshot is stored.

        Returns None if a later run has succeeded or failed.
        """
        ...

    async def count_by_day(self, since: datetime) -> Sequence[RunDay]:
        """Return the numbers of successful and failed runs by source and day (UTC).

        Only runs queued since `since` are counted, at most the newest MAX_COUNTED_RUNS.
        """
        ...

    async def list_newest(self, sources: Collection[str], *, ended: bool = False) -> Sequence[RunSummary]:
        """Return the newest import of each of these sources; with `ended`, the newest that succeeded, failed or needs a mapping."""
        ...

    async def list_summaries(self, source: str, since: datetime) -> Sequence[RunSummary]:
        """Return the imports of the source that were queued since `since`, newest first, at most MAX_LISTED_SUMMARIES."""
        ...

    async def summarise_by_source(self, since: datetime) -> Sequence[SourceRuns]:
        """Return the numbers of imports of each source.

        Only runs queued since `since` are counted, at most the newest MAX_COUNTED_RUNS.
        """
        ...

    async def list_open_reviews(self, sources: Collection[str], since: datetime) -> Sequence[OpenReview]:
        """Return what people have to review in the newest import of each stream of these sources, without empty entries.

        Only runs queued since `since` are considered.
        """
        ...

    async def find_last_succeeded_or_failed(self, source: str, stream: Stream) -> Run | None:
        """Return the newest run of the stream that succeeded or failed, or None; runs that read no feed are ignored."""
        ...


class PushStore(Protocol):
    """Storage of pushed records in a tenant's transaction."""

    async def find_collecting(self, source: str, batch: str) -> Run | None:
        """Return the source's queued run to which further records of the batch can be added, or None."""
        ...

    async def find_newest(self, source: str, batch: str) -> Run | None:
        """Return the source's newest run of a batch with this name, or None."""
        ...

    async def add_part(self, run: str, part_number: int, records: bytes, free_after: datetime | None = None) -> bool:
        """Store one part of a batch and count its size; return False if the storage quota is used up.

        Args:
            run: ID of the run.
            part_number: Number of the part, from 0.
            records: The part: a JSON array of records in UTF-8.
            free_after: When the batch may be deleted; None for never.

        Raises:
            Conflict: The run has a part with this number already.
        """
        ...

    async def get_part(self, run: str, part_number: int) -> bytes | None:
        """Return the JSON array of pushed records that was stored with this number (from 0), or None."""
        ...

    async def delete_parts(self, run: str) -> None:
        """Delete the run's parts, if any, and their entries in the storage ledger."""
        ...


class SpoolFile(Protocol):
    """Temporary file of lines, grouped into numbered buckets. Lines contain no line breaks."""

    def add_line(self, bucket: int, line: bytes) -> None:
        """Add a line to a bucket."""
        ...

    def read_lines(self, bucket: int) -> Sequence[bytes]:
        """Return the bucket's lines in the order in which they were added."""
        ...


class SpoolFactory(Protocol):
    """Creates spool files."""

    def create(self, bucket_count: int) -> AbstractContextManager[SpoolFile]:
        """Create a spool file with this number of buckets; it is deleted when the context ends."""
        ...
