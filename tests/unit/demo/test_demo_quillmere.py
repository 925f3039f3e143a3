"""Quillmere Home's products: the format that shops publish, and the expected result of reading them."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from connectors.shopify.connector import SPEC as SHOPIFY
from entrypoints.demo.feeds import read_feed

PRODUCTS: list[dict[str, Any]] = json.loads(read_feed("products.json"))
VARIANTS = [variant for product in PRODUCTS for variant in product["variants"]]


@pytest.fixture(scope="module")
def feed(parse_feed: Callable[..., Any]) -> Any:
    pages = b"".join(json.dumps({"products": PRODUCTS[at : at + 250]}).encode() + b"\n" for at in (0, 250))
    return parse_feed(SHOPIFY, pages, {"currency": "usd", "url": "https://quillmere.example"})


def test_the_feed_has_the_expected_size() -> None:
    assert len(PRODUCTS) >= 300
    assert {len(product["variants"]) for product in PRODUCTS} <= set(range(1, 7))
    for name in ("id", "handle", "title"):
        assert len({product[name] for product in PRODUCTS}) == len(PRODUCTS)
    assert len({variant["id"] for variant in VARIANTS}) == len(VARIANTS)


def test_the_feed_has_the_format_of_shopify() -> None:
    for product in PRODUCTS:
        assert [option["position"] for option in product["options"]] == list(range(1, len(product["options"]) + 1))
        for variant in product["variants"]:
            values = [variant[f"option{at}"] for at in (1, 2, 3)]
            assert [value is not None for value in values].count(True) == len(product["options"])
            assert variant["product_id"] == product["id"]
            for option, value in zip(product["options"], values, strict=False):
                assert value in option["values"]


def test_the_feed_contains_realistic_flaws() -> None:
    assert any(variant["sku"] == "" for variant in VARIANTS)
    assert any(variant["grams"] == 0 for variant in VARIANTS)
    assert any(variant["title"] == "Default Title" for variant in VARIANTS)
    assert {variant["available"] for variant in VARIANTS} == {True, False}
    compared = [(float(v["price"]), float(v["compare_at_price"])) for v in VARIANTS if v["compare_at_price"]]
    assert any(usual < price for price, usual in compared)
    assert any(usual > price for price, usual in compared)


def test_the_feed_contains_items_of_the_other_vendor() -> None:
    items = read_feed("item-master.csv").decode()
    resold = [product for product in PRODUCTS if product["vendor"] == "Lindgren & Falk"]
    assert len(resold) >= 30
    skus = {variant["sku"] for product in resold for variant in product["variants"]} - {""}
    assert all(f"\n{sku}," in items for sku in skus)


def test_products_are_read(feed: Any) -> None:
    assert len(feed.products) == len(PRODUCTS)
    assert len(feed.variants) == len(VARIANTS)
    assert {problem.field for problem in feed.problems} == {
        "compare_at"
    }  # some "compare at" prices do not exceed the price
    product = next(entry for entry in PRODUCTS if entry["title"] == "Odette Six-Drawer Dresser")
    stated = feed.products[str(product["id"])]
    assert stated.data["brand"] == "Quillmere Home"
    assert stated.data["category_path"] == ["Dressers"]
    assert "Overall: 58" in stated.data["description"]
    walnut = next(v for v in stated.variants if v.data["title"] == "Walnut")
    (offer,) = walnut.offers
    assert offer.data["price"] == 105000
    assert offer.data["compare_at"] == 126000
    assert walnut.data["weight"]["hundredths_lb"] == 14705


def test_options_become_axes(feed: Any) -> None:
    named = Counter(name for variant in feed.variants for name in variant.data.get("axes", {}))
    given = Counter(option["name"] for p in PRODUCTS for v in p["variants"] for option in p["options"])
    assert named == {name: count for name, count in given.items() if name != "Title"}
