"""Cross-origin calls (docs/conventions.md#cross-origin): any origin, credentials by the Authorization header only."""

import pytest

from tests.http.client import Client
from tests.http.fakes import World

pytestmark = pytest.mark.asyncio
EXPOSED = {"RateLimit", "ETag", "Request-Id", "Retry-After", "Location", "Service-Version", "Idempotent-Replayed"}


async def test_preflight(world: World) -> None:
    headers = {"origin": "https://shop.example", "access-control-request-method": "POST"}
    answer = await world.bare_client().send("OPTIONS", "/v1/things", headers=headers)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-methods"] == answer.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    allowed = answer.headers["access-control-allow-headers"]
    for name in ("Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Service-Version"):
        assert name in allowed
    assert answer.headers["access-control-max-age"] == "86400"
    assert "access-control-allow-credentials" not in answer.headers
    assert answer.headers["request-id"].startswith("req_")


async def test_preflight_of_anything_under_v1(world: World) -> None:
    answer = await world.bare_client().send("OPTIONS", "/v1/nothing")
    assert answer.status == 204
    assert "DELETE" in answer.headers["access-control-allow-methods"]


async def test_what_pages_of_other_origins_may_read(world: World, client: Client) -> None:
    origin = {"origin": "https://shop.example"}
    for answer in (
        await client.get("/v1/things", **origin),
        await client.send("POST", "/v1/things", body=b"{}", headers=origin),
        await world.bare_client().get("/v1/things", **origin),
        await client.get("/v1/nothing", **origin),
    ):
        assert answer.headers["access-control-allow-origin"] == "*"
        exposed = answer.headers["access-control-expose-headers"].split(", ")
        assert set(exposed) >= EXPOSED


async def test_requests_without_an_origin_get_no_cors_headers(client: Client) -> None:
    assert "access-control-allow-origin" not in (await client.get("/v1/things")).headers
