"""Signals of demand and the statistics for vendors over HTTP."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from domain.demand.ports import DemandUpkeep
from domain.demand.usecases.release import DemandReleaser
from domain.kernel.ids import new_id
from tests.http.application import ApplicationHarness, create_plan
from tests.http.client import Client, Response
from tests.support.catalogues import publish_product

pytestmark = pytest.mark.asyncio
OCCURRED = "2026-11-20T13:08:00.123Z"
MISS = {"type": "search_miss", "query": "Oak  Sideboard ", "occurred_at": OCCURRED}


async def send(client: Client, *signals: Any, **headers: str) -> Response:
    headers = {"idempotency_key": new_id("req"), **headers}
    return await client.post("/v1/demand", {"signals": list(signals)}, **headers)


def build_view(product: str, **fields: Any) -> dict[str, Any]:
    return {"type": "view", "product": product, "occurred_at": OCCURRED, **fields}


async def create_shops(application: ApplicationHarness, count: int) -> list[Client]:
    """Create retailers, and return a client of each."""
    names = [f"Shop {number}" for number in range(count)]
    for name in names:
        await application.create_organisation(name, create_plan("standard", "standard"))
    return [await application.create_client(name) for name in names]


async def create_vendor(application: ApplicationHarness, name: str = "Oak Mill") -> tuple[Client, str]:
    """Create a vendor with a published product; return a client of the vendor and the product's ID."""
    made = await application.create_organisation(name, create_plan("standard", "standard"), kind="vendor")
    product = new_id("prod")
    publish_product(application.database.address, made.id, product)
    return await application.create_client(name), product


async def release(application: ApplicationHarness) -> None:
    """Advance the time by two days, and release the cells of the days that are over."""
    application.clock.advance(timedelta(days=2))
    upkeep = application.dependencies[DemandUpkeep]
    await DemandReleaser(application.uow, upkeep, application.clock).release_days()


async def read_stats(client: Client, query: str = "") -> Mapping[str, Any]:
    response = await client.get(f"/v1/vendor/stats{query}")
    assert response.status == 200, response.body
    body: Mapping[str, Any] = response.json()
    return body


async def test_signals_of_five_organisations_become_statistics(application: ApplicationHarness) -> None:
    vendor, product = await create_vendor(application)
    for shop in await create_shops(application, 5):
        cart = build_view(product, variant=new_id("var"), quantity=2, region="US-CA", id="c1") | {"type": "cart"}
        response = await send(shop, build_view(product, id="v1"), build_view(product), MISS, cart)
        assert response.status == 202
        assert response.json() == {"object": "demand_receipt", "accepted": 4, "duplicates": 0, "rejected": []}
    before = await read_stats(vendor)
    assert before["totals"] == dict.fromkeys(("view", "save", "quote", "cart", "order", "search_miss"), 0)
    await release(application)
    assert await read_stats(vendor, "?period=7d") == {
        "object": "vendor_stats",
        "period": "7d",
        "organisations": 5,
        "suppressed": False,
        "totals": {"view": 10, "save": 0, "quote": 0, "cart": 5, "order": 0, "search_miss": 5},
        "top_queries": [{"query": "oak sideboard", "count": 5}],
    }
    page = (await vendor.get("/v1/vendor/stats/products")).json()
    totals = {"view": 10, "save": 0, "quote": 0, "cart": 5, "order": 0}
    assert page["data"] == [{"object": "vendor_product_stats", "product": product, "totals": totals}]
    series = (await vendor.get("/v1/vendor/stats/series?metric=view&period=7d")).json()
    assert [point for point in series["points"] if "value" in point] == [{"at": "2026-11-20", "value": 10}]
    assert len(series["points"]) == 7
    weeks = (await vendor.get("/v1/vendor/stats/series?metric=search_miss&interval=week")).json()
    assert [point for point in weeks["points"] if "value" in point] == [{"at": "2026-11-16", "value": 5}]


async def test_signals_of_four_organisations_are_left_out(application: ApplicationHarness) -> None:
    vendor, product = await create_vendor(application)
    other_vendor, _ = await create_vendor(application, "Elm Mill")
    for shop in await create_shops(application, 4):
        await send(shop, build_view(product), MISS)
    own = await send(vendor, build_view(product), MISS)  # the vendor has only the copy of the product
    await send(other_vendor, MISS)
    assert own.json()["accepted"] == 1, "own signals are never counted"
    await release(application)
    stats = await read_stats(vendor)
    assert stats["suppressed"] and set(stats["totals"].values()) == {0} and stats["top_queries"] == []
    assert (await vendor.get("/v1/vendor/stats/products")).json()["data"] == []


