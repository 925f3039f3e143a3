"""Retries of the client: when a request is sent again, the delays, and the final error."""

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
from tests.support.operation_table import load_operation_table
from tests.support.shipped_clients import load_description
from tests.unit.clients.retry_cases import CASES, RetryCase

KEYED = {"Idempotency-Key": "k"}
READ = ApiRequest("GET", "http://x/v1/sources?limit=1", {})
POST = ApiRequest("POST", "http://x/v1/sources", KEYED)
KEYLESS = ApiRequest("POST", "http://x/v1/sources/src_1/test", {})
PATCH = ApiRequest("PATCH", "http://x/v1/sources/src_1", {"If-Match": '"1"'})
DELETE = ApiRequest("DELETE", "http://x/v1/webhook-endpoints/whe_1", {})
CUT, NEVER_SENT = httpx.ReadError("cut"), httpx.ConnectError("refused")


def build_response(status: int, content: bytes = b"", **headers: str) -> httpx.Response:
    return httpx.Response(
        status, headers={name.replace("_", "-"): text for name, text in headers.items()}, content=content
    )


def build_error_response(status: int, code: str = "", **headers: str) -> httpx.Response:
    problem = {
        "code": code or None,
        "detail": "No.",
        "status": status,
        "request_id": "req_1",
        "doc_url": f"https://x/errors/{code}",
    }
    return build_response(status, json.dumps(problem).encode(), **headers)


class ScriptedCore(AsyncCore):
    """Core that receives the given outcomes and does not wait."""

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

    def run(self, call: Callable[["ScriptedCore"], Awaitable[Any]]) -> Any:
        """Return the value of the call, or its error."""

        async def run() -> Any:
            try:
                return await call(self)
            except errors.JoineryError as error:
                return error

        return asyncio.run(run())


def send_request(request: ApiRequest, policy: RetryPolicy, *outcomes: Any) -> tuple[Any, list[float], int]:
    """Return the result, the delays and the number of attempts."""
    core = ScriptedCore(*outcomes, policy=policy)
    found = core.run(lambda core: core.send(request))
    return found.status_code if isinstance(found, httpx.Response) else found, core.pauses, len(core.sent)


OK = build_response(200, b"{}")


def create_outcome(outcome: dict[str, Any]) -> Any:
    if "status" not in outcome:
        return CUT if outcome["sent"] else NEVER_SENT
    return (
        build_error_response(outcome["status"], outcome["code"])
        if outcome["code"]
        else build_response(outcome["status"], b"<html>")
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_requests_are_retried_by_outcome(case: RetryCase) -> None:
    request = ApiRequest(case.method, "http://x/v1/sources", case.headers)
    result, _, sent = send_request(request, RetryPolicy(), create_outcome(case.outcome), OK)
    assert (sent, result == 200) == ((2, True) if case.is_retried else (1, False))


def test_delays_grow() -> None:
    found, pauses, sent = send_request(READ, RetryPolicy(), CUT, CUT, OK)
    assert (found, sent) == (200, 3) and 0.25 <= pauses[0] <= 0.5 and 0.5 <= pauses[1] <= 1.0


def test_retry_after_is_obeyed_and_bounded() -> None:
    assert send_request(READ, RetryPolicy(), build_error_response(429, retry_after="7"), OK)[1] == [7.0]
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=9), usegmt=True)
    assert 7 < send_request(READ, RetryPolicy(), build_error_response(503, retry_after=later), OK)[1][0] <= 9
    error, pauses, _ = send_request(READ, RetryPolicy(), build_error_response(429, "quota_exceeded", retry_after="1"))
    assert isinstance(error, errors.RateLimited) and pauses == [] and error.retry_after == 1
    _, pauses, sent = send_request(READ, RetryPolicy(), *[build_error_response(429, retry_after="25")] * 3)
    assert (pauses, sent) == ([25.0, 25.0], 3)  # a third delay would exceed one minute


def test_retries_are_limited_except_for_followers() -> None:
    error, _, sent = send_request(READ, RetryPolicy(retries=2, initial_delay=0), *[CUT] * 3)
    assert isinstance(error, errors.ConnectionFailed) and sent == 3 and error.__cause__ is CUT
    assert send_request(READ, RetryPolicy(retries=0), CUT)[2] == 1
    found, pauses, _ = send_request(
        READ, RetryPolicy(retries=None, max_delay=30, max_total_delay=math.inf), *[CUT] * 200, OK
    )
    assert found == 200 and max(pauses) <= 30


@pytest.mark.parametrize(
    ("request_", "outcomes", "maybe"),
    [
        (PATCH, (CUT, build_error_response(412, "precondition_failed")), True),
        (PATCH, (NEVER_SENT, build_error_response(412, "precondition_failed")), False),
        (PATCH, (build_error_response(429), build_error_response(412, "precondition_failed")), False),
        (PATCH, (build_error_response(502), build_error_response(412, "precondition_failed")), True),
        (DELETE, (CUT, build_error_response(404, "not_found")), True),
        (POST, (CUT, build_error_response(422, "unprocessable")), False),  # outcome of the idempotency key
        (POST, (CUT, build_error_response(401)), True),  # refused before the key was read
        (POST, (CUT,) * 5, True),
        (POST, (NEVER_SENT,) * 5, False),
        (KEYLESS, (CUT,), True),
        (READ, (CUT,) * 5, False),
        (ApiRequest("POST", "http://x", {**KEYED, "Service-Dry-Run": "true"}), (CUT,) * 5, False),
    ],
)
def test_a_lost_success_is_not_shown_as_a_failure(request_: ApiRequest, outcomes: Any, maybe: bool) -> None:
    error, _, _ = send_request(request_, RetryPolicy(initial_delay=0), *outcomes)
    assert error.maybe_done is maybe
    assert ("unknown whether the change was made" in str(error)) is maybe


