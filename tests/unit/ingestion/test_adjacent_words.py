"""Meanings of words next to numbers, in several languages."""

import pytest

from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.money import parse_money
from domain.ingestion.values.quantities import parse_weight
from domain.ingestion.values.stock import parse_stock


def _parse_sides(text: str) -> dict[str, int]:
    parsed = parse_dimensions(text)
    assert parsed.value is not None, text
    sides: dict[str, dict[str, int]] = parsed.value.dimensions  # type: ignore[assignment]
    return {side: value["hundredths_in"] for side, value in sides.items()}


@pytest.mark.parametrize(
    "text",
    [
        "wysokość całkowita: 118cm\nszerokość całkowita: 80cm\nwysokość siedziska: 46cm\nwysokość do podłokietników: 65cm",
        "Gesamthöhe: 118 cm, Gesamtbreite: 80 cm, Sitzhöhe: 46 cm, Armlehnenhöhe: 65 cm",
        "Altezza totale: 118 cm, larghezza totale: 80 cm, altezza seduta da terra: 46 cm, altezza braccioli: 65 cm",
    ],
)
def test_overall_seat_and_arm_height_are_distinguished(text: str) -> None:
    """With any word for the overall height."""
    assert _parse_sides(text) == {"height": 4646, "width": 3150, "seat_height": 1811, "arm_height": 2559}


@pytest.mark.parametrize(
    "text", ["Height under furniture: 6 in, Width: 80 in", "Höhe unter Möbel: 6 in, Breite: 80 in"]
)
def test_a_free_height_below_is_a_clearance(text: str) -> None:
    """The clearance is not a height of the item."""
    assert _parse_sides(text) == {"clearance": 600, "width": 8000}


def test_a_seat_height_after_a_sequence_belongs_to_the_next_number() -> None:
    """In `88 x 84 x 74 cm. Seat height 41`, the words do not belong to the 74."""
    assert _parse_sides("Mått 88 × 84 × 74 cm. Sitthöjd 41")["seat_height"] == 1614


def test_the_letter_of_a_corner_is_not_an_axis() -> None:
    assert _parse_sides("Mesa en L 160 x 120 cm") == {"width": 6299, "depth": 4724}


@pytest.mark.parametrize(("text", "hundredths"), [("1pc/ctn, Gross weight 7.5kg, Carton 58×32×42cm", 1653)])
def test_a_packing_line_identifies_the_weight(text: str, hundredths: int) -> None:
    found = parse_weight(text).value
    assert found is not None
    assert found["hundredths_lb"] == hundredths


@pytest.mark.parametrize(
    ("text", "availability"),
    [
        ("Nicht mehr auf Lager", "out_of_stock"),
        ("Brak w magazynie", "out_of_stock"),
        ("kein Bestand", "out_of_stock"),
        ("pas en stock", "out_of_stock"),
        ("Ograniczona ilość", "low_stock"),
        ("dernières disponibles", "low_stock"),
        ("running_low", "low_stock"),
        ("Auf Lager - Lieferbar in 1-3 Werktagen", "in_stock"),
        ("In Stock — Ships in 3-5 business days", "in_stock"),
    ],
)
def test_stock_in_words_is_read(text: str, availability: str) -> None:
    found = parse_stock(text).value
    assert found is not None
    assert found.availability == availability


@pytest.mark.parametrize("text", ["nicht begrenzt verfügbar", "no stock photo", "few"])
def test_ambiguous_words_are_reported(text: str) -> None:
    assert parse_stock(text).faults


@pytest.mark.parametrize(
    ("text", "minor"), [("€ 1.099,-", 109900), ("2.499,– €", 249900), ("$1,099.-", 109900), ("VHB 250 €", 25000)]
)
def test_a_dash_for_cents_determines_the_thousands_separator(text: str, minor: int) -> None:
    found = parse_money(text, "usd")
    assert found.value is not None
    assert (found.value.minor_units, found.faults) == (minor, ())


@pytest.mark.parametrize("text", ["$50/ctn", "$50 per box", "$50/pack"])
def test_the_price_of_a_box_is_reported(text: str) -> None:
    """The number of items in the box is unknown."""
    assert parse_money(text, "usd").faults
