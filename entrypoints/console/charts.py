"""Geometry of SVG charts: step charts, daily status bars and the timeline of a product."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from domain.events.model import LoggedEvent
from domain.kernel.money import EXPONENTS
from domain.runs.model import RunDay
from domain.runs.ports import RunStore
from entrypoints.console.context import PageContext
from entrypoints.console.products import PRICE_FIELDS, find_compared_field
from entrypoints.console.rendering import format_field, format_money, format_words
from entrypoints.console.rendering import format_short_date as write_date
from entrypoints.console.translation import gettext
from ports.clock import Clock

DAILY_STATUS_DAYS = 14
"""Number of days for which a source's daily status bars are shown."""
_RETENTION = timedelta(days=30)
"""Time for which events are stored."""
_MAX_LINES = 6
"""Maximum number of lines of a chart, one for each of the CSS classes `s0` to `s5`."""
_MAX_POINTS = 40
"""Maximum number of points of a line."""
_MAX_CHANGES = 15
"""Maximum number of changes of offers in the timeline of a product."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 508, 12, 184
_SIZE = {"width": 520, "height": 210, "left": _LEFT, "right": _RIGHT, "bottom": _BOTTOM}

SeriesPoints = Sequence[tuple[datetime, float | None]]
"""Values with the times from which they are valid; None is a gap."""
ChartValues = Mapping[str, Any]
"""Template variables of a chart, as `build_chart` returns them."""


def build_chart(
    series: Mapping[str, SeriesPoints],
    start: datetime,
    end: datetime,
    *,
    has_integer_labels: bool = False,
    includes_zero: bool = False,
) -> ChartValues | None:
    """Build a chart of step lines, one for each series; return None if the series contain no values.

    Args:
        series: The points of each series by name. Each value is valid until the next point.
        start: Start of the chart.
        end: End of the chart.
        has_integer_labels: Whether all labels of the value axis are integers.
        includes_zero: Whether the value axis includes zero.

    Returns:
        The chart's size, its `lines`, and the labels of its axes. `rows` are the labels of the value axis and `columns` those
        of the time axis, each as a pair of the position in pixels and the label.
    """
    values = [value for points in series.values() for _, value in points if value is not None]
    if not values or end <= start:
        return None
    low, high = min(values), max(values)
    if includes_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = low * 0.9, high * 1.1 or 1.0
    step = _choose_round_step((high - low) / 4)
    if has_integer_labels:
        step = max(1.0, step)
    lowest_label, highest_label = low // step * step, -(-high // step) * step

    def find_x(at: datetime) -> float:
        return round(_LEFT + (max(at, start) - start) / (end - start) * (_RIGHT - _LEFT), 1)

    def find_y(value: float) -> float:
        return round(_BOTTOM - (value - lowest_label) / (highest_label - lowest_label) * (_BOTTOM - _TOP), 1)

    span = end - start
    if span < timedelta(days=2):
        columns = [(find_x(at), f"{at:%H:%M}") for at in (start + span / 4 * quarter for quarter in range(1, 4))]
    else:
        midnight, day_step = start.replace(hour=0, minute=0, second=0, microsecond=0), max(1, round(span.days / 5))
        days = (midnight + timedelta(days=number) for number in range(1, span.days + 2, day_step))
        columns = [(find_x(at), write_date(at.date())) for at in days if at < end]
    labels = [lowest_label + step * number for number in range(round((highest_label - lowest_label) / step) + 1)]
    lines = [
        _build_line(name, points[-_MAX_POINTS:], find_x, find_y) | {"colour": index}
        for index, (name, points) in enumerate(list(series.items())[:_MAX_LINES])
    ]
    for line in lines:
        line["path"] += f"H{find_x(end)}" if line["last"] is not None else ""
    return {**_SIZE, "lines": lines, "rows": [(find_y(label), label) for label in labels], "columns": columns}


def _choose_round_step(minimum: float) -> float:
    """Return the smallest round number that is at least `minimum`: 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(max(minimum, 1e-9)))
    return next((power * factor for factor in (1, 2, 2.5, 5) if power * factor >= minimum), power * 10)


def _build_line(
    name: str, points: SeriesPoints, find_x: Callable[[datetime], float], find_y: Callable[[float], float]
) -> dict[str, Any]:
    """Return the template variables of a line: SVG `path`, `dots` at its values, and `last` value (None after a gap).

    Args:
        name: The name of the series.
        points: The points of the series.
        find_x: Returns the horizontal position of a time in pixels.
        find_y: Returns the vertical position of a value in pixels.
    """
    path, last_value, dots = "", None, []
    for at, value in points:
        x = find_x(at)
        if value is None:
            path += f"H{x}" if last_value is not None else ""
        else:
            path += f"M{x} {find_y(value)}" if last_value is None else f"H{x}V{find_y(value)}"
            dots.append((x, find_y(value), at, value))
        last_value = value
    return {"name": name, "path": path, "dots": dots, "last": last_value}


class DaySummary(NamedTuple):
    """Outcome of a source's runs on one day: a `tone` (good, warn, bad or none) and a title with the date and the counts."""

    tone: str
    title: str


