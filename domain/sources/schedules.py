"""Validation of schedules, and computation of the next pulls (docs/conventions.md#schedule)."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from domain.kernel.clock_schedule import list_zones
from domain.kernel.errors import FieldError
from domain.kernel.suggestions import WordSuggester
from domain.sources.model import INTERVAL_BOUNDS, Schedule, Source


def validate_schedule(schedule: Schedule) -> Iterator[FieldError]:
    """Yield an error for each interval that is outside INTERVAL_BOUNDS, and for contradictory or unknown clock settings."""
    for name, (minimum, maximum) in INTERVAL_BOUNDS.items():
        minutes = getattr(schedule, name)
        if minutes is not None and not minimum <= minutes <= maximum:
            code = "too_small" if minutes < minimum else "too_large"
            yield FieldError(f"schedule.{name}", code, f"The interval must be between {minimum} and {maximum} minutes.")
    if schedule.at is not None and schedule.interval_minutes is not None:
        yield FieldError(
            "schedule.at", "invalid_value", "The catalogue has either clock times or an interval. Omit one of them."
        )
    for name in ("weekdays", "time_zone"):
        if schedule.at is None and getattr(schedule, name) is not None:
            yield FieldError(f"schedule.{name}", "invalid_value", f"Without clock times, {name} has no effect. Add at.")
    if schedule.time_zone is not None and schedule.time_zone not in list_zones():
        suggestions = WordSuggester().format_by_similarity(schedule.time_zone, list_zones())
        detail = f"This time zone does not exist. Use a name of the IANA database: {suggestions}."
        yield FieldError("schedule.time_zone", "invalid_value", detail)


def plan_pulls(source: Source, now: datetime) -> dict[str, Any]:
    """Return the fields `next_pull` and `next_stock_pull` for a source.

    A stream that was never read is due at once. Otherwise the next pull is due at the next clock time, or one interval
    after the last successful run, but not before `now`.
    """
    return {
        "next_pull": _plan_pull(source, "catalogue", source.catalogue_at, now),
        "next_stock_pull": _plan_pull(source, "stock", source.stock_at, now),
    }


def _plan_pull(source: Source, stream: str, last: datetime | None, now: datetime) -> datetime | None:
    following, minutes = source.schedule.find_next_clock_time(stream, now), source.get_interval_minutes(stream)
    if not source.is_runnable or (following is None and minutes is None):
        return None
    if last is None:
        return now
    return following or max(now, last + timedelta(minutes=minutes or 0))
