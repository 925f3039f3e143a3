"""Order of checks: of two errors in one request the earlier check responds (docs/conventions.md#order-of-checks)."""

from typing import Any

import pytest

from domain.kernel.errors import Conflict, Unavailable
from domain.kernel.ids import is_id
from entrypoints.http.pressure import Pressure
from tests.http import example_area
from tests.http.application import ApplicationHarness
from tests.http.client import Client

pytestmark = pytest.mark.asyncio
UNKNOWN = "src_0000000000000000000000"


async def test_read(application: ApplicationHarness, client: Client) -> None:
    thing = example_area.add_thing(application.orgs["Fjord"].id)
    response = await client.get(f"/v1/things/{thing.id}")
    assert response.status == 200
    assert response.json() == example_area.to_wire(thing)
    assert response.headers["content-type"] == "application/json"
    assert response.headers["vary"] == "Authorization, Service-Version, Service-Mode, Accept-Encoding"
    assert response.headers["cache-control"] == "private, no-cache"
    assert response.headers["service-version"] == "2026-10-04"
    assert response.headers["content-length"] == str(len(response.body))
    assert is_id("req", response.headers["request-id"])


async def test_create(client: Client) -> None:
    response = await client.post("/v1/things", {"name": "oak"})
    assert response.status == 201
    assert response.headers["location"].endswith(response.json()["id"])
    assert response.headers["cache-control"] == "no-store"


class FaultyRequest:
    """Request with all errors; fixing one reveals the next."""

    def __init__(self, application: ApplicationHarness) -> None:
        self.application = application
        self.target = "/v1/things/nonsense?" + "x" * 9000
        self.headers: dict[str, str] = {"service-mode": "nonsense", "service-version": "1999-01-01"}
        self.body = b'{"nome": 1}'

    async def read_outcome(self, client: Client) -> str:
        response = await client.send("PATCH", self.target, body=self.body, headers=self.headers)
        return "fine" if response.status == 200 else f"{response.status} {response.code}"


async def _exhaust_limit(application: ApplicationHarness, client: Client) -> None:
    while (await client.send_json("PATCH", f"/v1/things/{UNKNOWN}", {"name": "a"}, if_match="*")).status != 429:
        pass


async def test_order_of_checks(application: ApplicationHarness) -> None:
    """Each line fixes the reported error and expects the next one."""
    request, lane = FaultyRequest(application), application.app.asgi_app
    reader, writer = (
        await application.create_client(scopes=frozenset({"sources:read"})),
        await application.create_client(),
    )
    thing = example_area.add_thing(application.orgs["Fjord"].id)
    assert await request.read_outcome(application.build_client()) == "400 invalid_request"
    request.target = "/v1/things/nonsense?colour=red"
    assert await request.read_outcome(application.build_client()) == "401 authentication_required"
    await _exhaust_limit(application, writer)
    lane._pipeline.pressure._sampled = 3
    assert await request.read_outcome(reader) == "400 invalid_request"
    request.headers["service-mode"] = "live"
    assert await request.read_outcome(reader) == "400 invalid_request"
    del request.headers["service-version"]
    assert await request.read_outcome(reader) == "429 rate_limited"
    application.clock.advance(example_area.MINUTE)
    assert await request.read_outcome(reader) == "403 permission_denied", "writes are never shed"
    assert await request.read_outcome(writer) == "415 unsupported_media_type"
    request.headers["content-type"] = "application/json"
    assert await request.read_outcome(writer) == "400 invalid_request"
    request.body = b'{"name": "a"}'
    assert await request.read_outcome(writer) == "400 invalid_request"
    request.target = "/v1/things/nonsense"
    assert await request.read_outcome(writer) == "404 not_found"
    request.target = f"/v1/things/{thing.id}"
    assert await request.read_outcome(writer) == "428 precondition_required"
    request.headers["if-match"] = '"9-abc"'
    assert await request.read_outcome(writer) == "412 precondition_failed"
    request.headers["if-match"] = '"1-abc"'
    assert await request.read_outcome(writer) == "fine"


