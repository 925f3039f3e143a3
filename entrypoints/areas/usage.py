"""GET /v1/usage and /v1/usage/series."""

from collections.abc import Mapping, Sequence

from adapters.wire import usage as wire
from domain.jobs.usecases.ticks import Tick
from domain.kernel.schema import date
from domain.sources.ports import SourceStore
from domain.storage.ports import StorageLedger
from domain.usage.meters import SOURCES, STORED_BYTES
from domain.usage.ports import UsageUpkeep
from domain.usage.usecases.folding import UsageFolding
from domain.usage.usecases.service import UsageService
from domain.webhooks.usecases.service import wake_endpoints
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, ReadContext, Reply
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork


async def levels(tx: Tx) -> Mapping[str, int]:
    """Return the current levels of the meters that are not counted per month."""
    return {SOURCES: await tx[SourceStore].count(), STORED_BYTES: await tx[StorageLedger].used()}


SERVICE = UsageService(levels)


async def read_series(call: ReadContext[UsageService]) -> Reply:
    """Return usage per day."""
    query = call.query
    since, until = wire.day_of(query.get("since")), wire.day_of(query.get("until"))
    return call.one(wire.USAGE_SERIES, await call.service.series(call.tx, query.get("meter"), since, until))


def _ticks(uow: UnitOfWork, upkeep: UsageUpkeep, clock: Clock) -> Sequence[Tick]:
    return [Tick("usage", 15, UsageFolding(uow, upkeep, clock, wire.described, SERVICE, wake_endpoints).tick)]


USAGE = Collection("usage", wire.USAGE, "usage")
SERIES = Collection("usage", wire.USAGE_SERIES, "usage")

AREA = Area(
    "usage",
    "Usage",
    "Usage of your organisation and the quotas of its plan.",
    service=lambda: SERVICE,
    operations=(
        USAGE.read(
            "Read usage",
            "Returns this month's usage (UTC) of every meter in this mode, the plan's quota, and when 80% and 100% of it were reached. "
            "Usage is current within seconds.",
            UsageService.usage,
            path="/v1/usage",
        ),
        SERIES.read(
            "Read usage day by day",
            "Returns each day (UTC) of a range of at most 366 days, both ends included; by default the last 30 days. For `sources` "
            "and `stored_bytes`, the value is the level at the end of the day.",
            id="usage.read_series",
            path="/v1/usage/series",
            handler=read_series,
            query={
                "meter": wire.METER,
                "since": date() | {"description": "The first day."},
                "until": date() | {"description": "The last day, at most today."},
            },
        ),
    ),
    ticks=_ticks,
)
