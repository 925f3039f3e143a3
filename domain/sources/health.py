"""Events for changes of a source's status by the outcome of a run (docs/conventions.md#source-health)."""

from typing import Any

from domain.events.model import Event, FieldChange
from domain.sources.model import Source

_MOVES = {
    ("active", "degraded"): "source.degraded",
    ("active", "blocked"): "source.blocked",
    ("degraded", "blocked"): "source.blocked",
    ("degraded", "active"): "source.recovered",
}


def outcome_events(before: Source, after: Source, run: str) -> list[Event]:
    """Return the event of a run's outcome if the status of the source changed."""
    name = _MOVES.get((before.status, after.status))
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
