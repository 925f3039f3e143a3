"""Units, orders and decimal marks of size columns, and additional facts in sizes."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import map_declared_fields
from domain.ingestion.model import FeedSettings
from domain.ingestion.normalisation import normalise_rows


def _read_row(
    cells: Mapping[str, Any], settings: Mapping[str, Mapping[str, str]] | None = None, decimal: str = "auto"
) -> tuple[Any, Any, list[tuple[str, str]]]:
    """Return the data of the product and its only variant, and the problems, of one row; columns are named by their fields."""
    fields = ("variant_key", *cells)
    mapping = map_declared_fields(fields, fields)
    columns = tuple(replace(c, settings={**c.settings, **(settings or {}).get(c.field, {})}) for c in mapping.columns)
    feed = FeedSettings(currency="eur", decimal=decimal)
    row = ["A-1", *cells.values()]
    statement, problems = normalise_rows("A-1", [(2, row)], ReadPlan(replace(mapping, columns=columns), feed))
    return statement.data, statement.variants[0].data, [(p.field, p.problem.value) for p in problems]


@pytest.mark.parametrize("mark", ["comma", "dot"])
@pytest.mark.parametrize("of_column", [True, False])
def test_the_decimal_mark_of_a_source_or_a_column_applies_to_sizes_and_weights(mark: str, of_column: bool) -> None:
    cells = {
        "dimensions": "B 1.250 x T 1.300 x H 1.400 cm",
        "weight": "1.250 kg",
        "cartons.0.width": "1.250 cm",
        "cartons.0.weight": "1.250 kg",
    }
    own = {field: {"decimal": mark} for field in cells} if of_column else {}
    _, data, problems = _read_row(cells, own, "auto" if of_column else mark)
    wanted = Decimal("1250" if mark == "comma" else "1.250")
    found = [data["dimensions"]["width"], data["weight"], data["cartons"][0]["width"], data["cartons"][0]["weight"]]
    assert ([fact["given"]["value"] for fact in found], problems) == ([wanted] * 4, [])


def test_a_spreadsheet_number_keeps_its_decimal_point() -> None:
    _, data, _ = _read_row({"dimensions.width": Decimal("1.250")}, {"dimensions.width": {"unit": "m"}}, "comma")
    assert data["dimensions"]["width"]["given"]["value"] == Decimal("1.250")


def test_boxes_are_read_in_the_unit_of_their_column() -> None:
    cells = {"cartons": "Box 1: 30x20x10, 25 lb; Box 2: 40x20x10, 30 lb"}
    _, data, problems = _read_row(cells, {"cartons": {"unit": "in"}})
    assert [(box["width"]["hundredths_in"], box["weight"]["hundredths_lb"]) for box in data["cartons"]] == [
        (3000, 2500),
        (4000, 3000),
    ]
    assert problems == []


def test_additional_facts_of_a_size_become_features_once() -> None:
    size = '30"W x 20"D x 40"H, Seat width: 18", Max. load: 250 lb, 4D armrest'
    product, _, problems = _read_row({"dimensions": size, "features": "Solid oak"})
    assert problems == []
    assert product["features"][0] == "Solid oak"
    assert len(product["features"]) == len(set(product["features"])) == 4
    assert "Max. load: 250 lb" in product["features"]
    assert "18" in " ".join(product["features"])
    many = "; ".join(f"Shelf width {n} cm" for n in range(21, 90))
    product, _, _ = _read_row({"dimensions": f"W80 x D60 x H70 cm; {many}"})
    assert len(product["features"]) <= 12


def test_problems_of_a_rug_size_are_reported_once() -> None:
    product = {"category": "Rugs", "title": "Loop rug"}
    _, data, problems = _read_row({**product, "dimensions": "5'3\" x 7'6\" (200 x 290 cm)"})
    assert data["rug"]["shape"] == "rectangle"
    assert problems == [("dimensions", "conflict")]
    _, data, problems = _read_row({**product, "dimensions": "Sample 12 x 12 in"})
    assert ("dimensions" in data, problems) == (False, [("dimensions", "unreadable")])


def test_a_rug_size_has_the_unit_of_its_column() -> None:
    product = {"category": "Rugs", "title": "Loop rug"}
    for field in ("dimensions", "rug.size_text"):
        _, data, problems = _read_row({**product, field: "160 x 230"}, {field: {"unit": "cm"}})
        assert (data["dimensions"]["width"]["given"], problems) == ({"value": Decimal(160), "unit": "cm"}, [])
        presumed = {"unit": "in", "unit_by": "market"}
        _, data, problems = _read_row({**product, field: "5 x 8"}, {field: presumed})
        assert (data["dimensions"]["width"]["hundredths_in"], problems) == (6000, [])


def test_a_stated_order_resolves_a_size_without_letters() -> None:
    _, data, problems = _read_row({"dimensions": "80 x 60 x 40 cm"})
    assert (data["dimensions"]["height"]["given"]["value"], problems) == (40, [("dimensions", "conflict")])
    _, data, problems = _read_row({"dimensions": "80 x 60 x 40 cm"}, {"dimensions": {"order": "hwd"}})
    assert (data["dimensions"]["height"]["given"]["value"], problems) == (80, [])
