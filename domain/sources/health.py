"""Events for changes of a source's status after a run (docs/conventions.md#source-health)."""

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
