"""Incidents, which are opened and closed by checks or by the operator (docs/status.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from domain.kernel.enums import StoredEnum
from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.platform.model import ComponentState, find_worst_state

REQUIRED_CHECKS = 3
"""Number of consecutive checks with the same result after which an incident is opened or closed."""
MAX_TITLE_CHARS = 200
MAX_TEXT_CHARS = 2_000
"""Maximum characters of an incident's title, and of the text of each update."""


class OpenedBy(StoredEnum):
    """Ways in which an incident is opened: by checks (`measurement`) or by the operator."""

    MEASUREMENT = "measurement"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class IncidentUpdate:
    """Report on an incident, with the state of the component at that time."""

    at: datetime
    state: ComponentState
    text: str


@dataclass(frozen=True, slots=True)
class Incident:
    """Failure of a component of the service.

    Attributes:
        component: Name of the component.
        state: Current state of the component.
        updates: Reports on the incident, oldest first.
        closed_at: When the incident was closed; None while it is open.
    """

    id: str
    component: str
    state: ComponentState
    title: str
    opened_by: OpenedBy
    updates: tuple[IncidentUpdate, ...]
    opened_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None

    def with_update(self, at: datetime, text: str, state: ComponentState | None = None) -> "Incident":
        """Return the incident with another update. Raises Conflict if the incident is closed."""
        if self.closed_at is not None:
            raise Conflict("The incident is closed. Open a new incident.")
        state = state or self.state
        return replace(self, state=state, updated_at=at, updates=(*self.updates, IncidentUpdate(at, state, text)))

    def with_end(self, at: datetime, text: str) -> "Incident":
        """Return the incident as closed, with a last update. Raises Conflict if the incident is closed already."""
        return replace(self.with_update(at, text, ComponentState.OPERATIONAL), closed_at=at)


def create_incident(
    component: str,
    state: ComponentState,
    title: str,
    text: str,
    opened_by: OpenedBy,
    opened_at: datetime,
    now: datetime,
) -> Incident:
    """Return a new incident, which began at `opened_at` and is reported at `now`."""
    first = (IncidentUpdate(now, state, text),)
    return Incident(new_id("inc"), component, state, title, opened_by, first, opened_at, now)


@dataclass(frozen=True, slots=True)
class MeasuredState:
    """State of a component that one check found, and the time of the check."""

    at: datetime
    state: ComponentState


def find_changed_incident(
    component: str, checks: Sequence[MeasuredState], incidents: Sequence[Incident]
) -> Incident | None:
    """Return an incident that must be opened, changed or closed because of the last checks of a component, or None.

    While an incident that the operator has opened is open, checks open no other incident.

    Args:
        component: Name of the component.
        checks: The last checks of the component, oldest first.
        incidents: The open incidents of the component.
    """
    last_checks = checks[-REQUIRED_CHECKS:]
    if len(last_checks) < REQUIRED_CHECKS:
        return None
    now, failing = last_checks[-1].at, [check for check in last_checks if check.state != ComponentState.OPERATIONAL]
    incident = next((candidate for candidate in incidents if candidate.opened_by == OpenedBy.MEASUREMENT), None)
    if incident is None:
        if incidents or len(failing) < REQUIRED_CHECKS:
            return None
        state = find_worst_state(check.state for check in failing)
        title = f"{component} is {'down' if state == ComponentState.DOWN else 'degraded'}"
        text = f"{REQUIRED_CHECKS} consecutive checks found the component {state}."
        return create_incident(component, state, title, text, OpenedBy.MEASUREMENT, last_checks[0].at, now)
    if not failing:
        return incident.with_end(now, f"{REQUIRED_CHECKS} consecutive checks found the component working.")
    if (
        len(failing) == REQUIRED_CHECKS
        and (state := find_worst_state(check.state for check in failing)) != incident.state
    ):
        return incident.with_update(now, f"The component is now {state}.", state)
    return None
