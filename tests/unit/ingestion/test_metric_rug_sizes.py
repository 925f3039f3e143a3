"""Rug sizes in metres, centimetres and millimetres, and sizes among the words of a title."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ingestion.values.rugs import parse_rug_size
from domain.kernel.problems import ProblemKind

SIDES = st.integers(40, 400)


def _parse_sides(text: str, unit: str | None = None) -> dict[str, int]:
    parsed = parse_rug_size(text, unit)
    assert parsed.value is not None, text
    assert not parsed.faults, text
    sides: dict[str, dict[str, int]] = parsed.value.dimensions  # type: ignore[assignment]
    return {side: value["hundredths_in"] for side, value in sides.items()}


def _convert_to_hundredths(centimetres: int) -> int:
    return (centimetres * 10_000 + 127) // 254


@pytest.mark.parametrize("join", [" x ", "x", " × ", "*", " X ", "/"])
@given(first=SIDES, second=SIDES)
def test_two_numbers_of_a_metric_column_are_centimetres(join: str, first: int, second: int) -> None:
    """Titles before and shapes after the numbers make no difference."""
    if first == second:
        return
    expected = {"width": _convert_to_hundredths(first), "depth": _convert_to_hundredths(second)}
    assert _parse_sides(f"{first}{join}{second}", "cm") == expected
    if join != "/":
        assert _parse_sides(f"{first}{join}{second} cm") == expected
        assert _parse_sides(f"Teppich Lund {first}{join}{second}", "cm") == expected


@given(one=SIDES, two=SIDES)
def test_labelled_sides_of_a_rug_are_read_in_any_order(one: int, two: int) -> None:
    """Width and length follow their letters."""
    if one == two:
        return
    expected = {"width": _convert_to_hundredths(one), "depth": _convert_to_hundredths(two)}
    assert _parse_sides(f"B {one} x L {two} cm") == expected
    assert _parse_sides(f"Länge {two} cm, Breite {one} cm") == expected


@pytest.mark.parametrize(
    ("text", "unit", "diameter"),
    [
        ("Ø 200 cm", None, 7874),
        ("rund 160", "cm", 6299),
        ("Ø120", "cm", 4724),
        ("Diamètre 160 cm", None, 6299),
        ("D: 150 cm", None, 5906),
        ("Ø 200 cm x 12 mm", None, 7874),
        ("1,5 m rond", None, 5906),
    ],
)
def test_round_rugs_have_a_diameter(text: str, unit: str | None, diameter: int) -> None:
    """In the column's unit or the text's own unit; the thickness is not a side."""
    assert _parse_sides(text, unit) == {"diameter": diameter}


@pytest.mark.parametrize(
    ("text", "unit", "sides"),
    [
        ("2 x 3 m", "cm", {"width": 7874, "depth": 11811}),
        ("2.3x8 ft", "cm", {"width": 2700, "depth": 9600}),
        ("160 x 230 x 1 cm", None, {"width": 6299, "depth": 9055}),
        ("200cm x 290cm (6'6\" x 9'6\")", None, {"width": 7874, "depth": 11417}),
        ("4' x 6' (120x180)", None, {"width": 4800, "depth": 7200}),
        ("3' 1 4/5\" x 4' 6 1/3\"", None, {"width": 3780, "depth": 5433}),
        ("8'6 Square", None, {"width": 10200, "depth": 10200}),
        ("Woven Carpet 5 X 7 - The Loom", None, {"width": 6000, "depth": 8400}),
    ],
)
def test_a_written_unit_takes_precedence_over_the_column(text: str, unit: str | None, sides: dict[str, int]) -> None:
    """The same size in another unit is not a second size."""
    assert _parse_sides(text, unit) == sides


@pytest.mark.parametrize(
    ("text", "unit"),
    [("6x9", "cm"), ("RND 6", "cm"), ("rund 160", None), ("Ø120", None), ("4' x 6' (150x180)", None), ("160", "cm")],
)
def test_ambiguous_sizes_are_reported(text: str, unit: str | None) -> None:
    """Numbers too small for centimetres, round rugs without a unit, and two different sizes."""
    faults = parse_rug_size(text, unit).faults
    assert faults
    assert faults[0].problem in (ProblemKind.CONFLICT, ProblemKind.UNREADABLE)
