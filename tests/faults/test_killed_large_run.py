"""A run of a hundred thousand rows whose worker is killed twenty times at random points."""

import random
import signal
import time

import pytest

from tests.faults.conftest import CRASH_POINTS, FaultServices
from tests.faults.states import load_state
from tests.flows.feeds import build_catalogue
from tests.flows.service_processes import Tenancy, wait_until

KILLS = 20
PRODUCTS, VARIANTS = 20_000, 5
IN_READING = 0.25
"""Share of workers killed at once, during start or reading; never twice in a row, because three such crashes end a run."""


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_large_run_killed_twenty_times(fault_services: FaultServices) -> None:
    """The state and events equal those of an undisturbed run."""
    dice = random.Random(20261122)
    content = build_catalogue(PRODUCTS, VARIANTS)
    tenancy = fault_services.create_organisation()
    source = tenancy.api.create_source("file", config={"currency": "usd"})
    kills, at_once = 0, True
    fault_services.standby_worker.send_signal(signal.SIGSTOP)
    try:
        run = tenancy.api.upload_file(source, content)
        while kills < KILLS and tenancy.api.get(f"/v1/runs/{run}")["status"] in ("queued", "running"):
            victim = fault_services.services.start("victim", (*CRASH_POINTS, "worker"))
            at_once = not at_once and dice.random() < IN_READING
            if not at_once:
                _wait_for_chunks(tenancy, run, portions=dice.randint(1, 3))
            time.sleep(dice.random() * 1.5)
            victim.send_signal(signal.SIGKILL)
            victim.wait(10)
            fault_services.services.processes.remove(victim)
            kills += 1
    finally:
        fault_services.standby_worker.send_signal(signal.SIGCONT)
    ended = tenancy.api.wait_for_end(run, 600)
    assert ended["status"] == "succeeded", ended
    assert (ended["stats"]["rows"], ended["stats"]["products_created"]) == (PRODUCTS * VARIANTS, PRODUCTS)
    assert kills == KILLS, "the run ended too early"
    calm = tenancy.api.create_source("file", config={"currency": "usd"})
    assert tenancy.api.wait_for_end(tenancy.api.upload_file(calm, content), 600)["status"] == "succeeded"
    disturbed, undisturbed = load_state(fault_services.services, source), load_state(fault_services.services, calm)
    for part in undisturbed:
        assert disturbed[part] == undisturbed[part], part


def _wait_for_chunks(tenancy: Tenancy, run: str, portions: int) -> None:
    """Wait until the run has stored `portions` more portions, or has ended."""
    progress = _count_stored_chunks(tenancy, run)
    for _ in range(portions):
        wait_until(lambda: _count_stored_chunks(tenancy, run) != progress, "a portion was stored", 120)
        progress = _count_stored_chunks(tenancy, run)


def _count_stored_chunks(tenancy: Tenancy, run: str) -> tuple[str, int]:
    found = tenancy.api.get(f"/v1/runs/{run}")
    over = "" if found["status"] in ("queued", "running") else found["status"]
    return over, found["stats"].get("products_created", 0)
