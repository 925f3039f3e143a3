"""What signals say: the form in which they are sent, and what is read of it."""

import pytest

from domain.kernel.tenancy import Tenant
from ports.signals import Heard, Signal

LIVE, SANDBOX = Tenant("org_1", True), Tenant("org_1", False)


@pytest.mark.parametrize(
    ("signal", "payload"),
    [(Signal(LIVE), "org_1 t"), (Signal(SANDBOX), "org_1 f"), (Signal(SANDBOX, "whe_1"), "org_1 f whe_1")],
)
def test_there_and_back(signal: Signal, payload: str) -> None:
    assert signal.payload == payload
    assert Signal.parse(payload) == signal


@pytest.mark.parametrize("payload", ["", "org_1", "org_1 x", " ", "org_1  t"])
def test_anything_else_says_that_something_may_have_been_missed(payload: str) -> None:
    assert Heard.of((payload, "org_1 t")) == Heard(frozenset((Signal(LIVE),)), missed=True)
    assert Heard.of(("org_1 t",)) == Heard(frozenset((Signal(LIVE),)), missed=False)
    assert Heard.of(()) == Heard(frozenset(), missed=False)
