"""Large bodies are read in linear time and memory outside the event loop, whatever their content."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from domain.kernel.errors import InvalidRequest
from entrypoints.http.body import SMALL_BODY_BYTES, decode_body, has_many_values, has_more_values
from ports.parsing import ParserFailed, ParserTerminated
from tests.http.application import run_application
from tests.http.client import Client

MIB = 1 << 20
MAX_VALUES = 80_000


def _fill(size: int, head: bytes, unit: bytes, tail: bytes) -> bytes:
    """Build a body of about that size by repeating the unit; `%d` is a counter."""
    if b"%d" not in unit:
        return head + b",".join([unit] * ((size - len(head) - len(tail)) // (len(unit) + 1))) + tail
    return head + b",".join(unit % number for number in range(size // (len(unit) + 6))) + tail


def build_hostile_bodies(size: int) -> dict[str, bytes]:
    """Build the worst body of each kind, of about that size."""
    return {
        "nested lists": b"[" * size,
        "nested objects": b'{"a":' * (size // 5),
        "nested and closed": b"[" * (size // 2) + b"]" * (size // 2),
        "doubled keys": _fill(size, b"{", b'"a":1', b"}"),
        "doubled long keys": _fill(size, b"{", b'"abcdefghij":1.5', b"}"),
        "doubled at the end": _fill(size, b"[", b'"%d......................"', b',{"a":1,"a":2}]'),
        "doubled in each": _fill(size, b"[", b'{"a":1,"a":1}', b"]"),
        "ones": _fill(size, b"[", b"1", b"]"),
        "empty lists": _fill(size, b"[", b"[]", b"]"),
        "empty objects": _fill(size, b"[", b"{}", b"]"),
        "empty texts": _fill(size, b"[", b'""', b"]"),
        "unknown fields": _fill(size, b"{", b'"k%d":0', b"}"),
        "long unknown fields": _fill(size, b"{", b'"k%d%%s":0'.replace(b"%%s", b"x" * 200), b"}"),
        "digits": b"[" + b"9" * (size - 2) + b"]",
        "fraction": b"[0." + b"9" * (size - 4) + b"]",
        "exponents": _fill(size, b"[", b"1e999999999", b"]"),
        "decimals": _fill(size, b"[", b"1.5000000000000000000000", b"]"),
        "escapes": b'["' + b"\\n" * (size // 2) + b'"]',
        "escaped quotes": b'["' + b'\\"' * (size // 2) + b'"]',
        "code points": b'["' + b"\\u00e9" * (size // 6) + b'"]',
        "surrogates": b'["' + b"\\ud83d\\ude00" * (size // 12) + b'"]',
        "a lone one": b'["' + b"\\ud83d\\ude00" * (size // 12) + b'\\ud83d"]',
        "commas in a text": b'["' + b"," * size + b'"]',
        "blanks": b" " * size,
        "an open text": b'"' + b"x" * size,
        "one name": b'{"name":"' + b"x" * size + b'"}',
    }


KINDS = sorted(build_hostile_bodies(100))


def _decode(raw: bytes) -> Any:
    try:
        return decode_body(raw, MAX_VALUES)
    except InvalidRequest as refused:
        return refused.fields


def _measure_seconds(raw: bytes) -> float:
    started = time.process_time()
    _decode(raw)
    return time.process_time() - started


@pytest.mark.parametrize("kind", KINDS)
def test_time_is_linear(kind: str) -> None:
    small, large = build_hostile_bodies(MIB // 4)[kind], build_hostile_bodies(MIB)[kind]
    least = min(_measure_seconds(small) for _ in range(3))
    assert min(_measure_seconds(large) for _ in range(3)) <= 12 * max(least, 0.005)


@pytest.mark.parametrize("size", [1000, 2 * SMALL_BODY_BYTES])
@pytest.mark.parametrize(
    ("body", "path", "code"),
    [
        ('{"pad":%s,"a":{"b":[1,{"c":1,"c":2}]}}', "a.b.1.c", "duplicate"),
        ('{"a":1,"pad":%s,"a":1}', "a", "duplicate"),
        ('{"pad":%s,"a":[{"b":"x\\ud800"}]}', "a.0.b", "invalid_value"),
        ('{"pad":%s,"a":[{"b\\u0000":"x"}]}', "a.0", "invalid_value"),
        ('{"pad":%s,"a":1e31}', "body", "invalid_value"),
        ('{"pad":%s,"a":NaN}', "body", "invalid_value"),
        ('{"pad":%s,"a":' + "[" * 33 + "]" * 33 + "}", "body", "too_large"),
        ('{"pad":%s', "body", "invalid_format"),
    ],
)
def test_errors_are_reported_in_bodies_of_any_size(size: int, body: str, path: str, code: str) -> None:
    raw = (body % json.dumps("," * size)).encode()
    assert [(fault.field, fault.code) for fault in _decode(raw)] == [(path, code)]


def test_values_are_counted_outside_strings() -> None:
    text = json.dumps({"a": ["\\", '"', '\\"[{,', "x,y"], "b": {"c,": 1}}).encode()
    assert not has_more_values(text, 9) and has_more_values(text, 5)
    long = b"[" + b",".join([b'"' + b"," * 70_000 + b'\\\\"'] * 5) + b"]"
    assert not has_more_values(long, 6) and has_more_values(long, 4)


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_gets_a_small_response(client: Client, kind: str) -> None:
    """The problem response is small."""
    raw = build_hostile_bodies(MIB - 1000)[kind][:MIB]
    headers = {"content-type": "application/json", "idempotency-key": "k"}
    response = await client.send("POST", "/v1/things", body=raw, headers=headers)
    assert (response.status, response.code) == (400, "invalid_request")
    problem = response.json()
    assert 1 <= len(problem["errors"]) <= 100 and len(response.body) < 128 * 1024
    without = await client.send("POST", "/v1/bulk", body=raw, headers=headers | {"idempotency-key": "l"})
    assert without.status in (400, 403) and len(without.body) < 128 * 1024


@pytest.mark.asyncio
async def test_the_errors_of_a_large_body_are_limited(client: Client) -> None:
    body = {f"k{number}": 0 for number in range(9_000)}
    response = await client.post("/v1/things", body)
    assert len(response.json()["errors"]) == 100
    assert "at least 100 more" in response.json()["detail"]


MANY_LISTS = b'{"name":[' + b"[]," * 25_000 + b"1]}"
MANY_FAULTS = {"name": [1] * 25_000}


class _RecordingParsers:
    """Fake of the parser processes that records calls and executes them in a thread, or raises `error`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls: list[str] = []
        self._error = error

    async def __call__(self, function: Callable[..., Any], /, *args: Any) -> Any:
        self.calls.append(function.__name__)
        if self._error is not None:
            raise self._error
        return await asyncio.to_thread(function, *args)


