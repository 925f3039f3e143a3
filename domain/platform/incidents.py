"""Incidents, opened and closed by measurements or by the operator (docs/status.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from domain.kernel.enums import StoredEnum
from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.platform.model import ComponentState, worst_of

IN_A_ROW = 3
"""Checks, a minute apart, that must agree before an incident is opened or closed; single failures are ignored."""
TITLE = 200
TEXT = 2_000
"""Maximum characters of an incident's title and of each of its texts."""


class OpenedBy(StoredEnum):
    """The origin of an incident."""

    MEASUREMENT = "measurement"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class IncidentUpdate:
    """An update of an incident: the state of knowledge at a time."""

    at: datetime
    state: ComponentState
    text: str


@dataclass(frozen=True, slots=True)
class Incident:
    """A failure of a component with its updates, oldest first; open until `closed_at`."""

    id: str
    component: str
    state: ComponentState
    title: str
    opened_by: OpenedBy
    updates: tuple[IncidentUpdate, ...]
    opened_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None

    def told(self, at: datetime, text: str, state: ComponentState | None = None) -> "Incident":
        """Return the incident with another update. Raises Conflict if it is closed."""
        if self.closed_at is not None:
            raise Conflict("The incident is closed. Open another one.")
        state = state or self.state
        return replace(self, state=state, updated_at=at, updates=(*self.updates, IncidentUpdate(at, state, text)))

    def closed(self, at: datetime, text: str) -> "Incident":
        """Return the closed incident. Raises Conflict if it is closed already."""
        return replace(self.told(at, text, ComponentState.OPERATIONAL), closed_at=at)


def opened(
    component: str, state: ComponentState, title: str, text: str, by: OpenedBy, since: datetime, now: datetime
) -> Incident:
    """Return a new incident that began at `since`."""
    first = (IncidentUpdate(now, state, text),)
    return Incident(new_id("inc"), component, state, title, by, first, since, now)


@dataclass(frozen=True, slots=True)
class Seen:
    """One check of a component."""

    at: datetime
    state: ComponentState


def measured(component: str, looks: Sequence[Seen], incidents: Sequence[Incident]) -> Incident | None:
    """Return the incident that the last checks (oldest first) open, change or close, or None.

    An operator's incident is closed by the operator only, and no other is opened meanwhile.
    """
    last = looks[-IN_A_ROW:]
    if len(last) < IN_A_ROW:
        return None
    now, failing = last[-1].at, [look for look in last if look.state != ComponentState.OPERATIONAL]
    incident = next((other for other in incidents if other.opened_by == OpenedBy.MEASUREMENT), None)
    if incident is None:
        if incidents or len(failing) < IN_A_ROW:
            return None
        state = worst_of(look.state for look in failing)
        title = f"{component} is {'down' if state == ComponentState.DOWN else 'degraded'}"
        text = f"{IN_A_ROW} consecutive checks found it {state}."
        return opened(component, state, title, text, OpenedBy.MEASUREMENT, last[0].at, now)
    if not failing:
        return incident.closed(now, f"{IN_A_ROW} consecutive checks found it working.")
    if len(failing) == IN_A_ROW and (state := worst_of(look.state for look in failing)) != incident.state:
        return incident.told(now, f"It is {state} now.", state)
    return None
