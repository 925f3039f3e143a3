"""Encoding and parsing of signals."""

import pytest

from domain.kernel.tenancy import Tenant
from ports.signals import ReceivedSignals, Signal

LIVE, SANDBOX = Tenant("org_1", True), Tenant("org_1", False)


@pytest.mark.parametrize(
    ("signal", "payload"),
    [(Signal(LIVE), "org_1 t"), (Signal(SANDBOX), "org_1 f"), (Signal(SANDBOX, "whe_1"), "org_1 f whe_1")],
)
def test_signals_round_trip(signal: Signal, payload: str) -> None:
    assert signal.payload == payload
    assert Signal.parse(payload) == signal


@pytest.mark.parametrize("payload", ["", "org_1", "org_1 x", " ", "org_1  t"])
def test_any_other_payload_marks_signals_as_missed(payload: str) -> None:
    assert ReceivedSignals.from_payloads((payload, "org_1 t")) == ReceivedSignals(
        frozenset((Signal(LIVE),)), has_missed_signals=True
    )
    assert ReceivedSignals.from_payloads(("org_1 t",)) == ReceivedSignals(
        frozenset((Signal(LIVE),)), has_missed_signals=False
    )
    assert ReceivedSignals.from_payloads(()) == ReceivedSignals(frozenset(), has_missed_signals=False)
