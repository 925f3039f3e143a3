"""Runs in store."""

from typing import Protocol

from domain.catalogue.model import Stream
from domain.kernel.paging import Page, PageRequest
from domain.runs.model import Run


class RunStore(Protocol):
    """In a tenant's transaction."""

    async def get(self, id: str) -> Run | None:
        """One run."""
        ...

    async def add(self, run: Run) -> None:
        """Keep a new run. Raises Conflict while another run of the source and stream is open."""
        ...

    async def save(self, run: Run) -> None:
        """Keep the run's new state."""
        ...

    async def page(self, source: str, page_request: PageRequest) -> Page[Run]:
        """A source's runs, newest first."""
        ...

    async def open(self, source: str, stream: Stream | None = None) -> Run | None:
        """The source's open run (queued, running or waiting) of that stream, or of any."""
        ...

    async def last_good(self, source: str, stream: Stream) -> Run | None:
        """The newest succeeded run of the stream that kept a snapshot."""
        ...

    async def last_ended(self, source: str, stream: Stream) -> Run | None:
        """The newest run of the stream that ended, well or not (CONCLUDED)."""
        ...
