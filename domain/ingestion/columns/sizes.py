"""How columns about a piece's size are read, a rug's facts among them."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from domain.ingestion.columns.readers import CellReader, ReaderFactory, decimal_mark
from domain.ingestion.drafts.draft import RowDraft, kind_of_product
from domain.ingestion.drafts.pieces import lone_piece, named_piece, of_several, sized_as_bed, with_subtitle
from domain.ingestion.model import Column, FeedSettings
from domain.ingestion.values.dimensions import Spread, parse_dimensions
from domain.ingestion.values.parsed import NOTHING, Parsed, refused
from domain.ingestion.values.quantities import METRIC, parse_length, unit_named
from domain.ingestion.values.rugs import (
    RugSize,
    is_no_rug,
    parse_construction,
    parse_indoor_outdoor,
    parse_rug_size,
    parse_shape,
)
from domain.ingestion.values.sides import BED, RUG, kind_of
from domain.ingestion.values.text import line_of_text, stated
from domain.kernel.problems import ProblemKind

_MOST_EXTRAS: Final = 12
_LONGEST_EXTRA: Final = 120
_BARE: Final = re.compile(r"\s*+[\d.,]++\s*+")
_RUG_PARSERS: Final[dict[str, Callable[[str], Parsed[Any]]]] = {
    "shape": parse_shape,
    "construction": parse_construction,
    "indoor_outdoor": parse_indoor_outdoor,
    "nominal": line_of_text,
}


def _dimensions(column: Column, settings: FeedSettings) -> CellReader:
    header = column.column
    unit, order = column.setting("unit"), column.setting("order") or ""
    mark_of = decimal_mark(column, settings)

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if row.spread is not None:
            return
        if isinstance(cell, dict):
            _sides_of_object(row, cell, header, unit)
            return
        kind = kind_of_product(row)
        if kind == RUG and _is_of_a_rug(row, text, column):
            return
        row.spread = _sized(row, text, header, (unit or row.dimension_unit, kind, order, mark_of(cell)))
        _keep_extras(row)

    return read


def _is_of_a_rug(row: RowDraft, text: str, column: Column) -> bool:
    """Take a text as a rug's size; False where it is better read as any other piece's."""
    parsed = parse_rug_size(text, _rug_unit(column))
    if parsed.value is None and not is_no_rug(text) and not _is_doubtful(parsed):
        return False
    size = row.taken(column.field, column.column, parsed)
    if size is not None:
        row.spread = Spread(size.dimensions)
        _sized_rug(row, text, size)
    return True


def _is_doubtful(parsed: Parsed[RugSize]) -> bool:
    """Whether a text is a size, of which it is not sure in which unit."""
    return any(fault.problem == ProblemKind.CONFLICT for fault in parsed.faults)


def _rug_unit(column: Column) -> str | None:
    """The unit that a column of rug sizes names itself, or its market's; where that is inches the trade writes feet as well."""
    unit = column.setting("unit")
    return None if column.setting("unit_by") == "market" and unit not in METRIC else unit


def _keep_extras(row: RowDraft) -> None:
    """What a size says beside the sides (`Seat W 20 in`, `EXTENDED 65 in`) becomes features, in the vendor's words."""
    kept = row.product.extras
    for extra in row.spread.extras if row.spread else ():
        if len(kept) < _MOST_EXTRAS:
            kept.setdefault(" ".join(extra.split())[:_LONGEST_EXTRA])


def _sized(row: RowDraft, text: str, header: str, parse_with: tuple[str | None, str, str, str]) -> Spread | None:
    """A size; of a set of several pieces it is the piece's that it names, and told when it names none."""
    unit, kind, order, mark = parse_with
    data = row.product.data
    title = with_subtitle(row.variant.get("title") or data.get("title"), data.get("description"))
    spread: Spread | None
    if not of_several(title):
        spread = row.taken("dimensions", header, parse_dimensions(text, unit, kind, order, mark))
        return spread
    name = lone_piece(text)
    kind = kind_of("", name) if name else BED if sized_as_bed(title) else kind
    spread = row.taken("dimensions", header, parse_dimensions(text, unit, kind, order, mark))
    if spread is None or not spread.dimensions:
        return spread
    if name is not None:
        return named_piece(spread, name)
    if not spread.components:
        reason = "is one size of a set of several pieces, and does not say whose; it is kept as the set's"
        row.taken("dimensions", header, refused(ProblemKind.CONFLICT, text, reason))
    return spread


def _sides_of_object(row: RowDraft, cell: Mapping[str, Any], header: str, unit: str | None) -> None:
    """A JSON object of sides (`{"width": 30, "unit": "in"}`, or `{"width": {"value": 30, "unit": "in"}}`)."""
    named = cell.get("unit") or cell.get("units")
    shared = unit_named(str(named)) if named else unit
    for side in (
        "width",
        "depth",
        "height",
        "length",
        "diameter",
        "seat_height",
        "seat_depth",
        "arm_height",
        "clearance",
    ):
        given = cell.get(side)
        if given is None:
            continue
        value, own = (given.get("value"), given.get("unit")) if isinstance(given, dict) else (given, None)
        parsed = parse_length(str(value), unit_named(str(own)) if own else shared or row.dimension_unit)
        if (found := row.taken(f"dimensions.{side}", header, parsed)) is not None:
            row.dimensions.setdefault(side, found)  # type: ignore[misc]


def _side(column: Column, settings: FeedSettings) -> CellReader:
    name, header = column.field.partition(".")[2], column.column
    unit, field = column.setting("unit"), column.field
    guessed, mark_of = column.setting("unit_by") == "market", decimal_mark(column, settings)

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if name in row.dimensions:
            return
        value = row.taken(field, header, parse_length(text, unit or row.dimension_unit, mark_of(cell)))
        if value is not None:
            row.dimensions[name] = value  # type: ignore[literal-required]
            if guessed and row.dimension_unit is None and _BARE.fullmatch(text):
                row.presumed += (name,)

    return read


def _sized_rug(row: RowDraft, text: str, size: RugSize) -> None:
    if row.rug is None:
        row.rug = {}
    row.rug.setdefault("shape", size.shape)
    row.rug.setdefault("size_text", stated(text) or text)
    if size.nominal:
        row.rug.setdefault("nominal", size.nominal)


def _rug(column: Column, settings: FeedSettings) -> CellReader:
    name, header, field = column.field.partition(".")[2], column.column, column.field
    unit, mark_of = column.setting("unit"), decimal_mark(column, settings)

    def read(row: RowDraft, text: str, cell: Any) -> None:
        if name == "size_text":
            _rug_size(row, text, column)
            return
        parse = _RUG_PARSERS.get(name)
        parsed = parse(text) if parse else parse_length(text, unit or row.dimension_unit, mark_of(cell))
        value = row.taken(field, header, parsed)
        if value is None:
            return
        if row.rug is None:
            row.rug = {}
        row.rug.setdefault(name, value)  # type: ignore[misc]

    return read


def _rug_size(row: RowDraft, text: str, column: Column) -> None:
    parsed = parse_rug_size(text, _rug_unit(column))
    size = row.taken("rug.size_text", column.column, parsed)
    if parsed is NOTHING:
        return
    if size is None:
        row.rug = {**(row.rug or {}), "size_text": stated(text) or text}
        return
    _sized_rug(row, text, size)
    if row.spread is None:
        row.spread = Spread(size.dimensions)


DIMENSIONS: Final[ReaderFactory] = _dimensions
SIDE: Final[ReaderFactory] = _side
RUG_FACT: Final[ReaderFactory] = _rug
