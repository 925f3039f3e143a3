"""Values of one item that contradict each other."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import map_declared_fields, propose_column_mapping
from domain.ingestion.model import FeedSettings
from domain.ingestion.normalisation import normalise_rows
from domain.kernel.problems import Problem, ProblemKind
from tests.unit.ingestion.test_normalisation import USD, _normalise

SIZE = ("Width (in)", "Depth (in)", "Height (in)")
BOX = ("Carton Width (in)", "Carton Length (in)", "Carton Height (in)", "Carton Weight (lb)")


def _read(headers: Sequence[str], *rows: Sequence[Any], context: FeedSettings = USD) -> list[Problem]:
    """Return the problems of rows with an article number."""
    numbered = [[f"AB-{number}", *row] for number, row in enumerate(rows, start=1)]
    return _normalise(["SKU", *headers], numbered, context)[1]


def _read_size(title: str, *sides: str, headers: Sequence[str] = SIZE) -> list[str]:
    return [problem.detail for problem in _read(["Title", *headers], [title, *sides])]


# Sizes in titles.


@pytest.mark.parametrize(
    ("title", "sides"),
    [
        ('63" Console', ("48", "16", "30")),
        ('Oslo 24" x 36" Wall Mirror', ("30", "1", "48")),
        ("Oslo Round Dining Table 60-Inch", ("48", "48", "30")),
        ('8" Memory Foam Mattress', ("54", "75", "6")),
        ("Oslo Bookcase, 180 cm", ("30", "12", "48")),
    ],
)
def test_another_size_in_the_title_is_reported(title: str, sides: tuple[str, str, str]) -> None:
    (problem,) = _read(["Title", *SIZE], [title, *sides])
    assert (problem.problem, problem.field, problem.line) == ("conflict", "dimensions", 2)
    assert (problem.sheet, problem.column, problem.value) == ("Sheet1", "Width (in)", sides[0])
    assert problem.detail.startswith("The title states ")


@pytest.mark.parametrize(
    ("title", "sides"),
    [
        ('63" Console', ("62.6", "16", "30")),
        ('Oslo 24" x 36" Wall Mirror', ("24.2", "1", "36")),
        ('Oslo Console for 65" TV', ("48", "16", "30")),
        ('Oslo TV Stand, fits TVs up to 65"', ("48", "16", "30")),
        ('Oslo 24" Counter Stool', ("18", "20", "40")),
        ('Oslo Dining Table with 18" Leaf', ("60", "36", "30")),
        ('Oslo Desk, 2" thick top', ("60", "30", "30")),
        ("Queen Bed", ("63", "85", "50")),
        ("Oslo 2 in 1 Desk", ("60", "30", "30")),
        ("Set of 3 in Black", ("60", "30", "30")),
        ("Oslo 5-Drawer Chest", ("30", "18", "48")),
        ('5 Pc. Dining Set with 60" Table', ("48", "36", "30")),
    ],
)
def test_sizes_of_other_things_in_the_title_are_not_compared(title: str, sides: tuple[str, str, str]) -> None:
    assert _read_size(title, *sides) == []


def test_a_size_is_compared_only_with_the_dimensions_it_can_state() -> None:
    assert _read_size('60" Bookcase', "30", headers=SIZE[:1]) == []
    assert len(_read_size('63" Console', "48", headers=SIZE[:1])) == 1


# Rugs.


@pytest.mark.parametrize(
    ("title", "sides", "is_reported"),
    [
        ("Oslo Rug 5' x 8'", ("24", "36"), True),
        ("Oslo Rug 5' x 8'", ("63", "91"), False),
        ("Oslo Rug 4' x 6'", ("39", "63"), False),
        ("Oslo Rug 8' x 10'", ("120", "93"), False),
        ("Oslo Rug 2' x 3'", ("60", "96"), True),
        ("Oslo Rug", ("60", "96"), False),
    ],
)
def test_rugs_differ_from_their_nominal_size_only_a_little(
    title: str, sides: tuple[str, str], *, is_reported: bool
) -> None:
    assert bool(_read(["Title", "Width (in)", "Length (in)"], [title, *sides])) == is_reported


def test_the_actual_size_of_a_rug_is_used_and_compared_with_the_nominal_size() -> None:
    headers = ["SKU", "Title", "Size", "Actual Size"]
    rows = [["AB-1", "Oslo Rug", "5' x 8'", "5'3\" x 7'7\""], ["AB-2", "Rome Rug", "5' x 8'", "7'10\" x 9'10\""]]
    products, (problem,) = _normalise(headers, rows)
    sizes = [product.variants[0].data["dimensions"] for product in products]
    assert [(size["width"]["hundredths_in"], size["depth"]["hundredths_in"]) for size in sizes] == [
        (6300, 9100),
        (9400, 11800),
    ]
    assert (problem.problem, problem.line, problem.column, problem.value) == ("conflict", 3, "Size", "5' x 8'")


# Plausible measures.


@pytest.mark.parametrize(
    ("title", "sides", "weight"),
    [
        ("Oslo Sofa", ("840", "380", "350"), "120"),
        ("Oslo Sofa", ("8.4", "3.8", "3.5"), "120"),
        ("Oslo Dining Chair", ("190", "230", "380"), "15"),
        ("Oslo Dining Chair", ("19", "23", "38"), "15000"),
        ("Oslo Queen Bed", ("6.3", "8.5", "5"), "120"),
    ],
)
def test_measures_in_a_wrong_unit_are_reported(title: str, sides: tuple[str, str, str], weight: str) -> None:
    (problem,) = _read(["Title", *SIZE, "Weight (lb)"], [title, *sides, weight])
    assert problem.problem == "out_of_range"
    assert problem.column in (*SIZE, "Weight (lb)")
    assert "Check the unit" in problem.detail


def test_the_category_is_used_if_the_title_names_no_kind_but_not_for_small_parts() -> None:
    headers = ["Title", "Category", *SIZE]
    sofa, knob = ["Oslo", "Sofas", "840", "380", "350"], ["Oslo Knob", "Cabinets", "1", "1", "2"]
    assert [problem.line for problem in _read(headers, sofa, knob)] == [2]


@pytest.mark.parametrize("title", ["Sofa Swatch", "Doll House Sofa", "Sofa + Loveseat", "3 Pc. Sofa Set", "Dog Sofa"])
def test_other_things_than_one_piece_of_furniture_have_no_plausible_size(title: str) -> None:
    assert _read(["Title", "Category", *SIZE], [title, "Sofas", "9", "8", "7"]) == []


# Cartons.


def test_a_carton_lighter_than_the_item_is_reported() -> None:
    headers = ["Title", "Net Weight (lb)", "Carton Weight (lb)"]
    (problem,) = _read(headers, ["Oslo Desk", "80", "60"], ["Rome Desk", "80", "92"])
    assert (problem.problem, problem.line, problem.column) == ("conflict", 2, "Carton Weight (lb)")
    assert "80 lb" in problem.detail


@pytest.mark.parametrize(
    ("title", "assembly", "sides", "box", "is_reported"),
    [
        ("Oslo Sofa", "", ("84", "38", "36"), ("20", "30", "20"), True),
        ("Oslo Sofa", "", ("84", "38", "36"), ("28", "80", "28"), False),
        ("Oslo Dining Table", "", ("72", "40", "30"), ("42", "74", "5"), False),
        ("Oslo Folding Table", "", ("72", "30", "30"), ("30", "34", "4"), False),
        ("Oslo Queen Bed", "", ("63", "85", "50"), ("10", "40", "8"), False),
        ("12 Inch Mattress", "No", ("60", "80", "12"), ("17", "39", "17"), False),
        ("Oslo Vase", "No", ("10", "10", "24"), ("12", "12", "12"), True),
        ("Oslo Nightstand", "No", ("24", "18", "26"), ("26", "28", "3"), True),
        ("Oslo Nightstand", "No", ("24", "18", "26"), ("20", "26", "28"), False),
        ("Oslo Folding Table", "No", ("72", "30", "30"), ("30", "34", "4"), False),
        ("Oslo Throw Blanket", "No", ("50", "60", "1"), ("10", "12", "4"), False),
        ("Oslo Bean Bag", "No", ("40", "40", "30"), ("12", "20", "12"), False),
        ("Oslo Nightstand", "Yes", ("24", "18", "26"), ("26", "28", "3"), False),
    ],
)
def test_a_single_carton_has_space_for_the_item(
    title: str, assembly: str, sides: tuple[str, str, str], box: tuple[str, str, str], *, is_reported: bool
) -> None:
    found = _read(["Title", "Assembly Required", *SIZE, *BOX[:3]], [title, assembly, *sides, *box])
    assert [problem.field for problem in found] == ["cartons"] * is_reported


# Pieces, colours, materials.


def test_another_number_of_pieces_in_the_code_is_reported() -> None:
    titles = {
        "AB-100-7PC": "6 Pc. Dining Set",
        "AB-101-5PC": "5 Pc. Dining Set",
        "AB-102-2PK": "Side Chair (2/CTN)",
        "AB-103-4PK": "Side Chair, Set of 2",
        "AB-104": "5 Pc. Dining Set",
    }
    _, found = _normalise(["SKU", "Title"], [[code, title] for code, title in titles.items()])
    assert [(problem.line, problem.column, problem.value) for problem in found] == [
        (2, "SKU", "AB-100-7PC"),
        (5, "SKU", "AB-103-4PK"),
    ]


@pytest.mark.parametrize("text", ["24 in", '36"', "12.5", "48", "$199.00", "30 x 40 cm", "036000291452", "15 lbs"])
def test_measures_in_words_are_reported(text: str) -> None:
    found = _read(["Title", "Color", "Material"], ["Oslo", text, "Oak"], ["Rome", "Oak", f"Oak, {text}"])
    assert [(problem.line, problem.column, problem.problem) for problem in found] == [
        (2, "Color", "conflict"),
        (3, "Material", "conflict"),
    ]


@pytest.mark.parametrize(
    "text",
    ["2-Tone Grey", "RAL 9016", "304 Stainless Steel", "100% Cotton", "5 mm Glass", "316L", "0042", "1680D Nylon"],
)
def test_words_with_digits_are_not_reported(text: str) -> None:
    assert _read(["Title", "Color", "Material"], ["Oslo", text if text != "316L" else "Grey", text]) == []


# Prices.


@pytest.mark.parametrize(
    ("prices", "columns"),
    [
        ({"Price": "400", "MSRP": "300"}, ["Price"]),
        ({"Cost": "260", "Price": "250"}, ["Cost"]),
        ({"MAP": "350", "MSRP": "300"}, ["MAP"]),
        ({"Cost": "100", "MAP": "200", "Price": "250", "MSRP": "300"}, []),
        ({"Cost": "200", "MAP": "200", "Price": "200", "MSRP": "200"}, []),
        ({"Price": "150", "MAP": "200"}, []),
    ],
)
def test_prices_in_the_wrong_order_are_reported(prices: dict[str, str], columns: list[str]) -> None:
    found = _read(["Title", *prices], ["Oslo Sofa", *prices.values()])
    assert [(problem.column, problem.value) for problem in found] == [(column, prices[column]) for column in columns]


@pytest.mark.parametrize("setting", ["location", "option"])
def test_a_price_of_one_location_or_option_is_located_by_its_column(setting: str) -> None:
    headers = ["SKU", "Title", "MSRP", "East", "West"]
    fields = ["sku", "title", "msrp", f"price@{setting}=East", f"price@{setting}=West"]
    plan = ReadPlan(map_declared_fields(headers, fields), USD)
    _, (problem,) = normalise_rows("AB-1", [(2, ["AB-1", "Oslo Sofa", "300", "250", "350"])], plan)
    assert (problem.field, problem.column, problem.value) == ("price", "West", "350")


def test_a_sale_price_above_the_price_is_ignored_and_reported() -> None:
    headers = ["SKU", "Title", "Price", "Sale Price"]
    (product,), (problem,) = _normalise(headers, [["AB-1", "Oslo Sofa", "200", "250"]])
    assert product.variants[0].offers[0].data == {"currency": "usd", "price": 20000}
    assert (problem.field, problem.column, problem.value) == ("sale_price", "Sale Price", "250")


# Several columns for one field.


@pytest.mark.parametrize(
    ("headers", "cells", "value"),
    [
        (["Weight (lb)", "Weight (kg)"], ["80", "36.3"], None),
        (["Weight (lb)", "Weight (kg)"], ["80", "90"], "90"),
        (["Width (in)", "Width (cm)"], ["48", "122"], None),
        (["Width (in)", "Width (cm)"], ["48", "48"], "48"),
        (["UPC", "Barcode"], ["036000291452", "4006381333931"], "4006381333931"),
        (["UPC", "Barcode"], ["036000291452", "036000291452"], None),
        (["Height (in)", "Max Height (in)"], ["30", "48"], None),
        (["Carton Width (in)", "Box Width (cm)"], ["20", "20"], "20"),
    ],
)
def test_a_different_value_in_a_second_column_is_reported(
    headers: list[str], cells: list[str], value: str | None
) -> None:
    found = _read(["Title", *headers], ["Oslo", *cells])
    assert [(problem.column, problem.value) for problem in found] == [(headers[1], value)] * (value is not None)


def test_a_second_price_column_that_differs_is_reported_once() -> None:
    headers, rows = (
        ["SKU", "Title", "Price", "Unit Price"],
        [["AB-1", "Oslo", "20", "20"], ["AB-2", "Rome", "30", "33"]],
    )
    plan = ReadPlan(propose_column_mapping(headers, rows, USD), USD)
    numbered: Any = list(enumerate(rows, start=2))
    (problem,) = plan.find_differing_alternatives(numbered, "Sheet1")
    assert (problem.sheet, problem.line, problem.column, problem.value) == ("Sheet1", 3, "Unit Price", "33")
    assert '"Price"' in problem.detail
    assert list(plan.find_differing_alternatives(numbered[:1], "Sheet1")) == []


# Other inputs.


def test_values_are_kept() -> None:
    headers = ["SKU", "Title", *SIZE, "Color"]
    (product,), problems = _normalise(headers, [["AB-1", '63" Console', "48", "16", "30", "24 in"]])
    data = product.variants[0].data
    assert len(problems) == 2
    assert (data["dimensions"]["width"]["hundredths_in"], data["colour"]) == (4800, "24 in")


def test_ignored_kinds_of_problems_are_not_reported() -> None:
    headers, row = ["SKU", "Title", "Color"], ["AB-1", "Oslo Console", "24 in"]
    mapping = propose_column_mapping(headers, [row], USD)
    columns = tuple(replace(column, ignored_problems=(ProblemKind.CONFLICT,)) for column in mapping.columns)
    plan = ReadPlan(replace(mapping, columns=columns), USD)
    assert normalise_rows("AB-1", [(2, [*row])], plan)[1] == []


def test_variants_of_one_line_have_the_column_but_no_value() -> None:
    """The variants of a JSON record have the same line."""
    headers = ["Handle", "SKU", "Title", "Color", "Price", "MSRP"]
    rows = [["oslo", "AB-1", "Oslo", "Oak", "20", "30"], ["oslo", "AB-2", "Oslo", "Ash", "40", "30"]]
    plan = ReadPlan(propose_column_mapping(headers, rows, USD), USD)
    _, (problem,) = normalise_rows("oslo", [(2, [*row]) for row in rows], plan)
    assert (problem.column, problem.value) == ("Price", None)


@given(
    name=st.sampled_from(["Oslo", "Rome", "Bergen"]),
    kind=st.sampled_from(["Dining Table", "Console", "Sofa", "Desk", "Bookcase", "Dresser"]),
    sides=st.tuples(st.integers(45, 90), st.integers(14, 44), st.integers(20, 80)),
    prices=st.lists(st.integers(10_00, 9000_00), min_size=3, max_size=3).map(sorted),
    weight=st.integers(40, 250),
    colour=st.sampled_from(["Oak", "Two-Tone Grey", "RAL 7016", "Walnut/Black"]),
)
def test_consistent_items_have_no_contradictions(
    name: str, kind: str, sides: tuple[int, int, int], prices: list[int], weight: int, colour: str
) -> None:
    width, depth, height = sides
    headers = [
        "Title",
        "Color",
        "Material",
        *SIZE,
        "Width (cm)",
        "Net Weight (lb)",
        *BOX,
        "Cost",
        "MAP",
        "MSRP",
        "Pieces",
    ]
    row = [
        f'{name} {width}" {kind}', colour, "Oak, Steel", *map(str, sides), f"{width * 2.54:.1f}", str(weight),
        str(depth + 3), str(max(sides) + 3), str(height + 3), str(weight + 8), *(f"{price / 100:.2f}" for price in prices), "1",
    ]  # fmt: skip
    assert _read(headers, row) == []


@given(st.text(max_size=40), st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_any_text_is_checked_without_errors(title: str, size: str, colour: str, price: str) -> None:
    _read(["Title", "Dimensions", "Color", "Price", "MSRP", "Width (in)"], [title, size, colour, price, "10", "20"])
