"""Hostile text in every part of a request, on every operation: refused or stored, without an internal error."""

import base64
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from entrypoints.operations.operation import Operation
from entrypoints.operations.query_string import list_query_parameters
from ports.limits import RateLimits
from tests.support.memory.limits import UnlimitedRates
from tests.tenancy.application import (
    OPERATIONS,
    ServedApplication,
    build_body,
    build_path,
    call_operation,
    serve_application,
)
from tests.tenancy.test_every_operation import LISTS, create_tenancy

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
TAKING = [
    row for row in OPERATIONS if any(given.get("format") == "cursor" for given in list_query_parameters(row).values())
]
HOSTILE = (
    "%00", "a%00b", "%ff", "%ed%a0%80", "%c0%80", "%f4%90%80%80", "%", "%zz", "%u0000", "+", "%20", "x" * 2000, "é".encode().hex(),
    "%c3%a9", "%e2%80%ae", "%5c%75%30%30%30%30", "%5c", "%27%22%3b--", "%25", "null", "[]", "%7b%7d", "0", "-1", "1" * 400,
)  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def application(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServedApplication]:
    """Yield an application without rate limits."""
    folder = tmp_path_factory.mktemp("world")
    async with serve_application(folder, lambda container: container.__setitem__(RateLimits, UnlimitedRates())) as made:
        yield made


def build_cursors(given: str) -> list[str]:
    """Return percent-encoded texts that are no valid cursors, some derived from a valid one."""
    other = base64.urlsafe_b64encode(json.dumps({"id": "prod_1"}).encode()).decode()
    made = [*HOSTILE, "", "=", "A===", other, base64.urlsafe_b64encode(b"\0" * 40).decode(), "A" * 1025, "%41" * 2500]
    if given:
        made += [given + "%00", "%00" + given, given + "=", given[:-2], given.swapcase(), "%20" + given, given + "%0a"]
    return made


def test_every_list_and_feed_is_covered() -> None:
    assert {row.id for row in LISTS} < {row.id for row in TAKING}
    assert {"changes.page", "changes.stream"} <= {row.id for row in TAKING}


@pytest.mark.parametrize("operation", TAKING, ids=lambda row: row.id)
async def test_arbitrary_text_is_an_invalid_cursor(application: ServedApplication, operation: Operation) -> None:
    mine, theirs = await create_tenancy(application), await create_tenancy(application)
    names = [name for name, given in list_query_parameters(operation).items() if given.get("format") == "cursor"]
    foreign = ""
    if not operation.is_stream:
        foreign = (await call_operation(theirs.choose_client(operation), operation, theirs.ids)).json()[
            "next_cursor"
        ] or ""
    feed = (await theirs.client.get("/v1/changes")).json()["next_cursor"]
    for name in names:
        for text in [*build_cursors(feed), *([foreign] if foreign else []), feed]:
            answer = await call_operation(mine.choose_client(operation), operation, mine.ids, f"?{name}={text}")
            assert answer.status == 400, (text, answer.body)
            assert answer.faults == {(f"query.{name}", "invalid_cursor")}, (text, answer.body)


async def test_hostile_last_event_ids_are_refused(application: ServedApplication) -> None:
    mine = await create_tenancy(application)
    for text in ("\x01", "x", "\xff\xfe", "a" * 60_000, "null", "=", "\\u0000"):
        answer = await mine.client.get("/v1/stream", last_event_id=text)
        assert answer.faults == {("header.Last-Event-ID", "invalid_cursor")}, text


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda row: row.id)
async def test_parameters(application: ServedApplication, operation: Operation) -> None:
    mine = await create_tenancy(application)
    for text in HOSTILE:
        for name in [*list_query_parameters(operation), quote("no\0such"), text]:
            answer = await mine.client.send(
                operation.method, build_path(operation, mine.ids) + f"?{name}={text}", **_build_request(operation)
            )
            assert answer.status < 500, (name, text, answer.body)


@pytest.mark.parametrize("operation", [row for row in OPERATIONS if row.ids], ids=lambda row: row.id)
async def test_ids(application: ServedApplication, operation: Operation) -> None:
    mine = await create_tenancy(application)
    for text in HOSTILE:
        for name, prefix in operation.ids.items():
            for given in (text, f"{prefix}_{text}", (mine.ids[prefix] + text), mine.ids[prefix][:-1] + text):
                if given == mine.ids[prefix]:
                    continue
                path = build_path(operation, mine.ids).replace(mine.ids[prefix], given)
                answer = await mine.choose_client(operation).send(operation.method, path, **_build_request(operation))
                assert answer.status in (400, 404, 405), (name, given, answer.status, answer.body)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda row: row.id)
async def test_headers(application: ServedApplication, operation: Operation) -> None:
    mine = await create_tenancy(application)
    for text in (
        "\\u0000",
        "\\",
        "\xff\xfe",
        "\x80",
        "x" * 60_000,
        '"',
        '"' * 5000,
        ", " * 5000,
        "W/" * 9000,
        "\\ud800",
    ):
        for name in ("user-agent", "if-match", "if-none-match", "request-id", "idempotency-key", "content-type", "x-forwarded-for",
                     "service-version", "service-mode", "service-dry-run", "origin", "last-event-id", "accept"):  # fmt: skip
            sent = _build_request(operation)
            sent["headers"][name] = text
            answer = await mine.client.send(operation.method, build_path(operation, mine.ids), **sent)
            assert answer.status < 500, (name, text[:20], answer.body)


def _build_request(operation: Operation) -> dict[str, Any]:
    headers = {"service-dry-run": "true"} if operation.is_write else {}
    if operation.requires_if_match:
        headers["if-match"] = "*"
    if operation.requires_idempotency_key:
        headers["idempotency-key"] = "k"
    body = build_body(operation)
    if body is None:
        return {"headers": headers}
    return {"headers": {**headers, "content-type": "application/json"}, "body": json.dumps(body).encode()}
