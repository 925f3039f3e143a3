"""Bounds of a source's schedule, and the next pull of each stream (docs/conventions.md#schedule)."""

from datetime import datetime, timedelta
from typing import Any

from domain.kernel.errors import FieldError
from domain.sources.model import BOUNDS, Schedule, Source


def faults(schedule: Schedule) -> tuple[FieldError, ...]:
    """Return an error for each interval out of bounds."""
    found = []
    for name, (least, most) in BOUNDS.items():
        minutes = getattr(schedule, name)
        if minutes is not None and not least <= minutes <= most:
            code = "too_small" if minutes < least else "too_large"
            found.append(FieldError(f"schedule.{name}", code, f"Must lie between {least} and {most} minutes."))
    return tuple(found)


def planned(source: Source, now: datetime) -> dict[str, Any]:
    """Return the next pulls: one interval after the last successful pull, but not before now."""
    pulls = (
        ("next_pull", source.schedule.interval_minutes, source.catalogue_at),
        ("next_stock_pull", source.schedule.stock_interval_minutes, source.stock_at),
    )
    return {
        name: None if minutes is None or not source.runnable else max(now, (last or now) + _wait(minutes, last))
        for name, minutes, last in pulls
    }


def _wait(minutes: int, last: datetime | None) -> timedelta:
    return timedelta(minutes=minutes) if last else timedelta()
