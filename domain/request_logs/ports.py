"""Request logs in store."""

from collections.abc import Sequence
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.request_logs.model import RequestLog, RequestLogFilter


class RequestLogStore(Protocol):
    """In a tenant's transaction."""

    async def get(self, id: str) -> RequestLog | None:
        """Return the newest log with the request ID."""
        ...

    async def page(self, page_request: PageRequest, wanted: RequestLogFilter) -> Page[RequestLog]:
        """Those that pass, newest first. The key of an item is chosen by the store and opaque to callers.

        A page with filters may end before it is full, with a key to go on from.
        """
        ...


class RequestLogSink(Protocol):
    """Across tenants: where finished requests are written, many at a time."""

    async def write(self, logs: Sequence[RequestLog]) -> Sequence[RequestLog]:
        """Keep them, and when each API key was last used, to a minute (domain/access/ports.py:KeyStore.used).

        Answers those whose own store is out of reach. Raises, and keeps none, when all of them are.
        """
        ...
