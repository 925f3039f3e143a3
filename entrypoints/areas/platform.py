"""GET /v1/status."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from adapters.wire import platform as wire
from domain.jobs.usecases.ticks import Tick
from domain.platform.usecases import PlatformService
from entrypoints.areas.area import Area
from entrypoints.dependencies import Dependencies
from entrypoints.http.operation import Read, Tool
from entrypoints.http.reply import Reply
from entrypoints.http.request_context import ReadContext
from entrypoints.scheduler.probes import probes

Reading: TypeAlias = ReadContext[PlatformService]


async def read_status(call: Reading) -> Reply:
    """The service's state as it was measured."""
    return call.one(wire.STATUS, await call.service.status())


def _ticks(dependencies: Dependencies) -> Sequence[Tick]:
    settings = dependencies.settings
    looks = probes(
        dependencies.dispatch, dependencies.events, dependencies.shards, f"http://{settings.host}:{settings.port}"
    )
    service = PlatformService(dependencies.platform_checks, dependencies.clock, looks)
    return [
        Tick("health", 60, service.tick),
        Tick("old checks", 3600, service.purge_old),
        Tick("partitions", 3600, dependencies.maintenance.partitions),
        Tick("old idempotency keys", 3600, dependencies.idempotency.purge_expired),
    ]


OPERATIONS: Final = (
    Read(
        id="platform.status",
        path="/v1/status",
        summary="Read the service's status",
        description="Each component's state now and its uptime per day, from checks that the service makes of itself.",
        handler=read_status,
        scope=None,
        reply=wire.STATUS.schema,
        agent=Tool(),
    ),
)

AREA: Final = Area(
    name="platform",
    title="Status",
    description="How the service itself is doing.",
    service=lambda dependencies: PlatformService(dependencies.platform_checks, dependencies.clock),
    operations=OPERATIONS,
    ticks=_ticks,
)
