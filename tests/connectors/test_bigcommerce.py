"""BigCommerce V3 API as documented: pages, lookups, units, rate limit headers."""

import json
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from connectors.bigcommerce.connector import SPEC
from connectors.sdk import Limits, Refused, RetryLater
from connectors.sdk.testing import NOON, ConnectorContract, ConnectorExample, StockCheckItem, StubResponse
from tests.connectors.vendor_servers import VendorServer

CREDENTIALS = {"store": "abc123", "access_token": "token-0123456789"}
SOFA: dict[str, Any] = {
    "id": 7, "name": "Sofa Ada", "description": "<p>Oak</p>", "brand_id": 3, "categories": [11, 12], "sku": "ADA", "upc": "111",
    "weight": 41.5, "width": 90, "depth": 210.25, "height": 0, "price": 499, "cost_price": 200, "retail_price": 0, "sale_price": 450,
    "map_price": 0, "availability": "available", "inventory_tracking": "variant", "inventory_level": 9,
    "images": [{"url_zoom": "https://cdn.example/2.jpg", "sort_order": 0}, {"url_zoom": "https://cdn.example/1.jpg", "is_thumbnail": True, "description": "front"}],
    "custom_fields": [{"id": 1, "name": "Wood", "value": "Oak"}],
    "variants": [
        {"id": 71, "sku": "ADA-G", "gtin": "4006381333931", "price": None, "weight": None, "inventory_level": 4, "image_url": "https://cdn.example/g.jpg",
         "option_values": [{"option_display_name": "Colour", "label": "Grey"}]},
        {"id": 72, "sku": "ADA-B", "price": 520, "sale_price": None, "weight": 43, "inventory_level": 0, "purchasing_disabled": True,
         "option_values": [{"option_display_name": "Colour", "label": "Blue"}]},
    ],
}  # fmt: skip


def build_stool(number: int) -> dict[str, Any]:
    """Return a product with one variant."""
    return {"id": number, "name": f"Stool {number}", "sku": f"ST-{number}", "upc": "222", "price": 9.5, "weight": 4, "categories": [],
            "inventory_tracking": "product", "inventory_level": 3, "availability": "preorder",
            "variants": [{"id": number * 10, "sku": f"ST-{number}", "inventory_level": 0, "option_values": []}]}  # fmt: skip


class BigCommerceStore:
    """Store with one sofa, a number of stools, and a budget of requests."""

    def __init__(self, stools: int = 300, budget: int = 1_000, clamp: int = 250, **more: Any) -> None:
        self.products = [SOFA, *(build_stool(number) for number in range(100, 100 + stools))]
        self.budget = self.left = budget
        self.clamp = clamp
        self.more = more
        self.limits: list[int] = []
        self.vendor = VendorServer(self._answer)

    def fetch(self, **more: Any) -> Any:
        """Fetch and parse with the connector; its wait times refill the budget."""

        def waited(_: float) -> None:
            self.left = self.budget

        return self.vendor.fetch(SPEC, {}, CREDENTIALS, waited=waited, **more)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("X-Auth-Token") != CREDENTIALS["access_token"]:
            return web.json_response({"title": "You are not authorized"}, status=401)
        assert request.path.startswith("/stores/abc123/")
        headers = {"X-Rate-Limit-Requests-Left": str(self.left), "X-Rate-Limit-Time-Reset-Ms": "4500"}
        if self.left <= 0:
            return web.Response(status=429, headers=headers)
        self.left -= 1
        headers["X-Rate-Limit-Requests-Left"] = str(self.left)
        path = request.path.removeprefix("/stores/abc123/")
        if path == "v2/store":
            return web.json_response(
                {"currency": "USD", "weight_units": "LBS", "dimension_units": "Inches"}, headers=headers
            )
        items: list[Any] = {
            "v3/catalog/products": self.products,
            "v3/catalog/brands": [{"id": 3, "name": "Lindgren"}],
            "v3/catalog/trees/categories": [{"category_id": 11, "name": "Furniture", "parent_id": 0}, {"category_id": 12, "name": "Sofas", "parent_id": 11}],
        }[path]  # fmt: skip
        size, number = min(int(request.query["limit"]), self.clamp), int(request.query["page"])
        self.limits.append(int(request.query["limit"]))
        pagination = {"total": len(items), "count": 0, "per_page": size, "current_page": number}
        return web.json_response(
            {"data": items[(number - 1) * size : number * size], "meta": {"pagination": pagination}}, headers=headers
        )


