"""Whatever a proxy answers: followers go on, calls raise the client's own errors, and no pause is longer than an hour."""

from dataclasses import asdict
from typing import Any

import httpx
import pytest

from entrypoints.clients.python.runtime.async_groups import AsyncFollowChanges
from entrypoints.clients.python.runtime.calls import RetryPolicy
from entrypoints.clients.python.runtime.errors import JoineryError
from entrypoints.clients.python.runtime.tables import MAX_FEED_RETRY_DELAY
from tests.unit.clients.response_cases import CASES, LONG, Case
from tests.unit.clients.test_retries import Played, answer
from tests.unit.clients.test_typescript_runtime import RunScript, run_script

__all__ = ["run_script"]
PAGE = answer(200, b'{"data": [], "next_cursor": "c1", "caught_up": true}')
ENDLESS = [Case(text, 503, headers={"retry-after": text}, longest_pause=MAX_FEED_RETRY_DELAY) for text in LONG]


def answer_of(case: Case) -> httpx.Response:
    headers = [(name.encode(), text.encode("latin-1")) for name, text in case.headers.items()]
    return httpx.Response(case.status, headers=headers, content=case.body.encode("latin-1"))


def pauses_of(answer: httpx.Response) -> list[float]:
    """The pauses of a follower that is answered so, and then well."""
    core = Played(answer, PAGE, policy=RetryPolicy(retries=0))
    assert core.result(lambda core: anext(AsyncFollowChanges[Any](core).follow().pages()))["next_cursor"] == "c1"
    return core.pauses


def error_of(answer: httpx.Response, method: str = "GET", retries: int = 0, **options: Any) -> JoineryError:
    core = Played(answer, policy=RetryPolicy(retries=retries))
    found = core.result(lambda core: core.call(method, "/v1/runs/1", required_fields=["status"], **options))
    assert isinstance(found, JoineryError)
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_python(case: Case) -> None:
    [pause] = pauses_of(answer_of(case))
    assert 0 < pause <= case.longest_pause
    error = error_of(answer_of(case))
    assert (type(error).__name__, error.retry_after) == (case.error, case.retry_after) and str(error)


@pytest.mark.parametrize("case", ENDLESS, ids=str)
def test_python_waits_an_hour_at_most(case: Case) -> None:
    [pause] = pauses_of(answer_of(case))
    assert pause <= MAX_FEED_RETRY_DELAY and error_of(answer_of(case))


def test_typescript(run_script: RunScript) -> None:
    cases = [*CASES, *ENDLESS]
    came = run_script("answers", [asdict(case) for case in cases])
    for case, (cursor, pauses, kind, message, retry_after) in zip(cases, came["found"], strict=True):
        assert (cursor, len(pauses)) == ("c1", 1) and 0 < pauses[0] <= case.longest_pause, case
        assert kind == case.error and message, case
        assert case in ENDLESS or retry_after == case.retry_after, case
    assert came["longest"] < 2**31


def test_a_success_that_is_not_read_may_have_changed_something() -> None:
    assert error_of(answer(200, b"<html>"), method="POST", keyed=True).maybe_done
    error = error_of(answer(200, b"<html>Sign in", request_id="req_1"))
    assert not error.maybe_done and "<html>Sign in" in str(error) and "URL" in str(error)


def test_calls_do_not_take_what_followers_outlive() -> None:
    for status in (408, 501, 521):
        assert error_of(answer(status), retries=3).status == status
