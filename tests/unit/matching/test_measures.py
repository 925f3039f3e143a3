"""Sizes of titles and columns, in centimetres."""

import pytest

from domain.matching.measures import (
    are_lengths_clearly_different,
    extract_sizes,
    have_same_size,
    parse_length_cell,
)
from domain.matching.words import normalise_characters


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Desk, oak, 120x60 cm", (120, 60)),
        ("Desk oak 120 x 60 x 75cm", (120, 60, 75)),
        ('Desk 47 1/4x23 5/8"', (120.02, 60.01)),
        ("Desk 47-1/4 x 23-5/8 in.", (120.02, 60.01)),
        ("Desk 23 5/8X153/4X75 5/8''", (60.01, 40.01, 192.09)),
        ("Rug 8' x 10'", (243.84, 304.8)),
        ("Hook 150 mm", (15,)),
        ("Rail 178x51x222-350 cm", (178, 51, 222, 350)),
        ("Table 110/155 cm", (110, 155)),
        ("W80 x D30 x H106 cm", (80, 30, 106)),
        ("55 1/8 in mattress", (140.02,)),
        ("Shelf 120 x 60 centimetres", (120, 60)),
        ("Bracket 20 / 30 x 40 cm", (20, 30, 40)),
        ("Wool rug 5'3\" x 7'6\"", (160.02, 228.6)),
        ("Runner 2 ft 6 in x 8 ft", (76.2, 243.84)),
        ('Table 71"L x 35.5"W x 30"H', (180.34, 90.17, 76.2)),
        ("Tisch B 180 x T 90 x H 75 cm", (180, 90, 75)),
        ("Sofa W 220 x D 95/165 x H 88 cm", (220, 95, 165, 88)),
        ("Bench 120 cm, H 45 cm", (120, 45)),
        ("Extendable table 47 1/4/70 7/8x31 1/2 in", (120.02, 180.02, 80.01)),
        ("Wardrobe 113/271x236 cm", (113, 271, 236)),
        ("24-inch stool", (60.96,)),
        ("Board 12-14 1/2 x 6 in.", (30.48, 36.83, 15.24)),
    ],
)
def test_sizes_are_extracted_from_titles(title: str, expected: tuple[float, ...]) -> None:
    found, rest = extract_sizes(normalise_characters(title))
    assert found == (pytest.approx(expected, abs=0.02),)
    assert "cm" not in rest.split()


@pytest.mark.parametrize(
    "title",
    [
        *("Table and 4 chairs", "Set of 2 stools", "5-piece set", "Camera 8 mp", "1920 x 1080 screen", "5-in-1 cot"),
        *("Card 512MB", "Cable 150 ft"),
        *("Bolt set 1 / 2 / 3 / 4 drawer", "Rail 12345678 cm", "Rail 1/12345678 in"),
        *("Rail " + "9" * digits + end for digits in (400, 5000) for end in (" cm", "/3 in")),
        "Chain " + " x ".join("123456789") + " cm",
    ],
)
def test_other_numbers_are_not_sizes(title: str) -> None:
    assert extract_sizes(normalise_characters(title)) == ((), normalise_characters(title))


def test_sizes_are_compared_in_any_order_and_unit() -> None:
    assert have_same_size(((140.0, 200.0),), ((200.66, 139.7),)) is True
    assert have_same_size(((140.0, 200.0),), ((160.0, 200.0),)) is False
    assert have_same_size((), ((160.0, 200.0),)) is None
    assert have_same_size(((15.0,),), ((160.0, 200.0),)) is None


def test_lengths_of_columns_have_their_units() -> None:
    assert parse_length_cell("47.25", "in") == (120.02, 47.25)
    assert parse_length_cell("60", "cm") == (60.0, 60.0)
    assert parse_length_cell('5 1/2"', "") == (13.97, 5.5)
    assert parse_length_cell("", "cm") is None
    assert parse_length_cell("n/a", "cm") is None


def test_other_texts_are_not_lengths() -> None:
    for text in ("1e400", "inf", "-inf", "nan", "12345678", "9" * 400, "9" * 400 + " cm"):
        assert parse_length_cell(text, "cm") is None


def test_the_number_of_sizes_is_bounded() -> None:
    found, rest = extract_sizes(" and ".join(f"{side} cm" for side in range(1, 100)))
    assert found == tuple((float(side),) for side in range(1, 9)) and "cm" not in rest


def test_rounding_is_not_a_difference() -> None:
    assert not are_lengths_clearly_different(140.0, 55.125 * 2.54)
    assert not are_lengths_clearly_different(10.0, 11.5)
    assert are_lengths_clearly_different(140.0, 160.0)
    assert are_lengths_clearly_different(35.0, 40.0)
