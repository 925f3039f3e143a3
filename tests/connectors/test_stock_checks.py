"""Stock check requests of each shop connector, and parsing of the responses."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from connectors.bigcommerce.connector import SPEC as BIGCOMMERCE
from connectors.sdk import BadData, ConnectorError, ConnectorSpec, Refused, RetryLater, Unreachable
from connectors.sdk.testing import FakeContext, FakeHttp, StockCheckItem, StubResponse, parse_snapshot, run_stock_check
from connectors.shopify.admin.connector import SPEC as ADMIN
from connectors.shopify.connector import SPEC as SHOPIFY
from connectors.woocommerce.connector import SPEC as WOOCOMMERCE
from tests.connectors import test_bigcommerce as bigcommerce
from tests.connectors import test_shopify_admin as admin
from tests.connectors import test_woocommerce as woocommerce

SHOP = "https://shop.example"
GRAPHQL = "https://acme.myshopify.com/admin/api/2026-01/graphql.json"
CREDENTIALS: dict[str, dict[str, str]] = {
    "shopify-admin": admin.CREDENTIALS,
    "woocommerce": woocommerce.CREDENTIALS,
    "bigcommerce": bigcommerce.CREDENTIALS,
}


def create_context(spec: ConnectorSpec, answers: Mapping[str, Any]) -> FakeContext:
    """Return a context of the stock stream whose shop has the responses."""
    config = {} if spec.name in ("bigcommerce", "shopify-admin") else {"url": SHOP}
    http = FakeHttp(answers)
    return FakeContext(config=config, credentials=CREDENTIALS.get(spec.name), stream="stock", http=http)


def read_rows(spec: ConnectorSpec, item: StockCheckItem, answers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a stock check without blank cells."""
    ctx = create_context(spec, answers)
    ((table, rows),) = parse_snapshot(spec, ctx, run_stock_check(spec, ctx, item))
    assert table.fields is not None and "price" not in table.fields
    return [
        {header: cell for header, cell in zip(table.headers, cells, strict=True) if cell is not None}
        for _, cells in rows
    ]


@pytest.mark.parametrize(("available", "word"), [(True, "in_stock"), (False, "out_of_stock")])
def test_a_public_shop_states_availability(available: bool, word: str) -> None:
    answer = StubResponse(json.dumps({"id": 71, "price": 100, "sku": "A-1", "available": available}).encode())
    item = StockCheckItem("7", "71")
    found = read_rows(SHOPIFY, item, {f"{SHOP}/variants/71.js": answer})
    assert found == [{"id": "7", "variants.id": "71", "variants.sku": "A-1", "variants.available": word}]


def test_an_admin_api_states_quantities_by_location() -> None:
    pages = [admin.build_levels(True, admin.LEVELS[0], after="x"), admin.build_levels(True, admin.LEVELS[3])]
    answers = {GRAPHQL: [admin.build_graphql_response(page) for page in pages]}
    assert read_rows(ADMIN, StockCheckItem("7", "71"), answers) == [
        {"variant.id": "71", "location": "East", "available": 4, "incoming": 10},
        {"variant.id": "71", "location": "West", "available": -1},
    ]
    ctx = create_context(ADMIN, answers)
    run_stock_check(ADMIN, ctx, StockCheckItem("7", "71"))
    variables = [json.loads(request.body or b"")["variables"] for request in ctx.http.requests]
    assert variables == [{"id": admin.VARIANT, "after": None}, {"id": admin.VARIANT, "after": "x"}]
    uncounted = {GRAPHQL: admin.build_graphql_response(admin.build_levels(False))}
    assert read_rows(ADMIN, StockCheckItem("7", "71"), uncounted) == [
        {"variant.id": "71", "sku": "A-1", "availableForSale": "in_stock"}
    ]


def test_woocommerce_checks_the_product_or_the_variation() -> None:
    fields, base = woocommerce.FIELDS, woocommerce.BASE
    variation = {
        f"{base}/products/10/variations/101?_fields={fields}": woocommerce.StubResponse(_json(woocommerce.GREY))
    }
    assert read_rows(WOOCOMMERCE, StockCheckItem("10", "101"), variation) == [
        {"product id": "10", "id": "101", "sku": "ADA-G", "stock_status": "in_stock", "stock_quantity": 4}
    ]
    simple = {
        f"{base}/products/1000?_fields={fields}": StubResponse(b"\xef\xbb\xbf" + _json(woocommerce.build_stool(1000)))
    }
    assert read_rows(WOOCOMMERCE, StockCheckItem("1000", "1000"), simple) == [
        {"product id": "1000", "id": "1000", "sku": "ST-1000", "stock_status": "backorder"}
    ]


def test_bigcommerce_returns_all_variants_of_the_product() -> None:
    url = f"{bigcommerce.BASE}/v3/catalog/products?id=7&include=variants&include_fields={bigcommerce.FIELDS}"
    found = read_rows(BIGCOMMERCE, StockCheckItem("7", "72"), {url: bigcommerce.build_page(bigcommerce.SOFA)})
    assert {row["variant id"]: row["inventory_level"] for row in found} == {"71": 4, "72": 0}
    with pytest.raises(Unreachable, match="no longer has this product"):
        read_rows(BIGCOMMERCE, StockCheckItem("7", "72"), {url: bigcommerce.build_page()})


@pytest.mark.parametrize(
    ("spec", "answers", "kind"),
    [
        (SHOPIFY, [StubResponse(b'{"id": 72, "available": true}')], BadData),
        (SHOPIFY, [StubResponse(b"[]")], BadData),
        (SHOPIFY, [StubResponse(b"<html>", content_type="text/html")], Refused),
        (SHOPIFY, [StubResponse(b"{}", final_url=f"{SHOP}/password")], Refused),
        (ADMIN, [StubResponse(b'{"data": {"productVariant": null}}')], Unreachable),
        (ADMIN, [StubResponse(b'{"data": {"productVariant": {"inventoryItem": null}}}')], BadData),
        (ADMIN, [StubResponse(b'{"errors": [{"message": "Throttled", "extensions": {"code": "THROTTLED"}}]}')], RetryLater),
        (WOOCOMMERCE, [StubResponse(b"[]")], BadData),
        (WOOCOMMERCE, [StubResponse(b"{", status=200)], BadData),
        (BIGCOMMERCE, [StubResponse(b'{"data": {}}')], BadData),
    ],
)  # fmt: skip
def test_responses_without_information(
    spec: ConnectorSpec, answers: Sequence[StubResponse], kind: type[ConnectorError]
) -> None:
    ctx = create_context(spec, {})
    ctx.http = FakeHttp(always=answers[0])
    with pytest.raises(kind):
        parse_snapshot(spec, ctx, run_stock_check(spec, ctx, StockCheckItem("7", "71")))


@pytest.mark.parametrize("spec", [SHOPIFY, ADMIN, WOOCOMMERCE, BIGCOMMERCE], ids=lambda spec: spec.name)
def test_keys_of_another_shop_are_not_requested(spec: ConnectorSpec) -> None:
    ctx = create_context(spec, {})
    for item in (StockCheckItem("../x", "../x"), StockCheckItem("a b", "7?x=1")):
        with pytest.raises(BadData):
            run_stock_check(spec, ctx, item)
    assert ctx.http.requests == []


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
