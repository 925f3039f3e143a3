"""Labelled headers and measures (`headers*.csv`, `measures.csv`), and the evaluation of results against them.

Columns of headers: `header,sample_values,field,source`. `field` contains the accepted fields, separated by `|`; those in
round brackets are not fields of the catalogue. Columns of measures: `field,raw,unit_hint,expected_json,source`. Lengths and
weights are in hundredths, money in minor units.
"""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.catalogue.model import Availability
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.ingestion.model import Column, FeedSettings
from domain.ingestion.normalisation import normalise_rows
from domain.ingestion.values.cartons import parse_boxes, parse_pieces_per_carton
from domain.ingestion.values.dates import parse_lead_time
from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.labels import determine_size_kind, find_dimension_of_label
from domain.ingestion.values.money import parse_money
from domain.ingestion.values.quantities import parse_length, parse_weight
from domain.ingestion.values.rugs import parse_rug_size
from domain.ingestion.values.stock import parse_availability, split_stock_word
from domain.ingestion.values.words import parse_gtin

ParsedMeasure = tuple[dict[str, Any], bool]
"""Parsed values, and whether a problem was reported."""

_SAMPLE_ROWS = 3
_KEY_FIELDS = {"(product_key)": "product_key", "external_key": "variant_key", "(carton_count)": "carton_count"}
_FIELD_NAMES = {"media.url": "media", "media.alt": "media_alt", "media.position": "media_position"}
_ACCEPTED_FIELDS = {"axes": ("axes", "option_name", "option_value"), "media": ("media", "variant_media")}
_PROVISIONAL_FIELDS = frozenset(
    (
        ("price", "sale_price"),
        ("dimensions.width", "dimensions.length"),
        ("dimensions.depth", "dimensions.length"),
        ("category_path", "google_category"),
    )
)
"""Fields of the catalogue, each with a field that a column mapping has for it until the values are parsed."""
_UNIT_FIELDS = frozenset(("dimension_unit", "weight_unit"))
"""Columns with the unit of other columns, which a mapping contains although the catalogue has no such field."""


def read_csv_rows(path: Path) -> list[dict[str, str]]:
    """Read the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True, slots=True)
class EvaluatedHeader:
    """Labelled header with the evaluation of its mapping.

    Attributes:
        row: Row of the file.
        column: Column to which the header was mapped, if any.
        verdict: `right`, `missed` or `wrong` for a header with a field; `ignored` or `spurious` for one without.
    """

    row: dict[str, str]
    column: Column | None
    verdict: str


def _matches_field(field: str, accepted: str) -> bool:
    """Return whether a mapped field corresponds to one accepted field."""
    accepted_path = re.sub(r"\[(\d+)]", r".\1", re.sub(r"\s*\(.*\)", "", accepted))
    name = _FIELD_NAMES.get(accepted_path, accepted_path)
    if any(
        field == accepted_field or field.startswith(f"{accepted_field}.")
        for accepted_field in _ACCEPTED_FIELDS.get(name, (name,))
    ):
        return True
    if (name, field) in _PROVISIONAL_FIELDS:
        return True
    return field == "carton_count" and name.startswith("cartons.") and name.endswith(".count")


def is_accepted(label: str, field: str) -> bool:
    """Return whether `field` is one of the accepted fields of a label."""
    for accepted in (option.strip() for option in label.split("|")):
        if accepted in _KEY_FIELDS:
            if field == _KEY_FIELDS[accepted] or (accepted == "external_key" and field == "product_key"):
                return True
        elif not accepted.startswith("(") and _matches_field(field, accepted):
            return True
    return False


def _evaluate_header(row: dict[str, str], column: Column | None) -> str:
    accepted_fields = [option.strip() for option in row["field"].split("|")]
    catalogue_fields = [
        accepted for accepted in accepted_fields if not accepted.startswith("(") or accepted == "(product_key)"
    ]
    is_right = column is not None and is_accepted(row["field"], column.field)
    if not catalogue_fields:
        return "ignored" if column is None or is_right or column.field in _UNIT_FIELDS else "spurious"
    if is_right or (column is None and len(catalogue_fields) < len(accepted_fields)):
        return "right"
    return "missed" if column is None else "wrong"


def group_by_source(rows: Sequence[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Group the rows by source; each group is a header row in its order."""
    rows_by_source: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        rows_by_source[row["source"]].append(row)
    return rows_by_source


