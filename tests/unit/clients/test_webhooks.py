"""What both clients take for a webhook of ours, and what they refuse."""

from dataclasses import asdict

import pytest

from entrypoints.clients.python.runtime.errors import WebhookVerificationError
from entrypoints.clients.python.runtime.signatures import verify_event
from tests.unit.clients.test_typescript_runtime import RunScript, run_script
from tests.unit.clients.webhook_cases import KEY, NO_SECRET, REFUSED, SECRET, WELL, Case, cases, signed

__all__ = ["run_script"]


def come(case: Case) -> str:
    try:
        verify_event(case.body, case.headers, case.secret)
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


def test_typescript(run_script: RunScript) -> None:
    given = cases()
    found = run_script("webhooks", [asdict(case) for case in given])
    assert {case.name: came for case, came in zip(given, found, strict=True)} == {
        case.name: case.comes for case in given
    }


def test_a_tolerance_that_is_no_number_is_refused(run_script: RunScript) -> None:
    headers = signed(KEY, at="1")
    for tolerance in (float("nan"), -1.0):
        with pytest.raises(ValueError, match="tolerance"):
            verify_event(b"{}", headers, SECRET, tolerance)
    for name, message in run_script("tolerances", {"headers": headers, "secret": SECRET}):
        assert name == "TypeError" and "tolerance" in message
