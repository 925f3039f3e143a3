"""Geometry of SVG charts: steps over time, strips of days and the history of a product."""

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
from entrypoints.console.products import PRICES, price_path
from entrypoints.console.rendering import date as write_date
from entrypoints.console.rendering import money, text_of, words
from entrypoints.console.translation import gettext
from ports.clock import Clock

DAYS = 14
_KEPT = timedelta(days=30)
"""Retention of events."""
_COLOURS = 6
"""Number of colours of series, the classes `s0` to `s5`."""
_POINTS = 40
"""Maximum number of points of a line."""
_CHANGES = 15
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 508, 12, 184
_SIZE = {"width": 520, "height": 210, "left": _LEFT, "right": _RIGHT, "bottom": _BOTTOM}

Points = Sequence[tuple[datetime, float | None]]
Plot = Mapping[str, Any]


def plot(series: Mapping[str, Points], since: datetime, until: datetime, *, whole: bool = False) -> Plot | None:
    """Draw series of steps between two moments.

    Args:
        series: By name; each value holds from its moment on, None is a gap.
        since: Start of the chart.
        until: End of the chart.
        whole: Whether values are integers.

    Returns:
        The chart: its `lines`, and the marks of its axes, `rows` and `columns`, as pairs of a place in pixels and a value.
        None if the series contain no values.

    """
    values = [value for points in series.values() for _, value in points if value is not None]
    if not values or until <= since:
        return None
    low, high = min(values), max(values)
    if low == high:
        low, high = low * 0.9, high * 1.1 or 1.0
    step = _nice_step((high - low) / 4)
    if whole:
        step = max(1.0, step)
    first, last = low // step * step, -(-high // step) * step

    def across(at: datetime) -> float:
        return round(_LEFT + (max(at, since) - since) / (until - since) * (_RIGHT - _LEFT), 1)

    def down(value: float) -> float:
        return round(_BOTTOM - (value - first) / (last - first) * (_BOTTOM - _TOP), 1)

    span = until - since
    if span < timedelta(days=2):
        columns = [(across(at), f"{at:%H:%M}") for at in (since + span / 4 * quarter for quarter in range(1, 4))]
    else:
        midnight, every = since.replace(hour=0, minute=0, second=0, microsecond=0), max(1, round(span.days / 5))
        days = (midnight + timedelta(days=number) for number in range(1, span.days + 2, every))
        columns = [(across(at), write_date(at.date())) for at in days if at < until]
    marks = [first + step * number for number in range(round((last - first) / step) + 1)]
    lines = [
        _line(name, points[-_POINTS:], across, down) | {"colour": index}
        for index, (name, points) in enumerate(list(series.items())[:_COLOURS])
    ]
    for line in lines:
        line["path"] += f"H{across(until)}" if line["last"] is not None else ""
    return {**_SIZE, "lines": lines, "rows": [(down(mark), mark) for mark in marks], "columns": columns}


