"""Incidents that follow from measurements (domain/platform/incidents.py)."""

from datetime import timedelta

import pytest

from domain.kernel.errors import Conflict
from domain.platform.incidents import MeasuredState, OpenedBy, create_incident, find_changed_incident
from domain.platform.model import ComponentState
from tests.support.builders import MOMENT

STATES = {"o": ComponentState.OPERATIONAL, "g": ComponentState.DEGRADED, "d": ComponentState.DOWN}


def build_measurements(states: str) -> list[MeasuredState]:
    """Return one measurement a minute."""
    return [MeasuredState(MOMENT + timedelta(minutes=at), STATES[state]) for at, state in enumerate(states)]


@pytest.mark.parametrize("states", ["", "d", "dd", "odd", "ddo", "dod", "ooo"])
def test_a_single_failure_opens_no_incident(states: str) -> None:
    assert find_changed_incident("api", build_measurements(states), []) is None


@pytest.mark.parametrize(("states", "state"), [("ggg", "g"), ("gdg", "d"), ("oddd", "d")])
def test_three_consecutive_failures_open_an_incident_at_the_first(states: str, state: str) -> None:
    incident = find_changed_incident("api", build_measurements(states), [])
    assert incident is not None and (incident.state, incident.opened_by) == (STATES[state], OpenedBy.MEASUREMENT)
    assert incident.opened_at == build_measurements(states)[-3].at and len(incident.updates) == 1


def test_an_incident_worsens_and_ends() -> None:
    incident = find_changed_incident("api", build_measurements("ggg"), [])
    assert find_changed_incident("api", build_measurements("ggg"), [incident]) is None, "nothing new"
    worse = find_changed_incident("api", build_measurements("ddd"), [incident])
    assert worse is not None and worse.state == ComponentState.DOWN and len(worse.updates) == 2
    assert find_changed_incident("api", build_measurements("doo"), [worse]) is None
    over = find_changed_incident("api", build_measurements("ooo"), [worse])
    assert (
        over is not None
        and over.closed_at == build_measurements("ooo")[-1].at
        and over.state == ComponentState.OPERATIONAL
    )
    with pytest.raises(Conflict):
        over.with_update(MOMENT, "and again")


def test_an_operators_incident_is_ended_by_the_operator() -> None:
    incident = create_incident(
        "api", ComponentState.DOWN, "Moving house", "We move.", OpenedBy.OPERATOR, MOMENT, MOMENT
    )
    assert (
        find_changed_incident("api", build_measurements("ooo"), [incident]) is None
        and find_changed_incident("api", build_measurements("ddd"), [incident]) is None
    )


def test_a_measured_incident_ends_during_an_operators_incident() -> None:
    incident = find_changed_incident("api", build_measurements("ggg"), [])
    opened = create_incident("api", ComponentState.DOWN, "Moving house", "We move.", OpenedBy.OPERATOR, MOMENT, MOMENT)
    assert incident is not None
    over = find_changed_incident("api", build_measurements("ooo"), [opened, incident])
    assert over is not None and (over.id, over.state) == (incident.id, ComponentState.OPERATIONAL)
