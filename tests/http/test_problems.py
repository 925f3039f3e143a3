"""Problem responses and strict bodies (docs/conventions.md#errors)."""

import json

import pytest

from domain.kernel.errors import Conflict, DomainError, FieldError, InvalidRequest
from entrypoints.http.problems import ProblemResponses
from entrypoints.operations.codes import CODES
from tests.http import example_area
from tests.http.application import DOCS
from tests.http.client import Client, Response

pytestmark = pytest.mark.asyncio
TYPED = {"content-type": "application/json", "idempotency-key": "k"}


async def _post_thing(client: Client, body: bytes, **headers: str) -> Response:
    return await client.send("POST", "/v1/things", body=body, headers=TYPED | headers)


async def test_problem_responses_have_a_fixed_shape(client: Client) -> None:
    example_area.BEHAVIOUR["then"] = Conflict("The source is paused.")
    response = await client.get("/v1/things/special")
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json() == {
        "type": f"{DOCS}/errors/conflict",
        "title": "Conflict",
        "status": 409,
        "code": "conflict",
        "detail": "The source is paused.",
        "request_id": response.headers["request-id"],
        "doc_url": f"{DOCS}/errors/conflict",
    }
    invalid = await client.get("/v1/things?limit=0")
    fault = invalid.json()["errors"][0]
    assert set(fault) == {"field", "code", "detail"}


async def test_every_domain_error_has_a_status() -> None:
    def family(kind: type[DomainError]) -> set[type[DomainError]]:
        return {kind}.union(*(family(child) for child in kind.__subclasses__()))

    problems = ProblemResponses(DOCS, DOCS)
    for kind in family(DomainError):
        response = problems.respond(problems.to_domain_error(kind(), "req_x"), "req_x")
        body = json.loads(response.body)
        assert body["status"] == response.status == CODES[body["code"]].status


async def test_many_errors_are_truncated() -> None:
    faults = tuple(FieldError(f"f{n}", "required", "x") for n in range(5000))
    body = ProblemResponses(DOCS, DOCS).respond(InvalidRequest("x", fields=faults), "req_x").body
    assert len(json.loads(body)["errors"]) == 100


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        (b'{"name": "a"', {("body", "invalid_format")}),
        (b"", {("body", "required")}),
        (b"[]", {("body", "invalid_type")}),
        (b"null", {("body", "invalid_type")}),
        (b"{}", {("name", "required")}),
        (b'{"name": 1, "extra": 2, "other": 3}', {("name", "invalid_type"), ("extra", "unknown_field"), ("other", "unknown_field")}),
        (b'{"name": ""}', {("name", "too_short")}),
        (b'{"name": "abcdefghijk"}', {("name", "too_long")}),
        (b'{"name": "a", "words": ["a", "b", "cdef"]}', {("words", "too_many"), ("words.2", "too_long")}),
        (b'{"name": "a", "maybe": {}}', {("maybe.on", "required")}),
        (b'{"name": "a", "maybe": {"on": 1, "off": 2}}', {("maybe.on", "invalid_type"), ("maybe.off", "unknown_field")}),
        (b'{"name": "a", "maybe": 5}', {("maybe", "invalid_type")}),
        (b'{"name": "a", "name": "b"}', {("name", "duplicate")}),
        (b'{"name": "a", "deep": [{"x": {"y": 1, "y": 1}}]}', {("deep.0.x.y", "duplicate")}),
        (b'{"name": "a", "size": NaN}', {("body", "invalid_value")}),
        (b'{"name": "a", "size": Infinity}', {("body", "invalid_value")}),
        (b'{"name": "a", "size": -Infinity}', {("body", "invalid_value")}),
        (b'{"name": "a", "size": 1e999}', {("body", "invalid_value")}),
        (b'{"name": "a", "size": 1e-999999999}', {("body", "invalid_value")}),
        (b'{"name": "a", "size": ' + b"9" * 6000 + b"}", {("body", "invalid_value")}),
        (b'{"name": "\\ud800"}', {("name", "invalid_value")}),
        (b'{"name": "a", "deep": ["\\udfff"]}', {("deep.0", "invalid_value")}),
        (b'{"name": "a", "deep": {"\\ud800": 1}}', {("deep", "invalid_value")}),
        (b'{"name": "a\\u0000"}', {("name", "invalid_value")}),
        (b'{"name": "\xff"}', {("body", "invalid_format")}),
        (b'{"name": "a\nb"}', {("body", "invalid_format")}),
        (b'\xef\xbb\xbf{"name": "a"}', {("body", "invalid_format")}),
        (b'{"name": "a", "deep": ' + b"[" * 32 + b"]" * 32 + b"}", {("body", "too_large")}),
        (b"[" * 100_000, {("body", "too_large")}),
        (b'{"a":' * 50_000, {("body", "too_large")}),
        (b"{} {}", {("body", "invalid_format")}),
    ],
)  # fmt: skip
async def test_refused_bodies(client: Client, body: bytes, faults: set[tuple[str, str]]) -> None:
    response = await _post_thing(client, body)
    assert (response.status, response.code) == (400, "invalid_request")
    assert response.faults == faults


