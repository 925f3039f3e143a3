"""GET /v1/request-logs and /v1/request-logs/{id}."""

from typing import Final

from adapters.wire import request_logs as wire
from entrypoints.http.operation import Operation, Reply, RequestContext, Tool


async def list_all(call: RequestContext) -> Reply:
    """The organisation's requests in this mode."""
    return call.listing(await call.use.request_logs.page(call.tx, call.page_request), wire.to_wire)


async def read(call: RequestContext) -> Reply:
    """One request."""
    return Reply(wire.to_wire(await call.use.request_logs.get(call.tx, call.ids["id"])))


OPERATIONS: Final = (
    Operation(
        id="request_logs.list",
        method="GET",
        path="/v1/request-logs",
        summary="List request logs",
        description="Every request of the organisation in this mode, refusals included, newest first. Entries appear within "
        "a second and are kept as long as the plan says.",
        handler=list_all,
        scope="request_logs:read",
        reply=wire.REQUEST_LOGS,
        rate="read",
        paging="both",
        agent=Tool(),
    ),
    Operation(
        id="request_logs.read",
        method="GET",
        path="/v1/request-logs/{id}",
        ids={"id": "req"},
        summary="Read a request log",
        description="One request by its Request-Id; the newest, if a client used the id more than once.",
        handler=read,
        scope="request_logs:read",
        reply=wire.REQUEST_LOG,
        rate="read",
        errors=("not_found",),
        agent=Tool(),
    ),
)
