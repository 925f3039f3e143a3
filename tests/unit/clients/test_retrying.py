"""When the client sends a request again, how long it waits, and what it raises in the end."""

import json
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from entrypoints.clients.python.runtime import errors
from entrypoints.clients.python.runtime.core import Core
from entrypoints.clients.python.runtime.following import Followed, followed
from entrypoints.clients.python.runtime.retrying import RetryPolicy, call
from entrypoints.clients.python.runtime.steps import Answer, NoResponse, Request, Send, Sleep
from entrypoints.operations.query_string import QueryReader
from tests.support.shipped_clients import described
from tests.support.table import whole
from tests.unit.clients.retry_cases import CASES, Case

KEYED = {"Idempotency-Key": "k"}
READ = Request("GET", "http://x/v1/sources?limit=1", {})
POST = Request("POST", "http://x/v1/sources", KEYED)
KEYLESS = Request("POST", "http://x/v1/sources/src_1/test", {})
PATCH = Request("PATCH", "http://x/v1/sources/src_1", {"If-Match": '"1"'})
DELETE = Request("DELETE", "http://x/v1/webhook-endpoints/whe_1", {})
CUT, NEVER_SENT = NoResponse(OSError("cut"), sent=True), NoResponse(OSError("refused"), sent=False)


def refused(status: int, code: str = "", **headers: str) -> Answer:
    problem = {
        "code": code or None,
        "detail": "No.",
        "status": status,
        "request_id": "req_1",
        "doc_url": f"https://x/errors/{code}",
    }
    return Answer(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps(problem).encode()
    )


def played(steps: Generator[Any, Any, Any], *outcomes: Any) -> tuple[Any, list[float], int]:
    """What came of it, the pauses, and how often it was sent."""
    pauses: list[float] = []
    left, result, sent = list(outcomes), None, 0
    try:
        while True:
            step = steps.send(result)
            result = None
            if isinstance(step, Sleep):
                pauses.append(step.seconds)
            else:
                assert isinstance(step, Send)
                sent += 1
                result = left.pop(0)
    except StopIteration as end:
        return end.value, pauses, sent
    except errors.JoineryError as error:
        return error, pauses, sent


WELL = Answer(200, {}, b"{}")


def outcome_of(outcome: dict[str, Any]) -> Any:
    if "status" not in outcome:
        return CUT if outcome["sent"] else NEVER_SENT
    return refused(outcome["status"], outcome["code"]) if outcome["code"] else Answer(outcome["status"], {}, b"<html>")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_sent_again(case: Case) -> None:
    request = Request(case.method, "http://x/v1/sources", case.headers)
    result, _, sent = played(call(request, RetryPolicy()), outcome_of(case.outcome), WELL)
    assert (sent, result == WELL) == ((2, True) if case.again else (1, False))


def test_pauses_grow() -> None:
    answer, pauses, sent = played(call(READ, RetryPolicy()), CUT, CUT, WELL)
    assert (answer, sent) == (WELL, 3) and 0.25 <= pauses[0] <= 0.5 and 0.5 <= pauses[1] <= 1.0


def test_retry_after_is_obeyed_and_bounded() -> None:
    assert played(call(READ, RetryPolicy()), refused(429, retry_after="7"), WELL)[1] == [7.0]
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=9), usegmt=True)
    assert 7 < played(call(READ, RetryPolicy()), refused(503, retry_after=later), WELL)[1][0] <= 9
    error, pauses, _ = played(call(READ, RetryPolicy()), refused(429, "quota_exceeded", retry_after="1"))
    assert isinstance(error, errors.RateLimited) and pauses == [] and error.retry_after == 1
    _, pauses, sent = played(call(READ, RetryPolicy()), *[refused(429, retry_after="25")] * 3)
    assert (pauses, sent) == ([25.0, 25.0], 3)  # the third wait would go beyond a minute


def test_retries_are_counted_and_a_follower_has_no_end() -> None:
    error, _, sent = played(call(READ, RetryPolicy(retries=2, initial_delay=0)), *[CUT] * 3)
    assert isinstance(error, errors.ConnectionFailed) and sent == 3 and error.__cause__ is CUT.error
    assert played(call(READ, RetryPolicy(retries=0)), CUT)[2] == 1
    answer, pauses, _ = played(call(READ, RetryPolicy(retries=None, max_delay=30)), *[CUT] * 200, WELL)
    assert answer == WELL and max(pauses) <= 30


@pytest.mark.parametrize(
    ("request_", "outcomes", "maybe"),
    [
        (PATCH, (CUT, refused(412, "precondition_failed")), True),
        (PATCH, (NEVER_SENT, refused(412, "precondition_failed")), False),
        (PATCH, (refused(429), refused(412, "precondition_failed")), False),
        (PATCH, (refused(502), refused(412, "precondition_failed")), True),
        (DELETE, (CUT, refused(404, "not_found")), True),
        (POST, (CUT, refused(422, "unprocessable")), False),  # the key's own outcome
        (POST, (CUT, refused(401)), True),  # refused before the key was looked at
        (POST, (CUT,) * 5, True),
        (POST, (NEVER_SENT,) * 5, False),
        (KEYLESS, (CUT,), True),
        (READ, (CUT,) * 5, False),
        (Request("POST", "http://x", {**KEYED, "Service-Dry-Run": "true"}), (CUT,) * 5, False),
    ],
)
def test_a_lost_success_is_not_shown_as_a_failure(request_: Request, outcomes: Any, maybe: bool) -> None:
    error, _, _ = played(call(request_, RetryPolicy(initial_delay=0)), *outcomes)
    assert error.maybe_done is maybe
    assert ("may have been carried out" in str(error)) is maybe


