"""Website checks with API and worker, over the network: shops, access barriers, hostile sites."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from domain.jobs.ports import JobDispatcher
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.probes.model import PROBE_JOB
from domain.probes.ports import DocumentParser, WebClient
from domain.probes.usecases.execution import ProbeJob, ProposalChecker
from domain.probes.usecases.polite_client import ProbeLimits
from ports.unit_of_work import UnitOfWork
from tests.flows.feeds import FeedServer, build_catalogue, serve_feeds
from tests.flows.in_process_service import InProcessService, open_service
from tests.flows.service_processes import FEEDS

pytestmark = pytest.mark.asyncio
WORDS = "<p>" + "Chairs and tables of oak. " * 60 + "</p>"
PRODUCT = {
    "@context": "https://schema.org", "@type": "Product", "name": "Oak chair", "sku": "OC-1", "gtin13": "4006381333931",
    "offers": {"@type": "Offer", "price": "199.00", "priceCurrency": "USD", "availability": "https://schema.org/InStock"},
}  # fmt: skip


@pytest.fixture
def vendor_server() -> Iterator[FeedServer]:
    """Run a separate website for each test."""
    with serve_feeds() as served:
        served.serve("/robots.txt", b"User-agent: *\nDisallow: /cart\n", content_type="text/plain")
        yield served


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[InProcessService]:
    """Run the service in this process."""
    async with open_service(tmp_path) as in_process_service:
        yield in_process_service


def _serve_page(served: FeedServer, path: str, head: str = "", body: str = WORDS, title: str = "Vendor") -> None:
    content = f"<!doctype html><title>{title}</title>{head}<body>{body}</body>"
    served.serve(path, content.encode(), content_type="text/html; charset=utf-8")


def _serve_json(served: FeedServer, path: str, value: Any) -> None:
    served.serve(path, json.dumps(value).encode(), content_type="application/json")


async def run_probe(service: InProcessService, url: str, **limits: Any) -> Any:
    """Check a website; return the finished probe."""
    answer = await service.client.post("/v1/source-probes", {"url": url})
    assert answer.status == 202, answer.body
    assert answer.json()["status"] == "queued" and "report" not in answer.json()
    given = service.world.dependencies
    takes = given[ProposalChecker]
    handler = ProbeJob(
        given[UnitOfWork],
        given[WebClient],
        given[DocumentParser],
        takes,
        limits=ProbeLimits(**{"pause": 0.0, "response_seconds": 2.0} | limits),
    )
    drain = LaneProcessor(given[JobDispatcher], {PROBE_JOB: handler}, lease=timedelta(seconds=10))
    async with asyncio.timeout(30):
        await drain.process_lane(f"{service.tenant.org}/probe:{FEEDS}")
    return (await service.client.get(f"/v1/source-probes/{answer.json()['id']}")).json()


def _serve_shopify(served: FeedServer) -> None:
    _serve_page(
        served, "/", '<script src="//cdn.shopify.com/s/a.js"></script>', WORDS + '<a href="/products/oak">Oak</a>'
    )
    variant = {
        "id": 1,
        "title": "Default Title",
        "option1": "Default Title",
        "sku": "OC-1",
        "price": "199.00",
        "available": True,
        "grams": 9000,
    }
    product = {
        "id": 1, "title": "Oak chair", "handle": "oak", "body_html": "<p>Oak</p>", "vendor": "Lindgren", "product_type": "Chairs",
        "tags": [], "options": [{"name": "Title"}], "images": [], "variants": [variant],
    }  # fmt: skip
    _serve_json(served, "/products.json", {"products": [product]})
    _serve_json(served, "/meta.json", {"currency": "USD", "published_products_count": 1})
    _serve_page(served, "/products/oak", f'<script type="application/ld+json">{json.dumps(PRODUCT)}</script>')


async def test_the_proposal_for_a_shop_becomes_a_working_source(
    service: InProcessService, vendor_server: FeedServer
) -> None:
    _serve_shopify(vendor_server)
    probe = await run_probe(service, vendor_server.url("/"))
    report = probe["report"]
    assert (probe["status"], probe["livemode"], report["platform"]) == ("succeeded", True, "shopify")
    assert report["feed"] | {"url": "", "fields": []} == {
        "platform": "shopify", "url": "", "status": 200, "products": 1, "total": 1, "fields": [],
    }  # fmt: skip
    assert report["estimate"]["effort"] == "low" and report["estimate"]["kind"] == "platform_feed"
    assert report["sample"]["coverage"]["gtin"] == 1 and report["sample"]["pages"][0]["products"] == 1
    assert report["disallowed"] == [] and "wall" not in report
    assert report["requests"] == len(vendor_server.requests) <= 25
    assert {request.headers["User-Agent"] for request in vendor_server.requests} == {"Joinery/0"}
    created = await service.client.post("/v1/sources", probe["proposal"])
    assert created.status == 201, created.body
    source = created.json()
    assert (source["connector"], source["config"]["currency"]) == ("shopify", "usd")
    vendor_server.pages["/products.json"] = _serve_second_page(vendor_server)
    started = await service.client.post(f"/v1/sources/{source['id']}/runs")
    assert started.status == 202, started.body
    await service.process_lane(source["id"])
    run = await service.get_newest_run(source["id"])
    assert (run["status"], run["stats"]["products_created"]) == ("succeeded", 1), run


def _serve_second_page(vendor: FeedServer) -> Callable[[Any], Any]:
    """Serve an empty second page of the shop's list."""
    listed = vendor.pages["/products.json"]

    def page(request: Any) -> Any:
        if request.query.get("page", ["1"]) != ["1"]:
            return 200, {"Content-Type": "application/json"}, b'{"products": []}'
        return listed(request)

    return page