def test_a_catalogue() -> None:
    _, ((_, rows),), fetch = BigCommerceStore().fetch()
    assert len(rows) == 302
    assert fetch.reports == []
    grey, blue, stools = rows[0], rows[1], rows[2:]
    assert grey == {
        "product id": "7", "variant id": "71", "name": "Sofa Ada", "description": "<p>Oak</p>", "brand": "Lindgren",
        "categories": ["Furniture", "Sofas"], "custom_fields": ["Wood: Oak"], "option_values": {"Colour": "Grey"},
        "images": [{"url": "https://cdn.example/1.jpg", "alt": "front"}, {"url": "https://cdn.example/2.jpg"}],
        "image_url": "https://cdn.example/g.jpg", "sku": "ADA-G", "gtin": "4006381333931", "weight": "41.5 lb", "width": "90 in",
        "depth": "210.25 in", "currency": "usd", "price": 499, "sale_price": 450, "cost_price": 200, "inventory_level": 4,
    }  # fmt: skip
    assert (blue["weight"], blue["price"], blue["availability"], blue["inventory_level"]) == (
        "43 lb",
        520,
        "out_of_stock",
        0,
    )
    assert "gtin" not in blue, "a product's own code is nobody's where there are several variants"
    assert (stools[0]["inventory_level"], stools[0]["availability"], stools[0]["gtin"]) == (3, "preorder", "222")


@pytest.mark.parametrize("clamp", [50, 128, 7])
def test_a_store_that_returns_less_than_requested(clamp: int) -> None:
    _, ((_, rows),), _ = BigCommerceStore(stools=60, clamp=clamp).fetch()
    assert len({row["variant id"] for row in rows}) == len(rows) == 62


def test_pages_that_are_too_large_are_requested_in_smaller_ones() -> None:
    store = BigCommerceStore(stools=60)
    _, ((_, rows),), _ = store.fetch(limits=Limits(page_bytes=6_000))
    assert len({row["variant id"] for row in rows}) == len(rows) == 62
    assert store.limits[:3] == [128, 64, 32]


def test_the_remaining_budget_is_not_exhausted() -> None:
    store = BigCommerceStore(stools=600, budget=4)
    _, ((_, rows),), fetch = store.fetch()
    assert len(rows) == 602
    assert {round(seconds, 2) for seconds in fetch.slept} == {4.5}


def test_an_initially_exhausted_budget() -> None:
    with pytest.raises(RetryLater) as caught:
        BigCommerceStore(budget=0).fetch()
    assert caught.value.until is not None


def test_stock_alone() -> None:
    _, ((table, rows),), _ = BigCommerceStore(stools=1).fetch(stream="stock")
    assert rows[0] == {"product id": "7", "variant id": "71", "sku": "ADA-G", "inventory_level": 4}
    assert "price" not in table.headers


def test_a_wrong_token() -> None:
    with pytest.raises(Refused) as caught:
        BigCommerceStore().vendor.fetch(SPEC, {}, {**CREDENTIALS, "access_token": "token-of-another"})
    assert caught.value.is_credentials_error and "of-another" not in str(caught.value)


def test_milliseconds_where_no_retry_after_is_sent() -> None:
    error = TestBigCommerce().find_fetch_error(
        StubResponse(status=429, headers={"X-Rate-Limit-Time-Reset-Ms": "15000"})
    )
    assert isinstance(error, RetryLater) and error.until == NOON + timedelta(seconds=15)


BASE = "https://api.bigcommerce.com/stores/abc123"
FIELDS = "id%2Csku%2Cinventory_level%2Cinventory_tracking%2Cavailability"


def build_page(*items: dict[str, Any]) -> StubResponse:
    """Return the only page of a list."""
    return StubResponse(json.dumps({"data": items, "meta": {"pagination": {"total": len(items)}}}).encode())


class TestBigCommerce(ConnectorContract):
    """Contract tests of the connector."""

    example = ConnectorExample(
        spec=SPEC,
        config={"platform": "bigcommerce"},
        credentials=CREDENTIALS,
        responses={
            f"{BASE}/v3/catalog/products?is_visible=true&sort=id&direction=asc&include=variants%2Cimages%2Ccustom_fields&limit=128&page=1": build_page(SOFA),
            f"{BASE}/v3/catalog/brands?limit=128&page=1": build_page(),
            f"{BASE}/v3/catalog/trees/categories?limit=128&page=1": build_page(),
            f"{BASE}/v2/store": StubResponse(b'{"currency": "USD", "weight_units": "KGS", "dimension_units": "Centimeters"}'),
        },
        rows=2,
        item=StockCheckItem("7", "71", "ADA-G"),
        stock_responses={f"{BASE}/v3/catalog/products?id=7&include=variants&include_fields={FIELDS}": build_page(SOFA)},
    )  # fmt: skip
