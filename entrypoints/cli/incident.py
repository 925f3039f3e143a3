"""Commands for incidents, which appear at /status and in GET /v1/status/history."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from domain.kernel.ids import is_id
from domain.platform.incidents import MAX_TEXT_CHARS, MAX_TITLE_CHARS, Incident, OpenedBy, create_incident
from domain.platform.model import COMPONENTS, ComponentState
from domain.platform.ports import Incidents
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions, select_attributes
from entrypoints.errors import CommandError
from ports.clock import Clock

State = Literal["degraded", "down"]


async def open_new_incident(
    *,
    component: Annotated[str, Parameter(choices=COMPONENTS)],
    state: State = "degraded",
    title: str,
    text: str | None = None,
    options: CommandOptions = DEFAULT_OPTIONS,
) -> int:
    """Open an incident of a component.

    Args:
        component: Component that is affected.
        state: State of the component.
        title: Title in one line.
        text: Details (default: the title).
    """
    async with options.open_dependencies() as dependencies:
        now = dependencies[Clock].now()
        title = _check_length("title", title, MAX_TITLE_CHARS)
        text = _check_length("text", text or title, MAX_TEXT_CHARS)
        incident = create_incident(component, ComponentState(state), title, text, OpenedBy.OPERATOR, now, now)
        await dependencies[Incidents].save(incident)
    return options.print_result(
        _build_incident_json(incident), f"Opened {incident.id}: {incident.component} is {incident.state}."
    )


async def update(
    id: str, /, *, text: str, state: State | None = None, options: CommandOptions = DEFAULT_OPTIONS
) -> int:
    """Add an update to an incident.

    Args:
        id: ID of the incident.
        text: Text of the update.
        state: New state of the component (default: the state does not change).
    """
    after = await _change_incident(
        options,
        id,
        lambda before, now: before.with_update(
            now, _check_length("text", text, MAX_TEXT_CHARS), ComponentState(state) if state else None
        ),
    )
    return options.print_result(_build_incident_json(after), f"Updated {after.id}: {after.component} is {after.state}.")


async def close(id: str, /, *, text: str = "Resolved.", options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Close an incident.

    Args:
        id: ID of the incident.
        text: Text of the last update.
    """
    after = await _change_incident(
        options, id, lambda before, now: before.with_end(now, _check_length("text", text, MAX_TEXT_CHARS))
    )
    return options.print_result(_build_incident_json(after), f"Closed {after.id}.")


async def list_open(*, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """List open incidents."""
    async with options.open_dependencies() as dependencies:
        incidents = await dependencies[Incidents].list_open()
    lines = [f"{incident.id}  {incident.component:<10} {incident.state:<10} {incident.title}" for incident in incidents]
    result = {"incidents": [_build_incident_json(one) for one in incidents]}
    return options.print_result(result, *lines or ["No incident is open."])


def _check_length(name: str, text: str, max_chars: int) -> str:
    """Return the text if it has 1 to `max_chars` characters. Raises CommandError with the argument's name otherwise."""
    if not 0 < len(text) <= max_chars:
        raise CommandError(f"The {name} must have 1 to {max_chars:,} characters.")
    return text


async def _change_incident(
    options: CommandOptions, id: str, change: Callable[[Incident, datetime], Incident]
) -> Incident:
    """Apply `change` to the incident with the ID and the current time; save and return the changed incident.

    Raises CommandError if the incident does not exist, or was changed at the same time.
    """
    async with options.open_dependencies() as dependencies:
        before = await dependencies[Incidents].get(id) if is_id("inc", id) else None
        if before is None:
            raise CommandError(f"There is no incident {id!r}. List open incidents with `joinery incident list`.")
        after = change(before, dependencies[Clock].now())
        if not await dependencies[Incidents].save(after, before):
            raise CommandError("The incident was changed at the same time. Run the command again.")
    return after


def _build_incident_json(incident: Incident) -> dict[str, Any]:
    """Return an incident as JSON."""
    closed = ("closed_at",) if incident.closed_at else ()
    return {"incident": incident.id, **select_attributes(incident, "component", "state", "title", "opened_at", *closed)}
