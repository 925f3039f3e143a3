"""The service clock follows readings and ignores steps of the machine's wall clock."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.kernel import clock, ids
from domain.kernel.clock import ServiceClock

TRUE = datetime(2026, 5, 1, tzinfo=UTC)


class FakeMachineClock:
    """Wall clock and monotonic clock of a machine, set by the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.monotonic = TRUE.timestamp() + 40 * 86_400, 1_000.0
        monkeypatch.setattr(clock.time, "time", lambda: self.wall)
        monkeypatch.setattr(clock.time, "monotonic", lambda: self.monotonic)

    def advance(self, seconds: float) -> None:
        """Advance both clocks."""
        self.wall += seconds
        self.monotonic += seconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> FakeMachineClock:
    return FakeMachineClock(monkeypatch)


def test_the_clock_of_the_machine_is_used_before_a_reading(machine: FakeMachineClock) -> None:
    own = ServiceClock()
    assert own.needs_reading() and own.now() == TRUE + timedelta(days=40) and own.compute_offset() == 0.0
    machine.advance(5)
    assert own.now() == TRUE + timedelta(days=40, seconds=5)


def test_a_reading_is_followed_by_the_monotonic_clock(machine: FakeMachineClock) -> None:
    own = ServiceClock()
    own.apply_reading(TRUE, machine.monotonic, machine.monotonic)
    machine.advance(20)
    assert own.now() == TRUE + timedelta(seconds=20)
    assert own.compute_offset() == 40 * 86_400
    assert not own.needs_reading()
    machine.wall -= 80 * 86_400
    assert own.now() == TRUE + timedelta(seconds=20), "a step of the wall clock has no effect"
    assert own.needs_reading(), "a new reading is needed, because the machine may have been suspended"
    own.apply_reading(TRUE + timedelta(seconds=21), machine.monotonic, machine.monotonic)
    assert own.now() == TRUE + timedelta(seconds=21) and own.compute_offset() == pytest.approx(-40 * 86_400 - 1)


@pytest.mark.parametrize("seconds", [clock.READING_INTERVAL_SECONDS, -1.0])
def test_a_reading_expires(machine: FakeMachineClock, seconds: float) -> None:
    own = ServiceClock()
    own.apply_reading(TRUE, machine.monotonic, machine.monotonic)
    machine.advance(seconds)
    assert own.needs_reading()


def test_network_delays_do_not_move_the_clock(machine: FakeMachineClock) -> None:
    own = ServiceClock()
    own.apply_reading(TRUE, machine.monotonic - 0.01, machine.monotonic + 0.01)
    machine.advance(10)
    slow = TRUE + timedelta(seconds=10.8)  # requested at 9, answered at 11: accurate to one second
    own.apply_reading(slow, machine.monotonic - 1, machine.monotonic + 1)
    assert own.now() == TRUE + timedelta(seconds=10)
    own.apply_reading(TRUE + timedelta(seconds=12), machine.monotonic, machine.monotonic)
    assert own.now() == TRUE + timedelta(seconds=12), "beyond the error of the reading, the clock itself made a step"


def test_a_poor_first_reading_is_corrected(machine: FakeMachineClock) -> None:
    own = ServiceClock()
    own.apply_reading(TRUE, machine.monotonic - 2, machine.monotonic + 2)
    own.apply_reading(TRUE + timedelta(seconds=3), machine.monotonic, machine.monotonic)
    assert own.now() == TRUE + timedelta(seconds=3)


def test_a_slow_first_reading_is_replaced_by_exact_readings(machine: FakeMachineClock) -> None:
    own = ServiceClock()
    sent = machine.monotonic
    machine.advance(10)
    own.apply_reading(TRUE + timedelta(seconds=0.5), sent, machine.monotonic)
    machine.advance(20)
    own.apply_reading(TRUE + timedelta(seconds=30), machine.monotonic - 0.001, machine.monotonic)
    assert abs((own.now() - TRUE - timedelta(seconds=30)).total_seconds()) < 0.01


def test_identifiers_follow_a_corrected_clock(machine: FakeMachineClock, monkeypatch: pytest.MonkeyPatch) -> None:
    own = ServiceClock()
    monkeypatch.setattr(ids, "CLOCK", own)
    sequence = ids._Sequence()
    own.apply_reading(TRUE + timedelta(days=40), machine.monotonic, machine.monotonic)
    ahead = sequence.next()
    own.apply_reading(TRUE, machine.monotonic, machine.monotonic)
    corrected = sequence.next()
    assert corrected < ahead and corrected >> 80 == int(TRUE.timestamp() * 1000)
    own.apply_reading(TRUE - timedelta(seconds=5), machine.monotonic, machine.monotonic)
    assert sequence.next() > corrected
