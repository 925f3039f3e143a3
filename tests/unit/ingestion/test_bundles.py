"""Bundles and the rows of their parts."""

from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.catalogue.data import VariantData
from domain.ingestion.bundles import BundlePartData, complete_components
from domain.ingestion.pieces import parse_piece_count
from domain.ingestion.values.quantities import parse_weight


def _parse_weight(pounds: str) -> Any:
    return parse_weight(pounds, "lb").value


def _build_part(pounds: str, volume: str | None = None, title: str | None = None) -> BundlePartData:
    sides: Any = {"weight": _parse_weight(pounds)}
    return BundlePartData(title, _parse_weight(pounds), Decimal(volume) if volume else None, None, (sides,))


def _build_set(pounds: str, *codes: str) -> VariantData:
    return {"weight": _parse_weight(pounds), "components": [{"sku": code, "quantity": 1} for code in codes]}


def _list_quantities(data: VariantData) -> list[int | None]:
    return [component.get("quantity") for component in data["components"]]


def test_quantities_follow_from_weight_and_pieces() -> None:
    data = _build_set("281.6", "K-T-1", "K-T-2", "K-C-2PK")
    parts = {
        "K-T-1": _build_part("122.1"),
        "K-T-2": _build_part("47.3"),
        "K-C-2PK": _build_part("37.4", title="Side Chair (2/CTN)"),
    }
    assert complete_components(data, "7 Pc. Dining Set", None, parts) == ()
    assert _list_quantities(data) == [1, 1, 3]
    assert [carton["count"] for carton in data["cartons"]] == [1, 1, 3]
    assert data["components"][2]["name"] == "Side Chair (2/CTN)"


def test_quantities_follow_from_weight_and_volume() -> None:
    data = _build_set("271.5", "S-L", "S-R", "S-M")
    parts = {"S-L": _build_part("100", "18.2"), "S-R": _build_part("121.5", "14.1"), "S-M": _build_part("25", "9.3")}
    assert complete_components(data, "Sectional", Decimal("50.9"), parts) == ()
    assert _list_quantities(data) == [1, 1, 2]


def test_a_weight_alone_determines_no_quantities() -> None:
    data = _build_set("271.5", "S-L", "S-R", "S-M")
    parts = {"S-L": _build_part("100"), "S-R": _build_part("121.5"), "S-M": _build_part("25")}
    (fault,) = complete_components(data, "Sectional", None, parts)
    assert fault.problem == "conflict"
    assert _list_quantities(data) == [None, None, None]
    assert "cartons" not in data


def test_parts_of_equal_weight_cannot_be_distinguished() -> None:
    data = _build_set("200", "B-HB", "B-R", "B-N", "B-D")
    parts = {"B-HB": _build_part("40"), "B-R": _build_part("20"), "B-N": _build_part("40"), "B-D": _build_part("60")}
    (fault,) = complete_components(data, "5 Pc. Bedroom Set w/ 2NS", None, parts)
    assert fault.problem == "conflict"
    assert _list_quantities(data) == [None, None, None, None]


def test_listed_quantities_are_kept() -> None:
    data = _build_set("300", "K-T", "K-C")
    data["components"][1]["quantity"] = 4
    parts = {"K-T": _build_part("100"), "K-C": _build_part("10")}
    (fault,) = complete_components(data, "5 Pc. Set", None, parts)
    assert (fault.problem, _list_quantities(data)) == ("conflict", [1, 4])


def test_stated_quantities_that_contradict_the_title_are_reported() -> None:
    parts = {"K-T": _build_part("60"), "K-C": _build_part("15")}
    for title, quantity, is_reported in (
        ("5 Pc. Dining Set", 4, False),
        ("7 Pc. Dining Set", 4, True),
        ("3 Pc. Set", 4, True),
    ):
        data = _build_set("120", "K-T", "K-C")
        data["components"][1]["quantity"] = quantity
        faults = complete_components(data, title, None, parts)
        assert [fault.problem for fault in faults] == ["conflict"] * is_reported
        assert _list_quantities(data) == [1, quantity]


def test_quantities_of_cartons_and_of_pieces_match_the_title() -> None:
    parts = {"K-T": _build_part("60"), "K-C": _build_part("15", title="Side Chair (2/CTN)")}
    for quantity in (2, 4):
        data = _build_set(str(60 + 15 * quantity), "K-T", "K-C")
        data["components"][1]["quantity"] = quantity
        assert complete_components(data, "5 Pc. Dining Set", None, parts) == ()


def test_parts_with_a_matching_sum_have_the_quantity_one() -> None:
    data = _build_set("150", "A", "B")
    assert complete_components(data, "2 Pc. Set", None, {"A": _build_part("100"), "B": _build_part("50.2")}) == ()
    assert _list_quantities(data) == [1, 1]


def test_a_title_that_counts_more_pieces_than_the_parts_is_reported() -> None:
    data = _build_set("300", "K-T", "K-C-2PK")
    (fault,) = complete_components(data, "7 Pc. Dining Set", None, {})
    assert (fault.problem, _list_quantities(data)) == ("conflict", [None, None])


def test_a_part_without_a_row_does_not_affect_other_parts() -> None:
    data = _build_set("300", "K-T", "K-C")
    assert complete_components(data, "2 Pc. Dining Set", None, {"K-T": _build_part("100")}) == ()
    assert ["weight" in component for component in data["components"]] == [True, False]
    assert "cartons" not in data


def test_pieces_of_a_title_are_counted() -> None:
    titles = ("7 Pc. Dining Set", "5-Piece Set", "Sofa", "3 pcs and 4 pcs", "1.5 Piece")
    assert [parse_piece_count(title) for title in titles] == [7, 5, None, None, None]


@given(st.lists(st.tuples(st.integers(500, 30000), st.integers(1, 4)), min_size=1, max_size=6))
@settings(max_examples=150, deadline=None)
def test_a_quantity_is_never_wrong_when_weights_are_exact(parts: list[tuple[int, int]]) -> None:
    codes = [f"P{place}" for place in range(len(parts))]
    facts = {code: _build_part(str(Decimal(weight) / 100)) for code, (weight, _) in zip(codes, parts, strict=True)}
    whole = Decimal(sum(weight * count for weight, count in parts)) / 100
    data = _build_set(str(whole), *codes)
    pieces = sum(count for _, count in parts)
    complete_components(data, f"{pieces} Pc. Set", None, facts)
    found = _list_quantities(data)
    weighed = sum(weight * (count or 0) for (weight, _), count in zip(parts, found, strict=True))
    assert None in found or abs(weighed - whole * 100) <= max(60, whole * 2)
