"""Sources that are pulled from a URL: conditional requests, retries and pages."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.flows.feeds import FeedRequest, FeedServer, Reply, build_catalogue, build_stock_sheet, serve_feeds
from tests.flows.service_processes import ServiceProcesses, Tenancy


def _create_source(tenancy: Tenancy, url: str, **config: Any) -> str:
    return tenancy.api.create_source("url", config={"url": url, "currency": "usd", **config})


def test_an_unchanged_feed_is_requested_conditionally(
    services: ServiceProcesses, fjord: Tenancy, feeds: FeedServer
) -> None:
    api, path = fjord.api, "/conditional.csv"
    source = _create_source(fjord, feeds.serve(path, build_catalogue(4), etag='"v1"'))
    first = api.pull(source)
    assert (first["status"], first["trigger"], first["stats"]["products_created"]) == ("succeeded", "manual", 4)
    second = api.pull(source)
    assert second["status"] == "succeeded" and second["stats"]["unchanged_feed"] == 1
    assert [request.headers.get("If-None-Match") for request in feeds.requests if request.path == path] == [
        None,
        '"v1"',
    ]
    feeds.serve(path, build_catalogue(4, price=120), etag='"v2"')
    third = api.pull(source)
    assert third["stats"]["offers_changed"] == 8 and "unchanged_feed" not in third["stats"]


def test_changed_settings_reimport_the_same_file(fjord: Tenancy, feeds: FeedServer) -> None:
    api = fjord.api
    url = feeds.serve("/settings.csv", build_catalogue(3), etag='"v1"')
    source = _create_source(fjord, url)
    api.pull(source)
    api.patch_source(source, config={"url": url, "currency": "eur"})
    run = api.pull(source)
    assert "unchanged_feed" not in run["stats"] and run["stats"]["offers_changed"] == 6
    assert {offer["currency"] for offer in api.list_all("/v1/offers")} == {"eur"}


def test_the_same_bytes_without_an_etag_end_the_run_early(fjord: Tenancy, feeds: FeedServer) -> None:
    source = _create_source(fjord, feeds.serve("/plain.csv", build_catalogue(3)))
    fjord.api.pull(source)
    assert fjord.api.pull(source)["stats"]["unchanged_feed"] == 1


def test_redirects_are_followed(fjord: Tenancy, feeds: FeedServer) -> None:
    feeds.serve("/there.csv", build_catalogue(2))
    source = _create_source(fjord, feeds.fail("/here.csv", 302, Location="/there.csv"))
    assert fjord.api.pull(source)["stats"]["products_created"] == 2
    ring = _create_source(fjord, feeds.fail("/ring.csv", 302, Location="/ring.csv"))
    run = fjord.api.pull(ring)
    assert (run["status"], run["error"]["code"]) == ("failed", "fetch_failed")
    assert feeds.count("/ring.csv") == 6


def test_a_busy_source_is_retried_after_its_delay(fjord: Tenancy, feeds: FeedServer) -> None:
    attempts = 0

    def busy(_: FeedRequest) -> Reply:
        nonlocal attempts
        attempts += 1
        return (429, {"Retry-After": "1"}, b"") if attempts == 1 else (200, {}, build_catalogue(2))

    feeds.pages["/busy.csv"] = busy
    api = fjord.api
    run = api.post(f"/v1/sources/{_create_source(fjord, feeds.url('/busy.csv'))}/runs", expect=202)
    waiting = api.wait_for_run(run["id"], lambda found: found["status"] in ("waiting", "failed", "succeeded"))
    assert waiting["status"] == "waiting"
    assert (waiting["waiting"]["reason"], waiting["waiting"]["attempt"]) == ("rate_limited", 1)
    ended = api.wait_for_end(run["id"])
    assert ended["status"] == "succeeded" and "waiting" not in ended


@pytest.fixture
def separate_feeds() -> Iterator[FeedServer]:
    """Run a separate server, because a host that sends Retry-After is not requested."""
    with serve_feeds() as served:
        yield served


def test_one_run_of_a_stream_at_a_time(fjord: Tenancy, separate_feeds: FeedServer) -> None:
    separate_feeds.fail("/later.csv", 503, Retry_After="60")
    source = _create_source(fjord, separate_feeds.url("/later.csv"))
    first = fjord.api.post(f"/v1/sources/{source}/runs")
    second = fjord.api.call("POST", f"/v1/sources/{source}/runs")
    assert (second.status, second.code) == (409, "conflict") and first["id"] in second.json()["detail"]


def test_a_host_that_sends_retry_after_is_not_requested(
    services: ServiceProcesses, fjord: Tenancy, separate_feeds: FeedServer
) -> None:
    """The pause applies to all sources of the organisation; sources with credentials have separate limits."""
    separate_feeds.fail("/busy.csv", 429, Retry_After="12")
    separate_feeds.serve("/other.csv", build_catalogue(1))
    api, url = fjord.api, separate_feeds.url("/other.csv")
    busy = api.post(f"/v1/sources/{_create_source(fjord, separate_feeds.url('/busy.csv'))}/runs")
    api.wait_for_run(busy["id"], lambda found: found["status"] == "waiting")
    separate_feeds.serve("/busy.csv", build_catalogue(1))
    other = api.post(f"/v1/sources/{_create_source(fjord, url)}/runs")
    waiting = api.wait_for_run(other["id"], lambda found: found["status"] in ("waiting", "failed", "succeeded"))
    assert (waiting["status"], waiting["waiting"]["reason"]) == ("waiting", "retry")
    assert separate_feeds.count("/other.csv") == 0, "the host was not requested"
    signed = _create_source(fjord, url)
    api.call("PUT", f"/v1/sources/{signed}/credentials", {"credentials": {"token": "an-account-of-its-own"}})
    assert api.pull(signed)["status"] == "succeeded"
    elm = services.create_organisation()
    assert elm.api.pull(_create_source(elm, url))["status"] == "succeeded", "other hosts are requested without delay"
    assert api.wait_for_end(other["id"], within=40)["status"] == "succeeded", "the host is requested after its delay"


def test_validators_remain_when_a_response_omits_them(fjord: Tenancy, feeds: FeedServer) -> None:
    path, stated = "/terse.csv", {"Last-Modified": "Fri, 20 Nov 2026 12:00:00 GMT"}

    def answer(request: FeedRequest) -> Reply:
        if request.headers.get("If-Modified-Since"):
            return 304, {}, b""
        return 200, {"Content-Type": "text/csv", **stated}, build_catalogue(2)

    feeds.pages[path] = answer
    source = _create_source(fjord, feeds.url(path))
    runs = [fjord.api.pull(source) for _ in range(4)]
    assert [run["stats"].get("unchanged_feed", 0) for run in runs] == [0, 1, 1, 1]
    sent = [request.headers.get("If-Modified-Since") for request in feeds.requests if request.path == path]
    assert sent == [None, *[stated["Last-Modified"]] * 3]


def test_stock_is_pulled_separately(fjord: Tenancy, feeds: FeedServer) -> None:
    url, below = (
        feeds.serve("/all.csv", build_catalogue(3)),
        feeds.serve("/stock.csv", build_stock_sheet(3, quantity=2)),
    )
    source = _create_source(fjord, url, stock_url=below)
    fjord.api.pull(source)
    run = fjord.api.pull(source, stream="stock")
    assert (run["stream"], run["stats"]["offers_changed"]) == ("stock", 6)
    assert {offer["availability"] for offer in fjord.api.list_all("/v1/offers")} == {"low_stock"}
    shop = fjord.api.create_source("url", config={"url": url, "platform": "shopify", "currency": "usd"})
    without = _create_source(fjord, url)
    for other in (shop, without):
        assert fjord.api.call("POST", f"/v1/sources/{other}/runs", {"stream": "stock"}).status == 422


def test_a_source_test_stores_nothing(services: ServiceProcesses, fjord: Tenancy, feeds: FeedServer) -> None:
    api = fjord.api
    good = api.post(f"/v1/sources/{_create_source(fjord, feeds.serve('/try.csv', build_catalogue(9)))}/test")
    assert (good["ok"], good["status"], len(good["sample"])) == (True, 200, 5)
    bad = api.post(f"/v1/sources/{_create_source(fjord, feeds.fail('/gone.csv', 500))}/test")
    assert bad["ok"] is False and bad["failure"]["code"] == "fetch_failed"
    assert api.list_all("/v1/products") == []
    assert services.fetch_value("SELECT count(*) FROM runs WHERE org = %(org)s", org=fjord.tenant.org) == 0


def _build_shop_page(number: int) -> Any:
    variants = [
        {"id": number * 10 + size, "title": f"Size {size}", "option1": f"Size {size}", "sku": f"SH-{number}-{size}",
         "price": "249.00", "compare_at_price": "299.00", "available": size == 0, "grams": 12000}
        for size in range(2)
    ]  # fmt: skip
    return {
        "id": number, "title": f"Sofa {number}", "handle": f"sofa-{number}", "body_html": "<p>Soft.</p>",
        "vendor": "Quillmere", "product_type": "Sofas", "tags": ["velvet"], "options": [{"name": "Size"}],
        "images": [{"id": 1, "src": "https://img.example/1.jpg", "position": 1}], "variants": variants,
    }  # fmt: skip


def test_a_shop_is_read_page_by_page(fjord: Tenancy, feeds: FeedServer) -> None:
    everything = [_build_shop_page(number) for number in range(1, 521)]

    def page(request: FeedRequest) -> Reply:
        size, number = int(request.query["limit"][0]), int(request.query["page"][0])
        body = json.dumps({"products": everything[(number - 1) * size : number * size]})
        return 200, {"Content-Type": "application/json"}, body.encode()

    feeds.pages["/products.json"] = page
    source = fjord.api.create_source("url", config={"url": feeds.url("/"), "platform": "shopify", "currency": "usd"})
    assert fjord.api.get(f"/v1/sources/{source}")["connector"] == "shopify"
    run = fjord.api.pull(source)
    assert (run["status"], run["served_by"]) == ("succeeded", "products.json")
    assert (run["stats"]["products_created"], run["stats"]["variants_created"]) == (520, 1040)
    assert [request.query["page"] for request in feeds.requests if request.path == "/products.json"] == [
        ["1"],
        ["2"],
        ["3"],
        ["4"],
    ]
    product = fjord.api.get("/v1/products", limit=1)["data"][0]
    first, second = sorted(product["variants"], key=lambda variant: str(variant["data"]["sku"]))
    assert product["data"]["brand"] == "Quillmere" and first["data"]["axes"] == {"Size": "Size 0"}
    assert (first["offers"][0]["price"], first["offers"][0]["compare_at"]) == (24900, 29900)
    assert {first["offers"][0]["availability"], second["offers"][0]["availability"]} == {"in_stock", "out_of_stock"}
