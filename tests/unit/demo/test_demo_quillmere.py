"""Quillmere Home's products: of the form shops publish, and read as they are meant."""

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
def shop(state: Callable[..., Any]) -> Any:
    pages = b"".join(json.dumps({"products": PRODUCTS[at : at + 250]}).encode() + b"\n" for at in (0, 250))
    return state(SHOPIFY, pages, {"currency": "usd", "url": "https://quillmere.example"})


def test_size() -> None:
    assert len(PRODUCTS) >= 300
    assert {len(product["variants"]) for product in PRODUCTS} <= set(range(1, 7))
    for name in ("id", "handle", "title"):
        assert len({product[name] for product in PRODUCTS}) == len(PRODUCTS)
    assert len({variant["id"] for variant in VARIANTS}) == len(VARIANTS)


def test_form() -> None:
    for product in PRODUCTS:
        assert [option["position"] for option in product["options"]] == list(range(1, len(product["options"]) + 1))
        for variant in product["variants"]:
            values = [variant[f"option{at}"] for at in (1, 2, 3)]
            assert [value is not None for value in values].count(True) == len(product["options"])
            assert variant["product_id"] == product["id"]
            for option, value in zip(product["options"], values, strict=False):
                assert value in option["values"]


def test_oddities() -> None:
    assert any(variant["sku"] == "" for variant in VARIANTS)
    assert any(variant["grams"] == 0 for variant in VARIANTS)
    assert any(variant["title"] == "Default Title" for variant in VARIANTS)
    assert {variant["available"] for variant in VARIANTS} == {True, False}
    compared = [(float(v["price"]), float(v["compare_at_price"])) for v in VARIANTS if v["compare_at_price"]]
    assert any(usual < price for price, usual in compared)
    assert any(usual > price for price, usual in compared)


def test_sells_the_other_vendors_items() -> None:
    items = read_feed("item-master.csv").decode()
    resold = [product for product in PRODUCTS if product["vendor"] == "Lindgren & Falk"]
    assert len(resold) >= 30
    skus = {variant["sku"] for product in resold for variant in product["variants"]} - {""}
    assert all(f"\n{sku}," in items for sku in skus)


def test_reads_as_meant(shop: Any) -> None:
    assert len(shop.products) == len(PRODUCTS)
    assert len(shop.variants) == len(VARIANTS)
    assert {problem.field for problem in shop.problems} == {"compare_at"}  # some are not above the price
    product = next(entry for entry in PRODUCTS if entry["title"] == "Odette Six-Drawer Dresser")
    stated = shop.products[str(product["id"])]
    assert stated.data["brand"] == "Quillmere Home"
    assert stated.data["category_path"] == ["Dressers"]
    assert "Overall: 58" in stated.data["description"]
    walnut = next(v for v in stated.variants if v.data["title"] == "Walnut")
    (offer,) = walnut.offers
    assert offer.data["price"] == 105000
    assert offer.data["compare_at"] == 126000
    assert walnut.data["weight"]["hundredths_lb"] == 14705


def test_options_become_axes(shop: Any) -> None:
    named = Counter(name for variant in shop.variants for name in variant.data.get("axes", {}))
    given = Counter(option["name"] for p in PRODUCTS for v in p["variants"] for option in p["options"])
    assert named == {name: count for name, count in given.items() if name != "Title"}