async def test_a_file_is_proposed_and_imported(service: InProcessService, vendor_server: FeedServer) -> None:
    probe = await run_probe(
        service, vendor_server.serve("/feed.csv", build_catalogue(3), content_type="application/octet-stream")
    )
    assert probe["report"]["estimate"]["kind"] == "file" and probe["report"]["feed"]["products"] == 6
    assert probe["proposal"]["config"] == {"url": vendor_server.url("/feed.csv"), "format": "csv"}
    source = await service.client.post("/v1/sources", probe["proposal"])
    assert source.status == 201, source.body
    assert (await service.client.post(f"/v1/sources/{source.json()['id']}/runs")).status == 202
    await service.process_lane(source.json()["id"])
    run = await service.get_newest_run(source.json()["id"])
    assert (run["status"], run["stats"]["products_created"]) == ("succeeded", 3), run


async def test_a_woocommerce_shop(service: InProcessService, vendor_server: FeedServer) -> None:
    _serve_page(vendor_server, "/", '<meta name="generator" content="WooCommerce 9.1">')
    vendor_server.pages["/wp-json/wc/store/v1/products"] = lambda _: (
        200, {"Content-Type": "application/json", "X-WP-Total": "77"},
        json.dumps([{"name": "Oak", "sku": "1", "prices": {"price": "19900", "currency_code": "USD"}}]).encode(),
    )  # fmt: skip
    probe = await run_probe(service, vendor_server.url("/"))
    report = probe["report"]
    assert (report["platform"], report["feed"]["total"]) == ("woocommerce", 77)
    assert (probe["proposal"]["kind"], probe["proposal"]["connector"]) == ("api", "woocommerce")
    assert (await service.client.post("/v1/sources", probe["proposal"])).status == 201


async def test_a_magento_shop(service: InProcessService, vendor_server: FeedServer) -> None:
    block = f'<script type="application/ld+json">{json.dumps(PRODUCT)}</script><script type="text/x-magento-init">{{}}</script>'
    _serve_page(vendor_server, "/", block)
    urls = [vendor_server.url(f"/oak-{number}.html") for number in range(10_000, 10_030)]
    listed = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    vendor_server.serve("/sitemap.xml", f"<urlset>{listed}</urlset>".encode(), content_type="text/xml")
    for url in urls:
        _serve_page(
            vendor_server,
            "/" + url.rpartition("/")[2],
            block if not url.endswith("000.html") else '<script type="application/ld+json">{"@type": </script>',
        )
    report = (await run_probe(service, vendor_server.url("/")))["report"]
    assert (report["platform"], report["estimate"]["effort"], report["estimate"]["kind"]) == (
        "magento",
        "medium",
        "structured_data",
    )
    assert report["sitemap"] == {"read": [vendor_server.url("/sitemap.xml")], "product_pages": 30, "truncated": False}
    assert len(report["sample"]["pages"]) == 8 and report["sample"]["malformed_blocks"] == 1
    assert report["sample"]["coverage"]["price"] == 0.88 and report["sample"]["coverage"]["weight"] == 0


