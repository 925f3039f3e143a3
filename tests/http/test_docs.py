"""Public pages, health checks and metrics."""

import asyncio
import gzip

import pytest

from domain.kernel.errors import DomainError
from entrypoints.areas.registry import AREAS
from entrypoints.clients.distribution import WHEEL
from entrypoints.http.representations import OPEN_CORS_HEADERS, PublicFile
from entrypoints.operations.codes import CODES, FIELD_CODES
from tests.http.application import ApplicationHarness, run_application
from tests.http.client import Client
from tests.support.built_site import build_site

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module", autouse=True)
def built_site() -> None:
    build_site()


async def test_every_error_code_has_a_page(application: ApplicationHarness) -> None:
    assert {error.code for error in DomainError.__subclasses__()} <= CODES.keys()
    overview = build_site().read("/docs/errors")[1].decode()  # type: ignore[index]
    for code in CODES:
        assert f"errors/{code}" in overview
        led = await application.build_client().get(f"/errors/{code}")
        assert (led.status, led.headers["location"]) == (302, f"/docs/errors/{code}")
        assert (await application.build_client().get(led.headers["location"])).status == 200
    assert (await application.build_client().get("/errors/no_such_code")).status == 404


async def test_every_field_error_code_has_a_description(application: ApplicationHarness) -> None:
    overview = (await application.build_client().get("/docs/errors")).body.decode()
    for code in FIELD_CODES:
        assert f'<span class="pre">{code}</span>' in overview


async def test_openapi(application: ApplicationHarness) -> None:
    response = await application.build_client().get("/openapi.json")
    assert response.json()["openapi"] == "3.1.0"
    assert response.headers["access-control-allow-origin"] == "*"
    again = await application.build_client().get("/openapi.json", if_none_match=response.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    packed = await application.build_client().get("/openapi.json", accept_encoding="gzip")
    assert gzip.decompress(packed.body) == response.body


async def test_home_page_and_missing_pages(application: ApplicationHarness) -> None:
    home = await application.build_client().get("/")
    assert home.status == 200 and b'href="/docs/"' in home.body
    for path in ("/nothing", "/errors/nonsense", "/docs/x", "/v2/things"):
        lost = await application.build_client().get(path)
        assert (lost.status, lost.code) == (404, "not_found")
        assert lost.headers["content-type"] == "application/problem+json"
        assert lost.headers["request-id"] == lost.json()["request_id"]
    refused = await application.build_client().send("POST", "/docs")
    assert (refused.status, refused.code) == (405, "method_not_allowed")
    assert "GET" in refused.headers["allow"]
    assert (await application.build_client().send("HEAD", "/docs")).body == b""


async def test_health() -> None:
    up = {"database": True}

    async def database() -> bool:
        if not up["database"]:
            raise ConnectionError
        return True

    async with run_application(readiness={"database": database}) as application:
        anonymous = application.build_client()
        assert (await anonymous.get("/healthz")).json() == {"status": "ok"}
        assert (await anonymous.get("/readyz")).json() == {"status": "ready", "down": [], "checks": {"database": "up"}}
        up["database"] = False
        response = await anonymous.get("/readyz")
        assert response.status == 503
        assert response.json() == {"status": "down", "down": ["database"], "checks": {"database": "down"}}
        assert (await anonymous.get("/healthz")).status == 200


async def test_readiness_is_cached_for_a_fraction_of_a_second() -> None:
    looks = []

    async def database() -> bool:
        looks.append(1)
        await asyncio.sleep(0.01)
        return True

    async with run_application(readiness={"database": database}) as application:
        anonymous = application.build_client()
        responses = await asyncio.gather(*[anonymous.get("/readyz") for _ in range(100)])
        assert {response.status for response in responses} == {200} and len(looks) == 1
        for _ in range(60):
            await anonymous.get("/readyz")
        assert len(looks) < 40


async def test_metrics(application: ApplicationHarness, client: Client) -> None:
    await client.get("/v1/things")
    await client.get("/v1/nothing")
    local = Client(application.app, None, "127.0.0.1")
    text = (await local.get("/metrics")).body.decode()
    assert 'joinery_http_requests_total{method="GET",route="/v1/things",status="200"} 1.0' in text
    assert 'joinery_http_requests_total{method="GET",route="unknown",status="404"} 1.0' in text
    assert 'joinery_http_request_seconds_bucket{le="+Inf",route="/v1/things"} 1.0' in text
    assert "joinery_http_in_flight 0.0" in text
    assert "joinery_match_queue_variants 0.0" in text and "joinery_match_queue_oldest_seconds 0.0" in text
    assert (await application.build_client().get("/metrics")).status == 404
    assert (await local.get("/metrics", x_forwarded_for="127.0.0.1")).status == 404


async def test_methods_are_bounded_in_metrics(application: ApplicationHarness, client: Client) -> None:
    for number in range(5):
        await client.send(f"BREW{number}", "/v1/things")
    text = (await Client(application.app, None, "127.0.0.1").get("/metrics")).body.decode()
    assert "BREW" not in text


async def test_a_file_is_compressed_on_request() -> None:
    file = PublicFile(b"text/plain", b"oak " * 1000, [], allows_gzip=True)
    plain = file.respond()
    assert plain.body == b"oak " * 1000 and "_compressed_body" not in vars(file), "nobody has asked"
    small = file.respond("", "gzip")
    assert gzip.decompress(small.body) == plain.body and small.find_header("content-length") == str(len(small.body))
    for response in (plain, small):
        again = file.respond(str(response.find_header("etag")), "gzip")
        assert (again.status, again.body, again.find_header("etag")) == (304, b"", small.find_header("etag"))
    as_it_is = PublicFile(b"text/plain", plain.body, OPEN_CORS_HEADERS).respond("", "gzip")
    assert as_it_is.body == plain.body and as_it_is.find_header("vary") is None


async def test_public_files_have_validators() -> None:
    paths = ("/docs/", "/openapi.json", "/.well-known/oauth-protected-resource", f"/docs/clients/{WHEEL}")
    async with run_application(areas=AREAS) as application:
        anonymous = application.build_client()
        for path in paths:
            response = await anonymous.get(path)
            assert (await anonymous.get(path, if_none_match=response.headers["etag"])).status == 304, path
            head = await anonymous.send("HEAD", path)
            assert (head.status, head.body) == (200, b""), path
