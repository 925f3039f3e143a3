"""Lengths, weights and dimension strings."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.labels import BED, PILLOW, RUG, determine_size_kind
from domain.ingestion.values.quantities import parse_length, parse_weight, round_to_hundredths


def _list_problems(reading: Any) -> list[str]:
    return [fault.problem for fault in reading.faults]


def _parse_sides(text: str, unit: str | None = "in", kind: str = "", order: str = "") -> dict[str, int]:
    spread = parse_dimensions(text, unit, kind, order).value
    return {} if spread is None else {side: v["hundredths_in"] for side, v in dict[str, Any](spread.dimensions).items()}


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("12 3/8", "in", 1238),
        ("12-3/8", "in", 1238),
        ("12 - 3/8", "in", 1238),
        ("12/3/8", "in", 1238),
        ("123/8", "in", 1238),
        ("7/8", "in", 88),
        ("12½", "in", 1250),
        ("12⅜\u201d", None, 1238),
        ("6' 2\"", None, 7400),
        ("6'-2\"", None, 7400),
        ("6 ft. 2 in.", None, 7400),
        ("6'", None, 7200),
        ("71,5 cm", None, 2815),
        ("1.200 mm", "in", 4724),
        ("1,200 mm", None, 4724),
        ("1.2 m", None, 4724),
        ("24-30", "in", 2400),
        ('24" to 30"', None, 2400),
        ("Width: 31.5 inches", None, 3150),
        ("31.5 W", "in", 3150),
        ("90 centímetros", None, 3543),
    ],
)
def test_lengths_are_read_exactly(text: str, unit: str | None, expected: int) -> None:
    reading = parse_length(text, unit)
    assert reading.value is not None
    assert reading.value["hundredths_in"] == expected


@pytest.mark.parametrize(
    ("text", "unit", "problem"),
    [
        ("31", None, "unknown_unit"),
        ("31 furlongs", "in", "unknown_unit"),
        ("-3", "in", "out_of_range"),
        ("wide", "in", "unreadable"),
        ("30 x 20", "in", "unreadable"),
        ('30"/40"', None, "conflict"),
        ("99999999", "in", "out_of_range"),
        ("?", "in", "unreadable"),
    ],
)
def test_invalid_lengths_are_reported(text: str, unit: str | None, problem: str) -> None:
    reading = parse_length(text, unit)
    assert (reading.value, _list_problems(reading)) == (None, [problem])


@pytest.mark.parametrize("text", ["", " ", "N/A", "TBD", "0", "0.00"])
def test_placeholders_and_zero_state_no_length(text: str) -> None:
    reading = parse_length(text, "in")
    assert (reading.value, reading.faults) == (None, ())


@pytest.mark.parametrize("text", ["-", "–", " -- ", "?", "."])
def test_a_missing_measure_is_reported(text: str) -> None:
    for reading in (parse_length(text, "in"), parse_dimensions(text, "in")):
        assert (reading.value, _list_problems(reading)) == (None, ["unreadable"])


@pytest.mark.parametrize("numbers", [("40.0", "40", "40.00"), ("41", "41.0", "41.00")])
def test_given_measures_do_not_depend_on_earlier_texts(numbers: tuple[str, ...]) -> None:
    for number in numbers:
        size, heavy = parse_length(f"{number} cm").value, parse_weight(f"{number} kg").value
        assert size and heavy
        assert (str(size["given"]["value"]), str(heavy["given"]["value"])) == (number, number)
        assert f"{number}" in str(parse_dimensions(f"W{number} x D60 x H70 cm").value)


def test_given_measures_are_kept() -> None:
    metric, mixed = parse_length("62.10 cm").value, parse_length('18 1/8"').value
    assert metric is not None
    assert mixed is not None
    assert metric["given"] == {"value": Decimal("62.10"), "unit": "cm"}
    assert mixed["given"] == {"value": Decimal("18.125"), "unit": "in"}


@given(whole=st.integers(1, 500), sixteenths=st.integers(1, 15))
def test_sixteenths_are_rounded_half_up_once(whole: int, sixteenths: int) -> None:
    exact = Fraction(whole * 16 + sixteenths, 16) * 100
    expected = int(exact + Fraction(1, 2))
    reading = parse_length(f'{whole} {sixteenths}/16"')
    assert reading.value is not None
    assert reading.value["hundredths_in"] == expected
    assert reading.value["given"]["value"] * 16 == whole * 16 + sixteenths


@given(value=st.decimals(min_value=0, max_value=10_000, places=3), unit=st.sampled_from(["in", "ft", "mm", "cm", "m"]))
def test_hundredths_are_the_nearest(value: Decimal, unit: str) -> None:
    inches = {
        "in": Fraction(1),
        "ft": Fraction(12),
        "mm": Fraction(10, 254),
        "cm": Fraction(100, 254),
        "m": Fraction(10000, 254),
    }
    assert abs(round_to_hundredths(value, unit) - Fraction(value) * inches[unit] * 100) <= Fraction(1, 2)


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("12.5 lbs", None, 1250),
        ("12.5", "lb", 1250),
        ("12 lb 4 oz", None, 1225),
        ("5 kg", None, 1102),
        ("5,5 kg", None, 1213),
        ("Net weight: 20 pounds", None, 2000),
        ("45359.237", "g", 10000),
        ("66#", None, 6600),
        ("20-25 lb", None, 2000),
    ],
)
def test_weights_are_read_exactly(text: str, unit: str | None, expected: int) -> None:
    reading = parse_weight(text, unit)
    assert reading.value is not None
    assert reading.value["hundredths_lb"] == expected


@pytest.mark.parametrize(
    ("text", "unit", "problem"),
    [
        ("12", None, "unknown_unit"),
        ("12 stone", "lb", "unknown_unit"),
        ("-4 lb", None, "out_of_range"),
        ("heavy", "lb", "unreadable"),
    ],
)
def test_invalid_weights_are_reported(text: str, unit: str | None, problem: str) -> None:
    assert _list_problems(parse_weight(text, unit)) == [problem]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('30"W X 20"D X 40"H', {"width": 3000, "depth": 2000, "height": 4000}),
        ('30" W x 20" D x 40" H', {"width": 3000, "depth": 2000, "height": 4000}),
        ("W 30 x D 20 x H 40", {"width": 3000, "depth": 2000, "height": 4000}),
        ("H: 40, W: 30, D: 20", {"width": 3000, "depth": 2000, "height": 4000}),
        ("B 80 x T 40 x H 75 cm", {"width": 3150, "depth": 1575, "height": 2953}),
        ("BxHxT: 80 x 75 x 40 cm", {"width": 3150, "depth": 1575, "height": 2953}),
        ("(WxDxH) 30 x 20 x 40", {"width": 3000, "depth": 2000, "height": 4000}),
        ("80 x 40 x 75 cm", {"width": 3150, "depth": 1575, "height": 2953}),
        ('48"L X 24"W X 18"H', {"width": 4800, "depth": 2400, "height": 1800}),
        ('36"DIA X 30"H', {"diameter": 3600, "height": 3000}),
        ("Ø 60 cm x H 75 cm", {"diameter": 2362, "height": 2953}),
        ('30"WX 20"DX 40"H', {"width": 3000, "depth": 2000, "height": 4000}),
        ('30"W 20"D 40"H', {"width": 3000, "depth": 2000, "height": 4000}),
        ("300mmh x 400mmw x 900mmd", {"height": 1181, "width": 1575, "depth": 3543}),
        ('60"W X 30"D X 28-34"H', {"width": 6000, "depth": 3000, "height": 2800}),
        ('30"W X 20"D X 40', {"width": 3000, "depth": 2000, "height": 4000}),
        ('66"(48" + 18" LEAF)L X 40"W X 30"H', {"width": 6600, "depth": 4000, "height": 3000}),
        ('40"L X 38"W X 41"H, RECLINED: 40"L X 66"W X 33"H', {"width": 4000, "depth": 3800, "height": 4100}),
        ('20"DIA X 60"H (UP TO 72"H)', {"diameter": 2000, "height": 6000}),
        ("Width: 80 cm Depth: 40 cm Height: 75 cm Frame, depth: 35 cm", {"width": 3150, "depth": 1575, "height": 2953}),
        ('Overall: 30"W x 20"D x 40"H', {"width": 3000, "depth": 2000, "height": 4000}),
        ("Breite: 80 cm, Tiefe: 40 cm, Höhe: 75 cm", {"width": 3150, "depth": 1575, "height": 2953}),
        ("Ancho: 80 cm Fondo: 40 cm Alto: 75 cm", {"width": 3150, "depth": 1575, "height": 2953}),
        ("Width: 80 cm Max. load: 100 kg", {"width": 3150}),
    ],
)
def test_dimension_strings_are_read(text: str, expected: dict[str, int]) -> None:
    assert _parse_sides(text) == expected


def test_seat_measures_in_brackets_are_separate() -> None:
    found = _parse_sides('22"W X 25"D X 40"H (SEAT HT: 19 1/2", SEAT DP: 18", SEAT W: 20")')
    assert found == {"width": 2200, "depth": 2500, "height": 4000, "seat_height": 1950, "seat_depth": 1800}


def test_the_length_of_a_bed_is_its_depth() -> None:
    assert _parse_sides('86"L X 64"W X 50"H', kind=BED) == {"width": 6400, "depth": 8600, "height": 5000}
    assert _parse_sides('20" x 14"', kind=PILLOW) == {"width": 2000, "height": 1400}


def test_pieces_of_a_set_are_components() -> None:
    spread = parse_dimensions('TABLE: 48"L X 30"W X 30"H, CHAIR (4): 18"W X 21"D X 38"H (SEAT HT: 19")', "in").value
    assert spread is not None
    assert spread.dimensions == {}
    names = [
        (piece["name"], piece["quantity"], piece["dimensions"]["height"]["hundredths_in"])
        for piece in spread.components
    ]
    assert names == [("TABLE", 1, 3000), ("CHAIR", 4, 3800)]
    assert spread.components[1]["dimensions"]["seat_height"]["hundredths_in"] == 1900


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ('30"W X 31"W X 40"H', ["conflict"]),
        ('30" X 20" X 40"', ["conflict"]),
        ('15"/19"H', ["conflict"]),
        ("see drawing", ["unreadable"]),
        (".", ["unreadable"]),
    ],
)
def test_ambiguous_strings_are_reported(text: str, problems: list[str]) -> None:
    assert _list_problems(parse_dimensions(text, "in")) == problems


def test_numbers_without_a_unit_are_reported() -> None:
    reading = parse_dimensions("30 x 20 x 40")
    assert (reading.value, _list_problems(reading)) == (None, ["unknown_unit"])


@pytest.mark.parametrize(
    ("category", "title", "kind"),
    [
        ("Bedroom > Bed", "", BED),
        ("Bedroom > Headboard", "", ""),
        ("Living > Sofa Bed", "", ""),
        ("Furniture > Beds & Accessories > Beds & Bed Frames", "", BED),
        ("Bedroom > Nightstand", "Bed side table", ""),
        ("", "Queen Bed, Gray", BED),
        ("", "Bedroom Set", ""),
        ("Rugs / Area Rugs", "", RUG),
        ("Accent > Pillow", "", PILLOW),
    ],
)
def test_kinds_of_sizes_are_determined(category: str, title: str, kind: str) -> None:
    assert determine_size_kind(category, title) == kind