async def build_daily_status_bars(
    page: PageContext, sources: Sequence[Mapping[str, Any]]
) -> dict[str, list[DaySummary]]:
    """Return the outcomes of each source's runs on each of the last 14 days, oldest first, by source ID."""
    today = page.dependencies[Clock].now().astimezone(UTC).date()
    dates = [today - timedelta(days=number) for number in range(DAILY_STATUS_DAYS - 1, -1, -1)]
    async with page.open_read_transaction() as tx:
        counts = (
            await tx[RunStore].count_by_day(datetime.combine(dates[0], datetime.min.time(), UTC)) if sources else ()
        )
    count_by_day = {(count.source, count.day): count for count in counts}
    return {
        source["id"]: [summarise_day(day, count_by_day.get((source["id"], day))) for day in dates] for source in sources
    }


def summarise_day(day: date, runs: RunDay | None) -> DaySummary:
    """Return the outcome of the runs on a day; `runs` is None if there were none."""
    succeeded, failed = (runs.succeeded, runs.failed) if runs else (0, 0)
    tone = "warn" if succeeded and failed else "bad" if failed else "good" if succeeded else "none"
    if succeeded and failed:
        message = gettext("%(date)s: %(good)s succeeded, %(bad)s failed")
    elif succeeded:
        message = gettext("%(date)s: %(good)s succeeded")
    else:
        message = gettext("%(date)s: %(bad)s failed") if failed else gettext("%(date)s: no runs")
    return DaySummary(tone, message % {"date": write_date(day), "good": succeeded, "bad": failed})


class OfferChange(NamedTuple):
    """Change of one field of an offer. `offer` is the offer's name; `old` and `new` are formatted values."""

    at: datetime
    offer: str
    field: str
    old: str | None
    new: str | None


def build_offer_history(
    offers: Sequence[Mapping[str, Any]], events: Sequence[LoggedEvent], offer_names: Mapping[str, str], now: datetime
) -> dict[str, Any]:
    """Return the history of offers as template variables.

    Args:
        offers: The offers as in the API.
        events: Events of the product, oldest first.
        offer_names: Names of the offers by ID.
        now: End of the charts.

    Returns:
        `price_chart` and `stock_chart`, the charts of the prices and of the quantities; `price_field`, the field of the
        prices; `format_price`, a function that formats a price of the chart; and `changes`, the newest changes.
    """
    changes_by_offer: dict[str, list[tuple[datetime, Mapping[str, Any]]]] = {offer["id"]: [] for offer in offers}
    for event in events:
        if event.subject in changes_by_offer:
            fields = msgspec.json.decode(event.body)["data"].get("fields", ())
            changes_by_offer[event.subject] += [
                (event.time, changed_field) for changed_field in fields if not changed_field.get("omitted")
            ]
    first_change = max(
        min((offer_changes[0][0] for offer_changes in changes_by_offer.values() if offer_changes), default=now),
        now - _RETENTION,
    )
    since = (
        min(first_change - (now - first_change) * 0.03, now - timedelta(hours=1))
        if any(changes_by_offer.values())
        else now - _RETENTION
    )
    # All lines are of one field: a selling price and an MSRP are not comparable.
    price_field = find_compared_field(offers) or PRICE_FIELDS[0]
    codes = [offer["currency"] for offer in offers if offer.get("currency") and offer.get(price_field) is not None] or [
        "usd"
    ]
    currency = max(codes, key=codes.count)
    unit = 10 ** EXPONENTS.get(currency.lower(), 2)
    prices, stocks = {}, {}
    for offer in offers:
        name, own_changes = offer_names[offer["id"]], changes_by_offer[offer["id"]]
        if offer.get(price_field) is not None and offer.get("currency") == currency:
            prices[name] = _list_points(own_changes, price_field, offer[price_field], since, unit)
        if offer.get("quantity") is not None:
            stocks[name] = _list_points(own_changes, "quantity", offer["quantity"], since, 1)

    def format_price(value: float) -> str:
        return format_money({"amount": round(value * unit), "currency": currency}).removesuffix(".00")

    def format_value(field: Mapping[str, Any], key: str) -> str | None:
        value = field.get(key)
        if field["path"] in (*PRICE_FIELDS, "compare_at") and isinstance(value, int):
            return format_money({"amount": value, "currency": currency})
        if field["path"] == "availability":
            return None if value is None else format_words(value)
        return None if value is None else format_field(value)

    changes = [
        OfferChange(
            at,
            offer_names[offer],
            changed_field["path"],
            format_value(changed_field, "old"),
            format_value(changed_field, "new"),
        )
        for offer, offer_changes in changes_by_offer.items()
        for at, changed_field in offer_changes[-_MAX_CHANGES:]
    ]
    return {
        "price_chart": build_chart(prices, since, now),
        "stock_chart": build_chart(stocks, since, now, has_integer_labels=True, includes_zero=True),
        "price_field": price_field,
        "format_price": format_price,
        "changes": sorted(changes, key=lambda change: change.at, reverse=True)[:_MAX_CHANGES],
    }


def _list_points(
    changes: Sequence[tuple[datetime, Mapping[str, Any]]], field: str, current_value: Any, since: datetime, divisor: int
) -> SeriesPoints:
    """Return the points of one field of an offer: the value at the start of the chart and after each change.

    Args:
        changes: The changed fields with their times, oldest first.
        field: The field's path.
        current_value: The current value, used if `changes` does not contain the field.
        since: Start of the chart.
        divisor: Number by which values are divided, such as 100 for cents.
    """
    field_changes = [(at, changed_field) for at, changed_field in changes if changed_field["path"] == field]
    values = (
        [
            (since, field_changes[0][1].get("old")),
            *((at, changed_field.get("new")) for at, changed_field in field_changes),
        ]
        if field_changes
        else [(since, current_value)]
    )
    return [(at, value / divisor if isinstance(value, int | float) else None) for at, value in values]