def evaluate_headers(rows: Sequence[dict[str, str]], settings: FeedSettings) -> Iterator[EvaluatedHeader]:
    """Map the headers of each source together and evaluate each header whose meaning can be determined."""
    for source_rows in group_by_source(rows).values():
        sample_values = [[value.strip() for value in (row["sample_values"] or "").split(";")] for row in source_rows]
        samples = [
            [values[index] if index < len(values) else "" for values in sample_values] for index in range(_SAMPLE_ROWS)
        ]
        mapping = propose_column_mapping([row["header"] for row in source_rows], samples, settings)
        columns = {column.position: column for column in mapping.columns}
        for position, row in enumerate(source_rows):
            if "(unknowable)" not in row["field"]:
                yield EvaluatedHeader(row, columns.get(position), _evaluate_header(row, columns.get(position)))


def _parse_unit_hint(row: dict[str, str]) -> tuple[str | None, dict[str, str]]:
    parts = row["unit_hint"].split("|")
    options = dict(part.split("=", 1) for part in parts if "=" in part)
    return next((part for part in parts if part in ("in", "ft", "cm", "mm", "m", "g", "kg", "lb", "oz")), None), options


def _convert_sides(dimensions: Any) -> dict[str, int]:
    return {side: length["hundredths_in"] for side, length in dimensions.items()}


def _parse_dimensions_row(row: dict[str, str]) -> ParsedMeasure:
    unit, options = _parse_unit_hint(row)
    if "column" in options:
        parsed = parse_length(row["raw"], unit)
        side = find_dimension_of_label(options["column"])
        name = "width" if side == "length" else side
        return ({str(name): parsed.value["hundredths_in"]} if parsed.value else {}), bool(parsed.faults)
    parsed_size = parse_dimensions(row["raw"], unit, determine_size_kind(options.get("category", ""), ""))
    if parsed_size.value is None:
        return {}, bool(parsed_size.faults)
    values: dict[str, Any] = _convert_sides(parsed_size.value.dimensions)
    if parsed_size.value.components:
        values["components"] = [
            {"name": component["name"], **_convert_sides(component["dimensions"])}
            for component in parsed_size.value.components
        ]
    return values, bool(parsed_size.faults)


def _parse_rug_size_row(row: dict[str, str]) -> ParsedMeasure:
    parsed = parse_rug_size(row["raw"], _parse_unit_hint(row)[0])
    if parsed.value is None:
        return {}, bool(parsed.faults)
    sides = {
        {"depth": "length"}.get(side, side): value for side, value in _convert_sides(parsed.value.dimensions).items()
    }
    return {**sides, "shape": parsed.value.shape}, bool(parsed.faults)


def _parse_weight_row(row: dict[str, str]) -> ParsedMeasure:
    parsed = parse_weight(row["raw"], _parse_unit_hint(row)[0])
    return ({"hundredths_lb": parsed.value["hundredths_lb"]} if parsed.value else {}), bool(parsed.faults)


def _parse_carton_columns(row: dict[str, str]) -> ParsedMeasure:
    headers = ("Item", *row["unit_hint"].removeprefix("columns=").split(","))
    cells: list[Any] = ["A-1", *row["raw"].strip("[]").split(", ")]
    settings = FeedSettings(currency="usd")
    plan = ReadPlan(propose_column_mapping(headers, [cells], settings), settings)
    statement, problems = normalise_rows("A-1", [(2, cells)], plan)
    data = statement.variants[0].data
    weight = data["weight"]["hundredths_lb"]
    carton: Any = data["cartons"][0]
    sides = {side: carton[side]["hundredths_in"] for side in ("width", "depth", "height")}
    return {**sides, "count": carton["count"], "hundredths_lb": weight}, bool(problems)


def _parse_carton_row(row: dict[str, str]) -> ParsedMeasure:
    if row["raw"].startswith("["):
        return _parse_carton_columns(row)
    if row["raw"].startswith("("):
        return {"pieces_per_carton": parse_pieces_per_carton(row["raw"])}, False
    parsed = parse_boxes(row["raw"])
    if not parsed.value:
        pieces = parse_pieces_per_carton(row["raw"])
        return ({"pieces_per_carton": pieces} if pieces else {}), bool(parsed.faults)
    package = parsed.value[0]
    carton: Any = package.carton
    sides = {side: carton[side]["hundredths_in"] for side in ("width", "depth", "height") if side in carton}
    texts = {"name": package.name, "sku": package.sku, "count": carton.get("count")}
    values = {**{key: value for key, value in texts.items() if value}, **sides}
    if "weight" in carton:
        values["hundredths_lb"] = carton["weight"]["hundredths_lb"]
    return values, bool(parsed.faults)


