"""PostgreSQL is killed again and again, at COMMIT too: nothing that was acknowledged is missing, nobody is told it wrongly.

`FAULT_BLOWS` is how often in the long test (30 unless it is set), `SOAK_SEED` which dice.
"""

import os
import random
import time

import pytest

from tests.faults.database_faults import Scene, scene

BLOWS = int(os.environ.get("FAULT_BLOWS", "30"))


def _struck(struck: Scene, blows: int, dice: random.Random) -> list[str]:
    """What was wrong in the end."""
    with struck.writers.running(), struck.reading.running():
        for _ in range(blows):
            struck.goes_on(dice.randint(1, 10))
            time.sleep(dice.random() * 0.3)
            struck.strike(dice)
        struck.goes_on(20)
        struck.writers.pause()
        return struck.in_the_end()


@pytest.mark.soak
def test_nothing_is_missed_whatever_is_killed(capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("SOAK_SEED", time.time_ns() % 1_000_000))
    with scene() as struck:
        began = time.monotonic()
        wrong = _struck(struck, BLOWS, random.Random(seed))
        with capsys.disabled():
            print(f"\nseed {seed}, {time.monotonic() - began:.0f} s: {dict(struck.struck)}")
            print("\n".join(struck.figures()))
        assert not wrong, "\n".join(wrong)
