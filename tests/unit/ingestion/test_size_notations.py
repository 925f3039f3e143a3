"""Notations of sizes in several languages: seats, orders in Cyrillic, single letters, marks of drawings and kinds of furniture."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ingestion.values.dimensions import parse_dimensions

AXES = {
    "width": ("W", "B", "Ш", "Width ", "Breite "),
    "depth": ("D", "T", "Г", "Depth ", "Tiefe "),
    "height": ("H", "H", "В", "Height ", "Höhe "),
}
ORDERS = {
    "ШхГхВ": ("width", "depth", "height"),
    "ВхШхГ": ("height", "width", "depth"),
    "Ш x Г x В": ("width", "depth", "height"),
    "ШxВxГ": ("width", "height", "depth"),
    "BxTxH": ("width", "depth", "height"),
    "H x B x T": ("height", "width", "depth"),
    "ширина х высота х глубина": ("width", "height", "depth"),
}
SIZE = st.integers(21, 300)


def _parse_sizes(text: str, unit: str | None = None) -> tuple[dict[str, str], list[str]]:
    parsed = parse_dimensions(text, unit)
    sides: Any = parsed.value.dimensions if parsed.value else {}
    given = {side: f"{found['given']['value']} {found['given']['unit']}" for side, found in sides.items()}
    return given, [fault.detail for fault in parsed.faults]


@given(SIZE, SIZE, SIZE, st.sampled_from(sorted(ORDERS)), st.sampled_from(["х", " х ", "x", " * ", "×"]))
def test_an_order_is_followed_in_either_script(a: int, b: int, c: int, order: str, join: str) -> None:
    figures = f"{a}{join}{b}{join}{c}"
    wanted = {side: f"{figure} cm" for side, figure in zip(ORDERS[order], (a, b, c), strict=True)}
    for text in (
        f"{figures} см ({order})",
        f"{order}: {figures} см",
        f"{order}, см: {figures}",
        f"({order}) {figures} cm",
    ):
        assert _parse_sizes(text) == (wanted, []), text


@given(SIZE, SIZE, SIZE, st.integers(0, 4), st.sampled_from(["x", " x ", "*", " × "]))
def test_one_named_side_in_its_place_determines_the_others(a: int, b: int, c: int, way: int, join: str) -> None:
    wanted = {"width": f"{a} cm", "depth": f"{b} cm", "height": f"{c} cm"}
    assert _parse_sizes(f"{a}{join}{b}{join}{AXES['height'][way]}{c} cm") == (wanted, [])
    sides, faults = _parse_sizes(f"{AXES['width'][way]}{a}{join}{b}{join}{c} cm")
    assert (sides, len(faults)) == (wanted, 1)


@given(SIZE, SIZE, SIZE, st.sampled_from(["x", " x "]))
def test_a_leading_height_leaves_the_other_sides_ambiguous(a: int, b: int, c: int, join: str) -> None:
    sides, faults = _parse_sizes(f"H{a}{join}{b}{join}{c} cm")
    assert (sides, len(faults)) == ({"height": f"{a} cm"}, 1)


@given(
    SIZE,
    SIZE,
    st.sampled_from(["Misure seduta: l. {a} x p. {b} cm", "Dimensions assise : L {a} x P {b} cm", "Sitzmaße: B {a} x T {b} cm",
                     "Asiento: ancho {a} x fondo {b} cm", "Zitmaten: B {a} x D {b} cm", "Seat size: W {a} x D {b} cm"]),
)  # fmt: skip
def test_the_size_of_a_seat_is_not_the_size_of_the_item(a: int, b: int, text: str) -> None:
    text = text.format(a=a, b=b)
    if text.startswith("Zitmaten"):
        text = text.replace("Zitmaten", "Maten zitting")
    sides, faults = _parse_sizes(text)
    assert (sides, faults) == ({"seat_depth": f"{b} cm"}, [])
    assert str(a) in str(parse_dimensions(text).value)


@given(SIZE, SIZE, SIZE, st.sampled_from(["\n", "; ", ", "]), st.sampled_from(["Overall ", "", "Total "]))
def test_marks_of_a_drawing_are_not_names(a: int, b: int, c: int, stop: str, word: str) -> None:
    text = stop.join((f"A {word}Height {a} in", f"B {word}Depth {b} in", f"C {word}Width {c} in"))
    assert _parse_sizes(text) == ({"height": f"{a} in", "depth": f"{b} in", "width": f"{c} in"}, [])


@pytest.mark.parametrize("kind", ["4D", "3D", "5d", "3P"])
def test_a_kind_with_a_number_is_not_a_size(kind: str) -> None:
    parsed = parse_dimensions(f"Chair with {kind} armrests, W60 x D65 x H120 cm")
    assert parsed.value is not None
    assert set(parsed.value.dimensions) == {"width", "depth", "height"}
    assert kind in parsed.value.extras
    assert _parse_sizes("30W x 4D x 5H", "in") == ({"width": "30 in", "depth": "4 in", "height": "5 in"}, [])
    assert _parse_sizes(f"Office chair with {kind} armrests", "in")[0] == {}


@given(
    SIZE,
    SIZE,
    SIZE,
    st.sampled_from(["Dimensions in cm: ", "cm ", "Size cm: ", "Maße (cm): ", "Габариты, см: ", "Mesures en cm : "]),
)
def test_a_unit_may_precede_the_numbers(a: int, b: int, c: int, head: str) -> None:
    assert _parse_sizes(f"{head}W{a} x D{b} x H{c}") == (
        {"width": f"{a} cm", "depth": f"{b} cm", "height": f"{c} cm"},
        [],
    )


@given(
    st.sampled_from(
        [
            "Canapé : {}, Causeuse : {}",
            "Sofa: {}; Sessel: {}",
            "2 x Chair: {}; 1 x Table: {}",
            "Divano: {} | Poltrona: {}",
        ]
    )
)
def test_pieces_of_a_set_without_axis_letters_are_read_and_reported(form: str) -> None:
    parsed = parse_dimensions(form.format("209 x 81 x 93 cm", "153 X 82 x 94 cm"))
    assert parsed.value is not None
    assert [len(piece["dimensions"]) for piece in parsed.value.components] == [3, 3]
    assert ["does not name the dimensions" in fault.detail for fault in parsed.faults] == [True]


@given(SIZE, SIZE, SIZE, st.permutations(["width", "depth", "height"]), st.sampled_from([" - ", ": ", " = ", " – "]))
def test_a_dash_after_a_side_is_read_as_a_colon(a: int, b: int, c: int, sides: list[str], mark: str) -> None:
    text = ", ".join(f"{side.title()}{mark}{figure} cm" for side, figure in zip(sides, (a, b, c), strict=True))
    assert _parse_sizes(text) == ({side: f"{n} cm" for side, n in zip(sides, (a, b, c), strict=True)}, [])
    assert _parse_sizes(f"{a} W - {b} D - {c} H cm")[0] == {"width": f"{a} cm", "depth": f"{b} cm", "height": f"{c} cm"}


@pytest.mark.parametrize(
    "addition",
    ["Liegefläche: 200 x 140 cm", "Innenmaß: 270 x 170 x 80 cm", "Sleeping area: 200 x 140 cm", "Couchage : 200 x 140 cm", "Liegemaße: 200 x 140 cm",
     "Verpackungsmaße: 200 x 140 x 60 cm"],
)  # fmt: skip
def test_inner_and_outer_sizes_are_not_pieces(addition: str) -> None:
    for whole in (
        "Ecksofa: B 280 x T 180 x H 85 cm",
        "Außenmaß: B 280 x T 180 x H 85 cm",
        "Stellmaß: B 280 x T 180 x H 85 cm",
    ):
        parsed = parse_dimensions(f"{whole}; {addition}")
        assert parsed.value is not None
        assert (parsed.value.components, parsed.faults, len(parsed.value.dimensions)) == ((), (), 3)
        assert "200" in str(parsed.value.extras) or "270" in str(parsed.value.extras)


def test_numbers_with_a_letter_between_them_are_not_a_range() -> None:
    assert _parse_sizes("L 80 P 60 A 75 cm")[0].items() >= {"width": "80 cm", "depth": "60 cm"}.items()
    assert "60-75" not in str(parse_dimensions("L 80 P 60 A 75 cm"))


@given(SIZE, SIZE, SIZE)
def test_the_dot_of_an_abbreviation_is_not_a_decimal_point(a: int, b: int, c: int) -> None:
    wanted = {"width": f"{a} cm", "depth": f"{b} cm", "height": f"{c} cm"}
    for text in (
        f"l.{a} p.{b} h.{c} cm",
        f"L.{a} x P.{b} x H.{c} cm",
        f"larg.{a}, prof.{b}, alt.{c} cm",
        f"{a} x {b} x h.{c} cm",
    ):
        assert _parse_sizes(text) == (wanted, [])
    assert _parse_sizes('30"W x 20"H x D.75"')[0]["depth"] == "0.75 in"
