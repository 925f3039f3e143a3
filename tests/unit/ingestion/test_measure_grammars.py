"""Every form in the grammar of a measure is read exactly; with noise, it is read correctly or reported."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.labels import BED, TRADE_ORDER, determine_name_role, find_dimension_of_label, parse_label
from domain.ingestion.values.quantities import parse_length
from tests.support.measure_texts import (
    JOINS,
    NOT_THE_PIECE,
    PIECES,
    SEATS,
    UNITS,
    WORDS,
    Figure,
    SizeText,
    corrupted_size_texts,
    figures,
    find_unexplained_figures,
    hundredths,
    size_texts,
)


def _get_sides(dimensions: Any) -> dict[str, int]:
    return {side: length["hundredths_in"] for side, length in dimensions.items()}


def _parse_sizes(
    text: str, unit: str | None = None, kind: str = "", order: str = ""
) -> tuple[dict[str, int], list[str]]:
    parsed = parse_dimensions(text, unit, kind, order)
    return _get_sides(parsed.value.dimensions) if parsed.value else {}, [fault.detail for fault in parsed.faults]


@given(size_texts())
def test_sides_are_read_in_every_notation(size: SizeText) -> None:
    assert _parse_sizes(size.text) == (size.sides, [])


@given(
    size_texts(),
    st.sampled_from(["Product Dimensions: ", "Overall: ", "approx. ", "Item size - ", "TV bench, ", "Table "]),
)
def test_words_before_a_size_change_nothing(size: SizeText, words: str) -> None:
    assert _parse_sizes(words + size.text) == (size.sides, [])


@given(size_texts(), st.sampled_from(SEATS), st.integers(10, 30), st.sampled_from([", ", "; ", "\n", " ("]))
def test_a_seat_height_is_kept_in_addition_to_the_sides(size: SizeText, label: str, seat: int, stop: str) -> None:
    close = ")" if stop == " (" else ""
    mark = UNITS[size.unit][0]
    found, faults = _parse_sizes(f"{size.text}{stop}{label}: {seat}{mark}{close}")
    assert (found, faults) == ({**size.sides, "seat_height": hundredths(Fraction(seat), size.unit)}, [])


@given(size_texts(), st.sampled_from(NOT_THE_PIECE), st.integers(10, 99), st.booleans())
def test_other_measures_neither_replace_nor_hide_a_side(size: SizeText, label: str, value: int, first: bool) -> None:
    unit = " kg" if "load" in label else UNITS[size.unit][0]
    other = f"{label}: {value}{unit}"
    text = f"{other}; {size.text}" if first else f"{size.text}; {other}"
    parsed = parse_dimensions(text)
    assert parsed.value is not None
    assert (_get_sides(parsed.value.dimensions), parsed.faults) == (size.sides, ())
    assert any(str(value) in extra for extra in parsed.value.extras)


@given(
    st.lists(size_texts("in"), min_size=2, max_size=3),
    st.permutations(PIECES),
    st.sampled_from([", ", "; ", "\n", " | "]),
)
def test_pieces_of_a_set_keep_their_own_sizes(sizes: list[SizeText], names: list[str], stop: str) -> None:
    # An order after one piece cannot be distinguished from an order before the next piece.
    assume(len({size.text.rstrip().endswith(")") for size in sizes}) == 1)
    text = stop.join(f"{name}: {size.text}" for name, size in zip(names, sizes, strict=False))
    parsed = parse_dimensions(text)
    assert parsed.value is not None
    assert parsed.value.dimensions == {}
    found = [(piece["name"], _get_sides(piece["dimensions"])) for piece in parsed.value.components]
    assert found == [(name, size.sides) for name, size in zip(names, sizes, strict=False)]
    assert parsed.faults == ()


def test_each_piece_has_its_own_order_and_a_leading_order_applies_to_all() -> None:
    own = parse_dimensions("Table (HxWxD): 30 x 60 x 36 in; Chair: 18 x 20 x 38 in", None).value
    shared = parse_dimensions("(HxWxD) Table: 30 x 60 x 36 in; Chair: 38 x 18 x 20 in", None).value
    assert own is not None
    assert shared is not None
    table = {"height": 3000, "width": 6000, "depth": 3600}
    chair = {"width": 1800, "depth": 2000, "height": 3800}
    for spread in (own, shared):
        assert [_get_sides(piece["dimensions"]) for piece in spread.components] == [table, chair]


@given(
    size_texts("in"),
    size_texts("in"),
    st.sampled_from(["RECLINED", "Extended", "fully extended", "Shade size", "Carton", "ausgezogen", "Unfolded"]),
)
def test_the_size_of_a_position_or_a_shade_does_not_replace_the_item(
    size: SizeText, other: SizeText, name: str
) -> None:
    assert _parse_sizes(f"{size.text}; {name}: {other.text}") == (size.sides, [])


@pytest.mark.parametrize(
    ("text", "sides"),
    [
        ('Closed: 30"W x 20"D; Opened: 60"W x 20"D; Height: 30"', {"width": 3000, "depth": 2000, "height": 3000}),
        ('Drawer interior: 12"W x 10"D x 4"H; 30"W x 20"D x 40"H', {"width": 3000, "depth": 2000, "height": 4000}),
        ("E27 max 40 W, W30 x D30 x H40 cm", {"width": 1181, "depth": 1181, "height": 1575}),
        ("min. 65 max. 85 cm height, 80 cm wide", {"height": 2559, "width": 3150}),
        ('Overall: 30"W x 30"D x 40"H; Seat: 20"W x 18"D x 17"H', {"width": 3000, "depth": 3000, "height": 4000, "seat_depth": 1800, "seat_height": 1700}),
        ("Height: 20 in Diameter: 17 in Volume: 3.3 l", {"height": 2000, "diameter": 1700}),
        ("Sofa width: 84 in, depth: 38 in, height: 36 in", {"width": 8400, "depth": 3800, "height": 3600}),
    ],
)  # fmt: skip
def test_numbers_after_other_measures_belong_to_the_item(text: str, sides: dict[str, int]) -> None:
    assert _parse_sizes(text, "in") == (sides, [])


@given(size_texts("in"), st.sampled_from(["W", "D", "H"]), st.integers(10, 90), st.integers(1, 40))
def test_a_range_gives_its_first_bound(size: SizeText, axis: str, low: int, span: int) -> None:
    side = {"W": "width", "D": "depth", "H": "height"}[axis]
    for joint in ("-", " - ", " to ", '"-'):
        assert _parse_sizes(f'{low}{joint}{low + span}"{axis}') == ({side: low * 100}, [])


@given(st.data(), st.sampled_from(["in", "cm", "mm"]), st.sampled_from(JOINS))
def test_numbers_without_axes_follow_the_order_of_the_trade_or_the_column(
    data: st.DataObject, unit: str, join: str
) -> None:
    numbers = [data.draw(figures(unit)) for _ in range(3)]
    text = join.join(number.text for number in numbers) + f" {unit}"
    values = [hundredths(number.value, unit) for number in numbers]
    trade = dict(zip(("width", "depth", "height"), values, strict=True))
    sides, faults = _parse_sizes(text)
    assert sides == trade
    assert [detail.rpartition("; ")[2] for detail in faults] == (
        [] if len(set(values)) == 1 else ["read as width x depth x height."]
    )
    assert _parse_sizes(text, order=TRADE_ORDER) == (trade, [])
    assert _parse_sizes(text, order="hbt") == (dict(zip(("height", "width", "depth"), values, strict=True)), [])


@given(st.data(), st.sampled_from(["in", "cm"]))
def test_a_size_stated_twice_is_read_once(data: st.DataObject, unit: str) -> None:
    numbers = [data.draw(st.integers(20, 200)) for _ in range(3)]
    other = "cm" if unit == "in" else "in"
    rate = Fraction(254, 100) if unit == "in" else Fraction(100, 254)
    repeated = [f"{float(round(number * rate, 1)):.1f}" for number in numbers]
    wanted = {
        side: hundredths(Fraction(n), unit) for side, n in zip(("width", "depth", "height"), numbers, strict=True)
    }
    plain, again = " x ".join(map(str, numbers)), " x ".join(repeated)
    for text in (
        f"{plain} {unit} ({again} {other})",
        f"{plain} {unit} / {again} {other}",
        f"{plain} {unit} | {again} {other}",
    ):
        assert _parse_sizes(text, order=TRADE_ORDER) == (wanted, [])


@given(st.integers(30, 120), st.integers(30, 120), st.integers(10, 90))
def test_length_is_the_long_side_except_for_beds(length: int, width: int, height: int) -> None:
    text = f'{length}"L x {width}"W x {height}"H'
    assert _parse_sizes(text)[0] == {"width": length * 100, "depth": width * 100, "height": height * 100}
    assert _parse_sizes(text, kind=BED)[0] == {"width": width * 100, "depth": length * 100, "height": height * 100}


@settings(max_examples=200)
@given(corrupted_size_texts())
def test_no_number_is_dropped_silently(size: SizeText) -> None:
    parsed = parse_dimensions(size.text, "in")
    if parsed.value is None:
        assert parsed.faults or not any(char.isdigit() for char in size.text)
        return
    if not parsed.faults:
        assert find_unexplained_figures(size.text, parsed.value) == [], parsed.value


@pytest.mark.parametrize(
    "text",
    [
        '30"W x 20"D x', '30"W x 20"D x H', '30"W x 20"D, Height:', '30"W x 31"W x 40"H', '30" W x 50 cm D x 40" H', "30 20 40",
        '30"W x 20"D x 40"H x 50"', '30"W x 20"D x 40"H 12"', "0 x 30 x 40", '-30"W x 20"D', "6' x 30", '30"W x 20"D x 40"H; 31"W x 20"D x 40"H',
        '30"W x 20"D x 1234567890123456789"H', 'Width left: 30", Width right: 40", Height: 30"', "80/60/75 cm", '1/3"W x 20"D',
    ],
)  # fmt: skip
def test_ambiguous_sizes_are_reported(text: str) -> None:
    assert parse_dimensions(text, "in").faults


@pytest.mark.parametrize("words", WORDS)
def test_sides_are_named_in_every_language(words: tuple[str, str, str]) -> None:
    assert [find_dimension_of_label(word) for word in words] == ["width", "depth", "height"]
    assert [find_dimension_of_label(f"{word} (cm)") for word in words] == ["width", "depth", "height"]


@pytest.mark.parametrize(
    "word", ["large", "weight", "with", "eight", "light", "freight", "lounge", "table", "white", "Max load", "night"]
)
def test_words_similar_to_a_side_are_not_sides(word: str) -> None:
    assert parse_label(word).role in ("", "other")


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Overall", "whole"), ("Product Dimensions", "whole"), ("Maße", "whole"), ("RECLINED", "other_state"),
        ("Recliner", "piece"), ("Open bookcase", "piece"), ("Sofa bed open", "other_state"), ("Shade size", "interior_or_package"),
        ("Package", "interior_or_package"), ("Closed", "normal_state"), ("SIDE CHAIR", "piece"), ("Mattress", "part"),
        ("with leaf", "other_state"),
    ],
)  # fmt: skip
def test_names_of_sizes_have_roles(name: str, role: str) -> None:
    assert determine_name_role(name) == role


@given(st.data(), st.sampled_from(["in", "cm", "mm"]))
def test_a_length_is_read_in_every_spelling(data: st.DataObject, unit: str) -> None:
    number: Figure = data.draw(figures(unit))
    mark = data.draw(st.sampled_from(UNITS[unit]))
    label = data.draw(st.sampled_from(["", "Width: ", "ca. ", "approx ", "H ", "Höhe: "]))
    for text, column in ((f"{label}{number.text}{mark}", None), (f"{label}{number.text}", unit)):
        parsed = parse_length(text, column)
        assert parsed.value is not None
        assert (parsed.value["hundredths_in"], parsed.faults) == (hundredths(number.value, unit), ())


@given(st.integers(1, 9), st.integers(100, 999), st.sampled_from(["in", "cm", "mm"]))
def test_one_mark_before_three_digits_is_resolved_by_the_unit_or_reported(whole: int, digits: int, unit: str) -> None:
    for mark in ",.":
        parsed = parse_length(f"{whole}{mark}{digits} {unit}")
        readings = {Decimal(f"{whole}.{digits}"), Decimal(f"{whole}{digits}")}
        assert parsed.faults or (parsed.value and parsed.value["given"]["value"] in readings)
        if unit == "mm":
            assert parsed.value is not None
            assert parsed.value["given"]["value"] == Decimal(f"{whole}{digits}")
    for decimal, wanted in (("comma", f"{whole}.{digits}"), ("dot", f"{whole}{digits}")):
        parsed = parse_length(f"{whole},{digits} cm", None, decimal)
        assert parsed.value is not None
        assert parsed.value["given"]["value"] == Decimal(wanted)


def test_the_upper_bound_of_a_range_before_a_word_is_kept() -> None:
    parsed = parse_dimensions('54"DIA X 28 - 30 ki"H')
    assert parsed.value is not None
    assert any("28-30" in extra for extra in parsed.value.extras)
