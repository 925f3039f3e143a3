"""What both clients take for a webhook of ours, and what they refuse."""

from dataclasses import asdict

import pytest

from entrypoints.clients.python.runtime.errors import WebhookVerificationError
from entrypoints.clients.python.runtime.signatures import verified
from tests.unit.clients.test_typescript_runtime import Ask, ask
from tests.unit.clients.webhook_cases import KEY, NO_SECRET, REFUSED, SECRET, WELL, Case, cases, signed

__all__ = ["ask"]


def come(case: Case) -> str:
    try:
        verified(case.body, case.headers, case.secret)
    except WebhookVerificationError:
        return REFUSED
    except ValueError as error:
        assert "secret" in str(error)
        return NO_SECRET
    return WELL


@pytest.mark.parametrize("name", [case.name for case in cases()])
def test_python(name: str) -> None:
    (case,) = [
        each for each in cases() if each.name == name
    ]  # signed now: the suite may run for longer than they count
    assert come(case) == case.comes


def test_typescript(ask: Ask) -> None:
    asked = cases()
    found = ask("webhooks", [asdict(case) for case in asked])
    assert {case.name: came for case, came in zip(asked, found, strict=True)} == {
        case.name: case.comes for case in asked
    }


def test_a_tolerance_that_is_no_number_is_refused(ask: Ask) -> None:
    headers = signed(KEY, at="1")
    for tolerance in (float("nan"), -1.0):
        with pytest.raises(ValueError, match="tolerance"):
            verified(b"{}", headers, SECRET, tolerance)
    for name, message in ask("tolerances", {"headers": headers, "secret": SECRET}):
        assert name == "TypeError" and "tolerance" in message
