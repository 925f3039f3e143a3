"""Use cases that read request logs."""

from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import require_found
from domain.request_logs.model import RequestLog, RequestLogFilter
from domain.request_logs.ports import RequestLogStore
from ports.unit_of_work import Tx


class RequestLogService:
    """Use cases that read the request logs of a tenant."""

    async def list_request_logs(
        self, tx: Tx, log_filter: RequestLogFilter, page_request: PageRequest
    ) -> Page[RequestLog]:
        """Return a page of the tenant's matching request logs, newest first."""
        return await tx[RequestLogStore].page(page_request, log_filter)

    async def get(self, tx: Tx, id: str) -> RequestLog:
        """Return the newest request log with the Request-Id `id`. Raises NotFound."""
        return require_found(await tx[RequestLogStore].get(id))
