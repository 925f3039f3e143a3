"""Schedules by clock time, weekdays and time zone."""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

WEEKDAYS = (1, 2, 3, 4, 5, 6, 7)
"""ISO weekdays: 1 is Monday, 7 is Sunday."""
_MAX_DAYS = 8
"""Days from the local date of a time within which a schedule is due: a week, and the day itself."""


@cache
def list_zones() -> tuple[str, ...]:
    """Return the names of all time zones that a schedule accepts, in alphabetical order."""
    return tuple(sorted(name for name in available_timezones() if "/" in name or name == "UTC"))


@dataclass(frozen=True, slots=True)
class ClockSchedule:
    """Schedule that is due at a clock time in a time zone on some weekdays.

    A clock time that the zone omits, when clocks are advanced, is due at the first minute after the omitted ones. A clock
    time that occurs twice is due the first time only.

    Attributes:
        hour: Hour of the day, 0 to 23.
        minute: Minute of the hour, 0 to 59.
        zone: Name of a time zone in the IANA database.
        weekdays: ISO weekdays, at least one.
    """

    hour: int
    minute: int
    zone: str = "UTC"
    weekdays: tuple[int, ...] = WEEKDAYS

    def find_next(self, after: datetime) -> datetime:
        """Return the earliest time later than `after` at which the schedule is due, in UTC."""
        zone = ZoneInfo(self.zone)
        today = after.astimezone(zone).date()
        # the zone may have changed since yesterday, so that yesterday's time is still to come
        times = (self._compute_time(today + timedelta(days=day), zone) for day in range(-1, _MAX_DAYS))
        return min(moment for moment in times if moment is not None and moment > after)

    def _compute_time(self, day: date, zone: ZoneInfo) -> datetime | None:
        """Return when the schedule is due on a day, in UTC; None on another weekday."""
        if day.isoweekday() not in self.weekdays:
            return None
        wanted = datetime.combine(day, time(self.hour, self.minute))
        moment = wanted.replace(tzinfo=zone).astimezone(UTC)
        if _read_clock(moment, zone) == wanted:
            return moment
        # the zone omits the time: `fold` selects the offset after the change, so that the change is between both moments
        earliest = wanted.replace(tzinfo=zone, fold=1).astimezone(UTC)
        minutes = [
            earliest + timedelta(minutes=number) for number in range((moment - earliest) // timedelta(minutes=1))
        ]
        return [*minutes, moment][bisect_left(minutes, wanted, key=lambda minute: _read_clock(minute, zone))]


def _read_clock(moment: datetime, zone: ZoneInfo) -> datetime:
    """Return what a clock in the zone shows at the moment, without the zone."""
    return moment.astimezone(zone).replace(tzinfo=None)
