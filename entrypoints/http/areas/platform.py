"""GET /v1/status."""

from typing import Final

from adapters.wire import platform as wire
from entrypoints.http.operation import Operation, Reply, RequestContext, Tool


async def read_status(call: RequestContext) -> Reply:
    """The service's state as it was measured."""
    return Reply(wire.to_wire(await call.use.platform.status()))


OPERATIONS: Final = (
    Operation(
        id="platform.status",
        method="GET",
        path="/v1/status",
        summary="Read the service's status",
        description="Each component's state now and its uptime per day, from checks that the service makes of itself.",
        handler=read_status,
        scope=None,
        reply=wire.STATUS,
        rate="read",
        agent=Tool(),
    ),
)
