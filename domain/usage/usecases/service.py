"""Reading of usage: the present month, and day by day."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from domain.kernel.errors import InvalidRequest
from domain.orgs.ports import OrgStore
from domain.usage.meters import LEVELS, METERS, MONTHLY, DayUsage, month_of, next_month
from domain.usage.ports import UsageMeters
from ports.unit_of_work import Tx

Levels = Callable[[Tx], Awaitable[Mapping[str, int]]]
LONGEST = 366
"""Maximum days of a series."""
_USUAL = timedelta(days=29)


@dataclass(frozen=True, slots=True)
class MeterUsage:
    """A meter's usage this month: `included` is None without a limit; thresholds are times of notification."""

    meter: str
    used: int
    included: int | None
    threshold_80_at: datetime | None = None
    threshold_100_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of all meters in a month (UTC); `end` is the first day of the next month."""

    start: date
    end: date
    meters: Sequence[MeterUsage]


@dataclass(frozen=True, slots=True)
class UsageSeries:
    """Usage of each meter on every day of the range, both ends included."""

    since: date
    until: date
    days: Mapping[str, Sequence[DayUsage]]


@dataclass(frozen=True, slots=True)
class UsageService:
    """Read access to usage. `levels` returns the present amounts of LEVELS."""

    levels: Levels

    async def usage(self, tx: Tx) -> Usage:
        """Return this month's usage, with present amounts of levels."""
        month = month_of(tx.now.date())
        plan = (await tx[OrgStore].own()).plan
        used = {**await tx[UsageMeters].used(month), **await self.levels(tx)}
        reached_at = {(one.meter, one.percent): one.reached_at for one in await tx[UsageMeters].thresholds(month)}
        meters = [
            MeterUsage(
                meter,
                used.get(meter, 0),
                plan.included(meter),
                reached_at.get((meter, 80)),
                reached_at.get((meter, 100)),
            )
            for meter in METERS
        ]
        return Usage(month, next_month(month), meters)

    async def series(self, tx: Tx, meter: str | None, since: date | None, until: date | None) -> UsageSeries:
        """Return the usage of one meter, or all, on each day of the range, by default the last 30 days.

        Raises InvalidRequest.
        """
        today = tx.now.date()
        until = min(until or today, today)
        since = since or (until - _USUAL if until - date.min >= _USUAL else None)
        if since is None or since > until:
            raise InvalidRequest.of(
                "query.since", "invalid_value", "The first day is not after the last, nor in the future."
            )
        if (until - since).days >= LONGEST:
            raise InvalidRequest.of("query.since", "too_many", f"A series has at most {LONGEST} days.")
        meters = [meter] if meter else list(METERS)
        found = {(one.meter, one.day): one.amount for one in await tx[UsageMeters].days(meters, since, until)}
        if until == today and any(meter in LEVELS for meter in meters):
            found |= {(meter, today): amount for meter, amount in (await self.levels(tx)).items()}
        days = [since + timedelta(days=after) for after in range((until - since).days + 1)]
        series = {}
        for one in meters:
            held = await tx[UsageMeters].level(one, since) if one in LEVELS else None
            series[one] = _fill_days(one, days, found, held.amount if held else 0)
        return UsageSeries(since, until, series)


def _fill_days(
    meter: str, days: Sequence[date], found: Mapping[tuple[str, date], int], held: int
) -> Sequence[DayUsage]:
    """Return a row for every day: zero without usage, and the last amount of a level."""
    filled = []
    for day in days:
        amount = found.get((meter, day), 0 if meter in MONTHLY else held)
        held = amount
        filled.append(DayUsage(meter, day, amount))
    return filled
