"""Invalid responses: followers retry, calls raise the client's errors, and no delay exceeds one hour."""

from dataclasses import asdict
from typing import Any

import httpx
import pytest

from entrypoints.clients.python.runtime.async_groups import AsyncFollowChanges
from entrypoints.clients.python.runtime.calls import RetryPolicy
from entrypoints.clients.python.runtime.errors import JoineryError
from entrypoints.clients.python.runtime.tables import MAX_FEED_RETRY_DELAY
from tests.unit.clients.response_cases import CASES, LONG_DELAYS, ResponseCase
from tests.unit.clients.test_retries import ScriptedCore, build_response
from tests.unit.clients.test_typescript_runtime import RunScript, run_script

__all__ = ["run_script"]
PAGE = build_response(200, b'{"data": [], "next_cursor": "c1", "caught_up": true}')
ENDLESS = [
    ResponseCase(text, 503, headers={"retry-after": text}, longest_pause=MAX_FEED_RETRY_DELAY) for text in LONG_DELAYS
]


def build_case_response(case: ResponseCase) -> httpx.Response:
    headers = [(name.encode(), text.encode("latin-1")) for name, text in case.headers.items()]
    return httpx.Response(case.status, headers=headers, content=case.body.encode("latin-1"))


def list_pauses(response: httpx.Response) -> list[float]:
    """Return the delays of a follower that receives the response and then a valid page."""
    core = ScriptedCore(response, PAGE, policy=RetryPolicy(retries=0))
    assert core.run(lambda core: anext(AsyncFollowChanges[Any](core).follow().pages()))["next_cursor"] == "c1"
    return core.pauses


def catch_error(response: httpx.Response, method: str = "GET", retries: int = 0, **options: Any) -> JoineryError:
    core = ScriptedCore(response, policy=RetryPolicy(retries=retries))
    found = core.run(lambda core: core.call(method, "/v1/runs/1", required_fields=["status"], **options))
    assert isinstance(found, JoineryError)
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_python_client_reports_invalid_responses(case: ResponseCase) -> None:
    [pause] = list_pauses(build_case_response(case))
    assert 0 < pause <= case.longest_pause
    error = catch_error(build_case_response(case))
    assert (type(error).__name__, error.retry_after) == (case.error, case.retry_after) and str(error)


@pytest.mark.parametrize("case", ENDLESS, ids=str)
def test_the_python_client_waits_at_most_one_hour(case: ResponseCase) -> None:
    [pause] = list_pauses(build_case_response(case))
    assert pause <= MAX_FEED_RETRY_DELAY and catch_error(build_case_response(case))


def test_the_typescript_client_reports_invalid_responses(run_script: RunScript) -> None:
    cases = [*CASES, *ENDLESS]
    found = run_script("answers", [asdict(case) for case in cases])
    for case, (cursor, pauses, kind, message, retry_after) in zip(cases, found["found"], strict=True):
        assert (cursor, len(pauses)) == ("c1", 1) and 0 < pauses[0] <= case.longest_pause, case
        assert kind == case.error and message, case
        assert case in ENDLESS or retry_after == case.retry_after, case
    assert found["longest"] < 2**31


def test_an_unreadable_success_may_have_changed_data() -> None:
    assert catch_error(build_response(200, b"<html>"), method="POST", keyed=True).maybe_done
    error = catch_error(build_response(200, b"<html>Sign in", request_id="req_1"))
    assert not error.maybe_done and "<html>Sign in" in str(error) and "URL" in str(error)


def test_calls_do_not_retry_the_statuses_that_followers_retry() -> None:
    for status in (408, 501, 521):
        assert catch_error(build_response(status), retries=3).status == status
