"""The price of an item that is compared."""

from typing import Any

import pytest

from domain.matching.features import Price, find_lowest_price


@pytest.mark.parametrize(
    ("offers", "price"),
    [
        ([], Price()),
        ([{"currency": "usd"}], Price(None, "usd")),
        ([{"currency": "usd", "price": 300}, {"currency": "eur", "price": 200, "msrp": 100}], Price(200, "eur")),
        ([{"currency": "usd", "msrp": 100}, {"currency": "usd", "price": 900}], Price(900, "usd")),
        ([{"currency": "usd", "map": 80}, {"currency": "usd", "msrp": 90, "map": 10}], Price(80, "usd")),
        ([{"currency": "usd", "price": 0, "msrp": 90}], Price(0, "usd")),
        ([{"currency": "usd", "price": 5}, {"currency": "eur", "price": 5}], Price(5, "usd")),
    ],
)
def test_the_lowest_price_or_recommended_price_is_used(offers: list[dict[str, Any]], price: Price) -> None:
    rows = [(f"ofr_{number}", data) for number, data in enumerate(offers)]
    assert find_lowest_price(rows) == find_lowest_price(reversed(rows)) == price
