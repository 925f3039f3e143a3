"""Labelled headers and hand-worked measures (`headers*.csv`, `measures.csv`), and how what we read is held against them.

`header,sample_values,field,source`: `field` has the accepted answers parted by `|`; those in round brackets lie outside the
catalogue. `field,raw,unit_hint,expected_json,source`: lengths and weights in hundredths, money in minor units.
"""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import propose
from domain.ingestion.model import Column, FeedSettings
from domain.ingestion.normalise import normalise
from domain.ingestion.values.cartons import parse_packages, pieces_per_carton
from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.labels import kind_of, side_of
from domain.ingestion.values.money import parse_money
from domain.ingestion.values.quantities import parse_length, parse_weight
from domain.ingestion.values.rugs import parse_rug_size
from domain.ingestion.values.stock import availability_of, parse_availability, stock_in_value
from domain.ingestion.values.words import parse_gtin

Found = tuple[dict[str, Any], bool]
"""What was read, and whether a problem was told."""

_SAMPLES = 3
_KEPT_KEYS = {"(product_key)": "product_key", "external_key": "variant_key", "(carton_count)": "carton_count"}
_NAMES = {"media.url": "media", "media.alt": "media_alt", "media.position": "media_position"}
_FAMILIES = {"axes": ("axes", "option_name", "option_value"), "media": ("media", "variant_media")}
_NEAR = frozenset(
    (
        ("price", "sale_price"),
        ("dimensions.width", "dimensions.length"),
        ("dimensions.depth", "dimensions.length"),
        ("category_path", "google_category"),
    )
)
"""Fields of the catalogue, and those that a mapping names for them until the values are read."""
_BESIDE = frozenset(("dimension_unit", "weight_unit"))
"""Columns that say the unit of others: known, though the catalogue has no field for them."""


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True, slots=True)
class Header:
    """One labelled header, the column it was mapped to (None for none), and how that is judged.

    `verdict`: right, missed, wrong for one that has a field; left, taken for one that has none.
    """

    row: dict[str, str]
    column: Column | None
    verdict: str


def _names(field: str, choice: str) -> bool:
    """Whether a mapped field is what one accepted answer names."""
    plain = re.sub(r"\[(\d+)]", r".\1", re.sub(r"\s*\(.*\)", "", choice))
    name = _NAMES.get(plain, plain)
    if any(field == family or field.startswith(f"{family}.") for family in _FAMILIES.get(name, (name,))):
        return True
    if (name, field) in _NEAR:
        return True
    return field == "carton_count" and name.startswith("cartons.") and name.endswith(".count")


def accepts(wanted: str, field: str) -> bool:
    """Whether `field` is one of the answers that a row takes."""
    for choice in (part.strip() for part in wanted.split("|")):
        if choice in _KEPT_KEYS:
            if field == _KEPT_KEYS[choice] or (choice == "external_key" and field == "product_key"):
                return True
        elif not choice.startswith("(") and _names(field, choice):
            return True
    return False


def _judged(row: dict[str, str], column: Column | None) -> str:
    choices = [part.strip() for part in row["field"].split("|")]
    inside = [choice for choice in choices if not choice.startswith("(") or choice == "(product_key)"]
    right = column is not None and accepts(row["field"], column.field)
    if not inside:
        return "left" if column is None or right or column.field in _BESIDE else "taken"
    if right or (column is None and len(inside) < len(choices)):
        return "right"
    return "missed" if column is None else "wrong"


