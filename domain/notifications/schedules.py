"""Times at which notifications are due: digests by clock time, and quiet hours, in the time zone of a rule."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from domain.kernel.clock_schedule import WEEKDAYS, ClockSchedule
from domain.notifications.model import MIN_INTERVAL, Frequency, NotificationRule

MINUTES_PER_DAY = 24 * 60
_MINUTE = timedelta(minutes=1)


def is_quiet(rule: NotificationRule, at: datetime) -> bool:
    """Return whether the rule sends nothing at that time; equal ends mean that there are no quiet hours."""
    start, end = rule.quiet_from, rule.quiet_until
    if start is None or end is None:
        return False
    local = at.astimezone(ZoneInfo(rule.time_zone))
    minute = local.hour * 60 + local.minute
    return start <= minute < end if start <= end else minute >= start or minute < end


def compute_due_time(rule: NotificationRule, now: datetime) -> datetime:
    """Return when a rule sends what was found at `now`, in UTC."""
    at = _compute_undisturbed_time(rule, now.astimezone(UTC))
    while is_quiet(rule, at):  # minute by minute, so that changes of the clock need no special case
        at = at.replace(second=0, microsecond=0) + _MINUTE
    return at


def _compute_undisturbed_time(rule: NotificationRule, now: datetime) -> datetime:
    """Return the time at which the rule would send without quiet hours."""
    if rule.frequency == Frequency.HOURLY:
        local = now.astimezone(ZoneInfo(rule.time_zone))
        return now.replace(second=0, microsecond=0) + (60 - local.minute) * _MINUTE
    if rule.frequency in (Frequency.DAILY, Frequency.WEEKLY):
        weekdays = WEEKDAYS if rule.frequency == Frequency.DAILY else (rule.weekday + 1,)
        return ClockSchedule(*divmod(rule.send_at, 60), rule.time_zone, weekdays).find_next(now)
    return max(now, rule.notified_at + MIN_INTERVAL) if rule.notified_at else now
