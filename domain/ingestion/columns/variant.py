"""How columns about the variant are read."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from domain.catalogue.data import Carton, Component
from domain.ingestion.columns.readers import CellReader, ReaderFactory, decimal_mark
from domain.ingestion.columns.sizes import RUG_FACT
from domain.ingestion.drafts.described import is_rule
from domain.ingestion.drafts.draft import RowDraft
from domain.ingestion.model import Column, FeedSettings
from domain.ingestion.values.cartons import parse_packages
from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.gtin import parse_gtin
from domain.ingestion.values.parsed import Parsed, refused
from domain.ingestion.values.quantities import parse_length, parse_weight, unit_named, weight_unit_named
from domain.ingestion.values.stock import stock_in_value
from domain.ingestion.values.text import as_text, code, line_of_text, stated
from domain.ingestion.values.words import (
    parse_assembly,
    parse_boolean,
    parse_components,
    parse_count,
    parse_freight_class,
    parse_materials,
)
from domain.kernel.problems import ProblemKind

MAX_CODE: Final = 200
_STARRED: Final = re.compile(r"(?<=\S)[*×](\d{1,3})(?=\s*+(?:[,;|\n]|$))")
"""A quantity that follows a code without a blank."""


def code_of(text: str) -> Parsed[str]:
    """A vendor's code. Problem: too_long."""
    found = code(text)
    if found is None or len(found) <= MAX_CODE:
        return Parsed(found)
    return refused(ProblemKind.TOO_LONG, found, f"is longer than {MAX_CODE} characters")


_PLAIN: Final[dict[str, Callable[[str], Parsed[Any]]]] = {
    **dict.fromkeys(("sku", "mpn", "replacement_sku"), code_of),
    "gtin": parse_gtin,
    "finish": line_of_text,
    "assembly_required": parse_assembly,
    "white_glove": parse_boolean,
    "freight_class": parse_freight_class,
    "discontinued": parse_boolean,
}


def _simple(column: Column, settings: FeedSettings) -> CellReader:
    name, header = column.field, column.column
    parse = _PLAIN[name]

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if name not in row.variant and (value := row.taken(name, header, parse(text))) is not None:
            row.variant[name] = value  # type: ignore[literal-required]

    return read


def _title(column: Column, settings: FeedSettings) -> CellReader:
    header = column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        value = row.taken("title", header, line_of_text(text))
        if value is not None and value != "Default Title":
            row.variant["title"] = value

    return read


def _colour(column: Column, settings: FeedSettings) -> CellReader:
    header = column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if "colour" in row.variant or (value := row.taken("colour", header, line_of_text(text))) is None:
            return
        row.variant["colour"], word = stock_in_value(value)
        row.stock_word = row.stock_word or word

    return read


def _axis(column: Column, settings: FeedSettings) -> CellReader:
    name, header = column.field.partition(".")[2] or "", column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if isinstance(cell, dict):
            pairs = [(key, stated(str(value))) for key, value in cell.items()]
        elif name:
            pairs = [(name, row.taken(column.field, header, line_of_text(text)))]
        else:
            return
        for key, value in pairs:
            if value:
                plain, word = stock_in_value(value)
                row.axes = row.axes or {}
                row.axes[key] = plain
                row.stock_word = row.stock_word or word

    return read


def _option_value(column: Column, settings: FeedSettings) -> CellReader:
    place, header = int(column.field.rpartition(".")[2]), column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        value = row.taken("axes", header, line_of_text(text))
        if value is None:
            return
        if row.option_values is None:
            row.option_values = {}
        row.option_values[place], word = stock_in_value(value)
        row.stock_word = row.stock_word or word

    return read


def _materials(column: Column, settings: FeedSettings) -> CellReader:
    header = column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        values = row.taken("materials", header, parse_materials(text)) or ()
        if any(map(is_rule, values)):
            rules = tuple(filter(is_rule, values))
            row.product.features.update(dict.fromkeys(rules))
            values = tuple(value for value in values if value not in rules)
        if values:
            row.materials = row.materials or {}
            row.materials.update(dict.fromkeys(values))

    return read


def _weight(column: Column, settings: FeedSettings) -> CellReader:
    header, unit, mark_of = column.column, column.setting("unit"), decimal_mark(column, settings)

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if "weight" in row.variant:
            return
        text = _measured(cell) if isinstance(cell, dict) else text
        value = row.taken("weight", header, parse_weight(text, unit or row.weight_unit, mark_of(cell)))
        if value is not None:
            row.variant["weight"] = value

    return read


