"""Runs the hand-worked parses of a reference folder, when one is at hand."""

import csv
import json
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from domain.ingestion.values.sides import kind_of, side_of
from domain.ingestion.values.cartons import parse_packages, pieces_per_carton
from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.gtin import parse_gtin
from domain.ingestion.values.lengths import parse_length
from domain.ingestion.mapping.proposal import propose
from domain.ingestion.model import FeedSettings, Group
from domain.ingestion.values.money import parse_money
from domain.ingestion.normalise import normalise
from domain.ingestion.columns.plan import compile_plan
from domain.ingestion.values.rugs import parse_rug_size
from domain.ingestion.values.stock import availability_of, parse_availability, stock_in_value
from domain.ingestion.values.weights import parse_weight

FOLDER = os.environ.get("JOINERY_REFERENCE_DATA")
pytestmark = pytest.mark.skipif(not FOLDER, reason="JOINERY_REFERENCE_DATA names no folder with reference parses")

Parsed = tuple[dict[str, Any], bool]


def _rows(name: str) -> list[dict[str, str]]:
    if not FOLDER:
        return []
    with (Path(FOLDER) / "parsing" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _hint(row: dict[str, str]) -> tuple[str | None, dict[str, str]]:
    parts = row["unit_hint"].split("|")
    options = dict(part.split("=", 1) for part in parts if "=" in part)
    return next((part for part in parts if part in ("in", "cm", "mm", "g", "kg", "lb")), None), options


def _sides(dimensions: Any) -> dict[str, int]:
    return {side: value["hundredths_in"] for side, value in dimensions.items()}


def _dimensions(row: dict[str, str]) -> Parsed:
    unit, options = _hint(row)
    if "column" in options:
        reading = parse_length(row["raw"], unit)
        side = side_of(options["column"])
        name = "width" if side == "length" else side
        return ({str(name): reading.value["hundredths_in"]} if reading.value else {}), bool(reading.faults)
    spread = parse_dimensions(row["raw"], unit, kind_of(options.get("category", ""), ""))
    if spread.value is None:
        return {}, bool(spread.faults)
    found: dict[str, Any] = _sides(spread.value.dimensions)
    if spread.value.components:
        found["components"] = [{"name": c["name"], **_sides(c["dimensions"])} for c in spread.value.components]
    return found, bool(spread.faults)


def _rug_size(row: dict[str, str]) -> Parsed:
    reading = parse_rug_size(row["raw"])
    if reading.value is None:
        return {}, bool(reading.faults)
    sides = {{"depth": "length"}.get(side, side): value for side, value in _sides(reading.value.dimensions).items()}
    return {**sides, "shape": reading.value.shape}, bool(reading.faults)


def _weight(row: dict[str, str]) -> Parsed:
    reading = parse_weight(row["raw"], _hint(row)[0])
    return ({"hundredths_lb": reading.value["hundredths_lb"]} if reading.value else {}), bool(reading.faults)


def _box_of_columns(row: dict[str, str]) -> Parsed:
    headers = ("Item", *row["unit_hint"].removeprefix("columns=").split(","))
    cells: list[Any] = ["A-1", *row["raw"].strip("[]").split(", ")]
    context = FeedSettings(currency="usd")
    plan = compile_plan(propose(headers, [cells], context), context)
    statement, problems = normalise(Group("A-1", [(2, cells)]), plan)
    data = statement.variants[0].data
    weight = data["weight"]["hundredths_lb"]
    box: Any = data["cartons"][0]
    sides = {side: box[side]["hundredths_in"] for side in ("width", "depth", "height")}
    return {**sides, "count": box["count"], "hundredths_lb": weight}, bool(problems)


def _carton(row: dict[str, str]) -> Parsed:
    if row["raw"].startswith("["):
        return _box_of_columns(row)
    if row["raw"].startswith("("):
        return {"pieces_per_carton": pieces_per_carton(row["raw"])}, False
    reading = parse_packages(row["raw"])
    package = (reading.value or ())[0]
    box: Any = package.carton
    sides = {side: box[side]["hundredths_in"] for side in ("width", "depth", "height") if side in box}
    found = {"name": package.name, "sku": package.sku, "count": box["count"], **sides}
    return {**found, "hundredths_lb": box["weight"]["hundredths_lb"]}, bool(reading.faults)


def _price(row: dict[str, str]) -> Parsed:
    options = _hint(row)[1]
    reading = parse_money(row["raw"], options.get("currency"), options.get("decimal", "auto"))
    if reading.value is None:
        return {}, bool(reading.faults)
    pack = {"pack": reading.value.pack} if reading.value.pack else {}
    return {"minor": reading.value.minor, "currency": reading.value.currency, **pack}, bool(reading.faults)


def _stock(row: dict[str, str]) -> Parsed:
    if row["raw"].startswith(("QTY*", "LIN*")):
        pytest.skip("EDI segments are read by their connector")
    if _hint(row)[1].get("column") == "sellable_online":
        pytest.skip("whether an item sells online is no stock column of the vocabulary")
    word = stock_in_value(row["raw"])[1]
    reading = parse_availability(row["raw"])
    stock = word or reading.value
    if stock is None:
        return {}, bool(reading.faults)
    quantity = {} if stock.quantity is None else {"quantity": stock.quantity}
    return {**quantity, "availability": stock.availability or availability_of(stock.quantity or 0)}, False


def _gtin(row: dict[str, str]) -> Parsed:
    reading = parse_gtin(row["raw"])
    return ({"gtin": reading.value} if reading.value else {}), bool(reading.faults)


PARSERS = {
    "dimensions": _dimensions,
    "rug_size": _rug_size,
    "weight": _weight,
    "carton": _carton,
    "price": _price,
    "stock": _stock,
    "gtin": _gtin,
}


def _same(expected: Any, found: Any) -> bool:
    if isinstance(expected, dict):
        keys = {key for key in expected if not key.startswith("_")}
        return keys == set(found) and all(_same(expected[key], found[key]) for key in keys)
    if isinstance(expected, list):
        return len(expected) == len(found) and all(map(_same, expected, found))
    if isinstance(expected, int):
        return bool(abs(expected - found) <= 1)
    return bool(expected == found)


@pytest.mark.parametrize("row", _rows("measures.csv"), ids=lambda row: f"{row['field']}-{row['raw'][:40]}")
def test_measure_comes_out_as_worked_by_hand(row: dict[str, str]) -> None:
    expected = json.loads(row["expected_json"])
    found, told = PARSERS[row["field"]](row)
    assert any(_same(choice, found) for choice in [expected, *expected.get("_alt", [])]), found
    if "_problem" in expected:
        assert told


def _accepts(wanted: str, field: str | None) -> bool:
    """Whether a mapped field is one of the answers a row takes: `a|b`, `(known, but outside)`, `cartons[0].width`."""
    for choice in wanted.split("|"):
        if choice.strip().startswith("("):
            return True
        name = re.sub(r"\[(\d+)]", r".\1", re.sub(r"\s*\(.*\)", "", choice.strip()))
        name = {"media.url": "media", "media.alt": "media_alt", "media.position": "media_position"}.get(name, name)
        families = {"axes": ("axes", "option_name", "option_value"), "category_path": ("category_path",)}.get(
            name, (name,)
        )
        if field is not None and any(field == family or field.startswith(f"{family}.") for family in families):
            return True
        if name == "dimensions.width" and field == "dimensions.length":
            return True
    return False


def _groups() -> list[list[dict[str, str]]]:
    rows = _rows("headers.csv")
    sheets: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        sheets[row["source"]].append(row)
    return [*sheets.values(), *([row] for row in rows)]


@pytest.mark.parametrize("rows", _groups(), ids=lambda rows: f"{rows[0]['header'][:30]}-{len(rows)}")
def test_headers_mean_what_was_worked_by_hand(rows: list[dict[str, str]]) -> None:
    samples = [
        [([part.strip() for part in row["sample_values"].split(";")] + [""] * 4)[at] for row in rows] for at in range(3)
    ]
    mapping = propose([row["header"] for row in rows], samples, FeedSettings(currency="usd"))
    fields = {column.position: column.field for column in mapping.columns}
    wrong = {row["header"]: fields.get(at) for at, row in enumerate(rows) if not _accepts(row["field"], fields.get(at))}
    assert wrong == {}