def sheets_of(rows: Sequence[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    """The rows by source, each a header row in its order."""
    sheets: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        sheets[row["source"]].append(row)
    return sheets


def judged_headers(rows: Sequence[dict[str, str]], settings: FeedSettings) -> Iterator[Header]:
    """Every header that can be known, mapped among those of its source."""
    for sheet in sheets_of(rows).values():
        given = [[part.strip() for part in (row["sample_values"] or "").split(";")] for row in sheet]
        samples = [[values[at] if at < len(values) else "" for values in given] for at in range(_SAMPLES)]
        mapping = propose([row["header"] for row in sheet], samples, settings)
        columns = {column.position: column for column in mapping.columns}
        for place, row in enumerate(sheet):
            if "(unknowable)" not in row["field"]:
                yield Header(row, columns.get(place), _judged(row, columns.get(place)))


def _hint(row: dict[str, str]) -> tuple[str | None, dict[str, str]]:
    parts = row["unit_hint"].split("|")
    options = dict(part.split("=", 1) for part in parts if "=" in part)
    return next((part for part in parts if part in ("in", "ft", "cm", "mm", "m", "g", "kg", "lb", "oz")), None), options


def _sides(dimensions: Any) -> dict[str, int]:
    return {side: value["hundredths_in"] for side, value in dimensions.items()}


def _dimensions(row: dict[str, str]) -> Found:
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


def _rug_size(row: dict[str, str]) -> Found:
    reading = parse_rug_size(row["raw"], _hint(row)[0])
    if reading.value is None:
        return {}, bool(reading.faults)
    sides = {{"depth": "length"}.get(side, side): value for side, value in _sides(reading.value.dimensions).items()}
    return {**sides, "shape": reading.value.shape}, bool(reading.faults)


def _weight(row: dict[str, str]) -> Found:
    reading = parse_weight(row["raw"], _hint(row)[0])
    return ({"hundredths_lb": reading.value["hundredths_lb"]} if reading.value else {}), bool(reading.faults)


def _box_of_columns(row: dict[str, str]) -> Found:
    headers = ("Item", *row["unit_hint"].removeprefix("columns=").split(","))
    cells: list[Any] = ["A-1", *row["raw"].strip("[]").split(", ")]
    context = FeedSettings(currency="usd")
    plan = ReadPlan(propose(headers, [cells], context), context)
    statement, problems = normalise("A-1", [(2, cells)], plan)
    data = statement.variants[0].data
    weight = data["weight"]["hundredths_lb"]
    box: Any = data["cartons"][0]
    sides = {side: box[side]["hundredths_in"] for side in ("width", "depth", "height")}
    return {**sides, "count": box["count"], "hundredths_lb": weight}, bool(problems)


def _carton(row: dict[str, str]) -> Found:
    if row["raw"].startswith("["):
        return _box_of_columns(row)
    if row["raw"].startswith("("):
        return {"pieces_per_carton": pieces_per_carton(row["raw"])}, False
    reading = parse_packages(row["raw"])
    if not reading.value:
        pieces = pieces_per_carton(row["raw"])
        return ({"pieces_per_carton": pieces} if pieces else {}), bool(reading.faults)
    package = reading.value[0]
    box: Any = package.carton
    sides = {side: box[side]["hundredths_in"] for side in ("width", "depth", "height") if side in box}
    named = {"name": package.name, "sku": package.sku, "count": box.get("count")}
    found = {**{key: value for key, value in named.items() if value}, **sides}
    if "weight" in box:
        found["hundredths_lb"] = box["weight"]["hundredths_lb"]
    return found, bool(reading.faults)


def _price(row: dict[str, str]) -> Found:
    options = _hint(row)[1]
    reading = parse_money(row["raw"], options.get("currency"), options.get("decimal", "auto"))
    if reading.value is None:
        return {}, bool(reading.faults)
    pack = {"pack": reading.value.pack} if reading.value.pack else {}
    return {"minor": reading.value.minor, "currency": reading.value.currency, **pack}, bool(reading.faults)


def _stock(row: dict[str, str]) -> Found:
    word = stock_in_value(row["raw"])[1]
    reading = parse_availability(row["raw"])
    stock = word or reading.value
    if stock is None:
        return {}, bool(reading.faults)
    quantity = {} if stock.quantity is None else {"quantity": stock.quantity}
    found = {**quantity, "availability": stock.availability or availability_of(stock.quantity or 0)}
    return found, bool(reading.faults)


def _gtin(row: dict[str, str]) -> Found:
    reading = parse_gtin(row["raw"])
    return ({"gtin": reading.value} if reading.value else {}), bool(reading.faults)


_READERS = {
    "dimensions": _dimensions,
    "rug_size": _rug_size,
    "weight": _weight,
    "carton": _carton,
    "price": _price,
    "stock": _stock,
    "gtin": _gtin,
}


def skipped(row: dict[str, str]) -> str | None:
    """Why a hand-worked measure is not one that a value's parser reads; None when it is."""
    if row["field"] == "stock" and row["raw"].startswith(("QTY*", "LIN*")):
        return "EDI segments are read by their connector"
    if row["field"] == "stock" and _hint(row)[1].get("column") == "sellable_online":
        return "whether an item sells online is no stock column of the vocabulary"
    return None


def read_measure(row: dict[str, str]) -> Found:
    """What the parser of a row's kind makes of it."""
    return _READERS[row["field"]](row)


def same(expected: Any, found: Any, within: int = 1) -> bool:
    """Whether what was read is what was worked out, measures within so many hundredths."""
    if isinstance(expected, dict):
        keys = {key for key in expected if not key.startswith("_")}
        return keys == set(found) and all(same(expected[key], found[key], within) for key in keys)
    if isinstance(expected, list):
        return len(expected) == len(found) and all(
            same(one, other, within) for one, other in zip(expected, found, strict=True)
        )
    if isinstance(expected, int) and isinstance(found, int):
        return abs(expected - found) <= within
    return bool(expected == found)


def judged_measure(row: dict[str, str]) -> str:
    """exact, within (one hundredth), told (wrong or lost with a problem), silent (without one)."""
    expected = json.loads(row["expected_json"])
    choices = [expected, *expected.get("_alt", [])]
    try:
        found, told = read_measure(row)
    except (KeyError, IndexError):
        return "silent"
    if "_problem" in expected and not told:
        return "silent"
    if any(same(choice, found, 0) for choice in choices):
        return "exact"
    if any(same(choice, found) for choice in choices):
        return "within"
    return "told" if told else "silent"
