"""Incidents of the service: opened and closed by what is measured, or by its operator (docs/status.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from domain.kernel.enums import StoredEnum
from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.platform.model import ComponentState, worst_of

IN_A_ROW = 3
"""Looks, a minute apart, that must agree before an incident is opened or closed: one that fails alone is a hiccup."""
TITLE = 200
TEXT = 2_000
"""Characters that an incident's title, and each of its texts, has at most."""


class OpenedBy(StoredEnum):
    """Who noticed."""

    MEASUREMENT = "measurement"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class IncidentUpdate:
    """What was known at a time."""

    at: datetime
    state: ComponentState
    text: str


@dataclass(frozen=True, slots=True)
class Incident:
    """A time in which a component did not do its work; its updates, oldest first. Open until `closed_at`."""

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
        """With one update more. Raises Conflict when it is closed."""
        if self.closed_at is not None:
            raise Conflict("The incident is closed; open another one.")
        state = state or self.state
        return replace(self, state=state, updated_at=at, updates=(*self.updates, IncidentUpdate(at, state, text)))

    def closed(self, at: datetime, text: str) -> "Incident":
        """Over. Raises Conflict when it is closed already."""
        return replace(self.told(at, text, ComponentState.OPERATIONAL), closed_at=at)


def opened(
    component: str, state: ComponentState, title: str, text: str, by: OpenedBy, since: datetime, now: datetime
) -> Incident:
    """Return a new incident that started at `since`."""
    first = (IncidentUpdate(now, state, text),)
    return Incident(new_id("inc"), component, state, title, by, first, since, now)


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a component."""

    at: datetime
    state: ComponentState


def measured(component: str, looks: Sequence[Seen], incidents: Sequence[Incident]) -> Incident | None:
    """Return the new or changed incident after the latest checks (oldest first), or None.

    An operator's incident is closed by the operator alone, and beside it none is opened.
    """
    last = looks[-IN_A_ROW:]
    if len(last) < IN_A_ROW:
        return None
    now, failing = last[-1].at, [look for look in last if look.state != ComponentState.OPERATIONAL]
    incident = next((one for one in incidents if one.opened_by == OpenedBy.MEASUREMENT), None)
    if incident is None:
        if incidents or len(failing) < IN_A_ROW:
            return None
        state = worst_of(look.state for look in failing)
        title = f"{component} is {'down' if state == ComponentState.DOWN else 'degraded'}"
        text = f"{IN_A_ROW} looks in a row found it {state}."
        return opened(component, state, title, text, OpenedBy.MEASUREMENT, last[0].at, now)
    if not failing:
        return incident.closed(now, f"{IN_A_ROW} looks in a row found it working.")
    if len(failing) == IN_A_ROW and (state := worst_of(look.state for look in failing)) != incident.state:
        return incident.told(now, f"It is {state} now.", state)
    return None
