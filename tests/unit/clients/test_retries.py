"""When the client sends a request again, how long it waits, and what it raises in the end."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from entrypoints.clients.python.runtime import errors
from entrypoints.clients.python.runtime.async_core import AsyncCore
from entrypoints.clients.python.runtime.async_groups import AsyncFollowChanges
from entrypoints.clients.python.runtime.calls import ApiRequest, RetryPolicy, build_url
from entrypoints.operations.query_string import QueryParser
from tests.support.shipped_clients import described
from tests.support.table import whole
from tests.unit.clients.retry_cases import CASES, Case

KEYED = {"Idempotency-Key": "k"}
READ = ApiRequest("GET", "http://x/v1/sources?limit=1", {})
POST = ApiRequest("POST", "http://x/v1/sources", KEYED)
KEYLESS = ApiRequest("POST", "http://x/v1/sources/src_1/test", {})
PATCH = ApiRequest("PATCH", "http://x/v1/sources/src_1", {"If-Match": '"1"'})
DELETE = ApiRequest("DELETE", "http://x/v1/webhook-endpoints/whe_1", {})
CUT, NEVER_SENT = httpx.ReadError("cut"), httpx.ConnectError("refused")


def answer(status: int, content: bytes = b"", **headers: str) -> httpx.Response:
    return httpx.Response(
        status, headers={name.replace("_", "-"): text for name, text in headers.items()}, content=content
    )


def refused(status: int, code: str = "", **headers: str) -> httpx.Response:
    problem = {
        "code": code or None,
        "detail": "No.",
        "status": status,
        "request_id": "req_1",
        "doc_url": f"https://x/errors/{code}",
    }
    return answer(status, json.dumps(problem).encode(), **headers)


class Played(AsyncCore):
    """A core whose requests come to these outcomes, and that waits for nothing."""

    def __init__(self, *outcomes: Any, policy: RetryPolicy | None = None) -> None:
        self.outcomes, self.pauses, self.sent = list(outcomes), list[float](), list[httpx.Request]()
        super().__init__(
            "http://x", "k", version="v", agent="tests", policy=policy, transport=httpx.MockTransport(self._next)
        )

    def _next(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return httpx.Response(outcome.status_code, headers=outcome.headers, content=outcome.content)

    async def _pause(self, seconds: float, reason: Exception, failed_tries: int) -> None:
        self.pauses.append(seconds)

    def result(self, call: Callable[["Played"], Awaitable[Any]]) -> Any:
        """What came of the call: its value, or the error."""

        async def awaited() -> Any:
            try:
                return await call(self)
            except errors.JoineryError as error:
                return error

        return asyncio.run(awaited())


def played(request: ApiRequest, policy: RetryPolicy, *outcomes: Any) -> tuple[Any, list[float], int]:
    """What came of it, the pauses, and how often it was sent."""
    core = Played(*outcomes, policy=policy)
    found = core.result(lambda core: core.send(request))
    return found.status_code if isinstance(found, httpx.Response) else found, core.pauses, len(core.sent)


WELL = answer(200, b"{}")


def outcome_of(outcome: dict[str, Any]) -> Any:
    if "status" not in outcome:
        return CUT if outcome["sent"] else NEVER_SENT
    return refused(outcome["status"], outcome["code"]) if outcome["code"] else answer(outcome["status"], b"<html>")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_sent_again(case: Case) -> None:
    request = ApiRequest(case.method, "http://x/v1/sources", case.headers)
    result, _, sent = played(request, RetryPolicy(), outcome_of(case.outcome), WELL)
    assert (sent, result == 200) == ((2, True) if case.again else (1, False))


def test_pauses_grow() -> None:
    found, pauses, sent = played(READ, RetryPolicy(), CUT, CUT, WELL)
    assert (found, sent) == (200, 3) and 0.25 <= pauses[0] <= 0.5 and 0.5 <= pauses[1] <= 1.0


def test_retry_after_is_obeyed_and_bounded() -> None:
    assert played(READ, RetryPolicy(), refused(429, retry_after="7"), WELL)[1] == [7.0]
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=9), usegmt=True)
    assert 7 < played(READ, RetryPolicy(), refused(503, retry_after=later), WELL)[1][0] <= 9
    error, pauses, _ = played(READ, RetryPolicy(), refused(429, "quota_exceeded", retry_after="1"))
    assert isinstance(error, errors.RateLimited) and pauses == [] and error.retry_after == 1
    _, pauses, sent = played(READ, RetryPolicy(), *[refused(429, retry_after="25")] * 3)
    assert (pauses, sent) == ([25.0, 25.0], 3)  # the third wait would go beyond a minute


def test_retries_are_counted_and_a_follower_has_no_end() -> None:
    error, _, sent = played(READ, RetryPolicy(retries=2, initial_delay=0), *[CUT] * 3)
    assert isinstance(error, errors.ConnectionFailed) and sent == 3 and error.__cause__ is CUT
    assert played(READ, RetryPolicy(retries=0), CUT)[2] == 1
    found, pauses, _ = played(
        READ, RetryPolicy(retries=None, max_delay=30, max_total_delay=math.inf), *[CUT] * 200, WELL
    )
    assert found == 200 and max(pauses) <= 30


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
        (ApiRequest("POST", "http://x", {**KEYED, "Service-Dry-Run": "true"}), (CUT,) * 5, False),
    ],
)
def test_a_lost_success_is_not_shown_as_a_failure(request_: ApiRequest, outcomes: Any, maybe: bool) -> None:
    error, _, _ = played(request_, RetryPolicy(initial_delay=0), *outcomes)
    assert error.maybe_done is maybe
    assert ("unknown whether the change was made" in str(error)) is maybe


def test_an_error_message_contains_all_useful_details() -> None:
    problem = {"code": "invalid_request", "detail": "One field is wrong.", "request_id": "req_1",
               "doc_url": "https://x/errors/invalid_request", "errors": [{"field": "price", "code": "too_small", "detail": "Below 0."}]}  # fmt: skip
    error = errors.build_response_error(answer(400, json.dumps(problem).encode()))
    assert isinstance(error, errors.InvalidRequest)
    assert str(error) == (
        "400 invalid_request: One field is wrong. (price: Below 0.) · https://x/errors/invalid_request · req_1"
    )
    assert (error.code, error.errors, error.request_id) == ("invalid_request", problem["errors"], "req_1")


def test_a_follower_is_shown_how_to_restart() -> None:
    core = Played(CUT, refused(410, "cursor_expired"))
    error = core.result(lambda core: anext(AsyncFollowChanges[Any](core).follow("old").pages()))
    assert isinstance(error, errors.CursorExpired) and "call changes.now()" in str(error) and len(core.pauses) == 1


def test_a_file_whose_first_try_broke_is_sent_again(tmp_path: Path) -> None:
    (tmp_path / "feed.csv").touch()
    put = ApiRequest("PUT", "http://x/objects/1", {}, file=tmp_path / "feed.csv")
    assert played(put, RetryPolicy(), CUT, refused(409, "conflict"), WELL)[0] == 200
    assert played(PATCH, RetryPolicy(), refused(409, "conflict"))[2] == 1


def test_the_read_timeout_includes_the_requested_wait() -> None:
    def patience(request: httpx.Request) -> float:
        return request.extensions["timeout"]["read"] - request.extensions["timeout"]["connect"]

    core = Played(WELL)
    core.result(lambda core: core.call("GET", "/v1/changes", query={"wait": 30}))
    assert patience(core.sent[0]) == 30
    core = Played(*[answer(200, b'{"data": [], "next_cursor": "c1", "caught_up": true}')] * 2)

    async def followed(core: AsyncCore) -> None:
        pages = AsyncFollowChanges[Any](core).follow("now").pages()
        await anext(pages)
        await anext(pages)

    core.result(followed)
    assert [patience(one) for one in core.sent] == [0, 25]  # what is there comes at once
    assert core.sent[1].url.params["wait"] == "25"


def test_no_key_is_shown_by_accident() -> None:
    assert "Bearer" not in repr(Played()) + repr(ApiRequest("GET", "http://x", Played().headers))


@pytest.mark.parametrize("content", [b"", b"<html>Bad gateway", b"[1]", b"\xff\xfe", b'"text"'])
def test_what_is_no_problem_document_is_an_error_all_the_same(content: bytes) -> None:
    error = errors.build_response_error(answer(502, content, request_id="req_9"))
    assert isinstance(error, errors.ServerError) and error.code is None and error.request_id == "req_9" and error.detail


def test_every_status_of_the_service_has_its_error() -> None:
    statuses = {
        int(status) for item in described()["paths"].values() for one in item.values() for status in one["responses"]
    }
    for status in sorted(one for one in statuses if one >= 400):
        assert type(errors.build_response_error(refused(status))) is not errors.JoineryError, status


def sent_by(**options: Any) -> httpx.Request:
    core = Played(WELL)
    core.result(lambda core: core.call("PATCH", "/v1/sources/{}", ("src_1",), **options))
    return core.sent[0]


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
    assert build_url("http://x", "/v1/x/{}/y", ["a/b?c"], query) == (
        "http://x/v1/x/a%2Fb%3Fc/y?q=oak+%26+ash&since=2026-11-20T14%3A08%3A00.000Z&types=a%2Cb&more=true"
    )
    for id in ("", ".", ".."):
        with pytest.raises(ValueError, match="empty"):
            build_url("http://x", "/v1/x/{}", [id])
    with pytest.raises(ValueError, match="time zone"):
        build_url("http://x", "/v1/x", query={"since": datetime(2026, 11, 20)})


def test_values_of_lists_come_through_whole() -> None:
    """What the client writes is what the service reads, whatever signs codes have."""
    operation = next(row for row in whole() if row.id == "catalogue.list_offers")
    codes = ["A-1", "4,5 mm", "back\\slash", "\\,", "a b&c=d", "é"]
    url = build_url("http://x", "/v1/offers", query={"sku": codes})
    values, faults = QueryParser(operation).parse(url.partition("?")[2])
    assert (values, faults) == ({"sku": codes}, ())
