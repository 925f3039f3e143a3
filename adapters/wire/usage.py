"""JSON of usage."""

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
    "description": "`records`: items that runs created or changed. `deliveries`: successful webhook deliveries. `export_rows`: lines of "
    "product exports. `ai_tokens`: input and output tokens of language models. `sources`, `stored_bytes`: current totals."
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
        "used": schema.integer(
            412_000, least=0, description="Usage of this month, or the current total of `sources` and `stored_bytes`."
        ),
        "included": schema.integer(500_000, least=0, description="The plan's quota; omitted if it is unlimited."),
        "threshold_80_at": schema.timestamp("When usage reached 80% this month."),
        "threshold_100_at": schema.timestamp("When usage reached 100% this month."),
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
    values: dict[str, Any] = {"included": usage.included}
    for name in ("threshold_80_at", "threshold_100_at"):
        moment = getattr(usage, name)
        values[name] = instant(moment) if moment else None
    present = {name: value for name, value in values.items() if value is not None}
    return {"meter": usage.meter, "used": usage.used, **present}


def _period(usage: Usage) -> dict[str, str]:
    return {"start": usage.start.isoformat(), "end": usage.end.isoformat()}


def _series(days: Mapping[str, Sequence[DayUsage]]) -> list[dict[str, Any]]:
    return [
        {"meter": meter, "days": [{"day": day.day.isoformat(), "used": day.amount} for day in series]}
        for meter, series in days.items()
    ]


def day_of(text: str | None) -> date | None:
    """Parse a calendar date that the schema has validated."""
    return date.fromisoformat(text) if text else None


USAGE = Resource[Usage](
    "usage",
    {
        "period": computed(PERIOD, lambda usage, _: _period(usage)),
        "livemode": computed(schema.boolean(), lambda _, view: view.tenant.livemode),
        "meters": computed(schema.array(METER_USAGE), lambda usage, _: [_meter(meter) for meter in usage.meters]),
    },
    description="Usage of the organisation in this mode and month (UTC). Quotas are enforced in live mode only.",
)
USAGE_SERIES = Resource[UsageSeries](
    "usage_series",
    {
        "since": computed(schema.date(), lambda series, _: series.since.isoformat()),
        "until": computed(schema.date(), lambda series, _: series.until.isoformat()),
        "livemode": computed(schema.boolean(), lambda _, view: view.tenant.livemode),
        "series": computed(schema.array(SERIES), lambda series, _: _series(series.days)),
    },
    description="Daily usage (UTC).",
)


def described(usage: Usage, tenant: Tenant, now: datetime) -> dict[str, Any]:
    """Render the usage for events."""
    return USAGE.render(usage, View(tenant, now))
