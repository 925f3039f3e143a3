"""The geometry of small charts, drawn as SVG without a script: lines of steps over time, strips of days, bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

WIDTH: Final = 520
HEIGHT: Final = 210
_LEFT: Final = 64
_RIGHT: Final = 12
_TOP: Final = 12
_BOTTOM: Final = 26
_TICKS: Final = 4
COLOURS: Final = 6
"""How many series have a colour of their own; classes `s0` to `s5`."""

Points = Sequence[tuple[datetime, float | None]]


@dataclass(frozen=True, slots=True)
class Series:
    """What changed over time: each value holds from its moment on; None is a gap."""

    name: str
    points: Points


@dataclass(frozen=True, slots=True)
class Line:
    """A series as it is drawn: `index` chooses its colour, `last` is the value now."""

    name: str
    path: str
    index: int
    dots: Sequence[tuple[float, float, datetime, float]]
    last: float | None


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: its place in pixels and its value."""

    at: float
    value: Any


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart of steps."""

    lines: Sequence[Line]
    rows: Sequence[Tick]
    columns: Sequence[Tick]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    bottom: int = HEIGHT - _BOTTOM


def nice_step(span: float, ticks: int = _TICKS) -> float:
    """A step of 1, 2, 2.5 or 5 times a power of ten that divides the span into about so many."""
    raw = max(span / ticks, 1e-9)
    power = 1.0
    while power * 10 <= raw:
        power *= 10
    while power > raw:
        power /= 10
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw)


def plot(series: Sequence[Series], since: datetime, until: datetime, *, whole: bool = False) -> Plot | None:
    """The chart of the series between two moments; None when there is nothing to draw. `whole`: values are whole numbers."""
    values = [value for one in series for _, value in one.points if value is not None]
    if not values or until <= since:
        return None
    low, high = min(values), max(values)
    if low == high:
        low, high = low * 0.9, high * 1.1 or 1.0
    step = nice_step(high - low)
    if whole:
        step = max(1.0, step)
    first, last = (low // step) * step, (-(-high // step)) * step
    seconds = (until - since).total_seconds()

    def across(at: datetime) -> float:
        share = (max(at, since) - since).total_seconds() / seconds
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def down(value: float) -> float:
        return round(HEIGHT - _BOTTOM - (value - first) / (last - first) * (HEIGHT - _TOP - _BOTTOM), 1)

    rows = [Tick(down(first + step * n), first + step * n) for n in range(round((last - first) / step) + 1)]
    lines = [_line(one, index, until, across, down) for index, one in enumerate(series[:COLOURS])]
    return Plot(lines, rows, _columns(since, until, across))


def _line(series: Series, index: int, until: datetime, across: Any, down: Any) -> Line:
    path, height = "", None
    dots = []
    for at, value in series.points:
        x = across(at)
        if value is None:
            path += f"H{x}" if height is not None else ""
        else:
            path += f"M{x} {down(value)}" if height is None else f"H{x}V{down(value)}"
            dots.append((x, down(value), at, value))
        height = value
    if height is not None:
        path += f"H{across(until)}"
    return Line(series.name, path, index, dots[-60:], height)


def _columns(since: datetime, until: datetime, across: Any) -> list[Tick]:
    span = until - since
    days = max(1, round(span / timedelta(days=1) / 5))
    if span < timedelta(days=2):
        step = span / 4
        return [Tick(across(since + step * n), (since + step * n).strftime("%H:%M")) for n in range(1, 4)]
    at = since.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    found = []
    while at < until:
        found.append(Tick(across(at), at.strftime("%-d %b")))
        at += timedelta(days=days)
    return found


@dataclass(frozen=True, slots=True)
class Day:
    """A day of a strip: `tone` good, warn, bad or none, and what it tells."""

    day: date
    tone: str
    title: str


def days_until(today: date, count: int) -> list[date]:
    """The days up to and with today, the oldest first."""
    return [today - timedelta(days=n) for n in range(count - 1, -1, -1)]


def strip(today: date, count: int, runs: Mapping[date, tuple[int, int]]) -> list[Day]:
    """Days of runs that (succeeded, failed)."""
    found = []
    for day in days_until(today, count):
        good, bad = runs.get(day, (0, 0))
        tone = "warn" if good and bad else "bad" if bad else "good" if good else "none"
        parts = [f"{good} went well"] if good else []
        parts += [f"{bad} failed"] if bad else []
        found.append(Day(day, tone, f"{day:%-d %b}: {', '.join(parts) or 'not read'}"))
    return found
