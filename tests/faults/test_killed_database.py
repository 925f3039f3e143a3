"""PostgreSQL is killed repeatedly, also at COMMIT: no acknowledged event is lost, and no response is false.

`FAULT_BLOWS` is the number of faults in the long test (default 30), `SOAK_SEED` the random seed.
"""

import os
import random
import time

import pytest

from tests.faults.database_faults import DatabaseFaultScenario, run_scenario

BLOWS = int(os.environ.get("FAULT_BLOWS", "30"))


def _find_violations_after_faults(scenario: DatabaseFaultScenario, faults: int, dice: random.Random) -> list[str]:
    """Return the violations at the end."""
    with scenario.writers.run(), scenario.follower_thread.run():
        for _ in range(faults):
            scenario.wait_for_events(dice.randint(1, 10))
            time.sleep(dice.random() * 0.3)
            scenario.inject_fault(dice)
        scenario.wait_for_events(20)
        scenario.writers.pause()
        return scenario.wait_for_consistency()


@pytest.mark.soak
def test_no_acknowledged_event_is_lost_by_crashes(capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("SOAK_SEED", time.time_ns() % 1_000_000))
    with run_scenario() as scenario:
        began = time.monotonic()
        wrong = _find_violations_after_faults(scenario, BLOWS, random.Random(seed))
        with capsys.disabled():
            print(f"\nseed {seed}, {time.monotonic() - began:.0f} s: {dict(scenario.fault_counts)}")
            print("\n".join(scenario.format_totals()))
        assert not wrong, "\n".join(wrong)
