"""Rug sizes and words."""

import pytest

from domain.ingestion.values.rugs import parse_construction, parse_indoor_outdoor, parse_rug_size, parse_shape
from domain.kernel.problems import ProblemKind


@pytest.mark.parametrize(
    ("text", "shape", "sides"),
    [
        ("6' X 9'", "rectangle", (7200, 10800)),
        ("6'7\" x 9'6\"", "rectangle", (7900, 11400)),
        ("6'-7\" x 9'-6\"", "rectangle", (7900, 11400)),
        ("6.7 x 9.6", "rectangle", (7900, 11400)),
        ("6.7' x 9.6'", "rectangle", (7900, 11400)),
        ("2.10 x 4.11", "rectangle", (3400, 5900)),
        ("6-7 x 9-6", "rectangle", (7900, 11400)),
        ("6X9", "rectangle", (7200, 10800)),
        ("22 x 34", "rectangle", (2200, 3400)),
        ('20"X30"', "rectangle", (2000, 3000)),
        ("2 ft. 3 in. x 8 ft.", "runner", (2700, 9600)),
        ("2'3\" x 8' Runner", "runner", (2700, 9600)),
        ("8' x 10' OVL", "oval", (9600, 12000)),
        ("8' x 8'", "square", (9600, 9600)),
        ("160 x 230 cm", "rectangle", (6299, 9055)),
        ("7'10\" x 10'6", "rectangle", (9400, 12600)),
        ("Meadow Sage 5 ft. x 7 ft. Area Rug", "rectangle", (6000, 8400)),
    ],
)
def test_sizes_have_two_sides(text: str, shape: str, sides: tuple[int, int]) -> None:
    size = parse_rug_size(text).value
    assert size is not None
    found = size.dimensions
    assert (size.shape, (found["width"]["hundredths_in"], found["depth"]["hundredths_in"])) == (shape, sides)


@pytest.mark.parametrize("text", ["6' Round", "6' RND", "6 RD", "6.0 Round", "6' x 6' Round", "6X6RO"])
def test_round_rugs_have_a_diameter(text: str) -> None:
    size = parse_rug_size(text).value
    assert size is not None
    assert (size.shape, size.dimensions["diameter"]["hundredths_in"]) == ("round", 7200)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("5'3 x", "unreadable"), ("CUSTOM", "unreadable"), ("10x16", "conflict"), ("5.13 x 7", "unreadable")],
)
def test_sizes_are_not_guessed(text: str, problem: str) -> None:
    reading = parse_rug_size(text)
    assert (reading.value, [fault.problem for fault in reading.faults]) == (None, [problem])


def test_a_known_size_has_a_nominal_size() -> None:
    size = parse_rug_size("5'3\" x 7'6\"").value
    assert size is not None
    assert size.nominal == "5' x 8'"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Hand Knotted", "hand_knotted"),
        ("HAND-TUFTED", "hand_tufted"),
        ("Power loomed", "power_loomed"),
        ("Flatweave", "flat_woven"),
        ("Machine Made", "machine_made"),
        ("hand_woven", "hand_woven"),
    ],
)
def test_constructions_are_recognised(text: str, value: str) -> None:
    assert parse_construction(text).value == value


def test_words_of_shapes_and_places_are_recognised() -> None:
    assert parse_shape("Half Round").value == "half_round"
    assert parse_shape("Kidney").value == "irregular"
    assert parse_indoor_outdoor("Indoor/Outdoor").value == "indoor_outdoor"
    assert parse_indoor_outdoor("Outdoor").value == "outdoor"
    assert parse_shape("wonderful").faults[0].problem == "unreadable"


def test_a_size_after_punctuation_is_compared_with_the_rest_of_the_cell() -> None:
    parsed = parse_rug_size("#48 in. L x 30 in. W x 30 in. H")
    assert parsed.value is not None
    assert [fault.problem for fault in parsed.faults] == [ProblemKind.CONFLICT]
