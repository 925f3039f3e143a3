"""Several sources change repeatedly while workers are killed at random, for a minute."""

import random
import signal
import time
from typing import Any

import pytest

from tests.faults.conftest import CRASH_POINTS, FaultServices
from tests.faults.states import load_state
from tests.flows.feeds import build_catalogue
from tests.flows.service_processes import Tenancy

SECONDS = 60
SOURCES = 3


@pytest.mark.soak
def test_a_minute_of_killed_workers(fault_services: FaultServices) -> None:
    """Finally, the data of each source equals that of an undisturbed import."""
    dice = random.Random(20261120)
    tenancy = fault_services.create_organisation()
    sources = [tenancy.api.create_source("file", config={"currency": "usd"}) for _ in range(SOURCES)]
    fed: dict[str, list[bytes]] = {source: [] for source in sources}
    until, kills = time.monotonic() + SECONDS, 0
    victim = fault_services.services.start("victim", (*CRASH_POINTS, "worker"))
    try:
        while time.monotonic() < until:
            runs = [_import_versions(tenancy, source, fed[source], dice) for source in sources]
            time.sleep(dice.random() * 0.8)
            victim.send_signal(signal.SIGKILL)
            victim.wait(10)
            fault_services.services.processes.remove(victim)
            kills += 1
            victim = fault_services.services.start("victim", (*CRASH_POINTS, "worker"))
            assert {tenancy.api.wait_for_end(run, 60)["status"] for run in runs} == {"succeeded"}
    finally:
        fault_services.services.stop(victim)
    assert kills > 10
    for source in sources:
        assert load_state(fault_services.services, source) == _compute_expected_state(fault_services, fed[source])


def _import_versions(tenancy: Tenancy, source: str, files: list[bytes], dice: random.Random) -> str:
    """Import further versions of the source's file."""
    content = build_catalogue(dice.randint(170, 200), price=dice.randint(100, 140), quantity=dice.randint(0, 9))
    files.append(content)
    return tenancy.api.upload_file(source, content)


def _compute_expected_state(faults: FaultServices, files: list[bytes]) -> Any:
    """Return the state after an undisturbed import of the files."""
    tenancy = faults.create_organisation()
    source = tenancy.api.create_source("file", config={"currency": "usd"})
    for content in files:
        assert tenancy.api.import_file(source, content)["status"] == "succeeded"
    return load_state(faults.services, source)
