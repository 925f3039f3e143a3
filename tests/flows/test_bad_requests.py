"""Invalid requests: each gets a specific error, and nothing is stored."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from domain.kernel.ids import new_id
from tests.flows.feeds import build_record
from tests.flows.in_process_service import InProcessService, open_service
from tests.http.client import Response

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[InProcessService]:
    """Run the service in this process."""
    async with open_service(tmp_path) as in_process_service:
        yield in_process_service


async def _post(
    service: InProcessService, body: bytes, content_type: str = "application/json", path: str = "/v1/sources"
) -> Response:
    headers = {"content-type": content_type, "idempotency-key": new_id("req")}
    return await service.client.send("POST", path, body=body, headers=headers)


GOOD = b'{"name": "A", "kind": "push"}'


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid_request"),
        (b"{", 400, "invalid_request"),
        (b'{"name": "\xff", "kind": "push"}', 400, "invalid_request"),
        (b"\xef\xbb\xbf" + GOOD, 400, "invalid_request"),
        (GOOD.decode().encode("utf-16"), 400, "invalid_request"),
        (b'{"name": "A", "name": "B", "kind": "push"}', 400, "invalid_request"),
        (b'{"name": NaN, "kind": "push"}', 400, "invalid_request"),
        (b'{"name": "A", "kind": "push", "schedule": {"interval_minutes": Infinity}}', 400, "invalid_request"),
        (b'{"name": "\\ud800", "kind": "push"}', 400, "invalid_request"),
        (b'{"name": "A\\u0000", "kind": "push"}', 400, "invalid_request"),
        (b'{"name": "A", "kind": "push", "config": ' + b'{"a":' * 40 + b"1" + b"}" * 41, 400, "invalid_request"),
        (b"[" * 200_000, 400, "invalid_request"),
        (b'{"name": "A", "kind": "push", "colour": 1}', 400, "invalid_request"),
        (b'{"name": "A", "kind": "push", "name2": null}', 400, "invalid_request"),
        (b'{"name": null, "kind": "push"}', 400, "invalid_request"),
        (b'{"name": "A", "kind": "telepathy"}', 400, "invalid_request"),
        (b'{"name": "A", "kind": "url"}', 400, "invalid_request"),
        (b'{"name": "' + b"a" * (2 << 20) + b'", "kind": "push"}', 413, "payload_too_large"),
        (b'{"name": ' + b"9" * 5000 + b', "kind": "push"}', 400, "invalid_request"),
    ],
    ids=["empty", "cut", "utf8", "bom", "utf16", "twice", "nan", "infinity", "surrogate", "nul", "deep", "brackets",
         "unknown", "unknown-null", "null", "kind", "no-url", "2MiB", "digits"],
)  # fmt: skip
async def test_bodies(service: InProcessService, body: bytes, status: int, code: str) -> None:
    answer = await _post(service, body)
    assert (answer.status, answer.code) == (status, code), answer.body
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["request_id"] == answer.headers["request-id"] and problem["detail"]
    if status == 400:
        assert problem["errors"] and all(set(entry) == {"field", "code", "detail"} for entry in problem["errors"])
    assert (await service.client.get("/v1/sources")).json()["data"] == []


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/xml", "multipart/form-data", "application/json; charset=latin1", ""]
)
async def test_media_types(service: InProcessService, content_type: str) -> None:
    answer = await _post(service, GOOD, content_type)
    assert (answer.status, answer.code) == (415, "unsupported_media_type")


async def test_record_bodies_are_limited_to_five_mebibytes(service: InProcessService) -> None:
    source = await service.create_source("push", config={"currency": "usd"})
    path = f"/v1/sources/{source}/records"
    long = build_record("A")
    long["product"]["description"] = "x" * 90_000
    records = [long] * 30
    assert (await _post(service, json.dumps({"records": records}).encode(), path=path)).status == 202
    answer = await _post(service, json.dumps({"records": records * 2}).encode(), path=path)
    assert (answer.status, answer.code) == (413, "payload_too_large")


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=101", "limit=-1", "limit=ten", "limit=1.5", "limit=1e1", "limit=", "limit=1&limit=2",
        "limit=9" + "9" * 400, "color=red", "status=broken", "brand=", "brand=" + "a" * 201, "q=a", "q=" + "a" * 101,
        "updated_since=yesterday", "updated_since=2026-13-01T00:00:00Z", "category=prod_" + "0" * 22, "source=1",
        "starting_after=nonsense", "ending_before=x", "limit=%ff", "q=%ed%a0%80", "q=a%00b", "availability=maybe",
    ],
)  # fmt: skip
async def test_queries(service: InProcessService, query: str) -> None:
    answer = await service.client.get(f"/v1/products?{query}")
    assert (answer.status, answer.code) == (400, "invalid_request"), (query, answer.body)
    name = query.partition("=")[0]
    assert {field.removesuffix(".0") for field, _ in answer.faults} == {f"query.{name}"}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/products/src_" + "0" * 22, 404), ("/v1/products/prod_", 404), ("/v1/products/" + "a" * 3000, 404),
        ("/v1/products/prod_%00" + "0" * 21, 404), ("/v1/nothing", 404), ("/v1/", 404), ("/v1//products", 404),
        ("/v1/products/", 404), ("/v1/products/../sources", 404), ("/v1/runs/prod_" + "0" * 22, 404),
    ],
)  # fmt: skip
async def test_paths(service: InProcessService, path: str, status: int) -> None:
    answer = await service.client.get(path)
    assert (answer.status, answer.code) == (status, "not_found"), answer.body
    assert (await service.client.send("DELETE", "/v1/products")).status == 405


@pytest.mark.parametrize("key", ["", " ", "k" * 258, '"unclosed', "\xe9", "a\tb"])
async def test_idempotency_keys(service: InProcessService, key: str) -> None:
    answer = await service.client.post("/v1/sources", {"name": "A", "kind": "push"}, idempotency_key=key)
    if key == '"unclosed':
        assert answer.status in (201, 400)
        return
    assert answer.status == 400 and {field for field, _ in answer.faults} == {"header.Idempotency-Key"}


async def test_if_match(service: InProcessService) -> None:
    source = await service.create_source("push")
    path, change = f"/v1/sources/{source}", {"name": "B"}

    async def patched(**headers: str) -> Any:
        answer = await service.client.send_json("PATCH", path, change, **headers)
        return answer.status, answer.code if answer.status != 200 else None

    assert await patched() == (428, "precondition_required")
    assert await patched(if_match='"99-x"') == (412, "precondition_failed")
    assert await patched(if_match='W/"1-x"') == (412, "precondition_failed")
    assert await patched(if_match="1") == (400, "invalid_request")
    assert await patched(if_match='"1-x"') == (200, None)
    assert await patched(if_match='"1-x"') == (412, "precondition_failed")
    assert await patched(if_match='"1-x", "2-y"') == (200, None)
