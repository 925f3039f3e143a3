"""Sizes of the pieces of a set, and the parts that they belong to."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.catalogue.data import VariantData
from domain.ingestion.pieces import assign_sizes_to_parts, find_only_labelled_piece, names_several_pieces
from tests.unit.ingestion.test_normalisation import _normalise

HEADERS = ["SKU", "Title", "Category", "Parts", "Product Dimension (Inch)", "Price"]


def _read_row(title: str, parts: str, size: str, category: str = "Dining") -> tuple[VariantData, list[tuple[str, str]]]:
    (product,), problems = _normalise(HEADERS, [["K-1", title, category, parts, size, "10"]])
    return product.variants[0].data, [(problem.field, str(problem.problem)) for problem in problems]


def _get_sides(dimensions: Any) -> dict[str, int]:
    return {side: length["hundredths_in"] // 100 for side, length in dimensions.items()}


def test_sizes_of_pieces_are_assigned_to_their_parts() -> None:
    size = 'SOFA: 88"W X 38"D X 33"H, LOVESEAT: 64"W X 38"D X 33"H'
    data, problems = _read_row("Sofa + Loveseat", "K1-SF-PM, K1-LV-PM", size)
    assert [_get_sides(part["dimensions"])["width"] for part in data["components"]] == [88, 64]
    assert [part["sku"] for part in data["components"]] == ["K1-SF-PM", "K1-LV-PM"]
    assert ("dimensions" in data, problems) == (False, [])


def test_the_size_of_one_piece_is_not_the_size_of_the_set() -> None:
    data, _ = _read_row(
        "5 Pc. Queen Bedroom Set", "B-Q-HB, B-Q-FB, B-N, B-D, B-M", 'BED: 87"L X 65"W X 64"H', "Bedroom Set"
    )
    assert "dimensions" not in data
    bed = data["components"][-1]
    assert (bed["name"], "quantity" in bed) == ("BED", False)
    assert _get_sides(bed["dimensions"]) == {"width": 65, "depth": 87, "height": 64}


def test_a_size_without_a_named_piece_is_reported() -> None:
    data, problems = _read_row("5 Pc. Queen Bedroom Set", "", '87"L X 65"W X 64"H', "Bedroom Set")
    assert _get_sides(data["dimensions"]) == {"width": 65, "depth": 87, "height": 64}
    assert problems == [("dimensions", "conflict")]
    data, problems = _read_row("3 Pc. Sectional", "", '120"L X 90"W X 34"H', "Sofas")
    assert (_get_sides(data["dimensions"])["width"], problems) == (120, [])


def test_a_label_may_name_the_item() -> None:
    data, problems = _read_row("Dining Table", "T-1, T-2", 'TABLE: 60"L X 36"W X 30"H')
    assert (_get_sides(data["dimensions"])["width"], problems) == (60, [])
    assert [part.get("sku") for part in data["components"]] == ["T-1", "T-2"]


def test_pieces_have_no_quantity_if_the_title_counts_more() -> None:
    data, problems = _read_row("7 Pc. Dining Set", "", 'TABLE: 60"L X 36"W X 30"H, CHAIR: 18"W X 20"D X 38"H')
    assert [(part["name"], part.get("quantity")) for part in data["components"]] == [("TABLE", None), ("CHAIR", None)]
    assert problems == [("components", "conflict")]
    data, problems = _read_row("5 Pc. Dining Set", "", 'TABLE: 60"L X 36"W X 30"H, CHAIR (4): 18"W X 20"D X 38"H')
    assert [part.get("quantity") for part in data["components"]] == [1, 4]
    assert problems == []


def test_a_label_is_not_a_piece() -> None:
    data, problems = _read_row("Bar Table", "", '47"L X 20"W X 40"H, TABLE SIZE: 47"L X 20"W X 2"H')
    assert ("components" in data, problems) == (False, [("components", "conflict")])


def test_parts_lists_state_quantities() -> None:
    for text in ("A-1, B-2 (2)", "A-1, 2x B-2", "A-1; B-2*2", "A-1, B-2, B-2", "A-1, B-2 x2"):
        data, _ = _read_row("3 Pc. Set", text, "")
        assert [(part["sku"], part["quantity"]) for part in data["components"]] == [("A-1", 1), ("B-2", 2)], text


def test_titles_of_several_pieces_are_recognised() -> None:
    several = ("7 Pc. Dining Set", "Sofa + Loveseat", "Patio Set", "4-Piece Bedroom Set")
    assert all(map(names_several_pieces, several))
    assert not any(
        map(names_several_pieces, ("Queen Bed", "3 Pc. Sectional", "6 Piece Modular Sofa", "Set of 2 Chairs", ""))
    )


def test_labels_of_one_piece_are_found() -> None:
    texts = ('BED: 87"L', 'Coffee table size: 40"W', 'SEAT: 18"', '87"L', 'TABLE: 60"L, CHAIR: 20"W', 'Overall: 60"W')
    assert [find_only_labelled_piece(text) for text in texts] == ["BED", "Coffee table", None, None, None, None]


@given(st.lists(st.sampled_from(["A-SF", "A-LV", "A-T", "A-SC-2PK", "A-1"]), max_size=5), st.text(max_size=20))
def test_no_part_is_lost_and_none_added(codes: list[str], name: str) -> None:
    parts: Any = [{"sku": code, "quantity": 1} for code in codes]
    pieces: Any = [{"name": "SOFA", "dimensions": {}}, {"name": name, "dimensions": {}}]
    sized, left = assign_sizes_to_parts(parts, pieces)
    assert [part["sku"] for part in sized] == codes
    assert len(left) + sum("name" in part for part in sized) == 2
