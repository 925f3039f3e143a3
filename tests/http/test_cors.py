"""Cross-origin calls (docs/conventions.md#cross-origin): any origin, credentials by the Authorization header only."""

import pytest

from tests.http.application import ApplicationHarness
from tests.http.client import Client

pytestmark = pytest.mark.asyncio
EXPOSED = {"RateLimit", "ETag", "Request-Id", "Retry-After", "Location", "Service-Version", "Idempotent-Replayed"}


async def test_preflight(application: ApplicationHarness) -> None:
    headers = {"origin": "https://shop.example", "access-control-request-method": "POST"}
    response = await application.build_client().send("OPTIONS", "/v1/things", headers=headers)
    assert (response.status, response.body) == (204, b"")
    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["access-control-allow-methods"] == response.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    allowed = response.headers["access-control-allow-headers"]
    for name in ("Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Service-Version"):
        assert name in allowed
    assert response.headers["access-control-max-age"] == "86400"
    assert "access-control-allow-credentials" not in response.headers
    assert response.headers["request-id"].startswith("req_")


async def test_preflight_of_anything_under_v1(application: ApplicationHarness) -> None:
    response = await application.build_client().send("OPTIONS", "/v1/nothing")
    assert response.status == 204
    assert "DELETE" in response.headers["access-control-allow-methods"]


async def test_pages_of_other_origins_read_exposed_headers(application: ApplicationHarness, client: Client) -> None:
    origin = {"origin": "https://shop.example"}
    for response in (
        await client.get("/v1/things", **origin),
        await client.send("POST", "/v1/things", body=b"{}", headers=origin),
        await application.build_client().get("/v1/things", **origin),
        await client.get("/v1/nothing", **origin),
    ):
        assert response.headers["access-control-allow-origin"] == "*"
        exposed = response.headers["access-control-expose-headers"].split(", ")
        assert set(exposed) >= EXPOSED


async def test_requests_without_an_origin_get_no_cors_headers(client: Client) -> None:
    assert "access-control-allow-origin" not in (await client.get("/v1/things")).headers
