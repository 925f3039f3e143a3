"""Public Shopify shops: pages, refusals and columns."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from connectors.sdk import BadData, Refused, RetryLater
from connectors.sdk.testing import NOON, FakeContext, FakeHttp, StubResponse, parse_snapshot, run_fetch
from connectors.shopify.connector import SPEC, build_products_url

BASE = "https://shop.example/products.json?limit=250&page="


def build_page(*ids: int, **more: Any) -> StubResponse:
    """Return a page with products of the IDs."""
    return StubResponse(json.dumps({"products": [build_product(number, **more) for number in ids]}).encode())


def build_product(number: int, **more: Any) -> dict[str, Any]:
    """Return a product with one variant."""
    return {
        "id": number, "title": f"P{number}", "handle": f"p{number}", "body_html": "", "vendor": "", "product_type": "",
        "tags": [], "images": [], "options": [{"name": "Title", "values": ["Default Title"]}],
        "variants": [{"id": number * 10, "title": "Default Title", "option1": "Default Title", "sku": f"S{number}",
                      "price": "1.00", "grams": 0, "available": True}],
    } | more  # fmt: skip


def create_context(answers: Mapping[str, Any], **config: Any) -> FakeContext:
    """Return a context whose shop has the responses by page."""
    http = FakeHttp({f"{BASE}{number}": answer for number, answer in answers.items()})
    return FakeContext(config={"url": "https://shop.example", **config}, http=http)


def test_pages_until_an_empty_one() -> None:
    context = create_context({"1": build_page(1, 2), "2": build_page(3), "3": build_page()})
    snapshot = run_fetch(SPEC, context)
    assert len(snapshot.splitlines()) == 2
    assert len(context.http.requests) == 3
    ((_, rows),) = parse_snapshot(SPEC, context, snapshot)
    assert [(line, cells[0]) for line, cells in rows] == [(1, "1"), (2, "2"), (3, "3")]


def test_a_shop_without_paging() -> None:
    context = create_context({"1": build_page(1, 2), "2": build_page(1, 2)})
    assert len(run_fetch(SPEC, context).splitlines()) == 1


def test_the_number_of_pages_is_limited() -> None:
    context = create_context({str(number): build_page(number) for number in range(1, 102)})
    snapshot = run_fetch(SPEC, context)
    assert len(context.http.requests) == 100
    ((_, rows),) = parse_snapshot(SPEC, context, snapshot)
    assert len(rows) == 100
    assert ["25,000" in report.detail for report in context.reports] == [True], "reported whenever the snapshot is read"


def test_retry_after_between_pages_is_respected() -> None:
    busy = StubResponse(status=429, headers={"Retry-After": "7"})
    context = create_context({"1": build_page(1), "2": [busy, busy, build_page(2)], "3": build_page()})
    assert len(run_fetch(SPEC, context).splitlines()) == 2
    assert context.slept == 14


@pytest.mark.parametrize(
    ("status", "headers", "wait"),
    [
        (429, {"Retry-After": "120"}, timedelta(seconds=120)),
        (430, {"Retry-After": "Fri, 20 Nov 2026 12:05:00 GMT"}, timedelta(minutes=5)),
        (503, {"Retry-After": "soon"}, None),
        (429, {}, None),
    ],
)
def test_retry_later(status: int, headers: dict[str, str], wait: timedelta | None) -> None:
    with pytest.raises(RetryLater) as caught:
        run_fetch(SPEC, create_context({"1": StubResponse(status=status, headers=headers)}))
    assert caught.value.until == (None if wait is None else NOON + wait)
    assert caught.value.reason == ("upstream_busy" if status == 503 else "rate_limited")


@pytest.mark.parametrize(
    "answer",
    [
        StubResponse(b"{}", status=403),
        StubResponse(b"<html>", content_type="text/html", final_url="https://shop.example/password"),
        StubResponse(b"<html><title>Just a moment...</title>", content_type="text/html; charset=utf-8"),
        StubResponse(b"\n<!doctype html>", content_type="application/json"),
    ],
    ids=["403", "password", "challenge", "challenge as JSON"],
)
def test_refused_requests(answer: StubResponse) -> None:
    with pytest.raises(Refused) as caught:
        run_fetch(SPEC, create_context({"1": answer}))
    assert not caught.value.is_credentials_error


@pytest.mark.parametrize("body", [b"[]", b'{"items": []}', b"{", b"\xff\xfe\x00"])
def test_other_websites_are_refused(body: bytes) -> None:
    with pytest.raises(BadData):
        run_fetch(SPEC, create_context({"1": StubResponse(body)}))


def test_columns_are_mapped_to_fields() -> None:
    sofa = build_product(
        7, body_html="<p>x</p>", vendor="Maker", product_type="Sofas", tags="Soft, New",
        images=[{"id": 1, "src": "https://c.example/1.jpg", "position": 1, "alt": "front"}],
        options=[{"name": "Colour"}, {"name": "Size"}],
        variants=[{"id": 71, "title": "Red / Large", "option1": "Red", "option2": "Large", "sku": "S", "grams": 4100,
                   "price": "10.00", "compare_at_price": "12.00", "available": False, "barcode": "0012345678905",
                   "featured_image": {"src": "https://c.example/red.jpg", "position": 2}}],
    )  # fmt: skip
    context = create_context({}, currency="usd")
    ((table, rows),) = parse_snapshot(SPEC, context, json.dumps({"products": [sofa, build_product(8)]}).encode())
    assert table.fields is not None
    known = {field: cell for field, cell in zip(table.fields, rows[0][1], strict=True) if field}
    assert known == {
        "product_key": "7", "title": "P7", "description": "<p>x</p>", "brand": "Maker", "category_path": ["Sofas"],
        "tags": ["Soft", "New"], "media": [{"url": "https://c.example/1.jpg", "alt": "front", "position": 1}],
        "variant_key": "71", "sku": "S", "gtin": "0012345678905", "variant_title": "Red / Large",
        "axes": {"Colour": "Red", "Size": "Large"}, "weight@unit=g": 4100,
        "variant_media": [{"url": "https://c.example/red.jpg", "position": 2}],
        "price": "10.00", "compare_at": "12.00", "currency": "usd", "availability": "out_of_stock",
    }  # fmt: skip
    plain = dict(zip(table.fields, rows[1][1], strict=True))
    assert plain["axes"] is plain["variant_title"] is plain["weight@unit=g"] is plain["category_path"] is None


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("https://shop.example", "https://shop.example/products.json"),
        ("https://shop.example/", "https://shop.example/products.json"),
        ("https://shop.example/products.json?limit=5", "https://shop.example/products.json"),
        (
            "https://shop.example:8443/en/collections/beds",
            "https://shop.example:8443/en/collections/beds/products.json",
        ),
    ],
)
def test_addresses(address: str, url: str) -> None:
    assert build_products_url(address) == url
