"""The geometry of small charts, drawn as SVG without a script: steps over time, strips of days, and a product's history."""

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
from entrypoints.console.rendering import money, text_of
from ports.clock import Clock

DAYS = 14
_KEPT = timedelta(days=30)
"""For how long events are kept."""
_COLOURS = 6
"""How many series have a colour of their own; classes `s0` to `s5`."""
_POINTS = 40
"""Points that one line has at most."""
_CHANGES = 15
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 508, 12, 184
_SIZE = {"width": 520, "height": 210, "left": _LEFT, "right": _RIGHT, "bottom": _BOTTOM}

Points = Sequence[tuple[datetime, float | None]]
Plot = Mapping[str, Any]


def plot(series: Mapping[str, Points], since: datetime, until: datetime, *, whole: bool = False) -> Plot | None:
    """Draw series of steps between two moments.

    Args:
        series: By name; each value holds from its moment on, None is a gap.
        since: Where the chart begins.
        until: Where it ends.
        whole: Values are whole numbers.

    Returns:
        The chart: its `lines`, and the marks of its axes, `rows` and `columns`, as pairs of a place in pixels and a value.
        None when there is nothing to draw.

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
        columns = [(across(at), f"{at:%-d %b}") for at in days if at < until]
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
    """A day of a strip: `tone` good, warn, bad or none, and what it says."""

    tone: str
    title: str


async def run_strips(page: PageContext, sources: Sequence[Mapping[str, Any]]) -> dict[str, list[Day]]:
    """Return how the runs of each source, by its id, ended on each of the last days, the oldest first."""
    today = page.dependencies[Clock].now().astimezone(UTC).date()
    dates = [today - timedelta(days=number) for number in range(DAYS - 1, -1, -1)]
    async with page.read() as tx:
        found = await tx[RunStore].days(datetime.combine(dates[0], datetime.min.time(), UTC)) if sources else ()
    by_day = {(one.source, one.day): one for one in found}
    return {source["id"]: [_day(day, by_day.get((source["id"], day))) for day in dates] for source in sources}


def _day(day: date, runs: RunDay | None) -> Day:
    good, bad = (runs.succeeded, runs.failed) if runs else (0, 0)
    tone = "warn" if good and bad else "bad" if bad else "good" if good else "none"
    parts = [f"{count} {word}" for count, word in ((good, "succeeded"), (bad, "failed")) if count]
    return Day(tone, f"{day:%-d %b}: {', '.join(parts) or 'no run'}")


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
    """Return price and stock of offers over time: two charts, where there is something to draw, and the newest changes.

    Args:
        offers: As the API has them.
        events: Those of the product, the oldest first.
        names: What to call each offer, by id.
        now: Where the charts end.

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
        return None if value is None else text_of(value).replace("_", " ")

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
    """Return the values of a field: before the first change, and with each; without one that of now."""
    own = [(at, one) for at, one in changed if one["path"] == path]
    values = [(since, own[0][1].get("old")), *((at, one.get("new")) for at, one in own)] if own else [(since, present)]
    return [(at, value / unit if isinstance(value, int | float) else None) for at, value in values]