def _nice_step(raw: float) -> float:
    """Return the next step of 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(max(raw, 1e-9)))
    return next((power * factor for factor in (1, 2, 2.5, 5) if power * factor >= raw), power * 10)


def _line(
    name: str, points: Points, across: Callable[[datetime], float], down: Callable[[float], float]
) -> dict[str, Any]:
    """Return a series as an SVG path with a dot at each value; `last` is the value now."""
    path, last, dots = "", None, []
    for at, value in points:
        x = across(at)
        if value is None:
            path += f"H{x}" if last is not None else ""
        else:
            path += f"M{x} {down(value)}" if last is None else f"H{x}V{down(value)}"
            dots.append((x, down(value), at, value))
        last = value
    return {"name": name, "path": path, "dots": dots, "last": last}


class Day(NamedTuple):
    """A day of a strip with its `tone` (good, warn, bad or none) and title."""

    tone: str
    title: str


async def run_strips(page: PageContext, sources: Sequence[Mapping[str, Any]]) -> dict[str, list[Day]]:
    """Return the outcomes of the runs on each of the last days by source ID, oldest first."""
    today = page.dependencies[Clock].now().astimezone(UTC).date()
    dates = [today - timedelta(days=number) for number in range(DAYS - 1, -1, -1)]
    async with page.read() as tx:
        found = await tx[RunStore].days(datetime.combine(dates[0], datetime.min.time(), UTC)) if sources else ()
    by_day = {(one.source, one.day): one for one in found}
    return {source["id"]: [_day(day, by_day.get((source["id"], day))) for day in dates] for source in sources}


def _day(day: date, runs: RunDay | None) -> Day:
    good, bad = (runs.succeeded, runs.failed) if runs else (0, 0)
    tone = "warn" if good and bad else "bad" if bad else "good" if good else "none"
    if good and bad:
        message = gettext("%(date)s: %(good)s succeeded, %(bad)s failed")
    elif good:
        message = gettext("%(date)s: %(good)s succeeded")
    else:
        message = gettext("%(date)s: %(bad)s failed") if bad else gettext("%(date)s: no runs")
    return Day(tone, message % {"date": write_date(day), "good": good, "bad": bad})


class Change(NamedTuple):
    """One changed field of one offer."""

    at: datetime
    offer: str
    field: str
    old: str | None
    new: str | None


def history_of(
    offers: Sequence[Mapping[str, Any]], events: Sequence[LoggedEvent], names: Mapping[str, str], now: datetime
) -> dict[str, Any]:
    """Return the history of offers: a chart of prices, a chart of stock and the newest changes.

    Args:
        offers: Offers of the API.
        events: Events of the product, oldest first.
        names: Names of the offers by ID.
        now: End of the charts.

    """
    changed: dict[str, list[tuple[datetime, Mapping[str, Any]]]] = {offer["id"]: [] for offer in offers}
    for event in events:
        if event.subject in changed:
            fields = msgspec.json.decode(event.body)["data"].get("fields", ())
            changed[event.subject] += [(event.time, one) for one in fields if not one.get("omitted")]
    first = max(min((found[0][0] for found in changed.values() if found), default=now), now - _KEPT)
    since = min(first - (now - first) * 0.03, now - timedelta(hours=1)) if any(changed.values()) else now - _KEPT
    codes = [offer["currency"] for offer in offers if offer.get("currency") and price_path(offer)] or ["usd"]
    currency = max(codes, key=codes.count)
    unit = 10 ** EXPONENTS.get(currency.lower(), 2)
    prices, stocks = {}, {}
    for offer in offers:
        name, own, path = names[offer["id"]], changed[offer["id"]], price_path(offer)
        if path and offer.get("currency") == currency:
            prices[name] = _points(own, path, offer[path], since, unit)
        if offer.get("quantity") is not None:
            stocks[name] = _points(own, "quantity", offer["quantity"], since, 1)

    def priced(value: float) -> str:
        return money({"amount": round(value * unit), "currency": currency}).removesuffix(".00")

    def written(field: Mapping[str, Any], which: str) -> str | None:
        value = field.get(which)
        if field["path"] in (*PRICES, "compare_at") and isinstance(value, int):
            return money({"amount": value, "currency": currency})
        if field["path"] == "availability":
            return None if value is None else words(value)
        return None if value is None else text_of(value)

    changes = [
        Change(at, names[offer], one["path"], written(one, "old"), written(one, "new"))
        for offer, found in changed.items()
        for at, one in found[-_CHANGES:]
    ]
    return {
        "price": plot(prices, since, now),
        "stock": plot(stocks, since, now, whole=True),
        "priced": priced,
        "changes": sorted(changes, key=lambda change: change.at, reverse=True)[:_CHANGES],
    }


def _points(
    changed: Sequence[tuple[datetime, Mapping[str, Any]]], path: str, present: Any, since: datetime, unit: int
) -> Points:
    """Return the value before the first change and after each change, or the present value without changes."""
    own = [(at, one) for at, one in changed if one["path"] == path]
    values = [(since, own[0][1].get("old")), *((at, one.get("new")) for at, one in own)] if own else [(since, present)]
    return [(at, value / unit if isinstance(value, int | float) else None) for at, value in values]
