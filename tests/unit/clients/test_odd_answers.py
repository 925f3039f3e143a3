"""Whatever a proxy answers: followers go on, calls raise the client's own errors, and no pause is longer than an hour."""

from dataclasses import asdict
from typing import Any

import pytest

from entrypoints.clients.python.runtime import errors
from entrypoints.clients.python.runtime.core import Core
from entrypoints.clients.python.runtime.following import Followed, followed
from entrypoints.clients.python.runtime.retrying import RetryPolicy
from entrypoints.clients.python.runtime.steps import Answer, Emit, Send, Sleep
from entrypoints.clients.python.runtime.tables import LONGEST_PAUSE
from tests.unit.clients.answer_cases import CASES, LONG, Case
from tests.unit.clients.test_typescript_runtime import Ask, ask

__all__ = ["ask"]
PAGE = Answer(200, {}, b'{"data": [], "next_cursor": "c1", "caught_up": true}')
ENDLESS = [Case(text, 503, headers={"retry-after": text}, longest_pause=LONGEST_PAUSE) for text in LONG]


def core(retries: int = 0) -> Core:
    return Core("http://x", {}, RetryPolicy(retries=retries))


def answer_of(case: Case) -> Answer:
    return Answer(case.status, case.headers, case.body.encode("latin-1"))


def pauses_of(answer: Answer) -> list[float]:
    """The pauses of a follower that is answered so, and then well."""
    steps, pauses, left = followed(core(), Followed(None, None, None, None, 25, 1000)), [], [answer, PAGE]
    step = next(steps)
    while not isinstance(step, Emit):
        assert isinstance(step, (Send, Sleep))
        pauses += [step.seconds] if isinstance(step, Sleep) else []
        step = steps.send(left.pop(0) if isinstance(step, Send) else None)
    assert step.value["next_cursor"] == "c1"
    return pauses


def error_of(answer: Answer, **asked: Any) -> errors.JoineryError:
    steps = core().call(asked.pop("method", "GET"), "/v1/runs/1", needs=["status"], **asked)
    next(steps)
    with pytest.raises(errors.JoineryError) as caught:
        steps.send(answer)
    return caught.value


@pytest.mark.parametrize("case", CASES, ids=str)
def test_python(case: Case) -> None:
    [pause] = pauses_of(answer_of(case))
    assert 0 < pause <= case.longest_pause
    error = error_of(answer_of(case))
    assert (type(error).__name__, error.retry_after) == (case.error, case.retry_after) and str(error)


@pytest.mark.parametrize("case", ENDLESS, ids=str)
def test_python_waits_an_hour_at_most(case: Case) -> None:
    [pause] = pauses_of(answer_of(case))
    assert pause <= LONGEST_PAUSE and error_of(answer_of(case))


def test_typescript(ask: Ask) -> None:
    cases = [*CASES, *ENDLESS]
    came = ask("answers", [asdict(case) for case in cases])
    for case, (cursor, pauses, kind, message, retry_after) in zip(cases, came["found"], strict=True):
        assert (cursor, len(pauses)) == ("c1", 1) and 0 < pauses[0] <= case.longest_pause, case
        assert kind == case.error and message, case
        assert case in ENDLESS or retry_after == case.retry_after, case
    assert came["longest"] < 2**31


def test_a_success_that_is_not_read_may_have_changed_something() -> None:
    assert error_of(Answer(200, {}, b"<html>"), method="POST", keyed=True).maybe_done
    error = error_of(Answer(200, {"request-id": "req_1"}, b"<html>Sign in"))
    assert not error.maybe_done and "<html>Sign in" in str(error) and "address" in str(error)


def test_calls_do_not_take_what_followers_outlive() -> None:
    policy = RetryPolicy(retries=3)
    for status in (408, 501, 521):
        steps = Core("http://x", {}, policy).call("GET", "/v1/runs/1")
        next(steps)
        with pytest.raises(errors.JoineryError):
            steps.send(Answer(status))
