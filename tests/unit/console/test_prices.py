"""Prices that the console shows for several offers."""

from typing import Any

import pytest

from entrypoints.console.products import build_match_item, find_cheapest_offers, find_price_range, summarise_offers


def build_offer(**values: Any) -> dict[str, Any]:
    return {"source": "src_1", "availability": "in_stock", "currency": "usd", **values}


def build_amount(amount: int) -> dict[str, Any]:
    return {"amount": amount, "currency": "usd"}


@pytest.mark.parametrize(
    ("offers", "lowest", "highest"),
    [
        (
            [build_offer(price=20_000), build_offer(price=18_000), build_offer(cost=9_000)],
            build_amount(18_000),
            build_amount(20_000),
        ),
        ([build_offer(price=20_000), build_offer(msrp=15_000)], build_amount(20_000), build_amount(20_000)),
        ([build_offer(cost=9_000), build_offer(cost=8_000), build_offer()], build_amount(8_000), build_amount(9_000)),
        ([build_offer(price=1, currency=None), build_offer(msrp=30_000)], build_amount(30_000), build_amount(30_000)),
        (
            [build_offer(price=5, currency="eur"), build_offer(price=7), build_offer(price=6)],
            build_amount(6),
            build_amount(7),
        ),
    ],
)
def test_a_range_compares_prices_of_one_kind(offers: list[Any], lowest: Any, highest: Any) -> None:
    assert find_price_range(offers) == (lowest, highest)


def test_offers_without_prices_have_no_range() -> None:
    assert find_price_range([]) is None
    assert find_price_range([build_offer(), build_offer(price=5, currency=None)]) is None


def test_a_match_shows_a_price_only_with_the_label_of_its_kind() -> None:
    def format_price(*offers: Any) -> str:
        variant = {"id": "var_1", "data": {}, "offers": list(offers)}
        product = {"id": "prd_1", "data": {"title": "Oslo"}, "variants": [variant]}
        return build_match_item({"id": "var_1", "product": "prd_1"}, product).field_texts["price"]

    assert "180" in format_price(build_offer(price=18_000), build_offer(msrp=15_000))
    assert format_price(build_offer(price=18_000), build_offer(msrp=15_000)) == format_price(build_offer(price=18_000))
    assert format_price(build_offer(msrp=15_000)).endswith("(MSRP)") and "150" in format_price(build_offer(msrp=15_000))


@pytest.mark.parametrize(
    ("offers", "cheapest"),
    [
        ([("src_1", {"price": 500}), ("src_2", {"price": 400}), ("src_2", {"price": 400})], {"ofr_1", "ofr_2"}),
        ([("src_1", {"price": 500}), ("src_2", {"msrp": 400})], set()),
        ([("src_1", {"price": 500}), ("src_1", {"price": 400})], set()),
        ([("src_1", {"price": 500}), ("src_2", {"price": 400, "currency": "eur"})], set()),
        ([("src_1", {"msrp": 500}), ("src_2", {"msrp": 500})], set()),
        ([("src_1", {}), ("src_2", {})], set()),
    ],
)
def test_the_lowest_price_is_marked_only_if_sources_can_be_compared(offers: list[Any], cheapest: set[str]) -> None:
    made = [
        {**build_offer(**values), "id": f"ofr_{number}", "source": source}
        for number, (source, values) in enumerate(offers)
    ]
    assert find_cheapest_offers(made) == cheapest


def test_a_summary_names_the_field_of_its_prices() -> None:
    assert summarise_offers([build_offer(msrp=5), build_offer(cost=3)]).price_field == "msrp"
    withdrawn = build_offer(price=1, withdrawn_at="2026-11-01T00:00:00Z")
    assert summarise_offers([withdrawn, build_offer(msrp=5)]).price == (build_amount(5), build_amount(5))