@pytest.mark.parametrize(
    "body",
    [
        b'{"name": "\\ud83d\\ude00"}',
        b'{"name": "a", "deep": ' + b"[" * 31 + b"]" * 31 + b"}",
        b' \n{"name":"a","deep":' + json.dumps([[]] * 50).encode() + b"}\t",
        '{"name": "Möbel"}'.encode(),
        b'{"name": "a", "maybe": null}',
        b'{"name": "a", "size": 0}',
        b'{"name": "a", "size": 0.0}',
    ],
)
async def test_accepted_bodies(client: Client, body: bytes) -> None:
    assert (await _post_thing(client, body)).status == 201


async def test_query_and_body_errors_are_reported_together(client: Client) -> None:
    response = await client.post("/v1/things?x=1", {"nome": 1})
    assert response.faults == {("query.x", "unknown_field"), ("name", "required"), ("nome", "unknown_field")}


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 201),
        ("Application/JSON; charset=UTF-8", 201),
        ('application/json;charset="utf-8"', 201),
        ("application/json; charset=latin-1", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/jsonx", 415),
        ("", 415),
    ],
)
async def test_media_types(client: Client, content_type: str, status: int) -> None:
    response = await client.send(
        "POST", "/v1/things", body=b'{"name": "a"}', headers={"content-type": content_type, "idempotency-key": "k"}
    )
    assert response.status == status
    if status == 415:
        assert response.code == "unsupported_media_type"


async def test_size(client: Client) -> None:
    def sized(size: int) -> bytes:
        return b'{"name": "a", "deep": "' + b"x" * (size - 25) + b'"}'

    assert (await _post_thing(client, sized(1 << 20))).status == 201
    for response in (
        await _post_thing(client, sized(2 << 20)),
        await _post_thing(client, sized((1 << 20) + 1)),
        await _post_thing(client, sized((1 << 20) + 1), **{"content-length": "5"}),
        await _post_thing(client, sized(20 << 20), **{"content-length": ""}),
    ):
        assert (response.status, response.code) == (413, "payload_too_large")


async def test_unexpected_bodies(client: Client) -> None:
    act = "/v1/things/src_0000000000000000000000/act"
    assert (await client.post(act, {})).status == 200
    assert (await client.post(act)).status == 200
    assert (await client.post(act, {"a": 1})).faults == {("a", "unknown_field")}
    assert (await client.post(act, [1])).faults == {("body", "invalid_type")}
    assert (await client.send("POST", act, body=b"x", headers={"idempotency-key": "z"})).status == 415


async def test_optional_bodies(client: Client) -> None:
    poke = "/v1/things/src_0000000000000000000000/poke"
    assert (await client.post(poke)).json()["body"] is None
    assert (await client.post(poke, {"a": 1})).json()["body"] == {"a": 1}
    assert (await client.post(poke, {"b": 1})).status == 400