def test_an_error_message_contains_all_useful_details() -> None:
    problem = {"code": "invalid_request", "detail": "One field is wrong.", "request_id": "req_1",
               "doc_url": "https://x/errors/invalid_request", "errors": [{"field": "price", "code": "too_small", "detail": "Below 0."}]}  # fmt: skip
    error = errors.build_response_error(build_response(400, json.dumps(problem).encode()))
    assert isinstance(error, errors.InvalidRequest)
    assert str(error) == (
        "400 invalid_request: One field is wrong. (price: Below 0.) · https://x/errors/invalid_request · req_1"
    )
    assert (error.code, error.errors, error.request_id) == ("invalid_request", problem["errors"], "req_1")


def test_the_error_of_a_follower_explains_how_to_restart() -> None:
    core = ScriptedCore(CUT, build_error_response(410, "cursor_expired"))
    error = core.run(lambda core: anext(AsyncFollowChanges[Any](core).follow("old").pages()))
    assert isinstance(error, errors.CursorExpired) and "call changes.now()" in str(error) and len(core.pauses) == 1


def test_an_interrupted_upload_is_retried(tmp_path: Path) -> None:
    (tmp_path / "feed.csv").touch()
    put = ApiRequest("PUT", "http://x/objects/1", {}, file=tmp_path / "feed.csv")
    assert send_request(put, RetryPolicy(), CUT, build_error_response(409, "conflict"), OK)[0] == 200
    assert send_request(PATCH, RetryPolicy(), build_error_response(409, "conflict"))[2] == 1


def test_the_read_timeout_includes_the_requested_wait() -> None:
    def get_extra_timeout(request: httpx.Request) -> float:
        return request.extensions["timeout"]["read"] - request.extensions["timeout"]["connect"]

    core = ScriptedCore(OK)
    core.run(lambda core: core.call("GET", "/v1/changes", query={"wait": 30}))
    assert get_extra_timeout(core.sent[0]) == 30
    core = ScriptedCore(*[build_response(200, b'{"data": [], "next_cursor": "c1", "caught_up": true}')] * 2)

    async def follow_pages(core: AsyncCore) -> None:
        pages = AsyncFollowChanges[Any](core).follow("now").pages()
        await anext(pages)
        await anext(pages)

    core.run(follow_pages)
    assert [get_extra_timeout(one) for one in core.sent] == [0, 25]  # the first page does not wait
    assert core.sent[1].url.params["wait"] == "25"


def test_representations_do_not_contain_the_key() -> None:
    assert "Bearer" not in repr(ScriptedCore()) + repr(ApiRequest("GET", "http://x", ScriptedCore().headers))


@pytest.mark.parametrize("content", [b"", b"<html>Bad gateway", b"[1]", b"\xff\xfe", b'"text"'])
def test_invalid_problem_documents_are_errors(content: bytes) -> None:
    error = errors.build_response_error(build_response(502, content, request_id="req_9"))
    assert isinstance(error, errors.ServerError) and error.code is None and error.request_id == "req_9" and error.detail


def test_every_status_of_the_service_has_an_error_class() -> None:
    statuses = {
        int(status)
        for item in load_description()["paths"].values()
        for one in item.values()
        for status in one["responses"]
    }
    for status in sorted(one for one in statuses if one >= 400):
        assert type(errors.build_response_error(build_error_response(status))) is not errors.JoineryError, status


def capture_request(**options: Any) -> httpx.Request:
    core = ScriptedCore(OK)
    core.run(lambda core: core.call("PATCH", "/v1/sources/{}", ("src_1",), **options))
    return core.sent[0]


def test_calls_send_headers() -> None:
    assert capture_request(if_match=7).headers["If-Match"] == '"7"'
    assert capture_request(if_match='"7-ab"').headers["If-Match"] == '"7-ab"'
    assert capture_request(dry_run=True).headers["Service-Dry-Run"] == "true"
    assert capture_request(dry_run=True, explain=True).headers["Service-Dry-Run"] == "explain"
    assert capture_request(keyed=True, idempotency_key="mine").headers["Idempotency-Key"] == "mine"
    assert (
        capture_request(keyed=True).headers["Idempotency-Key"] != capture_request(keyed=True).headers["Idempotency-Key"]
    )
    assert "Idempotency-Key" not in capture_request(body={"a": 1}).headers and capture_request(body={}).content == b"{}"


def test_calls_build_urls() -> None:
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


def test_values_of_lists_round_trip() -> None:
    """The service reads exactly what the client writes, for any characters in the codes."""
    operation = next(row for row in load_operation_table() if row.id == "catalogue.list_offers")
    codes = ["A-1", "4,5 mm", "back\\slash", "\\,", "a b&c=d", "é"]
    url = build_url("http://x", "/v1/offers", query={"sku": codes})
    values, faults = QueryParser(operation).parse(url.partition("?")[2])
    assert (values, faults) == ({"sku": codes}, ())