@pytest.mark.asyncio
async def test_a_body_of_many_values_is_refused_in_one_parser_process(monkeypatch: pytest.MonkeyPatch) -> None:
    processes, decoded = _RecordingParsers(), list[int]()
    monkeypatch.setattr("entrypoints.http.checks.decode_body", lambda raw, most: decoded.append(len(raw)))
    async with run_application(parsers=processes) as application:
        client = await application.create_client()
        headers = {"content-type": "application/json", "idempotency-key": "k"}
        for raw in (MANY_LISTS, MANY_LISTS[:-1], b'{"name":' + b"[" * 33 + b"]" * 33 + b"," + MANY_LISTS[1:]):
            response = await client.send("POST", "/v1/things", body=raw, headers=headers)
            assert (response.status, response.code) == (400, "invalid_request")
        few = await client.send("POST", "/v1/things", body=b'{"name":"' + b"x" * 100_000 + b'"}', headers=headers)
        unwanted = await client.send("POST", "/v1/heavy", body=MANY_LISTS, headers=headers)
    assert (few.status, unwanted.status) == (400, 400) and unwanted.json()["errors"][0]["code"] == "unknown_field"
    assert processes.calls == ["validate_body"] * 4 and decoded == []


@pytest.mark.asyncio
async def test_a_parser_process_reports_the_same_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_application(parsers=_RecordingParsers()) as application:
        client = await application.create_client()
        apart = await client.post("/v1/things", MANY_FAULTS)
        monkeypatch.setattr("entrypoints.http.body.MAX_QUICK_VALUES", 100_000)
        here = await client.post("/v1/things", MANY_FAULTS)
    assert apart.status == here.status == 400
    assert apart.json()["errors"] == here.json()["errors"] and apart.json()["detail"] == here.json()["detail"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("error", "status"), [(ParserTerminated("it takes too long"), 400), (ParserFailed("the fork server is gone"), 503)]
)
async def test_a_failed_parser_process_refuses_the_body(error: Exception, status: int) -> None:
    async with run_application(parsers=_RecordingParsers(error)) as application:
        client = await application.create_client()
        assert (await client.post("/v1/things", MANY_FAULTS)).status == status


@pytest.mark.asyncio
async def test_a_valid_body_of_many_values_is_accepted() -> None:
    async with run_application(parsers=_RecordingParsers()) as application:
        client = await application.create_client()
        response = await client.post("/v1/things/src_0000000000000000000000/poke", {"a": [[1]] * 20_001})
    assert response.status == 200


def test_records_are_not_dense() -> None:
    record = {
        "product": {"external_id": "P1", "title": "Oak"},
        "variants": [{"sku": "S1", "offers": [{"quantity": 4}]}],
    }
    assert not has_many_values(json.dumps({"records": [record] * 5_000}, separators=(",", ":")).encode())
    assert has_many_values(MANY_LISTS)
    assert not has_many_values(MANY_LISTS[:1000])
