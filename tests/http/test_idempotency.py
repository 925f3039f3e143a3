"""Idempotency-Key: outcomes, stored responses and syntax of the key (docs/conventions.md#idempotency)."""

import asyncio

import pytest

from domain.kernel.errors import Conflict, NotFound, PermissionDenied, QuotaExceeded, Unavailable, Unprocessable
from entrypoints.operations.operation import Reply, WriteContext
from tests.http import example_area
from tests.http.application import ApplicationHarness
from tests.http.client import Client

pytestmark = pytest.mark.asyncio
POKE = "/v1/things/src_0000000000000000000000/poke"


async def test_replay(client: Client) -> None:
    first = await client.post("/v1/things", {"name": "oak"}, idempotency_key="k")
    again = await client.post("/v1/things", {"name": "oak"}, idempotency_key="k")
    assert (first.status, again.status) == (201, 201)
    assert again.body == first.body
    assert again.headers["location"] == first.headers["location"]
    assert again.headers["service-version"] == first.headers["service-version"]
    assert again.headers["content-type"] == "application/json"
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert again.headers["request-id"] != first.headers["request-id"]
    assert len(example_area.CALLS) == 1


async def test_equal_json_in_another_notation_is_the_same_request(client: Client) -> None:
    headers = {"content-type": "application/json", "idempotency-key": "k"}
    await client.send("POST", "/v1/things", body=b'{"name": "oak", "deep": 1}', headers=headers)
    again = await client.send("POST", "/v1/things", body=b'{"deep":1,"name":"oak"}', headers=headers)
    assert again.headers["idempotent-replayed"] == "true"


async def test_reuse_is_refused(client: Client) -> None:
    assert (await client.post("/v1/things", {"name": "oak"}, idempotency_key="k")).status == 201
    for target, value in (("/v1/things", {"name": "elm"}), (POKE, {"a": 1}), (POKE, None)):
        response = await client.post(target, value, idempotency_key="k")
        assert (response.status, response.code) == (422, "idempotency_key_reused")
    assert (await client.post("/v1/things", {"name": "oak"}, idempotency_key="k")).status == 201


async def test_in_progress(application: ApplicationHarness, client: Client) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def slow(call: WriteContext) -> Reply:
        started.set()
        await release.wait()
        return Reply({"object": "slow"})

    row = application.app.asgi_app._pipeline.table.match_request("POST", POKE).route.operation
    object.__setattr__(row, "handler", slow)
    try:
        running = asyncio.create_task(client.post(POKE, idempotency_key="k"))
        await started.wait()
        response = await client.post(POKE, idempotency_key="k")
        assert (response.status, response.code) == (409, "idempotency_request_in_progress")
        assert response.headers["retry-after"] == "1"
        release.set()
        assert (await running).status == 200
        assert (await client.post(POKE, idempotency_key="k")).headers["idempotent-replayed"] == "true"
    finally:
        object.__setattr__(row, "handler", example_area.poke)


@pytest.mark.parametrize("error", [Conflict("Busy."), NotFound(), Unprocessable("No.")])
async def test_refusals_by_state_are_stored_and_their_effects_undone(client: Client, error: Exception) -> None:
    example_area.BEHAVIOUR["then"] = error
    first = await client.post("/v1/things", {"name": "oak"}, idempotency_key="k")
    example_area.BEHAVIOUR.clear()
    again = await client.post("/v1/things", {"name": "oak"}, idempotency_key="k")
    assert again.status == first.status >= 404
    assert again.body == first.body
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["content-type"] == "application/problem+json"
    fresh = await client.post("/v1/things", {"name": "oak"}, idempotency_key="other")
    assert fresh.status == 201, "the first attempt's effect was undone"


