"""Ports of request logs: reading in a transaction, and writing in batches."""

from collections.abc import Sequence
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.request_logs.model import RequestLog, RequestLogFilter


class RequestLogStore(Protocol):
    """Storage of request logs in a tenant's transaction."""

    async def get(self, id: str) -> RequestLog | None:
        """Return the newest request log with the Request-Id `id`, or None."""
        ...

    async def page(self, page_request: PageRequest, log_filter: RequestLogFilter) -> Page[RequestLog]:
        """Return a page of matching request logs, newest first.

        With filters, a page that is not the last one may have fewer items than the limit.
        """
        ...


class RequestLogSink(Protocol):
    """Storage of request logs of all tenants, in batches."""

    async def write(self, logs: Sequence[RequestLog]) -> Sequence[RequestLog]:
        """Store the request logs, and the minute in which each API key was last used.

        Returns the logs that were not stored, because their database is unavailable. Raises an error, without storing
        any, if all databases are unavailable.
        """
        ...
