"""WooCommerce REST API (wc/v3) as documented: pages, variations, units, keys, wait times."""

import json
from base64 import b64encode
from typing import Any

import pytest
from aiohttp import web

from connectors.sdk import BadData, Limits, Refused, RetryLater
from connectors.sdk.testing import ConnectorContract, ConnectorExample, StockCheckItem, StubResponse
from connectors.woocommerce.connector import SPEC
from tests.connectors.vendor_servers import VendorServer

CREDENTIALS = {"consumer_key": "ck_0123456789", "consumer_secret": "cs_9876543210"}
CATEGORIES = [
    {"id": 1, "name": "Furniture", "parent": 0},
    {"id": 2, "name": "Sofas", "parent": 1},
    {"id": 3, "name": "Sale", "parent": 0},
]
SOFA: dict[str, Any] = {
    "id": 10, "type": "variable", "name": "Sofa Ada", "description": "<p>Oak</p>", "sku": "ADA", "price": "499",
    "brands": [{"id": 4, "name": "Lindgren"}], "categories": [{"id": 3, "name": "Sale"}, {"id": 2, "name": "Sofas"}],
    "tags": [{"name": "oak"}], "images": [{"src": "https://shop.example/1.jpg", "alt": "front"}],
    "attributes": [{"name": "Colour", "variation": True, "options": ["Grey"]}, {"name": "Wood", "variation": False, "options": ["Oak", "Ash"]}],
    "weight": "", "dimensions": {"length": "", "width": "", "height": ""}, "stock_status": "instock", "manage_stock": False,
}  # fmt: skip
GREY: dict[str, Any] = {
    "id": 101, "sku": "ADA-G", "global_unique_id": "4006381333931", "price": "499", "regular_price": "599", "sale_price": "499",
    "weight": "41.5", "dimensions": {"length": "210", "width": "90.5", "height": "0"}, "manage_stock": True, "stock_quantity": 4,
    "stock_status": "instock", "attributes": [{"name": "Colour", "option": "Grey"}], "image": {"src": "https://shop.example/g.jpg", "alt": ""},
}  # fmt: skip


def build_stool(number: int) -> dict[str, Any]:
    """Return a simple product."""
    return {"id": number, "type": "simple", "name": f"Stool {number}", "sku": f"ST-{number}", "price": "9.50", "regular_price": "9.50",
            "weight": "4", "dimensions": {"length": "", "width": "30", "height": "45"}, "manage_stock": "parent", "stock_quantity": 7,
            "stock_status": "onbackorder", "attributes": [], "images": [], "tags": [], "categories": []}  # fmt: skip


