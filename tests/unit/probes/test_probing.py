"""Complete probes of sites in memory: the requests, their order and pace, and the result."""

import itertools
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from adapters.api_json.probes import REPORT
from adapters.markup.documents import MarkupDocuments
from domain.kernel.resource import RenderContext
from domain.kernel.tenancy import Tenant
from domain.probes.facts import ProbeResponse
from domain.probes.ports import Unreachable
from domain.probes.usecases.polite_client import PoliteClient, ProbeLimits
from domain.probes.usecases.probe_runner import ProbeFailed, ProbeOutcome, ProbeRunner
from tests.support.memory.hosts import MemoryWeb
from tests.unit.probes import shop_sites
from tests.unit.probes.shop_sites import SITE, build_page

pytestmark = pytest.mark.asyncio


class FakeClock:
    """Clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds


async def run_probe(
    web: MemoryWeb, url: str = f"{SITE}/", time: FakeClock | None = None, connectors: str = "csv shopify", **limits: Any
) -> ProbeOutcome:
    """Run a probe with the given connectors loaded."""
    bounds, documents, time = ProbeLimits(**limits), MarkupDocuments(), time or FakeClock()
    client = PoliteClient(web, documents, bounds, time.sleep, lambda: time.now)
    return await ProbeRunner(
        client, documents, bounds, lambda proposal: proposal["connector"] in connectors.split()
    ).run_probe(url)


async def test_a_shopify_shop_is_detected() -> None:
    web = MemoryWeb()
    shop_sites.serve_shopify_shop(web)
    outcome = await run_probe(web)
    report = outcome.report
    assert (report.platform, report.confidence) == ("shopify", 0.99)
    assert {sign.signal for sign in report.evidence} >= {
        "asset //cdn.shopify.com/",
        "cookie _shopify_",
        "endpoint /products.json",
    }
    assert report.feed is not None
    assert (report.feed.status, report.feed.products, report.feed.total) == (200, 5, 1204)
    assert {"title", "vendor", "variants.sku", "variants.price"} <= set(report.feed.fields)
    assert report.sitemap is not None and (report.sitemap.product_pages, report.sitemap.truncated) == (30, False)
    assert report.sitemap.read == (
        f"{SITE}/sitemap.xml",
        f"{SITE}/sitemap_products_1.xml",
        f"{SITE}/sitemap_pages_1.xml",
    )
    assert report.sample is not None and len(report.sample.pages) == 3
    assert report.sample.coverage["price"] == 1.0 and report.sample.coverage["gtin"] == 0.0
    assert (report.estimate.effort, report.estimate.kind) == ("low", "platform_feed")
    assert report.requests == len(web.requests) <= 25
    assert outcome.proposal == {
        "name": "vendor.example", "kind": "url", "connector": "shopify", "schedule": {"interval_minutes": 1440},
        "config": {"url": f"{SITE}/", "platform": "shopify", "currency": "eur"},
    }  # fmt: skip


async def test_a_woocommerce_shop_is_proposed_only_to_its_own_connector() -> None:
    """Its prices are minor units: any other connector would read them a hundred times too high."""
    web = MemoryWeb()
    shop_sites.serve_woocommerce_shop(web)
    outcome = await run_probe(web, connectors="csv api shopify")
    report = outcome.report
    assert report.platform == "woocommerce" and report.feed is not None
    assert (report.feed.products, report.feed.total) == (1, 412)
    assert {"name", "prices.price", "prices.currency_code"} <= set(report.feed.fields)
    assert outcome.proposal is None and (report.estimate.effort, report.estimate.kind) == ("medium", "platform_feed")
    assert any("No connector" in note for note in report.notes)
    offered = (await run_probe(web, connectors="woocommerce")).proposal
    assert offered is not None and offered["config"] == {
        "url": f"{SITE}/",
        "platform": "woocommerce",
        "currency": "gbp",
    }


async def test_a_magento_shop_is_detected_by_its_pages() -> None:
    web = MemoryWeb()
    shop_sites.serve_magento_shop(web)
    outcome = await run_probe(web, connectors="json_ld")
    report = outcome.report
    assert report.platform == "magento" and report.confidence > 0.9 and report.feed is None
    assert report.sample is not None and len(report.sample.pages) == 8
    assert report.sample.coverage["name"] == report.sample.coverage["currency"] == 1.0
    assert (report.estimate.effort, report.estimate.kind) == ("medium", "structured_data")
    assert report.sitemap is not None and report.sitemap.product_pages == 12
    assert outcome.proposal is not None
    assert (outcome.proposal["kind"], outcome.proposal["connector"]) == ("url", "json_ld")
    assert outcome.proposal["config"] == {"url": f"{SITE}/", "pages": "site", "currency": "eur"}
    assert (await run_probe(web, connectors="csv api")).proposal is None
    assert not any("products.json" in url or "wp-json" in url for url in web.requests)


async def test_coverage_includes_pages_without_data() -> None:
    web = MemoryWeb()
    shop_sites.serve_magento_shop(web, products=4)
    web.serve(f"{SITE}/oak-chair-1001.html", build_page())
    web.serve(
        f"{SITE}/oak-chair-1002.html", build_page('<script type="application/ld+json">{"@type": "Product",</script>')
    )
    report = (await run_probe(web)).report
    assert report.sample is not None
    assert report.sample.coverage["price"] == 0.5 and report.sample.malformed_blocks == 1
    assert report.estimate.effort == "high"


async def test_a_site_that_forbids_everything_is_not_read() -> None:
    web = MemoryWeb()
    shop_sites.serve_shopify_shop(web)
    shop_sites.serve_robots(web, "User-agent: *\nDisallow: /\n")
    outcome = await run_probe(web)
    assert web.requests == [f"{SITE}/robots.txt"]
    assert (outcome.report.robots.state, outcome.report.estimate.effort) == ("disallow_all", "infeasible")
    assert outcome.report.disallowed == (f"{SITE}/",) and outcome.proposal is None
    assert (outcome.report.platform, outcome.report.confidence) == ("custom", 0.0), "no page was read"


async def test_an_allowed_file_of_a_forbidden_site_is_read() -> None:
    web = MemoryWeb()
    shop_sites.serve_robots(web, "User-agent: *\nDisallow: /\nAllow: /feed.csv\n")
    web.serve(f"{SITE}/feed.csv", b"sku,title\n1,Oak\n2,Ash\n", content_type="text/csv")
    outcome = await run_probe(web, f"{SITE}/feed.csv")
    assert outcome.report.robots.state == "disallow_all" and outcome.report.estimate.effort == "low"
    assert outcome.proposal is not None and len(web.requests) == 2


async def test_rules_for_joinery_are_followed() -> None:
    web = MemoryWeb()
    shop_sites.serve_shopify_shop(web)
    shop_sites.serve_robots(web, "User-agent: *\nAllow: /\n\nUser-agent: joinery\nDisallow: /\n")
    assert (await run_probe(web)).report.robots.state == "disallow_all"
    assert web.requests == [f"{SITE}/robots.txt"]


async def test_forbidden_urls_are_reported_and_never_requested() -> None:
    web = MemoryWeb()
    shop_sites.serve_shopify_shop(web)
    shop_sites.serve_robots(web, "User-agent: *\nDisallow: /products.json\nDisallow: /*chair-1\n")
    outcome = await run_probe(web)
    assert outcome.proposal is None and outcome.report.feed is None
    assert f"{SITE}/products.json?limit=25" in outcome.report.disallowed
    assert not any("products.json" in url or "chair-1" in url for url in web.requests)


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_unreadable_robots_allow_nothing(status: int) -> None:
    web = MemoryWeb()
    shop_sites.serve_shopify_shop(web)
    web.serve(f"{SITE}/robots.txt", "", status)
    report = (await run_probe(web)).report
    assert (report.robots.state, report.estimate.effort) == ("unreachable", "infeasible")
    assert web.requests == [f"{SITE}/robots.txt"] and report.disallowed == (f"{SITE}/",)


async def test_missing_robots_allow_everything() -> None:
    web = MemoryWeb()
    shop_sites.serve_shopify_shop(web)
    del web.pages[f"{SITE}/robots.txt"]
    assert (await run_probe(web)).report.robots.state == "missing"
    assert f"{SITE}/products.json?limit=25" in web.requests


async def test_the_crawl_delay_precedes_every_request() -> None:
    web, time = MemoryWeb(), FakeClock()
    shop_sites.serve_magento_shop(web, products=3)
    shop_sites.serve_robots(web, "User-agent: *\nCrawl-delay: 7\n")
    report = (await run_probe(web, time=time)).report
    assert report.robots.crawl_delay_seconds == 7.0
    assert time.slept == [7.0] * (report.requests - 1)


async def test_a_crawl_delay_beyond_the_time_limit_ends_the_probe() -> None:
    web, time = MemoryWeb(), FakeClock()
    shop_sites.serve_magento_shop(web)
    shop_sites.serve_robots(web, "User-agent: *\nCrawl-delay: 250\n")
    report = (await run_probe(web, time=time)).report
    assert report.requests == 3 and time.slept == [250.0, 250.0]
    assert any("time limit" in note for note in report.notes)
    assert report.estimate.effort != "low"


async def test_requests_and_bytes_are_limited() -> None:
    web = MemoryWeb()
    shop_sites.serve_magento_shop(web, products=40)
    report = (await run_probe(web, requests=5)).report
    assert report.requests == len(web.requests) == 5 and any("5 requests" in note for note in report.notes)
    web.requests.clear()
    report = (await run_probe(web, bytes=3000)).report
    assert any("MiB, the maximum" in note for note in report.notes) and len(web.requests) < 10


async def test_an_access_barrier_with_status_200_ends_the_probe() -> None:
    web = MemoryWeb()
    shop_sites.serve_shopify_shop(web)
    web.serve(f"{SITE}/", build_page(title="Just a moment...", body="<p>Checking your browser</p>"))
    outcome = await run_probe(web)
    assert outcome.report.wall is not None and outcome.report.wall.kind == "bot_challenge"
    assert web.requests == [f"{SITE}/robots.txt", f"{SITE}/"]
    assert outcome.proposal is None and outcome.report.estimate.effort == "infeasible"
    assert (outcome.report.platform, outcome.report.confidence) == ("custom", 0.0), "an access barrier hides the shop"


async def test_a_redirect_to_the_login_is_reported() -> None:
    web = MemoryWeb()
    shop_sites.serve_robots(web)
    web.serve(f"{SITE}/", status=302, location="/account/login?next=%2F")
    web.serve(f"{SITE}/account/login?next=%2F", build_page(body='<form><input type="password"></form>'))
    report = (await run_probe(web)).report
    assert report.wall is not None and report.wall.kind == "login"
    assert report.final_url == f"{SITE}/account/login?next=%2F" and report.requests == 3


async def test_a_rate_limit_ends_the_probe() -> None:
    web = MemoryWeb()
    shop_sites.serve_magento_shop(web)
    web.serve(f"{SITE}/oak-chair-1000.html", "slow down", 429, retry_after="60")
    report = (await run_probe(web)).report
    assert report.wall is not None and report.wall.kind == "rate_limit" and "60" in report.wall.detail
    assert web.requests[-1] == f"{SITE}/oak-chair-1000.html"


async def test_redirects_follow_the_rules_of_their_target() -> None:
    web = MemoryWeb()
    shop_sites.serve_robots(web)
    web.serve(f"{SITE}/", status=301, location="https://www.vendor.example/shop")
    shop_sites.serve_robots(web, "User-agent: *\nDisallow: /shop\n", site="https://www.vendor.example")
    report = (await run_probe(web)).report
    assert web.requests[:3] == [f"{SITE}/robots.txt", f"{SITE}/", "https://www.vendor.example/robots.txt"]
    assert "https://www.vendor.example/shop" in report.disallowed
    assert "https://www.vendor.example/shop" not in web.requests


@pytest.mark.parametrize("ring", [("/", "/"), ("/", "/b", "/"), tuple(f"/{number}" for number in range(30))])
async def test_endless_redirects_end(ring: tuple[str, ...]) -> None:
    web = MemoryWeb()
    shop_sites.serve_robots(web)
    for place, following in itertools.pairwise(ring):
        web.serve(f"{SITE}{place}", status=302, location=following)
    report = (await run_probe(web, f"{SITE}{ring[0]}")).report
    assert report.requests <= 12 and any("redirects" in note for note in report.notes)
    assert report.estimate.effort == "infeasible"


async def test_an_unreachable_site_is_reported() -> None:
    with pytest.raises(ProbeFailed, match="no address") as failure:
        await run_probe(MemoryWeb())
    assert not failure.value.is_forbidden
    web = MemoryWeb({f"{SITE}/robots.txt": Unreachable("The host's address is not a public one.", is_forbidden=True)})
    with pytest.raises(ProbeFailed) as failure:
        await run_probe(web)
    assert failure.value.is_forbidden


async def test_failed_requests_are_noted() -> None:
    web = MemoryWeb()
    shop_sites.serve_magento_shop(web)
    web.pages[f"{SITE}/sitemap.xml"] = Unreachable("The server did not answer in time.")
    report = (await run_probe(web)).report
    assert report.sitemap is None and any("did not answer in time" in note for note in report.notes)


FILES = {
    "csv": (b"sku;title;price\n1;Oak;10,00\n2;Ash;11,00\n", "text/plain", ("sku", "title", "price")),
    "tsv": (b"sku\ttitle\n1\tOak\n2\tAsh\n", "text/csv", ("sku", "title")),
    "json": (json.dumps({"items": [{"sku": "1", "price": {"amount": 1}}]}).encode(), "text/html", ("sku", "price.amount")),
    "jsonl": (b'{"sku": "1"}\n{"sku": "2"}\n', "application/json", ("sku",)),
    "xml": (b"<?xml version='1.0'?><products><product><sku>1</sku></product></products>", "text/xml", ()),
    "google_merchant": (b'<rss xmlns:g="http://base.google.com/ns/1.0"><channel><item/></channel></rss>', "text/xml", ()),
    "xlsx": (b"PK\x03\x04 [Content_Types].xml xl/workbook.xml", "application/octet-stream", ()),
}  # fmt: skip


@pytest.mark.parametrize("format", FILES)
async def test_a_url_of_a_file_is_recognised(format: str) -> None:
    content, media_type, fields = FILES[format]
    web = MemoryWeb()
    shop_sites.serve_robots(web)
    web.serve(f"{SITE}/feed", content, content_type=media_type)
    outcome = await run_probe(web, f"{SITE}/feed")
    assert outcome.report.feed is not None and outcome.report.feed.fields == fields
    assert (outcome.report.estimate.effort, outcome.report.estimate.kind) == ("low", "file")
    assert outcome.proposal is not None
    assert (
        outcome.proposal["config"] == {"url": f"{SITE}/feed", "format": format}
        and outcome.proposal["connector"] == "csv"
    )
    assert len(web.requests) == 2


@pytest.mark.parametrize("content", [b"PK\x03\x04 price.csv", b"\x1f\x8b\x08 packed"])
async def test_an_archive_is_reported_with_advice(content: bytes) -> None:
    web = MemoryWeb()
    shop_sites.serve_robots(web)
    web.serve(f"{SITE}/feed", content, content_type="application/octet-stream")
    outcome = await run_probe(web, f"{SITE}/feed")
    assert outcome.proposal is None and outcome.report.estimate.kind == "file"
    assert any("publish" in reason for reason in outcome.report.estimate.reasons)


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"not\na\ntable\n", b"%PDF-1.7 a,b\nc,d", b"{}", b'{"error": "no"}']
)
async def test_other_content_is_reported(content: bytes) -> None:
    web = MemoryWeb()
    shop_sites.serve_robots(web)
    web.serve(f"{SITE}/", content, content_type="application/octet-stream")
    outcome = await run_probe(web)
    assert outcome.proposal is None and outcome.report.estimate.effort == "high"


async def test_a_url_of_a_sitemap_is_recognised() -> None:
    web = MemoryWeb()
    shop_sites.serve_magento_shop(web)
    report = (await run_probe(web, f"{SITE}/sitemap.xml")).report
    assert report.sitemap is not None and report.sitemap.product_pages == 12
    assert report.sample is not None and len(report.sample.pages) == 8 and report.platform == "magento"


async def test_a_refused_feed_is_reported_with_its_status() -> None:
    web = MemoryWeb()
    shop_sites.serve_shopify_shop(web)
    web.serve(f"{SITE}/products.json?limit=25", "no", 403)
    outcome = await run_probe(web)
    assert outcome.report.feed is not None
    assert (outcome.report.feed.status, outcome.report.feed.products) == (403, None)
    assert outcome.report.estimate.kind == "structured_data" and outcome.proposal is None


async def test_a_custom_site_is_reported() -> None:
    web = MemoryWeb()
    shop_sites.serve_robots(web)
    web.serve(
        f"{SITE}/",
        build_page(body=shop_sites.WORDS + "<a href='/p/1234'>Oak</a><a href='https://other.example/p/5'>Other</a>"),
    )
    web.serve(f"{SITE}/p/1234", build_page())
    report = (await run_probe(web)).report
    assert (report.platform, report.confidence, report.evidence) == ("custom", 1.0, ())
    assert report.sample is not None and [one.url for one in report.sample.pages] == [f"{SITE}/p/1234"]
    assert (report.estimate.effort, report.estimate.kind) == ("high", "pages")


_WORDS = st.sampled_from(
    ["User-agent: *\n", "Disallow: /x*$\n", "\n", "/", "<html>", "<title>", "\ud800", "\0", "\x1b[2J", "{", "[", ';"', "a,b\n", "\t", "<rss>", "é", "<!--", "]]>"]
)  # fmt: skip
_TEXT = st.lists(_WORDS, max_size=12).map("".join)
_URL = st.sampled_from(
    [f"{SITE}/products/a", f"{SITE}/sitemap2.xml", f"{SITE}/products/b", "http://[/products/x", f"{SITE}:99999/products/x", "x", "", "//", "http://\ud800/products/a",
     f"{SITE}/products/\ud800", f"{SITE}/products/\0", f"{SITE}/products/\x1b[2J", "/products/c", f"{SITE}/products/" + "a" * 3_000, "http://169.254.169.254/", "ftp://x/", "javascript:1"]
)  # fmt: skip
_URLS = st.lists(_URL, max_size=4)
_JSON = st.sampled_from(
    ['{"products": [{"variants": [], "": 1, "a": {"": 2}, "b\\ud83d": "\\u0000"}]}', '[{"prices": {"currency_code": "U\\ud83d\\u0000"}}]', "[]", "{}", "[[[", "1e999", '{"products": [1]}',
     '{"currency": "\\u0000\\u0000\\u0000", "published_products_count": true}', '{"currency": "EUR", "published_products_count": 1e300}', '{"published_products_count": -1}']
)  # fmt: skip
_PAGE = st.tuples(_URLS, _JSON, _TEXT).map(
    lambda drawn: shop_sites.build_page(
        f'<script type="application/ld+json">{drawn[1]}</script>'
        + shop_sites.build_json_ld(shop_sites.build_product(1)),
        drawn[2] + "".join(f'<a href="{url}">x</a>' for url in drawn[0]),
    )
)
_SITEMAP = st.one_of(
    _URLS.map(lambda urls: shop_sites.build_sitemap(*urls)),
    _URLS.map(lambda urls: shop_sites.build_sitemap_index(*urls)),
    _URLS.map("\n".join),
    _TEXT,
)
_ROBOTS = st.tuples(_URLS, _TEXT).map(
    lambda drawn: "User-agent: *\nAllow: /\n" + "".join(f"Sitemap: {url}\n" for url in drawn[0]) + drawn[1]
)
_BODIES = {
    "/robots.txt": _ROBOTS, "/": st.one_of(_PAGE, _SITEMAP, _JSON), "/products.json?limit=25": _JSON, "/meta.json": _JSON,
    "/wp-json/wc/store/v1/products?per_page=25": _JSON, "/sitemap.xml": _SITEMAP, "/sitemap2.xml": _SITEMAP, "/products/a": _PAGE,
}  # fmt: skip
_STATUS = st.sampled_from([200] * 12 + [301, 302, 403, 404, 429, 500, 503])
_TYPE = st.sampled_from(["text/html", "text/plain", "application/json", "application/xml", "", "x"])


def _draw_response(body: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, int, str, str]]:
    return st.tuples(body, _STATUS, _TYPE, _URL)


_FITS = Draft202012Validator(REPORT.schema)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.fixed_dictionaries({path: _draw_response(body) for path, body in _BODIES.items()}))
async def test_any_responses_of_a_site_have_a_report(answers: dict[str, tuple[str, int, str, str]]) -> None:
    web = MemoryWeb()
    for path, (text, status, kind, location) in answers.items():
        body = text.encode("utf-8", "surrogatepass")
        web.serve(f"{SITE}{path}", body, status, (location,), content_type=kind, location=location, x_wp_total=location)
    try:
        outcome = await run_probe(web)
    except ProbeFailed:
        assert answers["/robots.txt"][1] in (301, 302), "only robots.txt can refer to an unreachable address"
        return
    rendered = REPORT.render(outcome.report, RenderContext(Tenant("org", True), datetime.now(UTC)))
    assert not list(_FITS.iter_errors(json.loads(json.dumps(rendered))))
    stored = json.dumps([rendered, outcome.proposal], ensure_ascii=False)
    assert "\0" not in stored and "\\u0000" not in stored and len(stored.encode()) < 64 * 1024
    assert outcome.report.requests == len(web.requests) <= 25


async def test_only_names_of_cookies_are_reported() -> None:
    web = MemoryWeb()
    shop_sites.serve_robots(web)
    web.pages[f"{SITE}/"] = ProbeResponse(
        f"{SITE}/", 200, {"content-type": "text/html"}, ("woocommerce_cart_hash",), build_page().encode()
    )
    report = (await run_probe(web)).report
    assert any(sign.signal == "cookie woocommerce_" for sign in report.evidence)
