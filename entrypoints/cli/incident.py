"""Commands for incidents, which appear at /status and in GET /v1/status/history."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from domain.kernel.ids import is_id
from domain.platform.incidents import TEXT, TITLE, Incident, OpenedBy, opened
from domain.platform.model import COMPONENTS, ComponentState
from domain.platform.ports import Incidents
from entrypoints.cli.store import DEFAULT, Store, attributes
from entrypoints.errors import CommandError
from ports.clock import Clock

State = Literal["degraded", "down"]


async def open_one(
    *,
    component: Annotated[str, Parameter(choices=COMPONENTS)],
    state: State = "degraded",
    title: str,
    text: str | None = None,
    store: Store = DEFAULT,
) -> int:
    """Open an incident of a component.

    Args:
        title: one line
        text: the details (default: the title)
    """
    async with store.open() as parts:
        now = parts[Clock].now()
        title, text = _check_length(title, TITLE), _check_length(text or title, TEXT)
        incident = opened(component, ComponentState(state), title, text, OpenedBy.OPERATOR, now, now)
        await parts[Incidents].save(incident)
    return store.answer(_incident_json(incident), f"Opened {incident.id}: {incident.component} is {incident.state}.")


async def update(id: str, /, *, text: str, state: State | None = None, store: Store = DEFAULT) -> int:
    """Add an update to an incident."""
    after = await _change(
        store,
        id,
        lambda before, now: before.told(now, _check_length(text, TEXT), ComponentState(state) if state else None),
    )
    return store.answer(_incident_json(after), f"Updated {after.id}: {after.component} is {after.state}.")


async def close(id: str, /, *, text: str = "Resolved.", store: Store = DEFAULT) -> int:
    """Close an incident."""
    after = await _change(store, id, lambda before, now: before.closed(now, _check_length(text, TEXT)))
    return store.answer(_incident_json(after), f"Closed {after.id}.")


async def list_open(*, store: Store = DEFAULT) -> int:
    """List open incidents."""
    async with store.open() as parts:
        incidents = await parts[Incidents].open()
    lines = [f"{incident.id}  {incident.component:<10} {incident.state:<10} {incident.title}" for incident in incidents]
    answer = {"incidents": [_incident_json(one) for one in incidents]}
    return store.answer(answer, *lines or ["No incident is open."])


def _check_length(text: str, longest: int) -> str:
    if not 0 < len(text) <= longest:
        raise CommandError(f"A text must have 1 to {longest:,} characters.")
    return text


async def _change(store: Store, id: str, change: Callable[[Incident, datetime], Incident]) -> Incident:
    """Apply and save a change of an incident."""
    async with store.open() as parts:
        before = await parts[Incidents].get(id) if is_id("inc", id) else None
        if before is None:
            raise CommandError(f"There is no incident {id!r}. List open incidents with `joinery incident list`.")
        after = change(before, parts[Clock].now())
        if not await parts[Incidents].save(after, before):
            raise CommandError("The incident was changed at the same time. Run the command again.")
    return after


def _incident_json(incident: Incident) -> dict[str, Any]:
    closed = ("closed_at",) if incident.closed_at else ()
    return {"incident": incident.id, **attributes(incident, "component", "state", "title", "opened_at", *closed)}
