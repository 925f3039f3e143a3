"""Prices that the console shows for several offers."""

from typing import Any

import pytest

from entrypoints.console.products import build_match_item, find_price_range


def offer(**values: Any) -> dict[str, Any]:
    return {"source": "src_1", "availability": "in_stock", "currency": "usd", **values}


def usd(amount: int) -> dict[str, Any]:
    return {"amount": amount, "currency": "usd"}


@pytest.mark.parametrize(
    ("offers", "lowest", "highest"),
    [
        ([offer(price=20_000), offer(price=18_000), offer(cost=9_000)], usd(18_000), usd(20_000)),
        ([offer(price=20_000), offer(msrp=15_000)], usd(20_000), usd(20_000)),
        ([offer(cost=9_000), offer(cost=8_000), offer()], usd(8_000), usd(9_000)),
        ([offer(price=1, currency=None), offer(msrp=30_000)], usd(30_000), usd(30_000)),
        ([offer(price=5, currency="eur"), offer(price=7), offer(price=6)], usd(6), usd(7)),
    ],
)
def test_a_range_compares_prices_of_one_kind(offers: list[Any], lowest: Any, highest: Any) -> None:
    assert find_price_range(offers) == (lowest, highest)


def test_offers_without_prices_have_no_range() -> None:
    assert find_price_range([]) is None
    assert find_price_range([offer(), offer(price=5, currency=None)]) is None


def test_a_match_shows_a_price_only_with_the_label_of_its_kind() -> None:
    def show(*offers: Any) -> str:
        variant = {"id": "var_1", "data": {}, "offers": list(offers)}
        product = {"id": "prd_1", "data": {"title": "Oslo"}, "variants": [variant]}
        return build_match_item({"id": "var_1", "product": "prd_1"}, product).field_texts["price"]

    assert "180" in show(offer(price=18_000), offer(msrp=15_000))
    assert show(offer(price=18_000), offer(msrp=15_000)) == show(offer(price=18_000))
    assert show(offer(msrp=15_000)).endswith("(MSRP)") and "150" in show(offer(msrp=15_000))
