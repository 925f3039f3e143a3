"""Shopify Admin API: states of bulk operations, both forms of throttling, stock by location."""

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from connectors.sdk import BadData, Refused, RetryLater, Unreachable
from connectors.sdk.testing import (
    ConnectorContract,
    ConnectorExample,
    FakeContext,
    StockCheckItem,
    StubResponse,
    parse_snapshot,
)
from connectors.shopify.admin import queries
from connectors.shopify.admin.connector import SPEC
from tests.connectors.vendor_servers import VendorServer

CREDENTIALS = {"shop": "acme.myshopify.com", "access_token": "shpat_0123456789abcdef"}
PRODUCT, VARIANT = "gid://shopify/Product/7", "gid://shopify/ProductVariant/71"
LINES: list[dict[str, Any]] = [
    {"id": PRODUCT, "title": "Sofa Ada", "descriptionHtml": "<p>Oak</p>", "vendor": "Lindgren",
     "productType": "Sofas", "tags": ["oak"], "category": {"fullName": "Furniture > Sofas"}},
    {"id": "gid://shopify/Product/8", "title": "Stool", "descriptionHtml": "", "vendor": "", "productType": "", "tags": [], "category": None},
    {"id": VARIANT, "title": "Grey", "sku": "A-1", "barcode": "4006381333931", "price": "499.00", "compareAtPrice": "599.00",
     "availableForSale": True, "position": 1, "selectedOptions": [{"name": "Colour", "value": "Grey"}],
     "image": {"url": "https://cdn.example/g.jpg", "altText": "grey"}, "__parentId": PRODUCT,
     "inventoryItem": {"unitCost": {"amount": "210.5", "currencyCode": "EUR"}, "countryCodeOfOrigin": "SE",
                       "measurement": {"weight": {"value": 41.5, "unit": "KILOGRAMS"}}}},
    {"id": "gid://shopify/ProductVariant/81", "title": "Default Title", "sku": "B-1", "price": "9.00", "availableForSale": False,
     "selectedOptions": [{"name": "Title", "value": "Default Title"}], "__parentId": "gid://shopify/Product/8",
     "inventoryItem": {"measurement": {"weight": {"value": 0, "unit": "GRAMS"}}}},
    {"id": "gid://shopify/MediaImage/5", "alt": "front", "mediaContentType": "IMAGE",
     "image": {"url": "https://cdn.example/1.jpg"}, "__parentId": PRODUCT},
    {"id": "gid://shopify/Video/6", "alt": "", "mediaContentType": "VIDEO", "__parentId": PRODUCT},
]  # fmt: skip
LEVELS: list[dict[str, Any]] = [
    {"id": "gid://shopify/InventoryLevel/1?inventory_item_id=91", "location": {"id": "gid://shopify/Location/1", "name": "East"},
     "quantities": [{"name": "available", "quantity": 4}, {"name": "incoming", "quantity": 10}], "__parentId": "gid://shopify/InventoryItem/91"},
    {"id": "gid://shopify/InventoryItem/91", "sku": "A-1", "tracked": True,
     "variant": {"id": VARIANT, "availableForSale": True, "product": {"id": PRODUCT}}},
    {"id": "gid://shopify/InventoryItem/92", "sku": "B-1", "tracked": False,
     "variant": {"id": "gid://shopify/ProductVariant/81", "availableForSale": True, "product": {"id": "gid://shopify/Product/8"}}},
    {"id": "gid://shopify/InventoryLevel/2?inventory_item_id=91", "location": {"id": "gid://shopify/Location/2", "name": "West"},
     "quantities": [{"name": "available", "quantity": -1}, {"name": "incoming", "quantity": 0}], "__parentId": "gid://shopify/InventoryItem/91"},
    {"id": "gid://shopify/InventoryLevel/3?inventory_item_id=92", "location": {"id": "gid://shopify/Location/2", "name": "West"},
     "quantities": [{"name": "available", "quantity": 0}], "__parentId": "gid://shopify/InventoryItem/92"},
]  # fmt: skip


