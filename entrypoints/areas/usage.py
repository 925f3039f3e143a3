"""Usage and quotas: GET /v1/usage and /v1/usage/series."""

from collections.abc import Sequence

from adapters.api_json import usage as wire
from domain.jobs.usecases.ticks import Tick
from domain.kernel.schema import date
from domain.usage.ports import UsageUpkeep
from domain.usage.usecases.aggregation import UsageAggregator
from domain.usage.usecases.service import UsageService
from domain.webhooks.usecases.service import request_endpoint_reload
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, ReadContext, Reply
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork


def _get_service(service: UsageService) -> UsageService:
    return service


async def read_series(context: ReadContext[UsageService]) -> Reply:
    """Return the usage of each day in a range, by meter."""
    query = context.query
    since, until = wire.parse_day(query.get("since")), wire.parse_day(query.get("until"))
    return context.build_resource_reply(
        wire.USAGE_SERIES, await context.service.get_series(context.tx, query.get("meter"), since, until)
    )


def _create_ticks(uow: UnitOfWork, upkeep: UsageUpkeep, clock: Clock, service: UsageService) -> Sequence[Tick]:
    return [
        Tick(
            "usage",
            15,
            UsageAggregator(uow, upkeep, clock, wire.render_usage, service, request_endpoint_reload).aggregate_usage,
        )
    ]


USAGE = Collection("usage", wire.USAGE, "usage")
SERIES = Collection("usage", wire.USAGE_SERIES, "usage")

AREA = Area(
    "usage",
    "Usage",
    "Usage of your organisation and the quotas of its plan.",
    create_service=_get_service,
    operations=(
        USAGE.read(
            "Read usage",
            "Returns this month's usage (UTC) of every meter in this mode, the plan's quota, and when 80% and 100% of it were reached. "
            "Usage is current within seconds.",
            UsageService.get_month_usage,
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
    create_ticks=_create_ticks,
)
