"""The geometry of small charts, drawn as SVG without a script: steps over time, strips of days, and a product's history."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from domain.events.model import LoggedEvent
from domain.runs.model import RunDay
from domain.runs.ports import RunStore
from entrypoints.console.context import PageContext
from entrypoints.console.formatting import minor_places, money, text_of
from entrypoints.console.products import ASKED, asked_of

DAYS: Final = 14
_KEPT: Final = timedelta(days=30)
"""For how long events are kept."""
_COLOURS: Final = 6
"""How many series have a colour of their own; classes `s0` to `s5`."""
_POINTS: Final = 40
"""Points that one line has at most."""
_CHANGES: Final = 15

Points = Sequence[tuple[datetime, float | None]]


class Line(NamedTuple):
    """A series as it is drawn: `colour` is the number of its class, `last` is the value now."""

    name: str
    path: str
    colour: int
    dots: Sequence[tuple[float, float, datetime, float]]
    last: float | None


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart of steps; marks on its axes are pairs of a place in pixels and a value."""

    width: ClassVar[int] = 520
    height: ClassVar[int] = 210
    left: ClassVar[int] = 64
    right: ClassVar[int] = 508
    top: ClassVar[int] = 12
    bottom: ClassVar[int] = 184
    lines: Sequence[Line]
    rows: Sequence[tuple[float, float]]
    columns: Sequence[tuple[float, str]]


def plot(series: Mapping[str, Points], since: datetime, until: datetime, *, whole: bool = False) -> Plot | None:
    """Draw series between two moments.

    Args:
        series: By name; each value holds from its moment on, None is a gap.
        since: Where the chart begins.
        until: Where it ends.
        whole: Values are whole numbers.

    Returns:
        The chart; None when there is nothing to draw.

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
        share = (max(at, since) - since) / (until - since)
        return round(Plot.left + share * (Plot.right - Plot.left), 1)

    def down(value: float) -> float:
        return round(Plot.bottom - (value - first) / (last - first) * (Plot.bottom - Plot.top), 1)

    marks = [first + step * number for number in range(round((last - first) / step) + 1)]
    lines = [
        _line(name, points[-_POINTS:], index, until, across, down)
        for index, (name, points) in enumerate(list(series.items())[:_COLOURS])
    ]
    return Plot(lines, [(down(mark), mark) for mark in marks], _columns(since, until, across))


def _nice_step(raw: float) -> float:
    """Return the next step of 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(max(raw, 1e-9)))
    return next((power * factor for factor in (1, 2, 2.5, 5) if power * factor >= raw), power * 10)


def _line(
    name: str,
    points: Points,
    index: int,
    until: datetime,
    across: Callable[[datetime], float],
    down: Callable[[float], float],
) -> Line:
    path, last = "", None
    dots = []
    for at, value in points:
        x = across(at)
        if value is None:
            path += f"H{x}" if last is not None else ""
        else:
            path += f"M{x} {down(value)}" if last is None else f"H{x}V{down(value)}"
            dots.append((x, down(value), at, value))
        last = value
    if last is not None:
        path += f"H{across(until)}"
    return Line(name, path, index, dots, last)


def _columns(since: datetime, until: datetime, across: Callable[[datetime], float]) -> list[tuple[float, str]]:
    span = until - since
    if span < timedelta(days=2):
        moments = [since + span / 4 * quarter for quarter in range(1, 4)]
        return [(across(at), at.strftime("%H:%M")) for at in moments]
    step = max(1, round(span.days / 5))
    midnight = since.replace(hour=0, minute=0, second=0, microsecond=0)
    moments = [midnight + timedelta(days=number) for number in range(1, span.days + 2, step)]
    return [(across(at), at.strftime("%-d %b")) for at in moments if at < until]


class Day(NamedTuple):
    """A day of a strip: `tone` good, warn, bad or none, and what it says."""

    tone: str
    title: str


async def run_strips(page: PageContext, sources: Sequence[Mapping[str, Any]]) -> dict[str, list[Day]]:
    """Return how the runs of each source, by its id, ended on each of the last days, the oldest first."""
    today = page.dependencies.clock.now().astimezone(UTC).date()
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


@dataclass(frozen=True, slots=True)
class OfferHistory:
    """Price and stock of offers over time: two charts, where there is something to draw, and the newest changes."""

    price: Plot | None
    stock: Plot | None
    currency: str
    changes: Sequence[Change]
    whole: bool

    def priced(self, value: float) -> str:
        """Write a value of the price chart as money."""
        amount = round(value * 10 ** minor_places(self.currency))
        return money({"amount": amount, "currency": self.currency}).removesuffix(".00")


def history_of(
    offers: Sequence[Mapping[str, Any]],
    events: Sequence[LoggedEvent],
    names: Mapping[str, str],
    now: datetime,
    *,
    whole: bool,
) -> OfferHistory:
    """Return the history of these offers; `names` says what to call each, by id, `whole` whether no event is missing."""
    changed: dict[str, list[tuple[datetime, Mapping[str, Any]]]] = {offer["id"]: [] for offer in offers}
    for event in events:
        if event.subject in changed:
            fields = msgspec.json.decode(event.body)["data"].get("fields", ())
            changed[event.subject] += [(event.time, one) for one in fields if not one.get("omitted")]
    first = max(min((found[0][0] for found in changed.values() if found), default=now), now - _KEPT)
    since = min(first - (now - first) * 0.03, now - timedelta(hours=1)) if any(changed.values()) else now - _KEPT
    codes = [offer["currency"] for offer in offers if asked_of(offer)] or ["usd"]
    currency = max(codes, key=codes.count)
    prices, stocks = {}, {}
    for offer in offers:
        name, own = names[offer["id"]], changed[offer["id"]]
        path = next((path for path in ASKED if offer.get(path) is not None), ASKED[0])
        if asked_of(offer) and offer["currency"] == currency:
            prices[name] = _points(own, path, offer[path], since, 10 ** minor_places(currency))
        if offer.get("quantity") is not None:
            stocks[name] = _points(own, "quantity", offer["quantity"], since, 1)
    changes = [
        Change(at, names[offer], one["path"], _written(one, "old", currency), _written(one, "new", currency))
        for offer, found in changed.items()
        for at, one in found[-_CHANGES:]
    ]
    return OfferHistory(
        plot(prices, since, now),
        plot(stocks, since, now, whole=True),
        currency,
        sorted(changes, key=lambda change: change.at, reverse=True)[:_CHANGES],
        whole,
    )


def _points(
    changed: Sequence[tuple[datetime, Mapping[str, Any]]], path: str, present: Any, since: datetime, unit: int
) -> Points:
    """Return the values of a field: before the first change, and with each; without one that of now."""
    own = [(at, one) for at, one in changed if one["path"] == path]
    values = [(since, own[0][1].get("old")), *((at, one.get("new")) for at, one in own)] if own else [(since, present)]
    return [(at, value / unit if isinstance(value, int | float) else None) for at, value in values]


def _written(field: Mapping[str, Any], which: str, currency: str) -> str | None:
    value = field.get(which)
    if value is None:
        return None
    if field["path"] in (*ASKED, "compare_at") and isinstance(value, int):
        return money({"amount": value, "currency": currency})
    return text_of(value).replace("_", " ")
