"""Prices, stock, lead times, dates, weights and rug sizes in the spellings of their grammars; other text is reported."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ingestion.values.dates import parse_date, parse_lead_time
from domain.ingestion.values.money import parse_money
from domain.ingestion.values.quantities import parse_weight
from domain.ingestion.values.rugs import parse_rug_size
from domain.ingestion.values.stock import parse_stock

PRICE_FORMATS = (
    "${}", "$ {}", "USD {}", "{} USD", "{}USD", "US ${}", "${} USD", "{} dollars", "Price: ${}", "MSRP ${}", "only ${}", "${} each", "${}/pc",
    "${} incl. VAT", "~ ${}", "${}*",
)  # fmt: skip
GROUPS = (("", "."), (",", "."), (" ", "."), ("'", "."), (".", ","), ("", ","), (" ", ","), ("\u00a0", ","))


def _format_amount(minor: int, group: str, mark: str) -> str:
    whole, cents = divmod(minor, 100)
    return f"{whole:,}".replace(",", group) + f"{mark}{cents:02d}"


@given(st.integers(1, 10**8), st.sampled_from(GROUPS), st.sampled_from(PRICE_FORMATS))
def test_a_price_is_read_in_every_spelling(minor: int, marks: tuple[str, str], around: str) -> None:
    parsed = parse_money(around.format(_format_amount(minor, *marks)))
    assert parsed.value is not None
    assert (parsed.value.minor_units, parsed.value.currency, parsed.faults) == (minor, "usd", ())


@given(
    st.integers(1, 10**6),
    st.sampled_from(
        ["{} €", "€{}", "EUR {}", "{} EUR", "{} Euro", "Preis: {} €", "{} € inkl. MwSt.", "{} € TTC", "{} € je Stück"]
    ),
)
def test_a_price_in_euros_is_read(minor: int, around: str) -> None:
    parsed = parse_money(around.format(_format_amount(minor, ".", ",")))
    assert parsed.value is not None
    assert (parsed.value.minor_units, parsed.value.currency, parsed.faults) == (minor, "eur", ())


@given(st.integers(1, 10**6), st.sampled_from(["from ${}", "ab {} $", "${} + VAT", "${} excl. tax", "as low as ${}"]))
def test_a_partial_price_is_read_and_reported(minor: int, around: str) -> None:
    parsed = parse_money(around.format(_format_amount(minor, ",", ".")))
    assert parsed.value is not None
    assert (parsed.value.minor_units, [fault.problem for fault in parsed.faults]) == (minor, ["conflict"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("-12.50", "out_of_range"), ("(12.50)", "out_of_range"), ("($12.50)", "out_of_range"), ("12.50-", "out_of_range"), ("-$5", "out_of_range"),
        ("$10 - $20", "unreadable"), ("12 34", "unreadable"), ("Was $100 Now $80", "unreadable"), ("2 for $10", "unreadable"), ("=A1*2", "unreadable"),
        ("$4.99/sq ft", "unreadable"), ("12,50 € pro m²", "unreadable"), ("$99/month", "unreadable"), ("POA", "unreadable"), ("auf Anfrage", "unreadable"),
        ("£12 USD", "unknown_currency"), ("100 pcs", "unknown_currency"), ("1.5k", "unknown_currency"), ("Free", "unreadable"), ("12,345,67", "unreadable"),
    ],
)  # fmt: skip
def test_text_without_a_single_price_is_reported(text: str, problem: str) -> None:
    parsed = parse_money(text, "usd")
    assert (parsed.value, [fault.problem for fault in parsed.faults]) == (None, [problem])


@pytest.mark.parametrize(("text", "pack"), [("$50/pair", 2), ("$100/4 pack", 4), ("$9 per 6 pcs", 6), ("$9/pc", None)])
def test_a_price_for_several_items_has_a_pack_size(text: str, pack: int | None) -> None:
    price = parse_money(text).value
    assert price is not None
    assert price.pack_size == pack


@given(st.integers(0, 99999), st.sampled_from(["{}", "{}+", ">{}", "{} pcs", "{} in stock", "Only {} left", "ca. {}", "~{}", "Stock: {}", "noch {} Stück",
       "plus que {}", "quedan {}", "nog {}", "{} disponibili", "Auf Lager: {}", "{}.00", "+{}", "more than {}"]))  # fmt: skip
def test_a_quantity_is_read_in_every_spelling(count: int, around: str) -> None:
    parsed = parse_stock(around.format(count))
    assert parsed.value is not None
    assert (parsed.value.quantity, parsed.faults) == (count, ())


@given(st.integers(1, 9999), st.sampled_from(["-{}", "- {}", "({})", "{}-", "−{}"]))
def test_oversold_stock_is_zero_and_reported(count: int, around: str) -> None:
    parsed = parse_stock(around.format(count))
    assert parsed.value is not None
    assert (parsed.value.quantity, [fault.problem for fault in parsed.faults]) == (0, ["out_of_range"])


@pytest.mark.parametrize(
    "text",
    [
        "in 3 weeks",
        "12/05/2026",
        "12 (3 reserved)",
        "10 / 5",
        "5-10",
        "12.5",
        "1.000",
        "=A1*2",
        "E27",
        "1e3",
        "1.2k",
        "2 weeks",
        "Expected 12/01",
        "Back in stock 12/05",
    ],
)
def test_invalid_quantities_are_reported(text: str) -> None:
    parsed = parse_stock(text)
    assert parsed.value is None
    assert parsed.faults


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("rupture de stock", "out_of_stock"), ("épuisé", "out_of_stock"), ("niet op voorraad", "out_of_stock"), ("esaurito", "out_of_stock"),
        ("agotado", "out_of_stock"), ("nicht lieferbar", "out_of_stock"), ("op voorraad", "in_stock"), ("disponibile", "in_stock"), ("sur commande", "preorder"),
        ("descatalogado", "discontinued"), ("nur noch wenige", "low_stock"), ("su richiesta", "unknown"),
        ("temporarily out of stock", "out_of_stock"), ("vorübergehend nicht lieferbar", "out_of_stock"), ("temporarily low stock", "low_stock"),
    ],
)  # fmt: skip
def test_words_for_stock_are_read(text: str, word: str) -> None:
    stock = parse_stock(text).value
    assert stock is not None
    assert stock.availability == word


@pytest.mark.parametrize("text", ["temporarily available", "temporarily in stock", "vorübergehend verfügbar"])
def test_temporary_availability_is_not_read_as_out_of_stock(text: str) -> None:
    parsed = parse_stock(text)
    assert parsed.value is None and parsed.faults


@pytest.mark.parametrize(
    "text", ["Backorder until 12/05", "Out of stock until 1/5", "Sold out (3)", "<5", "less than 3", "12 on order"]
)
def test_a_stock_word_with_trailing_text_is_accepted_and_reported(text: str) -> None:
    parsed = parse_stock(text)
    assert parsed.value is not None
    assert parsed.value.quantity in (None, 0)
    assert parsed.faults


LEAD_TIME_UNITS = (("days", 1), ("working days", 1), ("Tage", 1), ("jours ouvrés", 1), ("giorni", 1), ("weeks", 7), ("wks", 7), ("Wochen", 7), ("semaines", 7), ("semanas", 7), ("weken", 7))  # fmt: skip


@given(st.integers(1, 30), st.integers(1, 20), st.sampled_from(LEAD_TIME_UNITS), st.sampled_from(["{}-{}", "{} - {}", "{} to {}", "{}–{}", "{} bis {}", "{}/{}"]),
       st.sampled_from(["", "Ships in ", "Lieferzeit: ", "Delivery within ", "sous "]))  # fmt: skip
def test_the_upper_bound_of_a_lead_time_is_used(
    low: int, more: int, unit: tuple[str, int], around: str, words: str
) -> None:
    parsed = parse_lead_time(f"{words}{around.format(low, low + more)} {unit[0]}")
    assert (parsed.value, parsed.faults) == ((low + more) * unit[1], ())


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("sous 48 h", 2),
        ("ships in 24h", 1),
        ("36 hours", 2),
        ("1.5 weeks", 11),
        ("5 days - 2 weeks", 14),
        ("next day", 1),
    ],
)
def test_hours_and_fractions_of_days_are_rounded_up(text: str, days: int) -> None:
    assert parse_lead_time(text).value == days


@pytest.mark.parametrize("text", ["KW 34", "2 months", "1-2 weeks + 3 days", "12/05/2026", "-5", "5 Stück", "4+ weeks"])
def test_ambiguous_lead_times_are_reported(text: str) -> None:
    assert parse_lead_time(text).faults


MONTHS = ("January", "Jan", "Januar", "janvier", "enero", "januari", "gennaio")


@given(
    st.integers(1, 31),
    st.sampled_from(MONTHS),
    st.sampled_from(
        ["{} {} 2027", "{}. {} 2027", "{}-{}-2027", "{}-{}-27", "{} de {} de 2027", "le {} {} 2027", "ETA {} {} 2027"]
    ),
)
def test_month_names_are_read_in_six_languages(day: int, month: str, around: str) -> None:
    assert parse_date(around.format(day, month)).value == f"2027-01-{day:02d}"


@pytest.mark.parametrize("text", ["Jan 5", "5. Januar", "5/1", "31.12."])
def test_a_date_without_a_year_is_reported(text: str) -> None:
    parsed = parse_date(text)
    assert parsed.value is None
    assert parsed.faults[0].detail.endswith("is a date without a year.")


@pytest.mark.parametrize(
    "text",
    ["03/04/2027", "26-01-05", "Jan-27", "01/2027", "Q3 2027", "KW 34", "mid June", "1/5/27 - 1/12/27", "02/30/2027"],
)
def test_ambiguous_dates_are_reported(text: str) -> None:
    parsed = parse_date(text)
    assert parsed.value is None
    assert parsed.faults


@given(
    st.decimals(1, 300, places=1),
    st.sampled_from(
        ["{} kg", "{}kg", "Gewicht: {} kg", "poids {} kg", "kg {}", "ca. {} kg", "{} kilogramos", "{} Kg."]
    ),
)
def test_a_weight_is_read_in_every_spelling(value: Decimal, around: str) -> None:
    for text in (str(value), str(value).replace(".", ",")):
        parsed = parse_weight(around.format(text))
        assert parsed.value is not None
        assert (parsed.value["given"]["value"], parsed.value["given"]["unit"], parsed.faults) == (value, "kg", ())


@pytest.mark.parametrize(
    ("text", "hundredths"),
    [
        ("50 lb (22.7 kg)", 5000),
        ("50 lbs / 22.7 kg", 5000),
        ("4 kg 500 g", 992),
        ("12 lb 4 oz", 1225),
        ("4,930 kg", 1087),
        ("20-25 lb", 2000),
        ("20 kg (3 boxes)", 4409),
    ],
)
def test_numbers_of_one_weight_are_combined(text: str, hundredths: int) -> None:
    parsed = parse_weight(text)
    assert parsed.value is not None
    assert (parsed.value["hundredths_lb"], parsed.faults) == (hundredths, ())


@pytest.mark.parametrize(
    "text",
    [
        "50 lb (30 kg)",
        "N.W. 20 kg / G.W. 22 kg",
        "Max load: 100 kg",
        "100 kg capacity",
        "2 x 20 kg",
        "20 kg x 2",
        "1,250 lbs",
        "1.250 g",
        "0.5 t",
        "20kg25kg",
    ],
)
def test_ambiguous_weights_are_reported(text: str) -> None:
    assert parse_weight(text).faults


@given(st.integers(2, 12), st.integers(1, 11), st.sampled_from([("{}'{}\" x {}'{}\"",), ("{}' {}\" X {}' {}\"",), ("{}'-{}\" x {}'-{}\"",), ("{} ft. {} in. x {} ft. {} in.",),
       ("{}.{} x {}.{}",), ("{}.{}' x {}.{}'",), ("{}-{} x {}-{}",), ("{}′{}″ × {}′{}″",), ("{}'{} x {}'{}",)]))  # fmt: skip
def test_feet_and_inches_of_a_rug_are_read(feet: int, inches: int, around: tuple[str]) -> None:
    parsed = parse_rug_size(around[0].format(feet, inches, feet + 2, inches))
    assert parsed.value is not None
    sides = (feet * 12 + inches) * 100, ((feet + 2) * 12 + inches) * 100
    found = parsed.value.dimensions
    assert (found["width"]["hundredths_in"], found["depth"]["hundredths_in"], parsed.faults) == (*sides, ())


@pytest.mark.parametrize(
    ("text", "shape", "side"),
    [
        ("Ø 200 cm", "round", 7874), ("200 cm rund", "round", 7874), ("rond 160 cm", "round", 6299), ("Round 8'", "round", 9600), ("8' RD", "round", 9600),
        ("160 x 230 cm oval", "oval", 6299), ("Läufer 80 x 300 cm", "runner", 3150), ("couloir 80x300 cm", "runner", 3150), ("1,60 x 2,30 m", "rectangle", 6299),
        ("5'3\" x 7'6\" (160 x 230 cm)", "rectangle", 6300),
    ],
)  # fmt: skip
def test_shapes_and_metric_sizes_of_rugs_are_read(text: str, shape: str, side: int) -> None:
    parsed = parse_rug_size(text)
    assert parsed.value is not None
    found = parsed.value.dimensions
    assert (parsed.value.shape, (found.get("diameter") or found["width"])["hundredths_in"], parsed.faults) == (
        shape,
        side,
        (),
    )


@pytest.mark.parametrize(
    "text",
    [
        '18" x 18" Sample',
        '6" Swatch',
        "CUSTOM",
        "160x230",
        "10x16",
        "5'3\" x",
        "2x3 / 3x5",
        "5x7 & 8x10",
        "Muster 20 x 20 cm",
        "5'3\" x 7'6\" x 8'",
    ],
)
def test_text_without_a_single_rug_size_is_reported(text: str) -> None:
    assert parse_rug_size(text).faults


def test_the_unit_of_a_column_applies_to_rug_sizes_without_units() -> None:
    size = parse_rug_size("160x230", "cm").value
    assert size is not None
    assert size.dimensions["width"]["hundredths_in"] == 6299
