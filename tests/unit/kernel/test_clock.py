"""The service's clock follows readings, whatever the machine's wall clock does between them."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.kernel import clock, ids
from domain.kernel.clock import ServiceClock

TRUE = datetime(2026, 5, 1, tzinfo=UTC)


class Machine:
    """A machine's two clocks, set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.steady = TRUE.timestamp() + 40 * 86_400, 1_000.0
        monkeypatch.setattr(clock.time, "time", lambda: self.wall)
        monkeypatch.setattr(clock.time, "monotonic", lambda: self.steady)

    def passes(self, seconds: float) -> None:
        """Both go on."""
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_the_machine_is_all_there_is_before_a_reading(machine: Machine) -> None:
    own = ServiceClock()
    assert own.needs_reading() and own.now() == TRUE + timedelta(days=40) and own.compute_offset() == 0.0
    machine.passes(5)
    assert own.now() == TRUE + timedelta(days=40, seconds=5)


def test_a_reading_is_followed_by_the_monotonic_clock(machine: Machine) -> None:
    own = ServiceClock()
    own.apply_reading(TRUE, machine.steady, machine.steady)
    machine.passes(20)
    assert own.now() == TRUE + timedelta(seconds=20)
    assert own.compute_offset() == 40 * 86_400
    assert not own.needs_reading()
    machine.wall -= 80 * 86_400
    assert own.now() == TRUE + timedelta(seconds=20), "a step of the wall clock moves nothing"
    assert own.needs_reading(), "and a new reading is needed, for the machine may have slept"
    own.apply_reading(TRUE + timedelta(seconds=21), machine.steady, machine.steady)
    assert own.now() == TRUE + timedelta(seconds=21) and own.compute_offset() == pytest.approx(-40 * 86_400 - 1)


@pytest.mark.parametrize("seconds", [clock.READING_INTERVAL_SECONDS, -1.0])
def test_a_reading_grows_old(machine: Machine, seconds: float) -> None:
    own = ServiceClock()
    own.apply_reading(TRUE, machine.steady, machine.steady)
    machine.passes(seconds)
    assert own.needs_reading()


def test_noise_of_the_network_moves_nothing(machine: Machine) -> None:
    own = ServiceClock()
    own.apply_reading(TRUE, machine.steady - 0.01, machine.steady + 0.01)
    machine.passes(10)
    slow = TRUE + timedelta(seconds=10.8)  # requested at 9, answered at 11: within a second of the truth
    own.apply_reading(slow, machine.steady - 1, machine.steady + 1)
    assert own.now() == TRUE + timedelta(seconds=10)
    own.apply_reading(TRUE + timedelta(seconds=12), machine.steady, machine.steady)
    assert own.now() == TRUE + timedelta(seconds=12), "what lies outside is the clock's own step"


def test_a_poor_first_reading_is_corrected(machine: Machine) -> None:
    own = ServiceClock()
    own.apply_reading(TRUE, machine.steady - 2, machine.steady + 2)
    own.apply_reading(TRUE + timedelta(seconds=3), machine.steady, machine.steady)
    assert own.now() == TRUE + timedelta(seconds=3)


def test_a_slow_first_reading_gives_way_to_exact_ones(machine: Machine) -> None:
    own = ServiceClock()
    sent = machine.steady
    machine.passes(10)
    own.apply_reading(TRUE + timedelta(seconds=0.5), sent, machine.steady)
    machine.passes(20)
    own.apply_reading(TRUE + timedelta(seconds=30), machine.steady - 0.001, machine.steady)
    assert abs((own.now() - TRUE - timedelta(seconds=30)).total_seconds()) < 0.01


def test_identifiers_follow_a_corrected_clock(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    own = ServiceClock()
    monkeypatch.setattr(ids, "CLOCK", own)
    sequence = ids._Sequence()
    own.apply_reading(TRUE + timedelta(days=40), machine.steady, machine.steady)
    ahead = sequence.next()
    own.apply_reading(TRUE, machine.steady, machine.steady)
    corrected = sequence.next()
    assert corrected < ahead and corrected >> 80 == int(TRUE.timestamp() * 1000)
    own.apply_reading(TRUE - timedelta(seconds=5), machine.steady, machine.steady)
    assert sequence.next() > corrected
