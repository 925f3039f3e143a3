"""The JSON of usage."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from adapters.wire.resource import Resource
from domain.kernel import schema
from domain.kernel.plain import instant
from domain.kernel.resource import View, computed
from domain.kernel.tenancy import Tenant
from domain.usage.meters import METERS, DayUsage
from domain.usage.usecases.service import MeterUsage, Usage, UsageSeries

METER = schema.named("meter", schema.enum(*METERS)) | {
    "description": "`records`: items that runs made or changed. `deliveries`: webhook deliveries that succeeded. `export_rows`: lines of "
    "exports of products. `ai_tokens`: what models read and wrote. `sources`, `stored_bytes`: how much there is now."
}
PERIOD = schema.named(
    "usage_period",
    schema.record(
        None,
        {"start": schema.date(), "end": schema.date() | {"description": "The first day of the next month (UTC)."}},
    ),
)
METER_USAGE = schema.record(
    None,
    {
        "meter": METER,
        "used": schema.integer(412_000, least=0, description="This month; of what is no monthly meter, now."),
        "included": schema.integer(500_000, least=0, description="What the plan includes; left out: any amount."),
        "threshold_80_at": schema.timestamp("When 80% were reached this month."),
        "threshold_100_at": schema.timestamp("When all of it was used."),
    },
    optional=("included", "threshold_80_at", "threshold_100_at"),
)
SERIES = schema.record(
    None,
    {
        "meter": METER,
        "days": schema.array(
            schema.record(None, {"day": schema.date(), "used": schema.integer(13_700, least=0)}),
            description="Every day of the range, oldest first.",
        ),
    },
)


def _meter(usage: MeterUsage) -> dict[str, Any]:
    told: dict[str, Any] = {"included": usage.included}
    for name in ("threshold_80_at", "threshold_100_at"):
        moment = getattr(usage, name)
        told[name] = instant(moment) if moment else None
    given = {name: value for name, value in told.items() if value is not None}
    return {"meter": usage.meter, "used": usage.used, **given}


def _period(usage: Usage) -> dict[str, str]:
    return {"start": usage.start.isoformat(), "end": usage.end.isoformat()}


def _series(days: Mapping[str, Sequence[DayUsage]]) -> list[dict[str, Any]]:
    return [
        {"meter": meter, "days": [{"day": one.day.isoformat(), "used": one.amount} for one in each]}
        for meter, each in days.items()
    ]


def day_of(text: str | None) -> date | None:
    """A calendar date that was asked for, checked by its schema."""
    return date.fromisoformat(text) if text else None


USAGE = Resource[Usage](
    "usage",
    {
        "period": computed(PERIOD, lambda usage, _: _period(usage)),
        "livemode": computed(schema.boolean(), lambda _, view: view.tenant.livemode),
        "meters": computed(schema.array(METER_USAGE), lambda usage, _: [_meter(one) for one in usage.meters]),
    },
    description="What this mode of the organisation has used this month (UTC). Only live mode is refused anything for it.",
)
USAGE_SERIES = Resource[UsageSeries](
    "usage_series",
    {
        "since": computed(schema.date(), lambda series, _: series.since.isoformat()),
        "until": computed(schema.date(), lambda series, _: series.until.isoformat()),
        "livemode": computed(schema.boolean(), lambda _, view: view.tenant.livemode),
        "series": computed(schema.array(SERIES), lambda series, _: _series(series.days)),
    },
    description="Usage day by day (UTC).",
)


def described(usage: Usage, tenant: Tenant, now: datetime) -> dict[str, Any]:
    """The resource, as events carry it."""
    return USAGE.render(usage, View(tenant, now))
