"""Use cases that read usage: of this month, and by day."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from domain.kernel.errors import InvalidRequest
from domain.orgs.ports import OrgStore
from domain.usage.meters import GAUGES, METERS, MONTHLY, DayUsage, find_month_start, find_next_month
from domain.usage.ports import UsageMeters
from ports.unit_of_work import Tx

MeasureLevels = Callable[[Tx], Awaitable[Mapping[str, int]]]
"""Function that returns the current amounts of all gauges (meters in GAUGES)."""
MAX_DAYS = 366
"""Maximum number of days in a series; a longer range raises InvalidRequest."""
_DEFAULT_RANGE = timedelta(days=29)


@dataclass(frozen=True, slots=True)
class MeterUsage:
    """Usage of a meter in a month.

    Attributes:
        included: The quota; None if the meter is not limited.
        threshold_80_at: When users were notified that 80% of the quota is used, or None.
        threshold_100_at: When users were notified that the quota is used up, or None.
    """

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
    """Usage by meter on each day from `since` to `until`, both included."""

    since: date
    until: date
    days: Mapping[str, Sequence[DayUsage]]


@dataclass(frozen=True, slots=True)
class UsageService:
    """Use cases that read usage.

    Attributes:
        measure_levels: Returns the current amounts of all gauges (meters in GAUGES).
    """

    measure_levels: MeasureLevels

    async def get_month_usage(self, tx: Tx) -> Usage:
        """Return this month's usage of all meters; for gauges (meters in GAUGES), the current amounts."""
        month = find_month_start(tx.now.date())
        plan = (await tx[OrgStore].get_organisation()).plan
        used = {**await tx[UsageMeters].get_month_usage(month), **await self.measure_levels(tx)}
        reached_at = {(one.meter, one.percent): one.reached_at for one in await tx[UsageMeters].list_thresholds(month)}
        meters = [
            MeterUsage(
                meter,
                used.get(meter, 0),
                plan.find_included_amount(meter),
                reached_at.get((meter, 80)),
                reached_at.get((meter, 100)),
            )
            for meter in METERS
        ]
        return Usage(month, find_next_month(month), meters)

    async def get_series(self, tx: Tx, meter: str | None, since: date | None, until: date | None) -> UsageSeries:
        """Return the usage on each day of the range.

        Args:
            tx: The transaction.
            meter: The meter; None for all.
            since: The first day; None for the 30 days that end with `until`.
            until: The last day; None or a later day for today.

        Raises:
            InvalidRequest: `since` is after `until`, or the range has more than MAX_DAYS days.
        """
        today = tx.now.date()
        until = min(until or today, today)
        since = since or (until - _DEFAULT_RANGE if until - date.min >= _DEFAULT_RANGE else None)
        if since is None or since > until:
            raise InvalidRequest.for_field(
                "query.since", "invalid_value", "The first day must not be after the last day or in the future."
            )
        if (until - since).days >= MAX_DAYS:
            raise InvalidRequest.for_field(
                "query.since", "too_many", f"A series has at most {MAX_DAYS} days. Select a shorter range."
            )
        meters = [meter] if meter else list(METERS)
        found = {(one.meter, one.day): one.amount for one in await tx[UsageMeters].list_days(meters, since, until)}
        if until == today and any(meter in GAUGES for meter in meters):
            found |= {(meter, today): amount for meter, amount in (await self.measure_levels(tx)).items()}
        days = [since + timedelta(days=after) for after in range((until - since).days + 1)]
        series = {}
        for one in meters:
            held = await tx[UsageMeters].get_last_level(one, since) if one in GAUGES else None
            series[one] = _fill_days(one, days, found, held.amount if held else 0)
        return UsageSeries(since, until, series)


def _fill_days(
    meter: str, days: Sequence[date], amounts: Mapping[tuple[str, date], int], last_amount: int
) -> Sequence[DayUsage]:
    """Return the usage of a meter on each of the days.

    Args:
        meter: The meter.
        days: The days, oldest first.
        amounts: The recorded amounts by meter and day; other days have zero or, for meters in GAUGES, the amount
            before.
        last_amount: Amount before the first day.
    """
    filled = []
    for day in days:
        amount = amounts.get((meter, day), 0 if meter in MONTHLY else last_amount)
        last_amount = amount
        filled.append(DayUsage(meter, day, amount))
    return filled