def test_an_error_tells_all_that_helps() -> None:
    problem = {"code": "invalid_request", "detail": "One field is wrong.", "request_id": "req_1",
               "doc_url": "https://x/errors/invalid_request", "errors": [{"field": "price", "code": "too_small", "detail": "Below 0."}]}  # fmt: skip
    error = errors.refusal(Answer(400, {}, json.dumps(problem).encode()))
    assert isinstance(error, errors.InvalidRequest)
    assert str(error) == (
        "400 invalid_request: One field is wrong. (price: Below 0.) · https://x/errors/invalid_request · req_1"
    )
    assert (error.code, error.errors, error.request_id) == ("invalid_request", problem["errors"], "req_1")


def test_a_follower_hears_how_to_begin_again() -> None:
    asked = Followed("old", None, None, None, 25, 1000)
    error, pauses, _ = played(followed(core(), asked), CUT, refused(410, "cursor_expired"))
    assert isinstance(error, errors.CursorExpired) and "take changes.now()" in str(error) and len(pauses) == 1


def test_a_file_whose_first_try_broke_is_sent_again() -> None:
    put = Request("PUT", "http://x/objects/1", {}, file=Path("feed.csv"))
    assert played(call(put, RetryPolicy()), CUT, refused(409, "conflict"), WELL)[0] == WELL
    assert played(call(PATCH, RetryPolicy()), refused(409, "conflict"))[2] == 1


def test_whoever_asks_to_wait_is_waited_for() -> None:
    step = next(core().call("GET", "/v1/changes", query={"wait": 30}))
    assert isinstance(step, Send) and step.request.wait == 30
    asked = Followed("now", None, None, None, 25, 1000)
    steps = followed(core(), asked)
    first = next(steps)
    assert isinstance(first, Send) and first.request.wait == 0  # what is there comes at once
    steps.send(Answer(200, {}, b'{"data": [], "next_cursor": "c1", "caught_up": true}'))
    second = steps.send(None)
    assert isinstance(second, Send) and second.request.wait == 25 and "wait=25" in second.request.url


def test_no_key_is_shown_by_accident() -> None:
    assert "Bearer" not in repr(core()) + repr(sent_by(body={}))


@pytest.mark.parametrize("content", [b"", b"<html>Bad gateway", b"[1]", b"\xff\xfe", b'"text"'])
def test_what_is_no_problem_document_is_an_error_all_the_same(content: bytes) -> None:
    error = errors.refusal(Answer(502, {"request-id": "req_9"}, content))
    assert isinstance(error, errors.ServerError) and error.code is None and error.request_id == "req_9" and error.detail


def test_every_status_of_the_service_has_its_error() -> None:
    statuses = {
        int(status) for item in described()["paths"].values() for one in item.values() for status in one["responses"]
    }
    for status in sorted(one for one in statuses if one >= 400):
        assert type(errors.refusal(refused(status))) is not errors.JoineryError, status


def core() -> Core:
    return Core("http://x", {"Authorization": "Bearer k"}, RetryPolicy())


def sent_by(**options: Any) -> Request:
    step = next(core().call("PATCH", "/v1/sources/{}", ("src_1",), **options))
    assert isinstance(step, Send)
    return step.request


def test_headers_of_calls() -> None:
    assert sent_by(if_match=7).headers["If-Match"] == '"7"'
    assert sent_by(if_match='"7-ab"').headers["If-Match"] == '"7-ab"'
    assert sent_by(dry_run=True).headers["Service-Dry-Run"] == "true"
    assert sent_by(dry_run=True, explain=True).headers["Service-Dry-Run"] == "explain"
    assert sent_by(keyed=True, idempotency_key="mine").headers["Idempotency-Key"] == "mine"
    assert sent_by(keyed=True).headers["Idempotency-Key"] != sent_by(keyed=True).headers["Idempotency-Key"]
    assert "Idempotency-Key" not in sent_by(body={"a": 1}).headers and sent_by(body={}).content == b"{}"


def test_addresses_of_calls() -> None:
    at = datetime(2026, 11, 20, 14, 8, tzinfo=UTC)
    query = {"q": "oak & ash", "none": None, "since": at, "types": ["a", "b"], "more": True}
    assert core().url("/v1/x/{}/y", ["a/b?c"], query) == (
        "http://x/v1/x/a%2Fb%3Fc/y?q=oak+%26+ash&since=2026-11-20T14%3A08%3A00.000Z&types=a%2Cb&more=true"
    )
    for id in ("", ".", ".."):
        with pytest.raises(ValueError, match="empty"):
            core().url("/v1/x/{}", [id], None)
    with pytest.raises(ValueError, match="time zone"):
        core().url("/v1/x", [], {"since": datetime(2026, 11, 20)})


def test_values_of_lists_come_through_whole() -> None:
    """What the client writes is what the service reads, whatever signs codes have."""
    operation = next(row for row in whole() if row.id == "catalogue.list_offers")
    codes = ["A-1", "4,5 mm", "back\\slash", "\\,", "a b&c=d", "é"]
    url = Core("http://x", {}, RetryPolicy()).url("/v1/offers", (), {"sku": codes})
    values, faults = QueryReader(operation).read(url.partition("?")[2])
    assert (values, faults) == ({"sku": codes}, ())
