"""Runs in store."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from domain.catalogue.model import Stream
from domain.runs.days import RunDay
from domain.runs.model import NewestRun, Run
from ports.store import Store


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
        """How the runs of each source ended on each day (UTC) since the moment, among the newest MOST_RUNS runs."""
        ...

    async def newest(self, sources: Collection[str], since: datetime) -> Sequence[NewestRun]:
        """The newest run since the moment of each of these sources that has one, those for one item's stock apart; in no order."""
        ...

    async def last_ended(self, source: str, stream: Stream) -> Run | None:
        """The newest run of the stream that ended, well or not (CONCLUDED), those that read no feed (BESIDE) apart."""
        ...