class WooCommerceShop:
    """Shop with one variable product and a number of stools."""

    def __init__(self, stools: int = 230, **more: Any) -> None:
        self.products = [SOFA, *(build_stool(number) for number in range(1000, 1000 + stools))]
        self.more = more
        self.requests: list[web.Request] = []
        self.busy = list(more.get("busy", []))
        self.vendor = VendorServer(self._answer)

    def fetch(self, **more: Any) -> Any:
        """Fetch and parse with the connector."""
        return self.vendor.fetch(SPEC, self.more.get("config", {}), CREDENTIALS, **more)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        if self.busy and len(self.requests) > 1 and (wait := self.busy.pop(0)):
            return web.Response(status=429, headers={"Retry-After": str(wait)})
        if not self._is_signed(request):
            return web.json_response({"code": "woocommerce_rest_cannot_view"}, status=401)
        path = request.path.removeprefix("/wp-json/wc/v3")
        if path.startswith("/settings/"):
            return self._setting(path)
        found: dict[str, list[Any]] = {
            "/products": self.products, "/products/categories": CATEGORIES, "/products/10/variations": [GREY],
        }  # fmt: skip
        if path not in found:
            return web.json_response({"code": "rest_no_route"}, status=404)
        return self._page(request, found[path])

    def _page(self, request: web.Request, items: list[Any]) -> web.Response:
        size, offset = int(request.query["per_page"]), int(request.query["offset"])
        if not 1 <= size <= 100:
            return web.json_response({"code": "rest_invalid_param"}, status=400)
        some = items[offset : offset + size]
        if "_fields" in request.query:
            some = [{name: item.get(name) for name in request.query["_fields"].split(",")} for item in some]
        headers = {"X-WP-Total": str(len(items)), "X-WP-TotalPages": str(-(-len(items) // size))}
        return web.json_response(some, headers={} if self.more.get("uncounted") else headers)

    def _setting(self, path: str) -> web.Response:
        if self.more.get("hidden"):
            return web.json_response({"code": "woocommerce_rest_cannot_view"}, status=403)
        values = {"currency": "EUR", "weight_unit": "kg", "dimension_unit": "cm"}
        return web.json_response({"id": path, "value": values[path.rsplit("woocommerce_", 1)[-1]]})

    def _is_signed(self, request: web.Request) -> bool:
        if self.more.get("drops_headers"):
            return request.query.get("consumer_secret") == CREDENTIALS["consumer_secret"]
        pair = b64encode(b"ck_0123456789:cs_9876543210").decode()
        return request.headers.get("Authorization") == f"Basic {pair}"


def test_a_catalogue() -> None:
    shop = WooCommerceShop()
    _, ((_, rows),), fetch = shop.fetch()
    assert len(rows) == 1 + 1 + 230
    assert fetch.reports == []
    product, stools, variation = rows[0], rows[1:100], rows[100]
    assert product == {
        "product id": "10", "name": "Sofa Ada", "description": "<p>Oak</p>", "brands": "Lindgren", "categories": ["Furniture", "Sofas"],
        "tags": ["oak"], "images": [{"url": "https://shop.example/1.jpg", "alt": "front"}], "attributes": ["Wood: Oak, Ash"],
    }  # fmt: skip
    assert variation == {
        "product id": "10", "id": "101", "variation attributes": {"Colour": "Grey"}, "image": [{"url": "https://shop.example/g.jpg"}],
        "sku": "ADA-G", "global_unique_id": "4006381333931", "weight": "41.5 kg", "length": "210 cm", "width": "90.5 cm",
        "currency": "eur", "price": "499", "regular_price": "599", "stock_status": "in_stock", "stock_quantity": 4,
    }  # fmt: skip
    assert stools[0] == {
        "product id": "1000", "id": "1000", "name": "Stool 1000", "sku": "ST-1000", "weight": "4 kg", "width": "30 cm",
        "height": "45 cm", "currency": "eur", "price": "9.50", "stock_status": "backorder",
    }  # fmt: skip
    sizes = [int(request.query["per_page"]) for request in shop.requests if request.path.endswith("/products")]
    assert sizes == [100, 100, 100]


@pytest.mark.parametrize(
    "more", [{"uncounted": True}, {"drops_headers": True, "config": {"auth": "query"}}, {"busy": [7, 7, 0, 3]}]
)
def test_shops_that_differ(more: dict[str, Any]) -> None:
    """Missing header with the total, removed Authorization header, occasional responses 429."""
    _, ((_, rows),), fetch = WooCommerceShop(**more).fetch()
    assert len(rows) == 232
    assert sum(fetch.slept) == pytest.approx(sum(more.get("busy", [])), abs=1)


def test_pages_that_are_too_large_are_requested_in_smaller_ones() -> None:
    shop = WooCommerceShop(stools=50)
    for product in shop.products:
        product["description"] = "x" * 3_000
    _, ((_, rows),), _ = shop.fetch(limits=Limits(page_bytes=64 * 1024))
    SOFA["description"] = "<p>Oak</p>"
    assert len(rows) == 52


def test_stock_alone() -> None:
    shop = WooCommerceShop(stools=2)
    _, ((table, rows),), _ = shop.fetch(stream="stock")
    assert rows[-1] == {
        "product id": "10",
        "id": "101",
        "sku": "ADA-G",
        "stock_status": "in_stock",
        "stock_quantity": 4,
    }
    assert "price" not in table.headers
    assert not [request for request in shop.requests if "settings" in request.path or "categories" in request.path]


def test_units_without_permission() -> None:
    _, ((_, rows),), fetch = WooCommerceShop(stools=1, hidden=True).fetch()
    assert not {"weight", "width"} & {name for row in rows for name in row}
    assert any("units" in report.detail for report in fetch.reports)
    _, ((_, rows),), fetch = WooCommerceShop(
        stools=1, hidden=True, config={"weight_unit": "lbs", "dimension_unit": "in"}
    ).fetch()
    assert rows[1]["weight"] == "4 lb" and rows[1]["width"] == "30 in"
    assert fetch.reports == []


def test_a_wrong_key() -> None:
    shop = WooCommerceShop()
    with pytest.raises(Refused) as caught:
        shop.vendor.fetch(SPEC, {}, {**CREDENTIALS, "consumer_secret": "cs_wrong-secret"})
    assert caught.value.is_credentials_error
    assert "wrong-secret" not in str(caught.value)


def test_a_long_retry_after_postpones_the_run() -> None:
    with pytest.raises(RetryLater):
        WooCommerceShop(busy=[3_600]).fetch()


BASE = "https://shop.example/wp-json/wc/v3"
PAGE = "orderby=id&order=asc"
FIELDS = "id%2Csku%2Ctype%2Cparent_id%2Cstock_status%2Cstock_quantity%2Cmanage_stock%2Cbackorders"


class TestWooCommerce(ConnectorContract):
    """Contract tests of the connector."""

    example = ConnectorExample(
        spec=SPEC,
        config={"url": "https://shop.example"},
        credentials=CREDENTIALS,
        responses={
            f"{BASE}/products?status=publish&{PAGE}&per_page=100&offset=0": StubResponse(json.dumps([build_stool(1), build_stool(2)]).encode()),
            f"{BASE}/products/categories?{PAGE}&per_page=100&offset=0": StubResponse(json.dumps(CATEGORIES).encode()),
            f"{BASE}/settings/general/woocommerce_currency": StubResponse(b'{"value": "EUR"}'),
            f"{BASE}/settings/products/woocommerce_weight_unit": StubResponse(b'{"value": "kg"}'),
            f"{BASE}/settings/products/woocommerce_dimension_unit": StubResponse(b'{"value": "cm"}'),
        },
        rows=2,
        item=StockCheckItem("10", "101", "ADA-G"),
        stock_responses={f"{BASE}/products/10/variations/101?_fields={FIELDS}": StubResponse(json.dumps(GREY).encode())},
    )  # fmt: skip


def test_responses_that_are_not_a_list() -> None:
    error = TestWooCommerce().find_fetch_error(StubResponse(b'{"code": "x"}'))
    assert isinstance(error, BadData) and "contains no list of products" in str(error)
