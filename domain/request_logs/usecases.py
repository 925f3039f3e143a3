"""Reading the request log of an organisation."""

from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import existing
from domain.request_logs.model import RequestLog, RequestLogFilter
from domain.request_logs.ports import RequestLogStore
from ports.unit_of_work import Tx


class RequestLogService:
    """Read access to request logs, which the edge writes in batches."""

    async def list_request_logs(self, tx: Tx, wanted: RequestLogFilter, page_request: PageRequest) -> Page[RequestLog]:
        """Return the tenant's matching requests, newest first."""
        return await tx[RequestLogStore].page(page_request, wanted)

    async def get(self, tx: Tx, id: str) -> RequestLog:
        """Return the newest log with that Request-Id. Raises NotFound."""
        return existing(await tx[RequestLogStore].get(id))