ACCESS_BLOCKS = {
    "bot_challenge": lambda site: _serve_page(site, "/", '<script src="/cdn-cgi/challenge-platform/h/b/orchestrate"></script>', "", "Just a moment..."),
    "login": lambda site: site.fail("/", 302, Location="/account/login"),
    "geo_block": lambda site: _serve_page(site, "/", "", "<p>This shop is not available in your country.</p>"),
    "rate_limit": lambda site: site.fail("/", 429, Retry_After="30"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ACCESS_BLOCKS)
async def test_access_barriers_are_recognised(service: InProcessService, vendor_server: FeedServer, kind: str) -> None:
    ACCESS_BLOCKS[kind](vendor_server)
    _serve_page(vendor_server, "/account/login", "", '<input type="password">')
    probe = await run_probe(service, vendor_server.url("/"))
    assert probe["report"]["wall"]["kind"] == kind and "proposal" not in probe
    assert probe["report"]["estimate"]["effort"] in ("infeasible", "high") and len(vendor_server.requests) <= 3


async def test_robots_that_forbid_everything(service: InProcessService, vendor_server: FeedServer) -> None:
    _serve_shopify(vendor_server)
    vendor_server.serve("/robots.txt", b"User-agent: *\nDisallow: /\n", content_type="text/plain")
    report = (await run_probe(service, vendor_server.url("/")))["report"]
    assert (report["robots"]["state"], report["estimate"]["effort"]) == ("disallow_all", "infeasible")
    assert report["disallowed"] == [vendor_server.url("/")] and [
        request.path for request in vendor_server.requests
    ] == ["/robots.txt"]


async def test_the_crawl_delay_is_kept(service: InProcessService, vendor_server: FeedServer) -> None:
    times: list[float] = []
    vendor_server.serve("/robots.txt", b"User-agent: *\nCrawl-delay: 0.2\n", content_type="text/plain")
    for path in ("/robots.txt", "/"):
        answer = vendor_server.pages.get(path, lambda _: (200, {"Content-Type": "text/html"}, b"<html></html>"))
        vendor_server.pages[path] = lambda request, answer=answer: (times.append(time.monotonic()), answer(request))[1]  # type: ignore[misc]
    report = (await run_probe(service, vendor_server.url("/")))["report"]
    assert report["robots"]["crawl_delay_seconds"] == 0.2 and times[1] - times[0] >= 0.2


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:{port}/inside", "http://169.254.169.254/latest/meta-data/", "http://[::1]/"]
)
async def test_redirects_to_private_addresses_are_refused(
    service: InProcessService, vendor_server: FeedServer, target: str
) -> None:
    vendor_server.fail("/", 302, Location=target.replace("{port}", str(vendor_server.port)))
    probe = await run_probe(service, vendor_server.url("/"))
    assert probe["status"] == "succeeded" and "proposal" not in probe
    assert not any(request.path == "/inside" for request in vendor_server.requests)
    assert any("is not public" in note or "is not permitted" in note for note in probe["report"]["notes"])


async def test_endless_redirects(service: InProcessService, vendor_server: FeedServer) -> None:
    for number in range(30):
        vendor_server.fail(f"/{number}", 302, Location=f"/{number + 1}")
    report = (await run_probe(service, vendor_server.url("/0")))["report"]
    assert any("redirects more than 5 times" in note for note in report["notes"]) and report["requests"] <= 12


def _send_endlessly(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.send_header("Content-Length", str(1 << 30))
    handler.end_headers()
    try:
        for _ in range(1 << 14):
            handler.wfile.write(b"<p>" + b"a" * 65_000)
    except OSError:
        pass


def _send_slowly(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.end_headers()
    try:
        for _ in range(200):
            handler.wfile.write(b"<")
            handler.wfile.flush()
            time.sleep(0.05)
    except OSError:
        pass


def _close_early(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()


@pytest.mark.parametrize("harm", [_send_endlessly, _send_slowly, _close_early])
async def test_endless_slow_and_truncated_pages(
    service: InProcessService, vendor_server: FeedServer, harm: Callable[[Any], None]
) -> None:
    vendor_server.raw["/"] = harm
    probe = await run_probe(service, vendor_server.url("/"))
    assert probe["status"] == "succeeded" and "proposal" not in probe


async def test_invalid_characters_are_not_stored(service: InProcessService, vendor_server: FeedServer) -> None:
    vendor_server.serve(
        "/robots.txt",
        b"Sitemap: http://127.0.0.2/\x00\xff\xed\xa0\x80.xml\nUser-agent: *\nAllow: /\n",
        content_type="text/plain",
    )
    vendor_server.serve(
        "/",
        b'<html><title>\x00\xff\xfe</title><a href="/products/\x00\xed\xa0\x80">x</a>' + b"\x00" * 50,
        content_type="text/html; charset=utf-7",
    )
    _serve_json(
        vendor_server, "/products.json", {"products": [{"variants": [], "ti\u0000tle\ud800": "x", "a": "\ud800"}]}
    )
    probe = await run_probe(service, vendor_server.url("/"))
    assert probe["status"] == "succeeded", probe


async def test_an_unknown_probe_is_not_found(service: InProcessService, vendor_server: FeedServer) -> None:
    answer = await service.client.post("/v1/source-probes", {"url": "http://127.0.0.1:1/"})
    assert (answer.status, answer.code) == (422, "unprocessable")
    vendor_server.raw["/robots.txt"] = _close_early
    probe = await run_probe(service, vendor_server.url("/"))
    assert probe["status"] == "failed" and probe["failure"]["code"] == "fetch_failed" and "report" not in probe