def _parse_price_row(row: dict[str, str]) -> ParsedMeasure:
    options = _parse_unit_hint(row)[1]
    parsed = parse_money(row["raw"], options.get("currency"), options.get("decimal", "auto"))
    if parsed.value is None:
        return {}, bool(parsed.faults)
    pack = {"pack": parsed.value.pack_size} if parsed.value.pack_size else {}
    return {"minor": parsed.value.minor_units, "currency": parsed.value.currency, **pack}, bool(parsed.faults)


def _parse_stock_row(row: dict[str, str]) -> ParsedMeasure:
    stock_from_value = split_stock_word(row["raw"])[1]
    parsed = parse_availability(row["raw"])
    stock = stock_from_value or parsed.value
    if stock is None:
        return {}, bool(parsed.faults)
    quantity = {} if stock.quantity is None else {"quantity": stock.quantity}
    values = {**quantity, "availability": stock.availability or Availability.from_quantity(stock.quantity or 0)}
    return values, bool(parsed.faults)


def _parse_gtin_row(row: dict[str, str]) -> ParsedMeasure:
    parsed = parse_gtin(row["raw"])
    return ({"gtin": parsed.value} if parsed.value else {}), bool(parsed.faults)


def _parse_lead_time_row(row: dict[str, str]) -> ParsedMeasure:
    parsed = parse_lead_time(row["raw"], row["unit_hint"].split("|")[0] or "days")
    return ({} if parsed.value is None else {"days": parsed.value}), bool(parsed.faults)


_PARSERS = {
    "dimensions": _parse_dimensions_row,
    "rug_size": _parse_rug_size_row,
    "weight": _parse_weight_row,
    "carton": _parse_carton_row,
    "price": _parse_price_row,
    "stock": _parse_stock_row,
    "gtin": _parse_gtin_row,
    "lead_time": _parse_lead_time_row,
}


def find_skip_reason(row: dict[str, str]) -> str | None:
    """Return the reason why a measure is not evaluated, or None."""
    if row["field"] == "stock" and row["raw"].startswith(("QTY*", "LIN*")):
        return "EDI segments are parsed by their connector"
    if row["field"] == "stock" and _parse_unit_hint(row)[1].get("column") == "sellable_online":
        return "the vocabulary has no stock column for online availability"
    return None


def parse_measure(row: dict[str, str]) -> ParsedMeasure:
    """Parse a measure with the parser of its kind."""
    return _PARSERS[row["field"]](row)


def is_equal(expected: Any, actual: Any, tolerance: int = 1) -> bool:
    """Return whether a parsed value equals the expected one; integers may differ by `tolerance`."""
    if isinstance(expected, dict):
        keys = {key for key in expected if not key.startswith("_")}
        return keys == set(actual) and all(is_equal(expected[key], actual[key], tolerance) for key in keys)
    if isinstance(expected, list):
        return len(expected) == len(actual) and all(
            is_equal(expected_item, actual_item, tolerance)
            for expected_item, actual_item in zip(expected, actual, strict=True)
        )
    if isinstance(expected, int) and isinstance(actual, int):
        return abs(expected - actual) <= tolerance
    return bool(expected == actual)


def evaluate_measure(row: dict[str, str]) -> str:
    """Evaluate the parsing of a measure.

    Returns:
        `exact`; `within` one hundredth; `reported` if wrong with a problem; `unreported` if wrong without a problem.
    """
    expected = json.loads(row["expected_json"])
    accepted_values = [expected, *expected.get("_alt", [])]
    try:
        actual, has_problem = parse_measure(row)
    except (KeyError, IndexError):
        return "unreported"
    if "_problem" in expected and not has_problem:
        return "unreported"
    if any(is_equal(accepted, actual, 0) for accepted in accepted_values):
        return "exact"
    if any(is_equal(accepted, actual) for accepted in accepted_values):
        return "within"
    return "reported" if has_problem else "unreported"
