"""Validation of schedules, and computation of the next pulls (docs/conventions.md#schedule)."""

from datetime import datetime, timedelta
from typing import Any

from domain.kernel.errors import FieldError
from domain.sources.model import INTERVAL_BOUNDS, Schedule, Source


def validate_intervals(schedule: Schedule) -> tuple[FieldError, ...]:
    """Return an error for each interval that is outside INTERVAL_BOUNDS."""
    errors = []
    for name, (minimum, maximum) in INTERVAL_BOUNDS.items():
        minutes = getattr(schedule, name)
        if minutes is not None and not minimum <= minutes <= maximum:
            code = "too_small" if minutes < minimum else "too_large"
            errors.append(
                FieldError(f"schedule.{name}", code, f"The interval must be between {minimum} and {maximum} minutes.")
            )
    return tuple(errors)


def plan_pulls(source: Source, now: datetime) -> dict[str, Any]:
    """Return the fields `next_pull` and `next_stock_pull` for a source.

    The next pull is due one interval after the last successful run, but not before `now`.
    """
    pulls = (
        ("next_pull", source.schedule.interval_minutes, source.catalogue_at),
        ("next_stock_pull", source.schedule.stock_interval_minutes, source.stock_at),
    )
    return {
        name: None
        if minutes is None or not source.is_runnable
        else max(now, (last or now) + _interval_after(minutes, last))
        for name, minutes, last in pulls
    }


def _interval_after(minutes: int, last: datetime | None) -> timedelta:
    return timedelta(minutes=minutes) if last else timedelta()
