"""A worker crashes anywhere in a run; another one resumes it after the lease, with the same result."""

import signal
from functools import partial
from typing import Any

import pytest

from tests.faults.conftest import FaultServices
from tests.faults.states import load_state
from tests.flows.feeds import build_catalogue
from tests.flows.service_processes import Tenancy, is_stopped, wait_until

FIRST = build_catalogue(200)
SECOND = build_catalogue(40) + b"".join(build_catalogue(150, first=40, price=130).splitlines(keepends=True)[1:])
"""40 unchanged products, 150 with other prices, 10 removed."""
PLACES = ("fetch", "fetched", "parse", "chunk:1", "stored:1", "chunk:3", "stored:3", "end", "ended")


@pytest.fixture(scope="session")
def expected_states(fault_services: FaultServices) -> dict[int, Any]:
    """Return the states after one and both files without a crash."""
    source = _create_source(fault_services.create_organisation())
    states = {}
    for number, content in enumerate((FIRST, SECOND), start=1):
        run = source[0].api.import_file(source[1], content)
        assert run["status"] == "succeeded", run
        states[number] = load_state(fault_services.services, source[1])
    assert len(states[2]["products"]) == 200 and sum(offer[-1] for offer in states[2]["offers"]) == 20
    return states


def _create_source(tenancy: Tenancy) -> tuple[Tenancy, str]:
    return tenancy, tenancy.api.create_source("file", config={"currency": "usd"})


@pytest.mark.parametrize("place", PLACES)
def test_a_crash_during_the_first_import(
    fault_services: FaultServices, expected_states: dict[int, Any], place: str
) -> None:
    tenancy, source = _create_source(fault_services.create_organisation())
    run = _kill_worker_during(fault_services, tenancy, source, FIRST, place)
    assert run["status"] == "succeeded" and (run["stats"]["rows"], run["stats"]["products_created"]) == (400, 200)
    assert load_state(fault_services.services, source) == expected_states[1]
    _assert_no_leftovers(fault_services, source)


@pytest.mark.parametrize("place", ["chunk:2", "stored:2", "end"])
def test_a_crash_during_changes_and_withdrawals(
    fault_services: FaultServices, expected_states: dict[int, Any], place: str
) -> None:
    tenancy, source = _create_source(fault_services.create_organisation())
    tenancy.api.import_file(source, FIRST)
    run = _kill_worker_during(fault_services, tenancy, source, SECOND, place)
    assert (run["status"], run["stats"]["withdrawn"], run["stats"]["offers_changed"]) == ("succeeded", 20, 320)
    assert load_state(fault_services.services, source) == expected_states[2]
    _assert_no_leftovers(fault_services, source)


def _kill_worker_during(faults: FaultServices, tenancy: Tenancy, source: str, content: bytes, place: str) -> Any:
    """Import a file with a worker that is killed at the place; return the finished run."""
    with faults.start_crashing_worker(place) as trapped:
        run = tenancy.api.upload_file(source, content)
        assert trapped.wait(90) == -signal.SIGKILL
        faults.services.processes.remove(trapped)
    return tenancy.api.wait_for_end(run)


def _assert_no_leftovers(faults: FaultServices, source: str) -> None:
    """Check that no job is left and no version of a subject is published twice."""
    jobs = faults.services.fetch_value("SELECT count(*) FROM jobs WHERE lane = %(lane)s", lane=f"source:{source}")
    twice = faults.services.fetch_value(
        "SELECT count(*) FROM (SELECT FROM events WHERE source = %(id)s GROUP BY subject, version HAVING count(*) > 1) t",
        id=source,
    )
    assert (jobs, twice) == (0, 0)


@pytest.mark.parametrize("place", ["fetch", "fetched", "parse", "chunk:2"])
def test_a_worker_resumed_after_its_lease_changes_nothing(
    fault_services: FaultServices, expected_states: dict[int, Any], place: str
) -> None:
    """The worker was stopped; meanwhile another one has finished the run."""
    tenancy, source = _create_source(fault_services.create_organisation())
    with fault_services.start_crashing_worker(place, "SIGSTOP") as trapped:
        run = tenancy.api.upload_file(source, FIRST)
        wait_until(partial(is_stopped, trapped), "the process is stopped", within=90)
        if place.startswith("chunk"):
            _terminate_connection(fault_services)
    ended = tenancy.api.wait_for_end(run)
    assert ended["status"] == "succeeded"
    trapped.send_signal(signal.SIGCONT)
    _wait_for_lease_loss(fault_services, trapped)
    assert tenancy.api.get(f"/v1/runs/{run}") == ended
    assert load_state(fault_services.services, source) == expected_states[1]
    again = tenancy.api.import_file(source, SECOND)
    assert again["status"] == "succeeded" and load_state(fault_services.services, source) == expected_states[2]


def _terminate_connection(faults: FaultServices) -> None:
    """Terminate the stopped worker's connection and its locks, as after a network failure."""
    faults.services.fetch_rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'joinery' "
        "AND state = 'idle in transaction' AND datname = current_database()"
    )


def _wait_for_lease_loss(faults: FaultServices, trapped: Any) -> None:
    """Wait until the resumed worker logs the loss of its lease, then stop it."""
    log = faults.services.log_path("trapped")
    words = ("took the job over", "its lease was lost", "attempt 1 failed")
    wait_until(lambda: any(word in log.read_text() for word in words), "the worker noticed")
    faults.services.stop(trapped)
    log.unlink()