def _measured(cell: Mapping[str, Any]) -> str:
    return f"{cell.get('value', '')} {cell.get('unit') or cell.get('units') or ''}".strip()


def components_of(cell: Any) -> Parsed[tuple[Component, ...]]:
    """The parts that a cell lists by their codes (`AB-1, AB-2 (x2)`, `AB-2*2`, a JSON list)."""
    return parse_components(_STARRED.sub(r" x\1", as_text(cell)))


def _components(column: Column, settings: FeedSettings) -> CellReader:
    header = column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        values = row.taken("components", header, components_of(cell))
        if values:
            row.components = [*(row.components or []), *values]

    return read


def _carton(row: RowDraft, place: int) -> Carton:
    if row.cartons is None:
        row.cartons = {}
    return row.cartons.setdefault(place, {})


def _carton_part(column: Column, settings: FeedSettings) -> CellReader:
    _, number, name = column.field.split(".", 2)
    place, header, unit, field = int(number), column.column, column.setting("unit"), column.field
    order, mark_of = column.setting("order") or "lwh", decimal_mark(column, settings)

    def parse(row: RowDraft, text: str, mark: str) -> Parsed[Any]:
        if name == "weight":
            return parse_weight(text, unit or row.weight_unit, mark)
        return parse_count(text) if name == "count" else parse_length(text, unit or row.dimension_unit, mark)

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if name == "dimensions":
            parsed = parse_dimensions(text, unit or row.dimension_unit, "", order, mark_of(cell))
            spread = row.taken(field, header, parsed)
            if spread:
                sides = {
                    side: value for side, value in spread.dimensions.items() if side in ("width", "depth", "height")
                }
                _carton(row, place).update(sides)  # type: ignore[typeddict-item]
            return
        if row.cartons is not None and name in row.cartons.get(place, ()):
            return
        value = row.taken(field, header, parse(row, text, mark_of(cell)))
        if value is not None:
            _carton(row, place)[name] = value  # type: ignore[literal-required]

    return read


def _packages(column: Column, settings: FeedSettings) -> CellReader:
    header, unit, mark_of = column.column, column.setting("unit"), decimal_mark(column, settings)

    def read(row: RowDraft, text: str, cell: Any) -> None:
        units = (unit or row.dimension_unit, row.weight_unit)
        packages = row.taken("cartons", header, parse_packages(text, *units, mark_of(cell)))
        if not packages:
            return
        start = len(row.cartons or ())
        row.cartons = {
            **(row.cartons or {}),
            **{start + place: p.carton for place, p in enumerate(packages) if p.carton},
        }
        if len({package.sku for package in packages}) > 1:
            parts: list[Component] = [
                {"name": p.name, "sku": p.sku, "quantity": p.carton.get("count", 1)} for p in packages
            ]
            row.components = [*(row.components or []), *parts]

    return read


def _carton_count(column: Column, settings: FeedSettings) -> CellReader:
    header = column.column

    def read(row: RowDraft, text: str, cell: Any) -> None:
        row.carton_count = row.taken("cartons", header, parse_count(text))

    return read


def _unit(column: Column, settings: FeedSettings) -> CellReader:
    header, weighs = column.column, column.field == "weight_unit"

    def read(row: RowDraft, text: str, cell: Any) -> None:
        unit = weight_unit_named(text) if weighs else unit_named(text)
        if unit is None and stated(text) is not None:
            row.taken(column.field, header, refused(ProblemKind.UNKNOWN_UNIT, text, "is no unit that is known"))
        elif weighs:
            row.weight_unit = row.weight_unit or unit
        else:
            row.dimension_unit = row.dimension_unit or unit

    return read


FACTORIES: Final[dict[str, ReaderFactory]] = {
    **dict.fromkeys(_PLAIN, _simple),
    "variant_title": _title,
    "colour": _colour,
    "axes": _axis,
    "option_value": _option_value,
    "materials": _materials,
    "weight": _weight,
    "components": _components,
    "carton_count": _carton_count,
    "rug": RUG_FACT,
    "dimension_unit": _unit,
    "weight_unit": _unit,
}
CARTON_PART: Final[ReaderFactory] = _carton_part
PACKAGES: Final[ReaderFactory] = _packages
