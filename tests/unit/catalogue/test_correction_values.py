"""Values that people enter for corrections (domain/corrections/values.py)."""

import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from domain.catalogue.corrections import FIELDS_BY_LEVEL, is_correctable
from domain.corrections.values import (
    check_value,
    compute_price,
    find_kind,
    read_price_change,
    read_text,
    restore_value,
    to_plain_value,
)
from domain.kernel.errors import Unprocessable


@pytest.mark.parametrize(
    ("level", "field", "text", "currency", "value"),
    [
        ("product", "title", "  Oak\ntable ", "", "Oak table"),
        ("product", "description", "Two\nlines", "", "Two\nlines"),
        ("product", "tags", "oak\n\n steel ", "", ["oak", "steel"]),
        ("product", "compliance.stability_rating", "1,25", "", Decimal("1.25")),
        ("product", "compliance.country_of_origin", "Sweden", "", "SE"),
        (
            "variant",
            "dimensions.width",
            "80,50 cm",
            "",
            {"hundredths_in": 3169, "given": {"value": Decimal("80.50"), "unit": "cm"}},
        ),
        (
            "variant",
            "dimensions.height",
            '31.5"',
            "",
            {"hundredths_in": 3150, "given": {"value": Decimal("31.5"), "unit": "in"}},
        ),
        ("variant", "weight", "12.5kg", "", {"hundredths_lb": 2756, "given": {"value": Decimal("12.5"), "unit": "kg"}}),
        ("variant", "assembly_required", "false", "", False),
        ("variant", "axes.Size (W.D)", "XL", "", "XL"),
        ("variant", "rug.shape", "round", "", "round"),
        ("offer", "price", "1.299,90", "EUR", {"amount": 129990, "currency": "eur"}),
        ("offer", "cost", "1299", "jpy", {"amount": 1299, "currency": "jpy"}),
        ("offer", "quantity", "0", "", 0),
        ("offer", "availability", "in_stock", "", "in_stock"),
    ],
)
def test_entered_values_are_exact_and_survive_the_audit_log(
    level: str, field: str, text: str, currency: str, value: Any
) -> None:
    checked = check_value(level, field, read_text(field, text, currency))
    assert checked == value and repr(checked) == repr(value)
    restored = restore_value(level, field, to_plain_value(checked))
    assert restored == value and repr(restored) == repr(value)


@pytest.mark.parametrize(
    ("level", "field", "text", "currency", "reason"),
    [
        ("product", "title", "n/a", "", "empty"),
        ("product", "title", "x" * 5000, "", "characters"),
        ("product", "category", "ctg_1", "", "taxonomy"),
        ("variant", "gtin", "4006381333930", "", "check digit"),
        ("variant", "dimensions.width", "80", "", "unit"),
        ("variant", "dimensions.width", "-3 cm", "", "below zero"),
        ("variant", "weight", "1.250 kg", "", "ambiguous"),
        ("variant", "assembly_required", "maybe", "", "neither true nor false"),
        ("offer", "price", "1,299", "usd", "ambiguous"),
        ("offer", "price", "12", "abc", "currency"),
        ("offer", "price", "12", "", "currency"),
        ("offer", "price", "0", "usd", "empty"),
        ("offer", "price", "NaN", "usd", "amount"),
        ("offer", "quantity", "1.5", "", "whole number"),
        ("offer", "quantity", "9" * 30, "", ""),
        ("variant", "sku", "A", "", "cannot be corrected"),
        ("variant", "axes", "A", "", "cannot be corrected"),
        ("variant", "axes.", "A", "", "cannot be corrected"),
        ("offer", "title", "A", "", "cannot be corrected"),
    ],
)
def test_invalid_values_are_refused_with_a_reason(
    level: str, field: str, text: str, currency: str, reason: str
) -> None:
    with pytest.raises(Unprocessable) as refused:
        check_value(level, field, read_text(field, text, currency))
    assert reason in f"{refused.value.detail} {refused.value.fields}"


def test_every_field_has_a_kind_and_can_be_corrected() -> None:
    for level, fields in FIELDS_BY_LEVEL.items():
        for field in fields:
            assert is_correctable(level, field) and find_kind(field)


@pytest.mark.parametrize("seed", range(50))
def test_changed_prices_are_exact_and_rounded_half_up(seed: int) -> None:
    dice = random.Random(seed)
    amount, percent = dice.randint(1, 10**8), f"{dice.randint(-99, 900)}.{dice.randint(1, 99):02}"
    rounding = dice.choice(("minor", "whole"))
    exact = Fraction(amount) * (100 + Fraction(percent)) / 100
    unit = 100 if rounding == "whole" else 1
    expected = (2 * (exact / unit).numerator + (exact / unit).denominator) // (2 * (exact / unit).denominator) * unit
    change = read_price_change("percent", f"{percent} %", "", rounding)
    if expected <= 0:
        with pytest.raises(Unprocessable):
            compute_price({"amount": amount, "currency": "usd"}, change)
        return
    assert compute_price({"amount": amount, "currency": "usd"}, change) == {"amount": expected, "currency": "usd"}


def test_amounts_are_added_in_one_currency() -> None:
    change = read_price_change("amount", "-1,50", "usd", "minor")
    assert compute_price({"amount": 1000, "currency": "usd"}, change)["amount"] == 850
    with pytest.raises(Unprocessable, match="EUR"):
        compute_price({"amount": 1000, "currency": "eur"}, change)
    with pytest.raises(Unprocessable, match="above zero"):
        compute_price({"amount": 150, "currency": "usd"}, change)
    for text in ("0", "abc", "1e5", "--1", "100000000000000"):
        with pytest.raises(Unprocessable):
            read_price_change("percent", text, "", "minor")
    for amount, half in ((5, 3), (1, 1)):
        change = read_price_change("percent", "-50", "", "minor")
        assert compute_price({"amount": amount, "currency": "usd"}, change)["amount"] == half


@pytest.mark.parametrize(("field", "kind"), [("weight", "length"), ("dimensions.width", "length"), ("price", "money")])
def test_long_texts_are_refused_before_they_are_parsed(field: str, kind: str) -> None:
    assert find_kind(field) in (kind, "weight")
    with pytest.raises(Unprocessable, match="at most 100 characters"):
        read_text(field, "a" * 250_000 + "1", "usd")


def test_prices_cannot_be_raised_above_the_maximum_of_pushed_prices() -> None:
    change = read_price_change("percent", "1000", "", "minor")
    price = {"amount": 10**16, "currency": "usd"}
    with pytest.raises(Unprocessable, match="too high"):
        compute_price(price, change)
    assert restore_value("offer", "price", compute_price({**price, "amount": 10**15}, change))
