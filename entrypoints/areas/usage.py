"""GET /v1/usage and /v1/usage/series."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from adapters.wire import usage as wire
from domain.jobs.usecases.ticks import Tick
from domain.kernel.schema import date
from domain.sources.ports import SourceStore
from domain.storage.ports import StorageLedger
from domain.usage.meters import SOURCES, STORED_BYTES
from domain.usage.usecases.folding import UsageFolding
from domain.usage.usecases.service import UsageService
from domain.webhooks.usecases.service import wake_endpoints
from entrypoints.operations.operation import Area, Read, ReadContext, Reply
from ports.unit_of_work import Tx


async def levels(tx: Tx) -> Mapping[str, int]:
    """Read how much there is now of what is no monthly meter."""
    return {SOURCES: await tx[SourceStore].count(), STORED_BYTES: await tx[StorageLedger].used()}


SERVICE: Final = UsageService(levels)
Reading: TypeAlias = ReadContext[UsageService]


async def read(call: Reading) -> Reply:
    """The month so far."""
    return call.one(wire.USAGE, await call.service.usage(call.tx))


async def read_series(call: Reading) -> Reply:
    """Day by day."""
    asked = call.query
    since, until = wire.day_of(asked.get("since")), wire.day_of(asked.get("until"))
    return call.one(wire.USAGE_SERIES, await call.service.series(call.tx, asked.get("meter"), since, until))


OPERATIONS: Final = (
    Read(
        id="usage.read",
        path="/v1/usage",
        summary="Read usage",
        description="What this mode has used this month (UTC) of every meter, what the plan includes, and when 80% and 100% of it "
        "were reached. What was done seconds ago counts already.",
        handler=read,
        scope="usage:read",
        reply=wire.USAGE.schema,
    ),
    Read(
        id="usage.read_series",
        path="/v1/usage/series",
        summary="Read usage day by day",
        description="Each day (UTC) of a range of at most 366 days, both ends included, the last 30 days unless named. Of `sources` and "
        "`stored_bytes` it is how much there was last on the day.",
        handler=read_series,
        scope="usage:read",
        query={
            "meter": wire.METER,
            "since": date() | {"description": "The first day."},
            "until": date() | {"description": "The last day; today at the latest."},
        },
        reply=wire.USAGE_SERIES.schema,
    ),
)

AREA: Final = Area(
    name="usage",
    title="Usage",
    description="What your organisation has used of what its plan includes.",
    service=lambda _: SERVICE,
    operations=OPERATIONS,
    ticks=lambda dependencies: [
        Tick(
            "usage",
            15,
            UsageFolding(
                dependencies.uow, dependencies.usage, dependencies.clock, wire.described, SERVICE, wake_endpoints
            ).tick,
        )
    ],
)
