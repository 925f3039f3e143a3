"""The pages that need no credential, and the health of the process."""

import asyncio
import gzip

import pytest

from domain.kernel.errors import DomainError
from entrypoints.areas.registry import AREAS
from entrypoints.clients.distribution import WHEEL
from entrypoints.http.representations import OPEN_CORS_HEADERS, PublicFile
from entrypoints.operations.codes import CODES, FIELD_CODES
from tests.http.client import Client
from tests.http.fakes import World, running
from tests.support.built_site import build_site

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    build_site()


async def test_every_error_code_has_a_page(world: World) -> None:
    assert {error.code for error in DomainError.__subclasses__()} <= CODES.keys()
    overview = build_site().read("/docs/errors")[1].decode()  # type: ignore[index]
    for code in CODES:
        assert f"errors/{code}" in overview
        led = await world.bare_client().get(f"/errors/{code}")
        assert (led.status, led.headers["location"]) == (302, f"/docs/errors/{code}")
        assert (await world.bare_client().get(led.headers["location"])).status == 200
    assert (await world.bare_client().get("/errors/no_such_code")).status == 404


async def test_every_code_of_a_field_has_words(world: World) -> None:
    overview = (await world.bare_client().get("/docs/errors")).body.decode()
    for code in FIELD_CODES:
        assert f'<span class="pre">{code}</span>' in overview


async def test_openapi(world: World) -> None:
    answer = await world.bare_client().get("/openapi.json")
    assert answer.json()["openapi"] == "3.1.0"
    assert answer.headers["access-control-allow-origin"] == "*"
    again = await world.bare_client().get("/openapi.json", if_none_match=answer.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    packed = await world.bare_client().get("/openapi.json", accept_encoding="gzip")
    assert gzip.decompress(packed.body) == answer.body


async def test_home_and_lost_pages(world: World) -> None:
    home = await world.bare_client().get("/")
    assert (home.status, home.headers["location"]) == (302, "/docs/")
    for path in ("/nothing", "/errors/nonsense", "/docs/x", "/v2/things"):
        lost = await world.bare_client().get(path)
        assert (lost.status, lost.code) == (404, "not_found")
        assert lost.headers["content-type"] == "application/problem+json"
        assert lost.headers["request-id"] == lost.json()["request_id"]
    refused = await world.bare_client().send("POST", "/docs")
    assert (refused.status, refused.code) == (405, "method_not_allowed")
    assert "GET" in refused.headers["allow"]
    assert (await world.bare_client().send("HEAD", "/docs")).body == b""


async def test_health() -> None:
    up = {"database": True}

    async def database() -> bool:
        if not up["database"]:
            raise ConnectionError
        return True

    async with running(readiness={"database": database}) as world:
        anonymous = world.bare_client()
        assert (await anonymous.get("/healthz")).json() == {"status": "ok"}
        assert (await anonymous.get("/readyz")).json() == {"status": "ready", "down": [], "checks": {"database": "up"}}
        up["database"] = False
        answer = await anonymous.get("/readyz")
        assert answer.status == 503
        assert answer.json() == {"status": "down", "down": ["database"], "checks": {"database": "down"}}
        assert (await anonymous.get("/healthz")).status == 200


async def test_readiness_is_looked_at_a_few_times_a_second() -> None:
    looks = []

    async def database() -> bool:
        looks.append(1)
        await asyncio.sleep(0.01)
        return True

    async with running(readiness={"database": database}) as world:
        anonymous = world.bare_client()
        answers = await asyncio.gather(*[anonymous.get("/readyz") for _ in range(100)])
        assert {answer.status for answer in answers} == {200} and len(looks) == 1
        for _ in range(60):
            await anonymous.get("/readyz")
        assert len(looks) < 40


async def test_metrics(world: World, client: Client) -> None:
    await client.get("/v1/things")
    await client.get("/v1/nothing")
    local = Client(world.app, None, "127.0.0.1")
    text = (await local.get("/metrics")).body.decode()
    assert 'joinery_http_requests_total{method="GET",route="/v1/things",status="200"} 1.0' in text
    assert 'joinery_http_requests_total{method="GET",route="unknown",status="404"} 1.0' in text
    assert 'joinery_http_request_seconds_bucket{le="+Inf",route="/v1/things"} 1.0' in text
    assert "joinery_http_in_flight 0.0" in text
    assert "joinery_match_queue_variants 0.0" in text and "joinery_match_queue_oldest_seconds 0.0" in text
    assert (await world.bare_client().get("/metrics")).status == 404
    assert (await local.get("/metrics", x_forwarded_for="127.0.0.1")).status == 404


async def test_methods_are_bounded_in_metrics(world: World, client: Client) -> None:
    for number in range(5):
        await client.send(f"BREW{number}", "/v1/things")
    text = (await Client(world.app, None, "127.0.0.1").get("/metrics")).body.decode()
    assert "BREW" not in text


async def test_a_file_is_compressed_on_request() -> None:
    file = PublicFile(b"text/plain", b"oak " * 1000, [], allows_gzip=True)
    plain = file.respond()
    assert plain.body == b"oak " * 1000 and "_compressed_body" not in vars(file), "nobody has asked"
    small = file.respond("", "gzip")
    assert gzip.decompress(small.body) == plain.body and small.find_header("content-length") == str(len(small.body))
    for answer in (plain, small):
        again = file.respond(str(answer.find_header("etag")), "gzip")
        assert (again.status, again.body, again.find_header("etag")) == (304, b"", small.find_header("etag"))
    as_it_is = PublicFile(b"text/plain", plain.body, OPEN_CORS_HEADERS).respond("", "gzip")
    assert as_it_is.body == plain.body and as_it_is.find_header("vary") is None


async def test_files_that_anybody_may_read_know_their_validators() -> None:
    paths = ("/docs/", "/openapi.json", "/.well-known/oauth-protected-resource", f"/docs/clients/{WHEEL}")
    async with running(areas=AREAS) as world:
        anonymous = world.bare_client()
        for path in paths:
            answer = await anonymous.get(path)
            assert (await anonymous.get(path, if_none_match=answer.headers["etag"])).status == 304, path
            head = await anonymous.send("HEAD", path)
            assert (head.status, head.body) == (200, b""), path
