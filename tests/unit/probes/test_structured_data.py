"""JSON-LD of real pages: nested, invalid, duplicated and very large."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.probes.structured_data import MAX_BLOCK_CHARS, STATED_FIELDS, compute_coverage, extract_products
from tests.unit.probes.shop_sites import build_product


def extract_fields(*values: Any) -> list[frozenset[str]]:
    """Return the stated fields of the products in the blocks."""
    return list(extract_products(json.dumps(value) for value in values).products)


def test_a_product_and_its_offer_are_read() -> None:
    [found] = extract_fields(build_product(1))
    assert found == {"name", "sku", "image", "brand", "price", "currency", "availability"}
    assert extract_products([json.dumps(build_product(1))]).currencies == {"eur"}


@pytest.mark.parametrize(
    "around",
    [
        lambda one: [one],
        lambda one: {"@graph": [{"@type": "WebPage"}, one]},
        lambda one: {"@type": "WebPage", "mainEntity": one},
        lambda one: one | {"@type": ["Product", "Thing"]},
        lambda one: one | {"@type": "http://schema.org/Product"},
        lambda one: one | {"@type": "schema:product"},
        lambda one: [[{"@graph": [[one]]}]],
    ],
)
def test_a_product_is_found_at_any_depth(around: Any) -> None:
    assert len(extract_fields(around(build_product(1)))) == 1


def test_a_group_states_the_fields_of_its_variants() -> None:
    variants = [{"@type": "Product", "sku": "A", "gtin13": "1", "offers": {"price": "1", "priceCurrency": "USD"}}]
    [found] = extract_fields({"@type": "ProductGroup", "name": "Oak", "hasVariant": variants})
    assert found == {"name", "sku", "gtin", "price", "currency"}


def test_nested_offers_are_read() -> None:
    aggregate = {
        "@type": "AggregateOffer",
        "lowPrice": 1,
        "priceCurrency": "USD",
        "offers": [{"availability": "InStock"}],
    }
    specified = {"@type": "Offer", "priceSpecification": [{"price": 0, "priceCurrency": "GBP"}]}
    assert extract_fields({"@type": "Product", "offers": aggregate}) == [{"price", "currency", "availability"}]
    assert extract_fields({"@type": "Product", "offers": [specified]}) == [{"price", "currency"}]


def test_empty_values_state_nothing() -> None:
    empty = {
        "@type": "Product",
        "name": " ",
        "sku": None,
        "image": [],
        "brand": {"@type": "Brand", "name": ""},
        "offers": {},
        "weight": {"unitCode": "KGM"},
    }
    assert extract_fields(empty) == [frozenset()]


def test_products_of_other_pages_do_not_count() -> None:
    related = build_product(1) | {"isRelatedTo": [build_product(2), build_product(3)]}
    listed = {"@type": "ItemList", "itemListElement": [{"item": build_product(number)} for number in range(4)]}
    assert len(extract_fields(related, listed)) == 1
    assert len(extract_fields(listed)) == 4


@pytest.mark.parametrize(
    "block",
    ['{"@type": "Product", "name": "A"}', '<!-- {"@type": "Product", "name": "A"} -->', '\n//<![CDATA[\n{"@type": "Product", "name": "A"}\n//]]>\n',
     '{"@type": "Product", "name": "A\nB"};', '{"@type": "Product", "name": "\\ud800"}'],
)  # fmt: skip
def test_invalid_json_is_tolerated(block: str) -> None:
    found = extract_products([block])
    assert (found.products, found.malformed_count) == ((frozenset({"name"}),), 0)


@pytest.mark.parametrize(
    "block",
    ["", "{", '{"@type": "Product",}', "null null", "[" * 200_000, '{"a":' * 100_000, "1" * 10_000, '"' + "a" * MAX_BLOCK_CHARS + '"', "{{ product | json }}"],
)  # fmt: skip
def test_malformed_blocks_are_counted_and_skipped(block: str) -> None:
    found = extract_products([block, json.dumps(build_product(1))])
    assert found.malformed_count == 1 and len(found.products) == 1


def test_depth_and_number_are_bounded() -> None:
    deep: Any = build_product(1)
    for _ in range(200):
        deep = {"a": deep}
    assert extract_fields(deep) == []
    assert len(extract_fields([build_product(number) for number in range(1_000)])) == 200
    assert len(extract_fields([0] * 200_000 + [build_product(1)])) == 0


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["@type", "offers", "hasVariant", "name", "@graph", "price", "brand"]), inner | st.just("Product"), max_size=5),
    max_leaves=30,
)  # fmt: skip


@settings(derandomize=True, deadline=None)
@given(_JSON)
def test_any_value_is_accepted(value: Any) -> None:
    found = extract_products([json.dumps(value)])
    assert found.malformed_count == 0 and all(one <= set(STATED_FIELDS) for one in found.products)


def test_coverage_is_a_fraction() -> None:
    assert compute_coverage([], 0) == {}
    shares = compute_coverage([frozenset({"name", "price"}), frozenset({"name"})], 1)
    assert (shares["name"], shares["price"], shares["gtin"]) == (0.67, 0.33, 0.0) and set(shares) == set(STATED_FIELDS)
