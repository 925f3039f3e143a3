"""Events for changes of a source's status after a run, and the share of time with fresh data (docs/conventions.md#source-health)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from domain.events.model import Event, FieldChange
from domain.sources.model import Source

_EVENT_BY_TRANSITION = {
    ("active", "degraded"): "source.degraded",
    ("active", "blocked"): "source.blocked",
    ("degraded", "blocked"): "source.blocked",
    ("degraded", "active"): "source.recovered",
}


def create_health_events(before: Source, after: Source, run: str) -> list[Event]:
    """Return a list with the event for the change of the source's status by a run; empty without such a change."""
    name = _EVENT_BY_TRANSITION.get((before.status, after.status))
    if name is None:
        return []
    data: dict[str, Any] = {"id": after.id, "status": after.status, "run": run}
    if after.status_reason:
        data["status_reason"] = {"code": after.status_reason.code, "message": after.status_reason.message}
    return [
        Event(
            type=name,
            subject=after.id,
            version=after.version,
            data=data,
            fields=(FieldChange("status", before.status, after.status),),
            source=after.id,
            catalogue=after.catalogue,
            correlation_id=run,
        )
    ]


def compute_on_time_share(source: Source, read_at: Sequence[datetime], start: datetime, end: datetime) -> float | None:
    """Return the share of the time in which the catalogue's data was fresh, by the present schedule.

    The time before the first import is not counted if there was one. Returns None for a source without a schedule, and if
    nothing was due yet.

    Args:
        source: The source.
        read_at: When the catalogue was read completely, oldest first.
        start: Start of the period.
        end: End of the period.
    """
    if source.get_interval_minutes("catalogue") is None and source.schedule.at is None:
        return None
    if not read_at:
        return 0.0 if max(start, source.created_at) < end else None
    times = [*read_at, end]
    fresh = timedelta()
    for previous, following in pairwise(times):
        fresh_until, _ = source.find_freshness_limits("catalogue", previous)
        fresh += max(timedelta(), min(fresh_until, following) - previous)
    return fresh / (end - read_at[0]) if end > read_at[0] else 1.0