@pytest.mark.parametrize("error", [PermissionDenied(), QuotaExceeded(), Unavailable(), RuntimeError("x")])
async def test_transient_refusals_are_not_stored(client: Client, error: Exception) -> None:
    example_area.BEHAVIOUR["then"] = error
    assert (await client.post("/v1/things", {"name": "oak"}, idempotency_key="k")).status in (403, 429, 500, 503)
    example_area.BEHAVIOUR.clear()
    again = await client.post("/v1/things", {"name": "oak"}, idempotency_key="k")
    assert again.status == 201
    assert "idempotent-replayed" not in again.headers


async def test_refused_parameters_are_not_stored(client: Client) -> None:
    assert (await client.post("/v1/things", {"nome": "oak"}, idempotency_key="k")).status == 400
    assert (await client.post("/v1/things", {"name": "oak"}, idempotency_key="k")).status == 201


async def test_malformed_ids_are_stored_like_unknown_ones(client: Client) -> None:
    assert (await client.post("/v1/things/nonsense/poke", idempotency_key="k")).status == 404
    assert (await client.post("/v1/things/nonsense/poke", idempotency_key="k")).headers["idempotent-replayed"] == "true"


async def test_scope_is_organisation_and_mode(application: ApplicationHarness, client: Client) -> None:
    await client.post("/v1/things", {"name": "oak"}, idempotency_key="k")
    same_org, sandbox, other = (
        await application.create_client(),
        await application.create_client(livemode=False),
        await application.create_client("Oak"),
    )
    assert "idempotent-replayed" in (await same_org.post("/v1/things", {"name": "oak"}, idempotency_key="k")).headers
    for client_ in (sandbox, other):
        response = await client_.post("/v1/things", {"name": "elm"}, idempotency_key="k")
        assert response.status == 201


async def test_a_replay_counts_towards_the_rate_limit(client: Client) -> None:
    first = await client.post("/v1/things", {"name": "oak"}, idempotency_key="k")
    again = await client.post("/v1/things", {"name": "oak"}, idempotency_key="k")
    assert first.headers["ratelimit"].startswith('"standard.write";r=39;')
    assert again.headers["ratelimit"].startswith('"standard.write";r=38;')


async def test_keyless_posts(client: Client) -> None:
    assert (await client.send_json("POST", "/v1/keyless")).status == 200
    assert (await client.send_json("POST", "/v1/keyless", idempotency_key="")).status == 200


@pytest.mark.parametrize(
    ("key", "code"),
    [("", "too_short"), ('""', "too_short"), ("k" * 258, "too_long"), ('"' + "k" * 258 + '"', "too_long"), ("\xe4", "invalid_format"),
     ("a\tb", "invalid_format")],
)  # fmt: skip
async def test_invalid_keys_are_refused(client: Client, key: str, code: str) -> None:
    response = await client.post("/v1/things", {"name": "oak"}, idempotency_key=key)
    assert response.status == 400
    assert response.faults == {("header.Idempotency-Key", code)}


async def test_missing_and_doubled_keys(client: Client) -> None:
    missing = await client.send_json("POST", "/v1/things", {"name": "oak"})
    assert missing.faults == {("header.Idempotency-Key", "required")}
    pairs = [("idempotency-key", "a"), ("idempotency-key", "b")]
    body = b'{"name": "oak"}'
    doubled = await client.send(
        "POST", "/v1/things", body=body, headers={"content-type": "application/json"}, pairs=pairs
    )
    assert doubled.faults == {("header.Idempotency-Key", "duplicate")}


@pytest.mark.parametrize("length", [1, 255, 257])
async def test_lengths(client: Client, length: int) -> None:
    assert (await client.post(POKE, idempotency_key="k" * length)).status == 200


async def test_quoted_and_bare_keys_are_the_same(client: Client) -> None:
    await client.post(POKE, idempotency_key='"a b\\"c\\\\"')
    assert "idempotent-replayed" in (await client.post(POKE, idempotency_key='a b"c\\')).headers
    await client.post(POKE, idempotency_key="plain")
    assert "idempotent-replayed" in (await client.post(POKE, idempotency_key='"plain"')).headers
