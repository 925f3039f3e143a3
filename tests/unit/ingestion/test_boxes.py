"""Lists of boxes in one cell: the grammar is read exactly, and implausible measures are reported."""

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.ingestion.values.cartons import ListedBox, parse_boxes, parse_pieces_per_carton
from domain.ingestion.values.quantities import build_measure

MARKS = ("Box {n}: ", "Carton {n} - ", "Ctn {n} of {all}: ", "Karton {n}: ", "Paket {n}/{all}: ", "Colis {n} : ", "Doos {n}: ", "Caja {n} de {all}: ",
         "Scatola {n}: ", "{n}) ", "Package #{n}: ", "Pkg. {n}: ", "")  # fmt: skip
SIZES = ("{a} x {b} x {c} {u}", "{a}x{b}x{c}{u}", "{a}{u} x {b}{u} x {c}{u}", "L {a} x W {b} x H {c} {u}", "L{a} W{b} H{c} {u}", "{a} * {b} * {c} {u}",
         "{a}×{b}×{c} {u}", "Size ({u}): {a} x {b} x {c}")  # fmt: skip
WEIGHTS = (
    ", {w} {k}",
    " / {w}{k}",
    ", weight: {w} {k}",
    ", Gewicht {w} {k}",
    " - G.W. {w} {k}",
    " ({w} {k})",
    ", {k} {w}",
    "",
)
SEPARATORS = ("; ", "\n", " | ", " + ", ", ")
SIDE = st.decimals(21, 400, places=1, allow_nan=False)


def _get_measures(package: ListedBox) -> dict[str, Any]:
    box: Any = package.carton
    return {key: box[key] if key == "count" else box[key]["given"] for key in box}


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(SIDE, SIDE, SIDE, SIDE), min_size=2, max_size=4),
    st.sampled_from(MARKS),
    st.sampled_from(SIZES),
    st.sampled_from(WEIGHTS),
    st.sampled_from(SEPARATORS),
    st.sampled_from(["in", "cm", "mm"]),
    st.sampled_from(["kg", "lbs"]),
)
def test_a_list_of_boxes_is_read_box_by_box(
    boxes: list[tuple[Decimal, ...]], mark: str, size: str, weighed: str, separator: str, unit: str, heavy: str
) -> None:
    text = separator.join(
        (mark + size + weighed).format(n=n, all=len(boxes), a=a, b=b, c=c, w=w, u=unit, k=heavy)
        for n, (a, b, c, w) in enumerate(boxes, 1)
    )
    if not mark and "(" in size + weighed and separator == "\n":
        separator = ";"
    parsed = parse_boxes(text)
    assert parsed.faults == (), text
    wanted = []
    for a, b, c, w in boxes:
        one: dict[str, Any] = {
            side: build_measure(v, unit)["given"]
            for side, v in zip(("width", "depth", "height"), (a, b, c), strict=True)
        }
        if weighed:
            one["weight"] = build_measure(w, heavy.rstrip("s"))["given"]
        wanted.append({**one, "count": 1})
    assert [_get_measures(package) for package in parsed.value or ()] == wanted, text


@settings(deadline=None, max_examples=80)
@given(
    st.sampled_from(["{n} cartons: {s}", "{n} x {s}", "{s} x {n}", "{s} (x{n})", "{s} ({n} boxes)", "Qty: {n}, {s}", "{n} Stück {s}",
                     "{n} Kartons à {s}", "{n} colis : {s}", "{s}, {n} ctns"]),
    st.integers(2, 20),
    SIDE,
)  # fmt: skip
def test_a_count_of_boxes_is_read_at_any_position(form: str, count: int, side: Decimal) -> None:
    parsed = parse_boxes(form.format(n=count, s=f"{side} x 60 x 21.5 cm"))
    assert parsed.faults == ()
    assert [_get_measures(p) | {} for p in parsed.value or ()] == [
        {
            "width": {"value": side, "unit": "cm"},
            "depth": {"value": Decimal(60), "unit": "cm"},
            "height": {"value": Decimal("21.5"), "unit": "cm"},
            "count": count,
        }
    ]


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("80x60x20 cm, 0.096 cbm", "0.096 cbm"),
        ("80x60x20 cm, 4 pcs/ctn", "4 pcs/ctn"),
        ("80x60x20 cm, G.W. 25 kg, N.W. 22 kg", "22 kg"),
        ("2 boxes: 80x60x20 cm, 25 kg total", "all boxes together"),
        ("Box 1 of 2: 80x60x20 cm", "states 2 boxes but lists 1"),
        ("80x60x20 cm, 25 kg, 90 lb", "more than one weight"),
        ("Box 1: 80x60x20 cm, volt 220 V", "220 V"),
        ("80x60x20", "unit of length"),
        ("two boxes", "lists no boxes"),
        ("A Article no: 402.935.67 Width: 10cm Volume: 3.3l Package(s): 2", "Volume: 3.3l"),
    ],
)
def test_measures_that_a_package_cannot_have_are_reported(text: str, reported: str) -> None:
    assert reported in " ".join(fault.detail for fault in parse_boxes(text).faults)


