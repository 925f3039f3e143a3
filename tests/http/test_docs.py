"""The pages that need no credential, and the health of the process."""

import asyncio
import gzip
import re
from html.parser import HTMLParser

import pytest

from entrypoints.http.codes import CODES
from entrypoints.http.docs import reference
from entrypoints.http.docs_style import POLICY
from tests.support.table import whole
from tests.http.client import Client
from tests.http.fakes import World, running
from tests.http.toys import OPERATIONS

pytestmark = pytest.mark.asyncio
VOID = {"meta", "br", "link", "input", "hr", "img"}
LOOSE = {"th", "td", "tr", "li", "p"}


class Balanced(HTMLParser):
    """Checks that tags are closed in order, and gathers ids and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if named.get("id"):
            self.ids.append(str(named["id"]))
        if tag == "a":
            self.links.append(str(named.get("href")))
        assert "src" not in named
        if tag not in VOID | LOOSE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID | LOOSE:
            assert self.open.pop() == tag


async def test_every_page_is_whole(world: World) -> None:
    visitor = world.stranger()
    pages = ["/docs", "/errors", *(f"/errors/{code}" for code in CODES)]
    for path in pages:
        answer = await visitor.get(path)
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["content-security-policy"] == POLICY
        parser = Balanced()
        parser.feed(answer.body.decode())
        assert parser.open == []
        assert len(parser.ids) == len(set(parser.ids))
        for link in parser.links:
            local = link.startswith("#") and link[1:] in parser.ids
            assert local or link in {*pages, "/openapi.json"}, (path, link)


async def test_the_reference_names_every_operation(world: World) -> None:
    body = (await world.stranger().get("/docs")).body.decode()
    for row in OPERATIONS:
        assert f'id="{row.id}"' in body
    assert "curl https://api.joinery.test/v1/things" in body
    assert not re.search(r'(?:src|href)="https?://', body), "nothing is fetched from elsewhere"


async def test_the_reference_of_all_areas_is_whole() -> None:
    parser = Balanced()
    parser.feed(reference(whole(), "https://api.joinery.test"))
    assert parser.open == []
    assert {row.id for row in whole()} <= set(parser.ids)


async def test_openapi(world: World) -> None:
    answer = await world.stranger().get("/openapi.json")
    assert answer.json()["openapi"] == "3.1.0"
    assert answer.headers["access-control-allow-origin"] == "*"
    again = await world.stranger().get("/openapi.json", if_none_match=answer.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    packed = await world.stranger().get("/openapi.json", accept_encoding="gzip")
    assert gzip.decompress(packed.body) == answer.body


async def test_home_and_lost_pages(world: World) -> None:
    home = await world.stranger().get("/")
    assert (home.status, home.headers["location"]) == (302, "/docs")
    for path in ("/nothing", "/errors/nonsense", "/docs/x", "/v2/things"):
        lost = await world.stranger().get(path)
        assert (lost.status, lost.code) == (404, "not_found")
        assert lost.headers["content-type"] == "application/problem+json"
        assert lost.headers["request-id"] == lost.json()["request_id"]
    refused = await world.stranger().send("POST", "/docs")
    assert (refused.status, refused.code) == (405, "method_not_allowed")
    assert "GET" in refused.headers["allow"]
    assert (await world.stranger().send("HEAD", "/docs")).body == b""


async def test_health() -> None:
    up = {"database": True}

    async def database() -> bool:
        if not up["database"]:
            raise ConnectionError
        return True

    async with running(readiness={"database": database}) as world:
        visitor = world.stranger()
        assert (await visitor.get("/healthz")).json() == {"status": "ok"}
        assert (await visitor.get("/readyz")).json() == {"status": "ready", "down": [], "checks": {"database": "up"}}
        up["database"] = False
        answer = await visitor.get("/readyz")
        assert answer.status == 503
        assert answer.json() == {"status": "down", "down": ["database"], "checks": {"database": "down"}}
        assert (await visitor.get("/healthz")).status == 200


async def test_readiness_is_looked_at_a_few_times_a_second() -> None:
    looks = []

    async def database() -> bool:
        looks.append(1)
        await asyncio.sleep(0.01)
        return True

    async with running(readiness={"database": database}) as world:
        visitor = world.stranger()
        answers = await asyncio.gather(*[visitor.get("/readyz") for _ in range(100)])
        assert {answer.status for answer in answers} == {200} and len(looks) == 1
        for _ in range(60):
            await visitor.get("/readyz")
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
    assert (await world.stranger().get("/metrics")).status == 404
    assert (await local.get("/metrics", x_forwarded_for="127.0.0.1")).status == 404


async def test_methods_are_bounded_in_metrics(world: World, client: Client) -> None:
    for number in range(5):
        await client.send(f"BREW{number}", "/v1/things")
    text = (await Client(world.app, None, "127.0.0.1").get("/metrics")).body.decode()
    assert "BREW" not in text