async def test_shedding_precedes_permission_and_follows_the_budget(
    application: ApplicationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    unscoped = await application.create_client(scopes=frozenset())
    monkeypatch.setattr(Pressure, "level", 3)
    assert (await unscoped.get("/v1/things")).code == "overloaded"
    for _ in range(200):
        await unscoped.get("/v1/things")
    assert (await unscoped.get("/v1/things")).code == "rate_limited"


async def test_body_precedes_idempotency_key_which_precedes_the_resource(client: Client) -> None:
    target = "/v1/things/nonsense/poke"
    assert (await client.send_json("POST", target, {"b": 1})).faults == {("b", "unknown_field")}
    assert (await client.send_json("POST", target, {"a": 1})).faults == {("header.Idempotency-Key", "required")}
    assert (await client.post(target, {"a": 1})).code == "not_found"


async def test_permission_precedes_the_resource(application: ApplicationHarness) -> None:
    client = await application.create_client(scopes=frozenset())
    known = example_area.add_thing(application.orgs["Fjord"].id)
    assert (await client.get(f"/v1/things/{known.id}")).code == "permission_denied"
    assert (await client.get(f"/v1/things/{UNKNOWN}")).code == "permission_denied"


async def test_resources_of_others_respond_like_missing_ones(application: ApplicationHarness, client: Client) -> None:
    fjord, oak = application.orgs["Fjord"], application.orgs["Oak"]
    paths = {
        "unknown": UNKNOWN,
        "another organisation's": example_area.add_thing(oak.id).id,
        "the other mode's": example_area.add_thing(fjord.id, livemode=False).id,
    }
    seen = set()
    for id_ in paths.values():
        response = await client.get(f"/v1/things/{id_}", request_id="req_0000000000000000000001")
        assert response.status == 404
        budget = {"ratelimit": ""}
        seen.add((response.body, tuple(sorted((response.headers | budget).items()))))
    assert len(seen) == 1


async def test_unknown_paths_and_methods_are_reported_after_authentication(
    application: ApplicationHarness, client: Client
) -> None:
    for method, target in (
        ("GET", "/v1/nothing"),
        ("POST", "/v1/nothing"),
        ("PUT", "/v1/things"),
        ("BREW", "/v1/things"),
    ):
        assert (await application.build_client().send(method, target)).code == "authentication_required"
    assert (await client.get("/v1/nothing")).code == "not_found"
    assert (await client.get("/v1")).code == "not_found"
    assert (await client.get("/v1//things")).code == "not_found"
    assert (await client.get("/v1/things/")).code == "not_found"
    refused = await client.send("PUT", "/v1/things")
    assert (refused.status, refused.code) == (405, "method_not_allowed")
    assert refused.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    assert (await client.send("POST", f"/v1/things/{UNKNOWN}")).headers["allow"] == "DELETE, GET, HEAD, OPTIONS, PATCH"
    assert (await client.send("BREW", "/v1/things")).status == 405


async def test_static_segments_precede_parameters(client: Client) -> None:
    assert (await client.get("/v1/things/special")).json()["object"] == "peek"
    assert (await client.get("/v1/things/speci%61l")).json()["object"] == "peek"
    assert (await client.send("DELETE", "/v1/things/special")).status == 404, "an id that is malformed, not a 405"


async def test_request_ids(client: Client) -> None:
    good = "req_01J8ZQ5T3V7XK2M9RB4CDW"
    assert (await client.get("/v1/things", request_id=good)).headers["request-id"] == good
    for bad in ("req_1", "nonsense", good + "x", good[:-1] + "-", "src_01J8ZQ5T3V7XK2M9RB4CDW"):
        given = (await client.get("/v1/things", request_id=bad)).headers["request-id"]
        assert given != bad
        assert is_id("req", given)
    refused = await client.get("/v1/nothing", request_id=good)
    assert refused.json()["request_id"] == refused.headers["request-id"] == good


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("GET", "/v1/things?a=" + "b" * 8200, {}),
        ("GET", "/v1/things?\x07", {}),
        ("GET", "/v1/th\x7fings", {}),
        ("GET", "/v1/th\xe4ngs", {}),
    ],
)
async def test_request_lines(client: Client, method: str, target: str, headers: dict[str, str]) -> None:
    response = await client.send(method, target, headers=headers)
    assert (response.status, response.code) == (400, "invalid_request")
    assert is_id("req", response.headers["request-id"])


async def test_unexpected_errors_respond_with_500(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    example_area.BEHAVIOUR["then"] = RuntimeError("the password is hunter2")
    response = await client.get("/v1/things/special")
    assert (response.status, response.code) == (500, "internal_error")
    assert "hunter2" not in response.body.decode()
    record: Any = caplog.records[-1]
    assert record.request_id == response.headers["request-id"]
    assert record.exc_info


async def test_unavailable(client: Client) -> None:
    example_area.BEHAVIOUR["then"] = Unavailable()
    response = await client.get("/v1/things/special")
    assert (response.status, response.code) == (503, "unavailable")
    assert int(response.headers["retry-after"]) >= 1


async def test_refused_writes_leave_nothing(application: ApplicationHarness, client: Client) -> None:
    example_area.BEHAVIOUR["then"] = Conflict("Not now.")
    assert (await client.post("/v1/things", {"name": "oak"})).status == 409
    example_area.BEHAVIOUR.clear()
    assert (await client.post("/v1/things", {"name": "oak"})).status == 201, "the address was not taken"


async def test_delete(application: ApplicationHarness, client: Client) -> None:
    thing = example_area.add_thing(application.orgs["Fjord"].id)
    response = await client.send("DELETE", f"/v1/things/{thing.id}")
    assert (response.status, response.body) == (204, b"")
    assert "content-type" not in response.headers
    assert "content-length" not in response.headers


async def test_numbers_are_exact(client: Client) -> None:
    from decimal import Decimal

    body = b'{"name": "a", "size": 0.1000000000000000055511151231257827, "deep": [2.0, 2.50, 1e2, -7]}'
    headers = {"content-type": "application/json", "idempotency-key": "k"}
    assert (await client.send("POST", "/v1/things", body=body, headers=headers)).status == 201
    received = example_area.CALLS[-1].command
    assert received["size"] == Decimal("0.1000000000000000055511151231257827")
    assert received["deep"] == [2, Decimal("2.50"), 100, -7]
    assert [type(number) for number in received["deep"]] == [int, Decimal, int, int]
    response = await client.post(f"/v1/things/{UNKNOWN}/act")
    assert b'"size":1.50' in response.body
