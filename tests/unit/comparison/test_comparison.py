"""Compared values: exact conversions, margins of one offer, and best values only where they are comparable."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.comparison.model import (
    ComparedItem,
    Measure,
    Prices,
    find_lowest_prices,
    find_lowest_values,
    select_prices,
)
from domain.comparison.vendors import AverageAmount, summarise_vendor
from domain.kernel.units import UNIT_SYSTEMS

EXACT = {
    "mm": Fraction(1), "cm": Fraction(10), "m": Fraction(1000), "in": Fraction(254, 10), "ft": Fraction(3048, 10),
    "g": Fraction(1), "kg": Fraction(1000), "lb": Fraction(45359237, 100000), "oz": Fraction(45359237, 1600000),
}  # fmt: skip
STEPS = {"cm": Fraction(1, 10), "in": Fraction(1, 100), "kg": Fraction(1, 100), "lb": Fraction(1, 100)}
IMPERIAL = {"in", "ft", "lb", "oz"}
amounts = st.integers(0, 10**9)
offers = st.lists(
    st.fixed_dictionaries(
        {"currency": st.sampled_from(["usd", "eur", "jpy"])},
        optional={"price": amounts, "msrp": amounts, "cost": amounts},
    ),
    max_size=6,
)


@given(
    st.decimals(0, 100_000, places=3, allow_nan=False),
    st.sampled_from(sorted(EXACT)),
    st.sampled_from(sorted(UNIT_SYSTEMS)),
)
def test_a_measure_is_converted_exactly_and_rounded_once(value: Decimal, unit: str, units: str) -> None:
    converted, target = Measure(str(value), unit).convert(units)
    exact = Fraction(value) * EXACT[unit] / EXACT[target]
    if (unit in IMPERIAL) == (target in IMPERIAL):
        assert Fraction(converted) == exact
    else:
        error = Fraction(converted) - exact
        assert -STEPS[target] / 2 < error <= STEPS[target] / 2
        assert (Fraction(converted) / STEPS[target]).denominator == 1


@pytest.mark.parametrize(
    ("value", "unit", "units", "expected"),
    [
        ("80", "cm", "metric", ("80", "cm")),
        ("80", "cm", "imperial", ("31.5", "in")),
        ("31.5", "in", "metric", ("80", "cm")),
        ("800", "mm", "metric", ("80", "cm")),
        ("3", "ft", "imperial", ("36", "in")),
        ("64410", "g", "imperial", ("142", "lb")),
        ("142.0", "lb", "metric", ("64.41", "kg")),
        ("5", "oz", "imperial", ("0.3125", "lb")),
    ],
)
def test_values_of_two_vendors_have_one_unit(value: str, unit: str, units: str, expected: tuple[str, str]) -> None:
    converted, target = Measure(value, unit).convert(units)
    assert (converted, target) == (Decimal(expected[0]), expected[1])


@given(offers)
def test_prices_are_of_one_currency_and_the_margin_of_one_offer(rows: list[dict[str, Any]]) -> None:
    prices = select_prices(rows)
    if prices is None:
        assert not any("price" in row or "msrp" in row or "cost" in row for row in rows)
        return
    own = [row for row in rows if row["currency"] == prices.currency]
    selling = [row["price"] for row in own if "price" in row]
    assert prices.price == (min(selling) if selling else None)
    assert prices.msrp == min((row["msrp"] for row in own if "msrp" in row), default=None)
    if any("price" in row for row in rows):
        assert prices.price is not None, "the currency is one in which something is sold"
    if prices.margin is None:
        assert prices.price is None or prices.cost is None
        assert prices.price is None or not any(row.get("price") == prices.price and "cost" in row for row in own)
    else:
        assert any(row.get("price") == prices.price and row.get("cost") == prices.cost for row in own)
        assert prices.margin == prices.price - prices.cost  # type: ignore[operator]
        if prices.price:
            error = Fraction(prices.margin_percent or 0) - Fraction(100 * prices.margin, prices.price)
            assert abs(error) <= Fraction(1, 20)


def test_a_suggested_retail_price_is_never_a_selling_price() -> None:
    """Findings of a merchandiser: a range from a price to an MSRP, and a lowest price that beats nothing."""
    with_price = select_prices([{"currency": "usd", "price": 48499, "cost": 30000, "msrp": 69900}])
    only_msrp = select_prices([{"currency": "usd", "msrp": 53900}])
    assert with_price == Prices("usd", 48499, 30000, 69900) and only_msrp == Prices("usd", None, None, 53900)
    assert (only_msrp.price, only_msrp.margin, only_msrp.margin_percent) == (None, None, None)
    assert find_lowest_prices([with_price, only_msrp]) == frozenset()
    assert with_price.margin == 18499 and with_price.margin_percent == Decimal("38.1")
    assert Prices("usd", 0, 5).margin == -5 and Prices("usd", 0, 5).margin_percent is None
    assert Prices("usd", 100, 150).margin_percent == Decimal("-50.0")


def test_the_lowest_price_is_marked_only_if_it_is_comparable() -> None:
    def usd(price: int) -> Prices:
        return Prices("usd", price)

    assert find_lowest_prices([usd(2), usd(1), None, usd(1)]) == {1, 3}
    assert find_lowest_prices([usd(1), usd(1)]) == frozenset(), "all are equal"
    assert find_lowest_prices([usd(1), None]) == frozenset(), "nothing to compare with"
    assert find_lowest_prices([usd(1), Prices("eur", 2)]) == frozenset(), "other currencies"
    assert find_lowest_prices([usd(1), usd(2), Prices("eur", None, 9)]) == {0}
    assert find_lowest_values([None, 0, 14]) == {1} and find_lowest_values([14]) == frozenset()


def test_an_item_without_cost_has_no_margin() -> None:
    item = ComparedItem(title="Sofa", prices=Prices("usd", 100, 60, 200))
    assert item.without_cost().prices == Prices("usd", 100, None, 200)
    assert ComparedItem(title="Sofa").without_cost().prices is None


def _product(*variants: list[dict[str, Any]]) -> dict[str, Any]:
    return {"data": {"title": "Sofa"}, "variants": [{"data": {}, "offers": rows} for rows in variants]}


def test_averages_of_a_vendor_count_its_own_current_offers_in_one_currency() -> None:
    def offer(source: str = "src_a", **fields: Any) -> dict[str, Any]:
        return {"source": source, "currency": "usd", "availability": "out_of_stock"} | fields

    products = [
        _product(
            [offer(price=100, lead_time_days=4), offer(price=300, availability="in_stock", lead_time_days=9)],
            [offer(price=201, msrp=900), offer("src_b", price=1, lead_time_days=1)],
            [offer(price=5, currency="eur")],
        ),
        _product([offer(price=1, withdrawn_at="2026-11-20T13:08:00.000Z")], [offer("src_b", price=1)]),
    ]
    found = summarise_vendor(products, "src_a")
    assert found.products == 2
    assert found.price == AverageAmount(151, "usd", 2), "100 and 201, half up"
    assert found.msrp == AverageAmount(900, "usd", 1)
    assert found.lead_time_days == Decimal("4.0")
    assert found.available_percent == 33
    empty = summarise_vendor([], "src_a")
    assert (empty.price, empty.completeness, empty.lead_time_days, empty.available_percent) == (None, None, None, None)
