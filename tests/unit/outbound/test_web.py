"""Fetches of a probe from a real server that misbehaves: truncated, timed, vetted; and probes within their limits."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import aiohttp.abc
import aiohttp.client_reqrep
import aiohttp.cookiejar
import pytest
import pytest_asyncio
from aiohttp import web

from adapters.http.client import GuardedClient
from adapters.http.web import HttpWeb
from adapters.markup.documents import MarkupDocuments
from domain.probes.ports import Unreachable
from domain.probes.usecases.polite_client import PoliteClient, ProbeLimits
from domain.probes.usecases.probe_runner import ProbeFailed, ProbeOutcome, ProbeRunner

pytestmark = pytest.mark.asyncio
HOST = "127.0.0.2"
MIB = 1024 * 1024


class ScriptedSite:
    """Site with paths set by tests; `requests` are the received requests."""

    def __init__(self) -> None:
        self.pages: dict[str, Any] = {}
        self.requests: list[web.Request] = []
        self.port = 0

    @property
    def url(self) -> str:
        """The URL of the site."""
        return f"http://{HOST}:{self.port}"

    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Return a new response for the path of the request."""
        self.requests.append(request)
        page = self.pages.get(request.path)
        if page is None:
            return web.Response(status=404)
        response: web.StreamResponse = await page(request)
        return response

    def serve(self, path: str, body: bytes = b"", status: int = 200, **headers: str) -> None:
        """Set the response of the path."""
        named = {"Content-Type": "text/html"} | {name.replace("_", "-"): value for name, value in headers.items()}

        async def page(_: web.Request) -> web.Response:
            return web.Response(body=body, status=status, headers=named)

        self.pages[path] = page

    def stream(self, path: str, chunk: bytes, pause: float = 0.0, times: int = 1 << 30, **headers: str) -> None:
        """Set a response of many chunks."""

        async def page(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/html", **headers})
            await response.prepare(request)
            try:
                for _ in range(times):
                    await response.write(chunk)
                    await asyncio.sleep(pause)
            except ConnectionError:
                pass
            return response

        self.pages[path] = page


@pytest_asyncio.fixture
async def site() -> AsyncIterator[ScriptedSite]:
    """Run a site."""
    scripted = ScriptedSite()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", scripted.respond)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    tcp_site = web.TCPSite(runner, HOST, 0)
    await tcp_site.start()
    scripted.port = runner.addresses[0][1]
    yield scripted
    await runner.cleanup()


@pytest_asyncio.fixture
async def http() -> AsyncIterator[HttpWeb]:
    """Create the web client of probes, with the site's host allowed."""
    async with GuardedClient(allowed_hosts=frozenset({HOST}), version="0.1.0") as client:
        yield HttpWeb(client)


async def run_probe(http: HttpWeb, url: str, **limits: Any) -> ProbeOutcome:
    """Run a probe without pauses."""
    bounds = ProbeLimits(**{"pause": 0.0} | limits)
    documents = MarkupDocuments()
    return await ProbeRunner(PoliteClient(http, documents, bounds), documents, bounds, lambda _: True).run_probe(url)


async def test_a_response_is_read(site: ScriptedSite, http: HttpWeb) -> None:
    async def page(_: web.Request) -> web.Response:
        response = web.Response(body=b"hello", content_type="text/html")
        response.set_cookie("_shopify_y", "secret")
        response.set_cookie("other", "secret")
        return response

    site.pages["/"] = page
    got = await http.get(f"{site.url}/", accept="text/html", max_bytes=100, seconds=5)
    assert (got.status, got.body, got.is_complete, set(got.cookies)) == (200, b"hello", True, {"_shopify_y", "other"})
    assert got.media_type == "text/html" and "set-cookie" not in got.headers and "secret" not in str(got)
    assert site.requests[0].headers["User-Agent"] == "Joinery/0.1.0" and "Cookie" not in site.requests[0].headers
    await http.get(f"{site.url}/", accept="text/html", max_bytes=100, seconds=5)
    assert "Cookie" not in site.requests[1].headers


async def test_an_endless_page_is_truncated(site: ScriptedSite, http: HttpWeb) -> None:
    site.stream("/", b"a" * MIB)
    got = await http.get(f"{site.url}/", accept="*/*", max_bytes=2 * MIB, seconds=20)
    assert (len(got.body), got.is_complete) == (2 * MIB, False)


async def test_a_page_with_a_declared_gigabyte_is_truncated(site: ScriptedSite, http: HttpWeb) -> None:
    site.stream("/", b"a" * 64_000, times=100, **{"Content-Length": str(1 << 30)})
    got = await http.get(f"{site.url}/", accept="*/*", max_bytes=MIB, seconds=20)
    assert (len(got.body), got.is_complete) == (MIB, False)


async def test_a_compressed_page_is_truncated_by_its_decompressed_size(site: ScriptedSite, http: HttpWeb) -> None:
    site.serve("/", gzip.compress(b"a" * (64 * MIB)), Content_Encoding="gzip")
    got = await http.get(f"{site.url}/", accept="*/*", max_bytes=MIB, seconds=20)
    assert (got.body, got.is_complete) == (b"a" * MIB, False)


async def test_a_slow_page_is_truncated_by_time(site: ScriptedSite, http: HttpWeb) -> None:
    site.stream("/", b"a", pause=0.05)
    got = await http.get(f"{site.url}/", accept="*/*", max_bytes=MIB, seconds=0.5)
    assert got.status == 200 and not got.is_complete and 0 < len(got.body) < 100


async def test_a_late_response_is_a_timeout(site: ScriptedSite, http: HttpWeb) -> None:
    async def page(_: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.Response()

    site.pages["/"] = page
    with pytest.raises(Unreachable, match="in time"):
        await http.get(f"{site.url}/", accept="*/*", max_bytes=MIB, seconds=0.3)


async def test_redirects_are_not_followed(site: ScriptedSite, http: HttpWeb) -> None:
    site.serve("/", status=302, Location="http://169.254.169.254/")
    got = await http.get(f"{site.url}/", accept="*/*", max_bytes=MIB, seconds=5)
    assert (got.status, got.redirect_target) == (302, "http://169.254.169.254/")


@pytest.mark.parametrize("target", ["http://127.0.0.1:{port}/inside", "http://localhost:{port}/inside", "http://169.254.169.254/latest/", "http://[::1]/", "http://2130706433/", "file:///etc/passwd", "ftp://127.0.0.1/", "//user:pw@10.0.0.1/"])  # fmt: skip
async def test_a_redirect_to_an_internal_address_is_refused(site: ScriptedSite, http: HttpWeb, target: str) -> None:
    site.serve("/robots.txt", b"User-agent: *\n", Content_Type="text/plain")
    site.serve("/", status=302, Location=target.replace("{port}", str(site.port)))
    outcome = await run_probe(http, f"{site.url}/")
    assert [request.path for request in site.requests if request.path == "/inside"] == []
    assert outcome.proposal is None and outcome.report.estimate.effort == "infeasible"
    assert outcome.report.final_url == f"{site.url}/"


async def test_robots_that_redirect_to_an_internal_address_are_refused(site: ScriptedSite, http: HttpWeb) -> None:
    site.serve("/robots.txt", status=302, Location=f"http://127.0.0.1:{site.port}/inside")
    with pytest.raises(ProbeFailed) as failure:
        await run_probe(http, f"{site.url}/")
    assert failure.value.is_forbidden and len(site.requests) == 1


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{port}/", "http://10.0.0.1/", "http://[::ffff:127.0.0.1]/", "http://0x7f000001/"]
)
async def test_an_internal_address_is_refused(site: ScriptedSite, http: HttpWeb, url: str) -> None:
    with pytest.raises(ProbeFailed) as failure:
        await run_probe(http, url.replace("{port}", str(site.port)))
    assert failure.value.is_forbidden and not site.requests


async def test_sitemaps_and_links_to_internal_addresses_are_not_requested(site: ScriptedSite, http: HttpWeb) -> None:
    inside = f"http://127.0.0.1:{site.port}"
    site.serve("/robots.txt", f"Sitemap: {inside}/sitemap.xml\n".encode(), Content_Type="text/plain")
    site.serve("/", f"<html><a href='{inside}/products/a'>A</a><base href='{inside}/'>".encode())
    outcome = await run_probe(http, f"{site.url}/")
    assert {request.host for request in site.requests} == {f"{HOST}:{site.port}"}
    assert any("another site" in note for note in outcome.report.notes)


async def test_a_site_of_large_pages_is_read_up_to_the_limit(site: ScriptedSite, http: HttpWeb) -> None:
    site.serve("/robots.txt", b"User-agent: *\n", Content_Type="text/plain")
    urls = "".join(f"<url><loc>{site.url}/products/{number}</loc></url>" for number in range(20))
    site.serve("/sitemap.xml", f"<urlset>{urls}</urlset>".encode(), Content_Type="text/xml")
    for number in range(20):
        site.stream(f"/products/{number}", b"<p>" + b"a" * 64_000)
    site.serve("/", b"<html><title>Vendor</title>")
    outcome = await run_probe(http, f"{site.url}/", bytes=3 * MIB, page_bytes=MIB)
    assert any("3 MiB, the maximum" in note for note in outcome.report.notes)
    assert sum(request.path.startswith("/products/") for request in site.requests) <= 4


@pytest.mark.parametrize(
    "url",
    ["http://" + "a" * 64 + ".example/", "http://a..b/", "http://xn--/", "http://xn--a/", "http://\u2024/", "http://./", "http://%/", "http://a b/",
     "http://[::1", "http:///x", "http://a:0/", "http://a:99999/", "http://1.2.3.4.5/", "http://ex\u2100mple/", "http://[fe80::1%25eth0]/", "x", ""],
)  # fmt: skip
async def test_an_invalid_url_is_unreachable(http: HttpWeb, url: str) -> None:
    with pytest.raises(Unreachable):
        await http.get(url, accept="*/*", max_bytes=MIB, seconds=5)


async def test_cancelling_ends_the_request_at_once(site: ScriptedSite, http: HttpWeb) -> None:
    site.stream("/", b"a", pause=0.05)
    task = asyncio.create_task(http.get(f"{site.url}/", accept="*/*", max_bytes=MIB, seconds=30))
    while not site.requests:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(5):
            await task


async def test_cookies_are_not_parsed(site: ScriptedSite, http: HttpWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[Any] = []
    for module in (aiohttp.abc, aiohttp.cookiejar, aiohttp.client_reqrep):
        monkeypatch.setattr(module, "parse_set_cookie_headers", lambda headers: parsed.append(headers) or [])
    site.serve("/", b"hello", Set_Cookie="a=" + "; " * 4000)
    got = await http.get(f"{site.url}/", accept="text/html", max_bytes=100, seconds=5)
    assert got.cookies == ("a",) and parsed == []
