"""Statistics of demand for vendors: sums of released cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from domain.demand.model import PERIODS, SignalType, find_release_bound


@dataclass(frozen=True, slots=True)
class TypeAmount:
    """Sum of the cells of one type of signals.

    Attributes:
        organisations: Largest number of organisations behind one cell, rounded down.
        suppressed: Whether signals were left out.
    """

    type: str
    amount: int
    organisations: int
    suppressed: bool


@dataclass(frozen=True, slots=True)
class DayAmount:
    """Sum of the released cells of a day."""

    day: date
    amount: int


@dataclass(frozen=True, slots=True)
class ProductAmounts:
    """Sums of the released cells of a product; `title` is None for a product that no longer exists."""

    product: str
    title: str | None
    view: int
    save: int
    quote: int
    cart: int
    order: int


@dataclass(frozen=True, slots=True)
class QueryAmount:
    """Query of search misses with their number."""

    query: str
    count: int


@dataclass(frozen=True, slots=True)
class VendorStats:
    """Sums of a vendor's released cells in a period.

    Attributes:
        organisations: Number of organisations that are at least behind the numbers, in steps of five.
        suppressed: Whether `totals` lack signals of too few organisations.
        totals: Sum by type of signals.
    """

    period: str
    organisations: int
    suppressed: bool
    totals: Mapping[str, int]
    top_queries: Sequence[QueryAmount]


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """Sum of a day or week; None if no cells were released."""

    at: date
    value: int | None


@dataclass(frozen=True, slots=True)
class VendorSeries:
    """Sums of one type of signals by day or week, oldest first."""

    metric: str
    points: Sequence[SeriesPoint]


def find_period(period: str, now: datetime) -> tuple[date, date]:
    """Return the first and the last day of a period, which ends with the last day whose cells are released."""
    until = find_release_bound(now) - timedelta(days=1)
    return until - timedelta(days=PERIODS[period] - 1), until


def build_series(
    kind: SignalType, since: date, until: date, amounts: Sequence[DayAmount], *, weekly: bool
) -> VendorSeries:
    """Return the series with a point for each day, or each week from Monday, of the period."""
    sums: dict[date, int | None] = {}
    amount_by_day = {one.day: one.amount for one in amounts}
    for number in range((until - since).days + 1):
        day = since + timedelta(days=number)
        start = max(since, day - timedelta(days=day.weekday())) if weekly else day
        amount = amount_by_day.get(day)
        sums[start] = sums.get(start) if amount is None else (sums.get(start) or 0) + amount
    return VendorSeries(kind, [SeriesPoint(at, value) for at, value in sums.items()])
