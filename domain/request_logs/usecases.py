"""Reading the log of an organisation's requests."""

from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import existing
from domain.request_logs.model import RequestLog, RequestLogFilter
from domain.request_logs.ports import RequestLogStore
from ports.unit_of_work import Tx


class RequestLogService:
    """Request logs are written at the edge, many at a time; here they are only read."""

    async def list_request_logs(self, tx: Tx, wanted: RequestLogFilter, page_request: PageRequest) -> Page[RequestLog]:
        """Return a page of the tenant's requests that match, newest first."""
        return await tx[RequestLogStore].page(page_request, wanted)

    async def get(self, tx: Tx, id: str) -> RequestLog:
        """Return the newest log with the request ID. Raises NotFound."""
        return existing(await tx[RequestLogStore].get(id))