class AdminShop:
    """Shop according to the API documentation: cost bucket, polled bulk operations, files on another host."""

    def __init__(self, states: list[str] | None = None, **more: Any) -> None:
        self.states = states if states is not None else ["CREATED", "RUNNING", "COMPLETED"]
        self.more = more
        self.began: list[str] = []
        self.recent: list[dict[str, Any]] = more.get("recent", [])
        self.throttles = list(more.get("throttles", []))
        self.tokens: list[str | None] = []
        self.vendor = VendorServer(self._answer)

    def fetch(self, stream: str = "catalogue", **more: Any) -> Any:
        """Fetch and parse with the connector."""
        return self.vendor.fetch(SPEC, {}, CREDENTIALS, stream=stream, **more)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append(request.headers.get("X-Shopify-Access-Token"))
        if request.path == "/files/result.jsonl":
            return await self._file(request)
        assert request.path == "/admin/api/2026-01/graphql.json" and request.method == "POST"
        if self.tokens[-1] != CREDENTIALS["access_token"]:
            return web.json_response({"errors": "[API] Invalid API key or access token"}, status=401)
        if self.throttles:
            return self._throttled(self.throttles.pop(0))
        if "error" in self.more:
            return web.json_response(self.more["error"], status=self.more.get("status", 200))
        body = json.loads(await request.text())
        return web.json_response({"data": self._data(body["query"], body["variables"]), **_cost(10, 990)})

    def _data(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        if query == queries.RECENT_OPERATIONS:
            return {"shop": {"currencyCode": "EUR"}, "bulkOperations": {"nodes": self.recent}}
        if query == queries.RUN:
            self.began.append(variables["query"])
            errors = self.more.get("user_errors", [])
            operation = None if errors else {"id": "gid://shopify/BulkOperation/1", "status": "CREATED"}
            return {"bulkOperationRunQuery": {"bulkOperation": operation, "userErrors": errors}}
        assert query == queries.STATE and variables["id"].startswith("gid://shopify/BulkOperation/")
        status = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        done = status == "COMPLETED" and not self.more.get("empty")
        url = f"{self.vendor.address}/files/result.jsonl?signature=abc" if done else None
        state = {
            "id": variables["id"],
            "status": status,
            "errorCode": self.more.get("error_code"),
            "url": url,
            "objectCount": "6",
        }
        return {"bulkOperation": {**state, "partialDataUrl": self.more.get("partial")}}

    def _throttled(self, how: int) -> web.Response:
        error = {"message": "Throttled", "extensions": {"code": "THROTTLED", "documentation": "https://shopify.dev"}}
        if how == 429:
            return web.Response(status=429, headers=self.more.get("wait", {}))
        return web.json_response({"errors": [error], **_cost(112, 12, None)})

    async def _file(self, request: web.Request) -> web.StreamResponse:
        lines = LEVELS if self.began[-1:] == [queries.STOCK] else self.more.get("lines", LINES)
        return web.Response(body="".join(json.dumps(line) + "\n" for line in lines).encode())


def _cost(requested: int, available: int, actual: int | None = 10) -> dict[str, Any]:
    status = {"maximumAvailable": 1000.0, "currentlyAvailable": available, "restoreRate": 50.0}
    return {
        "extensions": {"cost": {"requestedQueryCost": requested, "actualQueryCost": actual, "throttleStatus": status}}
    }


def test_a_catalogue() -> None:
    shop = AdminShop()
    snapshot, ((_table, rows),), fetch = shop.fetch()
    assert shop.began == [queries.CATALOGUE]
    assert fetch.slept == [1.0, 2.0]
    assert fetch.reports == []
    assert len(snapshot.splitlines()) == 7
    assert shop.tokens[-1] is None, "the file's server gets no token"
    product, stool, grey, plain, picture, video = rows
    assert product == {
        "product.id": "7", "title": "Sofa Ada", "descriptionHtml": "<p>Oak</p>", "vendor": "Lindgren",
        "productType": ["Sofas"], "category.fullName": "Furniture > Sofas", "tags": ["oak"],
    }  # fmt: skip
    assert stool["product.id"] == "8"
    assert grey == {
        "product.id": "7", "variant.id": "71", "variant.title": "Grey", "sku": "A-1", "barcode": "4006381333931",
        "selectedOptions": {"Colour": "Grey"}, "variant.image": [{"url": "https://cdn.example/g.jpg", "alt": "grey"}],
        "weight": "41.5 kg", "countryCodeOfOrigin": "SE", "currencyCode": "eur", "price": "499.00", "compareAtPrice": "599.00",
        "unitCost": {"amount": "210.5", "currencyCode": "EUR"}, "availableForSale": "in_stock",
    }  # fmt: skip
    assert (plain["product.id"], plain["availableForSale"]) == ("8", "out_of_stock")
    assert not {"weight", "selectedOptions", "variant.title"} & plain.keys()
    assert picture == {"product.id": "7", "media": [{"url": "https://cdn.example/1.jpg", "alt": "front"}]}
    assert video == {"product.id": "7"}


def test_children_need_not_follow_their_parents() -> None:
    """Since API version 2026-01 the lines have any order; each is a separate row."""
    shuffled = list(LINES)
    random.Random(3).shuffle(shuffled)
    usual = AdminShop().fetch()[1][0][1]
    other = AdminShop(lines=shuffled).fetch()[1][0][1]
    assert sorted(map(repr, usual)) == sorted(map(repr, other))


def test_stock_by_location() -> None:
    ((_, rows),) = AdminShop().fetch("stock")[1]
    assert rows == [
        {"variant.id": "71", "location": "East", "available": 4, "incoming": 10},
        {"variant.id": "81", "sku": "B-1", "availableForSale": "in_stock"},
        {"variant.id": "71", "location": "West", "available": -1},
    ]


def test_an_empty_shop() -> None:
    ((_, rows),) = AdminShop(["COMPLETED"], empty=True).fetch()[1]
    assert rows == []


@pytest.mark.parametrize(
    ("throttles", "slept"),
    [([200], [2.0]), ([429], [2.0]), ([200, 429, 200], [2.0, 2.0, 2.0])],
    ids=["as 200", "as 429", "both"],
)
def test_throttled_in_the_middle(throttles: list[int], slept: list[float]) -> None:
    """(112 points requested - 12 available) / 50 a second are two seconds."""
    shop = AdminShop(["COMPLETED"])
    original = shop._data

    def data(query: str, variables: dict[str, Any]) -> dict[str, Any]:
        if query == queries.RECENT_OPERATIONS:
            shop.throttles = list(throttles)
        return original(query, variables)

    shop._data = data  # type: ignore[method-assign]
    _, ((_, rows),), fetch = shop.fetch()
    assert fetch.slept == slept
    assert len(rows) == 6


@pytest.mark.parametrize("how", [200, 429])
def test_initial_throttling_postpones_the_run(how: int) -> None:
    with pytest.raises(RetryLater) as caught:
        AdminShop(throttles=[how]).fetch()
    assert caught.value.reason == "rate_limited"
    assert caught.value.until is not None
    assert timedelta(seconds=-5) < caught.value.until - datetime.now(UTC) <= timedelta(seconds=2)


@pytest.mark.parametrize(
    ("more", "kind", "message"),
    [
        ({"states": ["RUNNING", "FAILED"], "error_code": "INTERNAL_SERVER_ERROR", "partial": "https://a.example/p"}, Unreachable, "partial result is not used"),
        ({"states": ["FAILED"], "error_code": "ACCESS_DENIED"}, Refused, "lacks permission"),
        ({"states": ["CANCELING", "CANCELED"]}, Unreachable, "canceling"),
        ({"states": ["EXPIRED"]}, Unreachable, "expired"),
        ({"states": ["RUNNING"]}, RetryLater, "6 objects"),
        ({"user_errors": [{"field": ["query"], "message": "Invalid bulk query", "code": "INVALID"}]}, Unreachable, "Invalid bulk query"),
        ({"user_errors": [{"message": "busy", "code": "OPERATION_IN_PROGRESS"}]}, RetryLater, "other bulk"),
        ({"error": {"errors": [{"message": "Access denied for products field.", "extensions": {"code": "ACCESS_DENIED"}}]}}, Refused, "Access denied"),
        ({"error": {"errors": [{"message": "Field 'x' doesn't exist", "extensions": {"code": "undefinedField"}}]}}, Unreachable, "doesn't exist"),
        ({"error": {"errors": "Not Found"}, "status": 404}, Unreachable, "404"),
        ({"error": {}, "status": 402}, Refused, "frozen"),
        ({"error": {}, "status": 423}, Refused, "locked"),
        ({"error": {}, "status": 401}, Refused, "credentials"),
        ({"error": {}, "status": 503}, RetryLater, "busy"),
        ({"error": {"nothing": 1}}, BadData, "no data"),
        ({"error": []}, BadData, "not a GraphQL"),
    ],
)  # fmt: skip
def test_what_ends_a_run(more: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        AdminShop(**more).fetch()
    assert CREDENTIALS["access_token"] not in str(caught.value)
    if message in {"lacks permission", "Access denied", "credentials"}:
        assert isinstance(caught.value, Refused) and caught.value.is_credentials_error


@pytest.mark.parametrize(
    ("status", "query", "ended", "resumed"),
    [
        ("RUNNING", queries.CATALOGUE, None, True),
        ("RUNNING", "\n".join(queries.CATALOGUE.split()), None, True),
        ("COMPLETED", queries.CATALOGUE, 60, True),
        ("COMPLETED", queries.CATALOGUE, 3600, False),
        ("FAILED", queries.CATALOGUE, 60, False),
        ("RUNNING", queries.STOCK, None, False),
    ],
)
def test_a_postponed_run_resumes_its_operation(status: str, query: str, ended: int | None, resumed: bool) -> None:
    completed = None if ended is None else (datetime.now(UTC) - timedelta(seconds=ended)).isoformat()
    operation = {
        "id": "gid://shopify/BulkOperation/9",
        "status": status,
        "type": "QUERY",
        "query": query,
        "completedAt": completed,
    }
    shop = AdminShop(["COMPLETED"], recent=[operation])
    shop.fetch()
    assert shop.began == ([] if resumed else [queries.CATALOGUE])


def test_a_differing_count_is_reported() -> None:
    _, _, fetch = AdminShop(["COMPLETED"], lines=LINES[:4]).fetch()
    assert ["6 objects" in report.detail for report in fetch.reports] == [True]


def test_a_web_page_in_place_of_the_file() -> None:
    shop = AdminShop(["COMPLETED"])

    async def page(_: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>expired</html>", content_type="text/html")

    shop._file = page  # type: ignore[method-assign]
    with pytest.raises(BadData, match="web page"):
        shop.fetch()


def build_graphql_response(data: Any) -> StubResponse:
    """Return a GraphQL response."""
    return StubResponse(json.dumps({"data": data}).encode())


def build_levels(tracked: bool, *found: dict[str, Any], after: str | None = None) -> dict[str, Any]:
    """Return the shop's response about one variant's stock; `after` is the cursor of the next page."""
    item = {"id": "gid://shopify/InventoryItem/91", "sku": "A-1", "tracked": tracked}
    page = {"pageInfo": {"hasNextPage": after is not None, "endCursor": after}, "nodes": list(found)}
    variant = {"id": VARIANT, "availableForSale": True, "product": {"id": PRODUCT}}
    return {"productVariant": {**variant, "inventoryItem": {**item, "inventoryLevels": page}}}


class TestShopifyAdmin(ConnectorContract):
    """Contract tests of the connector."""

    example = ConnectorExample(
        spec=SPEC,
        config={"currency": "eur", "api_version": "2026-01"},
        credentials=CREDENTIALS,
        responses={
            "https://acme.myshopify.com/admin/api/2026-01/graphql.json": [
                build_graphql_response({"shop": {"currencyCode": "EUR"}, "bulkOperations": {"nodes": []}}),
                build_graphql_response({"bulkOperationRunQuery": {"bulkOperation": {"id": "gid://shopify/BulkOperation/1"}, "userErrors": []}}),
                build_graphql_response({"bulkOperation": {"status": "COMPLETED", "url": "https://files.example/r.jsonl", "objectCount": "6"}}),
            ],
            "https://files.example/r.jsonl": StubResponse("".join(json.dumps(line) + "\n" for line in LINES).encode()),
        },
        rows=6,
        item=StockCheckItem("7", "71", "A-1"),
        stock_responses={"https://acme.myshopify.com/admin/api/2026-01/graphql.json": build_graphql_response(build_levels(True, *LEVELS[:1]))},
    )  # fmt: skip


def test_damaged_at_random() -> None:
    whole = json.dumps({"joinery_shop": {"currency": "eur", "stream": "catalogue"}}).encode() + b"\n"
    whole += b"".join(json.dumps(line).encode() + b"\n" for line in [*LINES, *LEVELS])
    chance = random.Random(11)
    for _ in range(300):
        at = chance.randrange(len(whole))
        damaged = (
            whole[:at] + bytes(chance.choices(b'{}[]",:0n', k=chance.randrange(3))) + whole[at + chance.randrange(30) :]
        )
        for stream in ("catalogue", "stock"):
            try:
                parse_snapshot(
                    SPEC, FakeContext(stream=stream), damaged.replace(b'"catalogue"', f'"{stream}"'.encode())
                )
            except BadData as error:
                assert str(error)
