"""JSON of usage."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from adapters.api_json.resource import JsonResource
from domain.kernel import schema
from domain.kernel.json_values import format_time
from domain.kernel.resource import RenderContext, computed
from domain.kernel.tenancy import Tenant
from domain.usage.meters import METERS, DayUsage
from domain.usage.usecases.service import MeterUsage, Usage, UsageSeries

METER = schema.with_title("meter", schema.enum(*METERS)) | {
    "description": "`records`: items that runs created or changed. `deliveries`: successful webhook deliveries. `export_rows`: lines of "
    "product exports. `ai_tokens`: input and output tokens of language models. `sources`, `stored_bytes`: current totals."
}
PERIOD = schema.with_title(
    "usage_period",
    schema.response_object(
        None,
        {"start": schema.date(), "end": schema.date() | {"description": "The first day of the next month (UTC)."}},
    ),
)
METER_USAGE = schema.response_object(
    None,
    {
        "meter": METER,
        "used": schema.integer(
            412_000,
            minimum=0,
            description="Usage in this month. For the meters `sources` and `stored_bytes`: the current total.",
        ),
        "included": schema.integer(500_000, minimum=0, description="The plan's quota; omitted if it is unlimited."),
        "threshold_80_at": schema.timestamp("When usage reached 80% this month."),
        "threshold_100_at": schema.timestamp("When usage reached 100% this month."),
    },
    optional=("included", "threshold_80_at", "threshold_100_at"),
)
SERIES = schema.response_object(
    None,
    {
        "meter": METER,
        "days": schema.array(
            schema.response_object(None, {"day": schema.date(), "used": schema.integer(13_700, minimum=0)}),
            description="Every day of the range, oldest first.",
        ),
    },
)


def _render_meter(usage: MeterUsage) -> dict[str, Any]:
    values: dict[str, Any] = {"included": usage.included}
    for name in ("threshold_80_at", "threshold_100_at"):
        moment = getattr(usage, name)
        values[name] = format_time(moment) if moment else None
    present = {name: value for name, value in values.items() if value is not None}
    return {"meter": usage.meter, "used": usage.used, **present}


def _render_period(usage: Usage) -> dict[str, str]:
    return {"start": usage.start.isoformat(), "end": usage.end.isoformat()}


def _render_series(days: Mapping[str, Sequence[DayUsage]]) -> list[dict[str, Any]]:
    return [
        {"meter": meter, "days": [{"day": day.day.isoformat(), "used": day.amount} for day in series]}
        for meter, series in days.items()
    ]


def parse_day(text: str | None) -> date | None:
    """Parse a valid date such as `2026-11-27`; return None if the text is empty or None."""
    return date.fromisoformat(text) if text else None


USAGE = JsonResource[Usage](
    "usage",
    {
        "period": computed(PERIOD, lambda usage, _: _render_period(usage)),
        "livemode": computed(schema.boolean(), lambda _, view: view.tenant.livemode),
        "meters": computed(
            schema.array(METER_USAGE), lambda usage, _: [_render_meter(meter) for meter in usage.meters]
        ),
    },
    description="Usage of the organisation in this mode and month (UTC). Quotas are enforced in live mode only.",
)
USAGE_SERIES = JsonResource[UsageSeries](
    "usage_series",
    {
        "since": computed(schema.date(), lambda series, _: series.since.isoformat()),
        "until": computed(schema.date(), lambda series, _: series.until.isoformat()),
        "livemode": computed(schema.boolean(), lambda _, view: view.tenant.livemode),
        "series": computed(schema.array(SERIES), lambda series, _: _render_series(series.days)),
    },
    description="Usage of each day (UTC).",
)


def render_usage(usage: Usage, tenant: Tenant, now: datetime) -> dict[str, Any]:
    """Render the usage as the data of an event."""
    return USAGE.render(usage, RenderContext(tenant, now))
