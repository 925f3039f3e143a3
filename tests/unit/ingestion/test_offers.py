"""Prices, stock, dates and lead times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.catalogue.model import Availability
from domain.ingestion.values.dates import detect_date_order, parse_date, parse_lead_time
from domain.ingestion.values.money import detect_decimal_mark, parse_money
from domain.ingestion.values.stock import Stock, parse_availability, parse_stock, split_stock_word


@pytest.mark.parametrize(
    ("text", "currency", "decimal", "minor", "found"),
    [
        ("$1,234.50", None, "auto", 123450, "usd"),
        ("$12", "cad", "auto", 1200, "cad"),
        ("€ 12,50", None, "auto", 1250, "eur"),
        ("12,50", "eur", "auto", 1250, "eur"),
        ("1.234,56 €", None, "auto", 123456, "eur"),
        ("1.234", "eur", "comma", 123400, "eur"),
        ("1.234", "usd", "auto", 123, "usd"),
        ("1,385", "sar", "comma", 138500, "sar"),
        ("1.250.000", "cop", "auto", 125000000, "cop"),
        ("1 234,50 kr", "sek", "auto", 123450, "sek"),
        ("1'234.50", "chf", "auto", 123450, "chf"),
        ("15.00 USD", "eur", "auto", 1500, "usd"),
        ("USD 15", None, "auto", 1500, "usd"),
        ("US$15", None, "auto", 1500, "usd"),
        ("12.345", "kwd", "auto", 12345, "kwd"),
        ("1200", "jpy", "auto", 1200, "jpy"),
        ("12.345", "usd", "dot", 1235, "usd"),
        ("94.0", "usd", "auto", 9400, "usd"),
        ("1,23,456.00", "inr", "auto", 12345600, "inr"),
        ("12.-", "chf", "auto", 1200, "chf"),
    ],
)
def test_prices_are_read(text: str, currency: str | None, decimal: str, minor: int, found: str) -> None:
    price = parse_money(text, currency, decimal).value
    assert price is not None
    assert (price.minor_units, price.currency) == (minor, found)


@pytest.mark.parametrize(
    ("text", "currency", "problem"),
    [
        ("12", None, "unknown_currency"),
        ("12 XQX", "usd", "unknown_currency"),
        ("12 kr", None, "unknown_currency"),
        ("-5", "usd", "out_of_range"),
        ("Call for price", "usd", "unreadable"),
        ("10 - 20", "usd", "unreadable"),
        ("1.234", "eur", "unreadable"),
    ],
)
def test_invalid_prices_are_reported(text: str, currency: str | None, problem: str) -> None:
    reading = parse_money(text, currency)
    assert (reading.value, [fault.problem for fault in reading.faults]) == (None, [problem])


@pytest.mark.parametrize("text", ["", "0", "0.00", "$0.00", "No old price", "N/A", "TBD"])
def test_placeholders_state_no_price(text: str) -> None:
    reading = parse_money(text, "usd")
    assert (reading.value, reading.faults) == (None, ())


def test_a_price_for_a_pack_includes_its_count() -> None:
    price = parse_money("$100/4 pack").value
    assert price is not None
    assert (price.minor_units, price.pack_size) == (10000, 4)


@given(minor=st.integers(1, 10**9), mark=st.sampled_from([".", ","]))
def test_amounts_with_two_decimals_are_exact(minor: int, mark: str) -> None:
    price = parse_money(f"{minor // 100}{mark}{minor % 100:02d}", "eur").value
    assert price is not None
    assert price.minor_units == minor


def test_samples_prove_the_decimal_mark() -> None:
    assert detect_decimal_mark(["12,50", "1.200,00"]) == "comma"
    assert detect_decimal_mark(["$1,200", "12.50"]) == "dot"
    assert detect_decimal_mark(["12", "13"]) is None


@pytest.mark.parametrize(
    ("text", "stock"),
    [
        ("12", Stock(12)),
        ("20+", Stock(20)),
        ("2 dz", Stock(24)),
        ("-3", Stock(0)),
        ("1,200", Stock(1200)),
        ("12.0", Stock(12)),
        ("In Stock", Stock(None, "in_stock")),
        ("out_of_stock", Stock(0, "out_of_stock")),
        ("https://schema.org/BackOrder", Stock(None, "backorder")),
        ("0 in stock", Stock(0)),
        ("In Stock (7)", Stock(7)),
        ("Only 3 left", Stock(3)),
        ("Discontinued", Stock(None, "discontinued")),
        ("Call", Stock(None, "unknown")),
        ("Auf Lager", Stock(None, "in_stock")),
    ],
)
def test_stock_is_read(text: str, stock: Stock) -> None:
    assert parse_stock(text).value == stock
    assert parse_availability(text).value == stock


def test_unreadable_stock_is_reported() -> None:
    assert parse_stock("Fragile item").faults[0].problem == "unreadable"
    assert parse_stock("TBD").faults == ()


@pytest.mark.parametrize(
    ("quantity", "word"), [(0, "out_of_stock"), (1, "low_stock"), (5, "low_stock"), (6, "in_stock")]
)
def test_availability_follows_from_quantity(quantity: int, word: str) -> None:
    assert Availability.from_quantity(quantity) == word


def test_a_stock_word_is_extracted_from_a_value() -> None:
    assert split_stock_word("Blue [NOT AVAILABLE]") == ("Blue", Stock(0, "out_of_stock"))
    assert split_stock_word("Blue (Left)") == ("Blue (Left)", None)


@pytest.mark.parametrize(
    ("text", "order", "found"),
    [
        ("2027-01-05", None, "2027-01-05"),
        ("2027-01-05T00:00-0800", None, "2027-01-05"),
        ("01/24/2027", None, "2027-01-24"),
        ("24/01/2027", None, "2027-01-24"),
        ("03/04/2027", "mdy", "2027-03-04"),
        ("03/04/2027", "dmy", "2027-04-03"),
        ("03.04.2027", None, "2027-04-03"),
        ("5-Jan-2027", None, "2027-01-05"),
        ("Jan 5, 2027", None, "2027-01-05"),
        ("46388", None, "2027-01-01"),
        ("20270105", None, "2027-01-05"),
        ("ETA 01/24/2027", None, "2027-01-24"),
    ],
)
def test_dates_are_read(text: str, order: str | None, found: str) -> None:
    assert parse_date(text, order).value == found


@pytest.mark.parametrize("text", ["03/04/2027", "11/23", "02/30/2027", "mid January", "week 12"])
def test_dates_are_not_guessed(text: str) -> None:
    reading = parse_date(text)
    assert (reading.value, [fault.problem for fault in reading.faults]) == (None, ["unreadable"])


def test_samples_prove_the_order_of_dates() -> None:
    assert detect_date_order(["03/04/2027", "01/24/2027"]) == "mdy"
    assert detect_date_order(["24/01/2027"]) == "dmy"
    assert detect_date_order(["03/04/2027"]) is None


@pytest.mark.parametrize(
    ("text", "unit", "days"),
    [
        ("5", "days", 5),
        ("3-5 working days", "days", 5),
        ("2 weeks", "days", 14),
        ("2", "weeks", 14),
        ("36", "hours", 2),
        ("In stock", "days", 0),
    ],
)
def test_lead_times_are_read(text: str, unit: str, days: int) -> None:
    assert parse_lead_time(text, unit).value == days


def test_numbers_without_a_unit_of_time_are_reported() -> None:
    assert [parse_lead_time(text).faults[0].problem for text in ("6", "4-6")] == ["unknown_unit", "unknown_unit"]
    assert parse_lead_time("0").value == 0


def test_unreadable_lead_times_are_reported() -> None:
    assert parse_lead_time("soon").faults[0].problem == "unreadable"
    assert parse_lead_time("99999 days").faults != ()