def test_measures_that_a_package_cannot_have_are_reported_in_the_order_of_the_text() -> None:
    faults = parse_boxes("20x24x39 in (seat ht: 18 in, seat dp: 17 in, arm ht: 25 in)").faults
    assert [fault.detail.split(" states ")[1].split(",")[0] for fault in faults] == [
        "a seat height",
        "a seat depth",
        "a arm height",
    ]


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.sampled_from(["30 x 20 x 10 in", "25 lb", "Box 7:", "2 boxes", "0.3 cbm", "19", "x 3", "(4)", "50 mm", "6 pcs", "Ø 45 cm", "of 5", "N.W. 9 kg"]),
        min_size=1, max_size=5,
    ),
    st.sampled_from([" ", ", ", "; ", " - "]),
)  # fmt: skip
def test_no_number_is_dropped_silently(parts: list[str], joint: str) -> None:
    text = joint.join(parts)
    parsed = parse_boxes(text)
    if parsed.faults:
        return
    facts = str([_get_measures(package) for package in parsed.value or ()])
    counts = sum(int(_get_measures(package)["count"]) for package in parsed.value or ())
    for figure in re.findall(r"[\d.]+", text):
        assert figure in facts or int(float(figure)) in (7, counts), text


def test_the_unit_of_one_box_applies_to_all_boxes() -> None:
    parsed = parse_boxes("Scatola 1: 120x60x15 cm kg 25; Scatola 2: 80x40x12 kg 12")
    assert [str(_get_measures(p)["width"]["unit"]) for p in parsed.value or ()] == ["cm", "cm"]
    assert parsed.faults == ()


@pytest.mark.parametrize(
    "text",
    [
        "Number of packages: 2; 120x60x15 cm; 25 kg",
        "Anzahl Pakete: 2, 120x60x15 cm, 25 kg",
        "Boxes: 2 (120x60x15 cm / 25 kg)",
    ],
)
def test_a_count_may_follow_the_word(text: str) -> None:
    parsed = parse_boxes(text)
    assert [(_get_measures(p)["count"], str(_get_measures(p)["weight"]["value"])) for p in parsed.value or ()] == [
        (2, "25")
    ]
    assert parsed.faults == ()


def test_a_hash_after_a_number_means_pounds() -> None:
    (box,) = parse_boxes('30"x20"x10" 25#').value or ()
    assert _get_measures(box)["weight"] == {"value": Decimal(25), "unit": "lb"}


def test_a_name_before_a_size_is_the_name_of_the_package() -> None:
    parsed = parse_boxes('Box 1 (Headboard): 60" x 40" x 8", 45 lbs. Box 2 - Rails: 80" x 12" x 6", 30 lbs.')
    assert [package.name for package in parsed.value or ()] == ["Headboard", "Rails"]
    assert parsed.faults == ()


def test_a_round_item_has_a_square_package_of_its_diameter() -> None:
    (drum,) = parse_boxes("C Article no: 803.91 Height: 4cm Diameter: 35cm Package(s): 4").value or ()
    assert {side: str(fact["value"]) for side, fact in _get_measures(drum).items() if side != "count"} == {
        "width": "35",
        "depth": "35",
        "height": "4",
    }


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("(2PC/CTN)", 2),
        ("4 pcs per carton", 4),
        ("6 Stück je Karton", 6),
        ("2 pièces par colis", 2),
        ("Set of 4", None),
    ],
)
def test_pieces_per_box_are_read(text: str, pieces: int | None) -> None:
    assert parse_pieces_per_carton(text) == pieces
