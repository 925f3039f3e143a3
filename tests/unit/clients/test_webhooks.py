"""Verification of webhooks in both clients."""

from dataclasses import asdict

import pytest

from entrypoints.clients.python.runtime.errors import WebhookVerificationError
from entrypoints.clients.python.runtime.signatures import verify_event
from tests.unit.clients.test_typescript_runtime import RunScript, run_script
from tests.unit.clients.webhook_cases import (
    ACCEPTED,
    KEY,
    NO_SECRET,
    REFUSED,
    SECRET,
    WebhookCase,
    build_cases,
    sign_webhook,
)

__all__ = ["run_script"]


def verify_case(case: WebhookCase) -> str:
    try:
        verify_event(case.body, case.headers, case.secret)
    except WebhookVerificationError:
        return REFUSED
    except ValueError as error:
        assert "secret" in str(error)
        return NO_SECRET
    return ACCEPTED


@pytest.mark.parametrize("name", [case.name for case in build_cases()])
def test_the_python_client_verifies_webhooks(name: str) -> None:
    (case,) = [
        each for each in build_cases() if each.name == name
    ]  # signed now: the suite may run longer than the signatures are valid
    assert verify_case(case) == case.expected


def test_the_typescript_client_verifies_webhooks(run_script: RunScript) -> None:
    given = build_cases()
    found = run_script("webhooks", [asdict(case) for case in given])
    assert {case.name: result for case, result in zip(given, found, strict=True)} == {
        case.name: case.expected for case in given
    }


def test_an_invalid_tolerance_is_refused(run_script: RunScript) -> None:
    headers = sign_webhook(KEY, at="1")
    for tolerance in (float("nan"), -1.0):
        with pytest.raises(ValueError, match="tolerance"):
            verify_event(b"{}", headers, SECRET, tolerance)
    for name, message in run_script("tolerances", {"headers": headers, "secret": SECRET}):
        assert name == "TypeError" and "tolerance" in message
