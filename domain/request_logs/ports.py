"""Storage of request logs."""

from collections.abc import Sequence
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.request_logs.model import RequestLog, RequestLogFilter


class RequestLogStore(Protocol):
    """Request logs in a tenant's transaction."""

    async def get(self, id: str) -> RequestLog | None:
        """Return the newest log with that Request-Id, or None."""
        ...

    async def page(self, page_request: PageRequest, wanted: RequestLogFilter) -> Page[RequestLog]:
        """Return a page of matching logs, newest first.

        The store chooses the keys of items. A page with filters may be short, with a key to continue from.
        """
        ...


class RequestLogSink(Protocol):
    """Batched writing of finished requests, across tenants."""

    async def write(self, logs: Sequence[RequestLog]) -> Sequence[RequestLog]:
        """Store the logs, and the last use of each API key to the minute (domain/access/ports.py:KeyStore.used).

        Returns the logs whose store is unreachable. Raises, with nothing stored, if all are.
        """
        ...