async def test_invalid_signals_are_rejected_alone(application: ApplicationHarness, client: Client) -> None:
    _, product = await create_vendor(application)
    unknown, variant = new_id("prod"), {"type": "view", "variant": new_id("var"), "occurred_at": OCCURRED}
    response = await send(
        client,
        build_view(product),
        build_view(unknown),
        variant,
        {"type": "wish", "occurred_at": OCCURRED},
        {"type": "view", "product": product},
        build_view(product, colour="red"),
        build_view(product, occurred_at="2026-11-20T13:30:00Z"),
        build_view(product, occurred_at="2026-11-13T13:00:00Z"),
        {"type": "view", "occurred_at": OCCURRED},
        MISS | {"product": product},
        MISS | {"query": " a "},
        {"type": "search_miss", "occurred_at": OCCURRED},
        "view",
        MISS,
    )
    assert response.status == 202 and response.json()["accepted"] == 2
    assert [(one["index"], one["code"]) for one in response.json()["rejected"]] == [
        (1, "not_found"),
        (2, "not_found"),
        (3, "invalid_value"),
        (4, "required"),
        (5, "unknown_field"),
        (6, "invalid_value"),
        (7, "invalid_value"),
        (8, "required"),
        (9, "unknown_field"),
        (10, "invalid_value"),
        (11, "required"),
        (12, "invalid_type"),
    ]
    assert all(one["detail"].count(" ") > 2 for one in response.json()["rejected"])


async def test_a_body_without_signals_is_refused(client: Client) -> None:
    assert (await send(client)).faults == {("signals", "too_few")}
    assert (await send(client, *[MISS] * 1001)).faults == {("signals", "too_many")}


async def test_repeated_signals_are_counted_once(application: ApplicationHarness) -> None:
    vendor, product = await create_vendor(application)
    for shop in await create_shops(application, 5):
        view = build_view(product, id="one")
        assert (await send(shop, view, view, build_view(new_id("prod"), id="two"))).json()["duplicates"] == 1
        again = await send(shop, view, build_view(product, id="two"))
        assert (again.json()["accepted"], again.json()["duplicates"]) == (1, 1)
        assert (await send(shop, build_view(product), service_dry_run="true")).json()["accepted"] == 1
    await release(application)
    assert (await read_stats(vendor))["totals"]["view"] == 10


async def test_late_signals_count_on_the_first_open_day(application: ApplicationHarness) -> None:
    vendor, product = await create_vendor(application)
    for shop in await create_shops(application, 5):
        await send(shop, build_view(product, occurred_at="2026-11-14T10:00:00Z"))
        await send(shop, build_view(product, occurred_at="2026-11-19T23:59:00Z"))
    await release(application)
    series = (await vendor.get("/v1/vendor/stats/series?period=30d")).json()
    assert [point for point in series["points"] if "value" in point] == [{"at": "2026-11-20", "value": 10}]


async def test_the_modes_are_separate(application: ApplicationHarness) -> None:
    vendor, product = await create_vendor(application)
    await create_shops(application, 5)
    for number in range(5):
        client = await application.create_client(f"Shop {number}", livemode=False)
        assert (await send(client, build_view(product))).json()["rejected"][0]["code"] == "not_found"
        await send(client, MISS)
    await release(application)
    sandbox = await application.create_client("Oak Mill", livemode=False)
    assert (await read_stats(vendor))["totals"]["search_miss"] == 0
    assert (await read_stats(sandbox))["totals"]["search_miss"] == 5


async def test_statistics_are_for_vendors(client: Client) -> None:
    for path in ("", "/products", "/series"):
        response = await client.get(f"/v1/vendor/stats{path}?unknown=1")
        assert (response.status, response.code) == (403, "permission_denied")
        assert "Only a vendor" in response.json()["detail"]


async def test_queries_are_validated(application: ApplicationHarness) -> None:
    vendor, _ = await create_vendor(application)
    refused = await vendor.get("/v1/vendor/stats/series?metric=clicks&interval=hour&period=1d")
    names = {field for field, _ in refused.faults}
    assert refused.status == 400 and names == {"query.metric", "query.interval", "query.period"}


async def test_the_console_shows_demand_to_vendors(application: ApplicationHarness) -> None:
    _, product = await create_vendor(application)
    browser = await application.open_browser("Oak Mill", "viewer")
    empty = await browser.get("/console/demand")
    assert empty.status == 200 and "No numbers in this period" in empty.text
    for shop in await create_shops(application, 5):
        await send(shop, build_view(product), build_view(product), MISS | {"query": "<b>oak</b>"})
    await send(await application.create_client("Shop 0"), build_view(product) | {"type": "order"})
    await release(application)
    page = await browser.get("/console/demand?period=7d")
    assert page.status == 200 and "At least 5 organisations" in page.text and product in page.text
    assert "&lt;b&gt;oak&lt;/b&gt;" in page.text and "fewer than five organisations sent them on a day" in page.text
    assert (await browser.get("/console/demand?period=1d&cursor=x")).status == 400


async def test_the_console_of_retailers_has_no_demand_page(application: ApplicationHarness) -> None:
    await create_vendor(application)
    retailer, vendor = await application.open_browser(), await application.open_browser("Oak Mill")
    assert (await retailer.get("/console/demand")).status == 403
    assert "/console/demand" not in (await retailer.get("/console/catalogue")).text
    assert "/console/demand" in (await vendor.get("/console/catalogue")).text
    billing = await application.open_browser("Oak Mill", "billing")
    assert (await billing.get("/console/demand")).status == 403
