"""GET /v1/request-logs and /v1/request-logs/{id}."""

from typing import Final, TypeAlias

from adapters.wire import request_logs as wire
from domain.jobs.usecases.ticks import Tick
from domain.request_logs.model import RequestLogFilter
from domain.request_logs.usecases import RequestLogService
from entrypoints.operations.operation import Area, Read, ReadContext, Reply

Reading: TypeAlias = ReadContext[RequestLogService]


async def list_all(call: Reading) -> Reply:
    """The organisation's requests in this mode."""
    wanted = RequestLogFilter(**call.query)
    return call.list(wire.REQUEST_LOG, await call.service.list_request_logs(call.tx, wanted, call.page_request))


async def read(call: Reading) -> Reply:
    """One request."""
    return call.one(wire.REQUEST_LOG, await call.service.get(call.tx, call.ids["id"]))


OPERATIONS: Final = (
    Read(
        id="request_logs.list",
        path="/v1/request-logs",
        summary="List request logs",
        description="Every request of the organisation in this mode, refusals included, newest first. Entries appear within "
        "a second and are kept as long as the plan says (`request_log_days`).",
        handler=list_all,
        scope="request_logs:read",
        query=wire.FILTERS,
        reply=wire.REQUEST_LOG.list,
        paging="both",
        dataset="request_logs",
    ),
    Read(
        id="request_logs.read",
        path="/v1/request-logs/{id}",
        ids={"id": "req"},
        summary="Read a request log",
        description="One request by its Request-Id; the newest, if a client used the id more than once.",
        handler=read,
        scope="request_logs:read",
        reply=wire.REQUEST_LOG.schema,
        errors=("not_found",),
    ),
)

AREA: Final = Area(
    name="request_logs",
    title="Request logs",
    description="Every request of your organisation.",
    service=lambda _: RequestLogService(),
    operations=OPERATIONS,
    ticks=lambda dependencies: [
        Tick("old request logs", 3600, dependencies.maintenance.purge_request_logs, purges=True)
    ],
)
