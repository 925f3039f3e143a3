"""The chart of a product's prices compares amounts of one kind."""

from datetime import UTC, datetime
from typing import Any

from entrypoints.console.charts import build_offer_history

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def list_lines(**amounts: dict[str, int]) -> list[tuple[str, float]]:
    """Return the name and the last value of each line of the chart of offers with these amounts."""
    offers: list[dict[str, Any]] = [{"id": name, "currency": "usd", **fields} for name, fields in amounts.items()]
    history = build_offer_history(offers, (), {name: name for name in amounts}, NOW)
    chart = history["price_chart"]
    return [(line["name"], line["last"]) for line in chart["lines"]] if chart else []


def test_a_suggested_retail_price_is_not_drawn_with_selling_prices() -> None:
    assert list_lines(first={"price": 48499}, second={"msrp": 53900}) == [("first", 484.99)]
    assert list_lines(first={"price": 48499, "msrp": 60000}, second={"price": 47000}) == [
        ("first", 484.99),
        ("second", 470.0),
    ]


def test_suggested_retail_prices_are_drawn_if_there_are_no_others() -> None:
    assert list_lines(first={"msrp": 50000}, second={"msrp": 53900}) == [("first", 500.0), ("second", 539.0)]
