"""Read plans: mappings compiled into readers of rows and their keys."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from domain.catalogue.differences import CHECKED
from domain.catalogue.statements import NO_LOCATION
from domain.catalogue.trimming import Excess
from domain.ingestion.columns.families import family_of, stems_of
from domain.ingestion.columns.readers import CellReader, reader_of
from domain.ingestion.data import expressions, words
from domain.ingestion.drafts import ProductDraft, RowDraft
from domain.ingestion.model import Cell, Column, FeedSettings, HeaderMapping, Row
from domain.ingestion.values.text import Fault, as_text, code, quoted, stated
from domain.ingestion.values.words import parse_number
from domain.ingestion.vocabulary.fields import KEYS, OFFER, blank_fields
from domain.ingestion.vocabulary.senses import plain_words
from domain.kernel.problems import ProblemKind

_KINDS, _PARTS, _VOLUMES, _TRACKERS, _ERRORS = (
    words("rows", name) for name in "kinds parts volumes trackers errors".split()
)
_FORMULA = re.compile(r"=\s?(?:[A-Z][A-Z.]{1,20}\(|[$']?[A-Z]{1,3}\$?\d{1,7}\b\s?[-+*/&!:)]|[\w' ]{1,40}!\$?[A-Z])")
_LONGEST_SUM = 60
_LONGEST_FACT = 100
_FIRST = "title category_path google_category dimension_unit weight_unit currency location option_name status".split()
_LAST = ("features", "availability")
_KEY_ORDER = ("variant_key", "sku", "mpn", "gtin")
RowTest = Callable[[Sequence[Any]], bool]
Keyer = Callable[[Sequence[Cell]], "str | None"]


def broken(cell: str) -> Fault | None:
    """Return the fault of a cell that holds a spreadsheet's error (`#N/A`) or a formula without its result."""
    text = cell.strip()
    if text.upper() in _ERRORS:
        return Fault(ProblemKind.UNREADABLE, f"{quoted(text)} is an error value of a spreadsheet.")
    if _FORMULA.match(text):
        return Fault(ProblemKind.UNREADABLE, f"{quoted(text)} is a formula without a result.")
    return None


def is_sum(key: str) -> bool:
    """Return whether a key marks a row of totals (`Subtotal`, `Grand Total:`) instead of an item."""
    # Keys of items have digits, as a rule at their end.
    is_short = not key[-1:].isdecimal() and len(key) <= _LONGEST_SUM
    return is_short and expressions("rows")["sum"].fullmatch(key.strip(" :*=-")) is not None


def _turn(column: Column) -> int:
    """Return a column's rank among the columns of its field: 0 for the first, higher for fallbacks."""
    given = str(column.settings.get("fallback", "0"))
    return int(given) if given.isdecimal() and len(given) < 4 else 0


def _order(column: Column) -> tuple[int, int, int]:
    head = column.field.partition(".")[0]
    return 0 if head in _FIRST else 2 if head in _LAST else 1, _turn(column), column.position


def _keyer(positions: Sequence[int], read: Callable[[str], str | None] = code) -> Keyer:
    """Return a function that returns the first value that `read` finds at one of the positions, or None."""

    def key(cells: Sequence[Cell]) -> str | None:
        for position in positions:
            if position < len(cells):
                cell = cells[position]
                if found := read(cell if isinstance(cell, str) else as_text(cell)):
                    return found
        return None

    return key


def _carton_columns(columns: Sequence[Column]) -> list[tuple[int, int, frozenset[str]]]:
    """Return position, number and parts of each column of a numbered carton; empty if a column lists whole cartons."""
    found = []
    for column in columns:
        if column.field == "cartons":
            return []
        if column.field.startswith("cartons."):
            _, number, part = column.field.split(".")
            parts = frozenset(("width", "depth", "height") if part == "dimensions" else (part,))
            found.append((column.position, int(number), parts))
    return found


class ReadPlan:
    """Compiled mapping of one header set under a source's settings.

    In a `sparse` table a cell that is None is absent, not blank.

    Attributes:
        readers: Position and reader of each column, in the order in which facts depend on each other.
        product_key: Returns a row's product key, or None.
        variant_key: Returns a row's variant key, or None.
        grouped: Whether a column contains the product key of a row.
        keyed: Whether items have a key other than their title.
        location: The location of stock without a stated location.
        components: The positions of columns that list a set's parts.
        is_part: Returns whether a row declares itself a part; None if no column states the kind of rows.
        is_untracked: Returns whether a row's stock is not tracked (blank tracker, quantity 0); None without such a column.
        volume: Returns a row's volume, in the unit of the table; None without such a column.
        title: Returns a row's title; None without a column of titles.
        family: Returns a row's family; None if `grouped` or without columns of codes and titles.
        stem: Returns a number that rows of a family share; cheaper than `family`.
        covers_locations: Whether columns state stock or locations.
    """

    def __init__(self, mapping: HeaderMapping, settings: FeedSettings, *, sparse: bool = False) -> None:
        columns = [column for column in mapping.columns if not column.is_alternative]

        def positions(*names: str) -> list[int]:
            """Return the positions of the fields' columns, in the order of `names`, fallbacks last."""
            found = sorted((names.index(one.field), _turn(one), one.position) for one in columns if one.field in names)
            return [position for _, _, position in found]

        def fact(names: frozenset[str]) -> Callable[[Sequence[Any]], str] | None:
            """Return a reader of the first unmapped column whose header is one of the names, or None."""
            at = next((column.position for column in mapping.unmapped if plain_words(column.column) in names), None)
            return None if at is None else lambda cells: as_text(cells[at])[:_LONGEST_FACT] if at < len(cells) else ""

        if positions("quantity"):
            # If there is a column of quantities, a 1 or 0 in a column of availabilities means yes or no.
            columns = [
                replace(one, settings={**one.settings, "flag": "yes"}) if one.field == "availability" else one
                for one in columns
            ]
        heads = {column.field.partition(".")[0] for column in columns}
        group, titles, codes = positions("product_key"), positions("title"), positions("sku")
        options = "option_value" in heads
        # Where options distinguish the variants of a product, a number of the maker's may stand for all of them.
        own = positions(*(_KEY_ORDER[:2] if group and options else _KEY_ORDER))
        title_of = _keyer(titles, stated)
        self._headers, self._sparse = mapping.headers, sparse
        self.readers = [
            (column.position, reader_of(column, settings))
            for column in sorted(columns, key=_order)
            if column.field != "variant_key"
        ]
        self.grouped = bool(group)
        self.keyed = any(column.field in KEYS for column in columns)
        self.product_key = _keyer([*group, *own]) if self.keyed else title_of
        self.variant_key = _keyer(own) if own or options else _keyer(group) if group else title_of
        self.title = title_of if titles else None
        self.stem = None if group else stems_of(codes, titles)
        self.family = None if group else family_of(codes, titles, positions("colour"), positions("description"))
        self.location = settings.warehouse or NO_LOCATION
        self.components = positions("components")
        kind, tracker, volume = map(fact, (_KINDS, _TRACKERS, _VOLUMES))
        self.is_part: RowTest | None = None if kind is None else lambda cells: plain_words(kind(cells)) in _PARTS
        self.is_untracked: RowTest | None = None if tracker is None else lambda cells: stated(tracker(cells)) is None
        self.volume: Callable[[Sequence[Any]], Decimal | None] | None = (
            None if volume is None else lambda cells: parse_number(volume(cells)).value or None
        )
        self._blank: dict[str, set[int]] = {}
        for column in columns:
            for path in blank_fields(column.field):
                self._blank.setdefault(path, set()).add(column.position)
        located = settings.warehouse or "location" in heads or any("location" in column.settings for column in columns)
        self.covers_locations = bool(heads.intersection(CHECKED) or (located and heads & OFFER))
        self._coverage = [one.position for one in columns if one.field.partition(".")[0] in (*CHECKED, "location")]
        self._status, self._availability = positions("status", "discontinued"), positions("availability")
        self.cartons = _carton_columns(columns)

    def header(self, position: int) -> str | None:
        """Return the header of a column, or None."""
        return self._headers[position] if position < len(self._headers) else None

    def _has_cell(self, cells: Sequence[Any], position: int) -> bool:
        """Return whether the row has a cell there, filled or blank."""
        return not self._sparse or (position < len(cells) and cells[position] is not None)

    def covers(self, cells: Sequence[Any]) -> bool:
        """Return whether the row has a cell for the stock of each location, and for its location."""
        return self.covers_locations and all(self._has_cell(cells, at) for at in self._coverage)

    def states_status(self, cells: Sequence[Any]) -> bool:
        """Return whether the row has a cell of the status, or a filled cell of the availability."""
        return any(self._has_cell(cells, at) for at in self._status) or any(
            at < len(cells) and as_text(cells[at]).strip() for at in self._availability
        )

    def carton_parts(self, cells: Sequence[Any]) -> dict[int, frozenset[str]]:
        """Return, by carton number, the parts of cartons for which the row has cells."""
        found: dict[int, frozenset[str]] = {}
        for position, number, parts in self.cartons:
            if self._has_cell(cells, position):
                found[number] = found.get(number, frozenset()) | parts
        return found

    def blank_in(self, cells: Sequence[Any]) -> frozenset[str]:
        """Return the fields of which the row has at least one cell, but no filled cell."""
        filled = {at for at, cell in enumerate(cells) if cell is not None and as_text(cell).strip()}
        absent = {at for at, cell in enumerate(cells) if cell is None} if self._sparse else set()
        return frozenset(
            path for path, places in self._blank.items() if filled.isdisjoint(places) and not places <= absent
        )


def read_row(
    plan: ReadPlan, cells: Sequence[Any], row: RowDraft, readers: Sequence[tuple[int, CellReader]] | None = None
) -> None:
    """Read every filled cell of a row into its draft, with the plan's readers or with the given ones."""
    width = len(cells)
    for position, read in readers or plan.readers:
        if position >= width:
            continue
        cell = cells[position]
        if cell.__class__ is str:
            if not cell:
                continue
            if cell[0].isalnum():  # most cells: neither blank nor a spreadsheet's error
                read(row, cell, cell)
            elif not cell.isspace():
                if cell[0] in "#=" and (fault := broken(cell)):
                    row.report("cell", plan.header(position), (fault,))
                else:
                    read(row, cell, cell)
        elif cell is not None and ((text := as_text(cell)) or cell):
            read(row, text, cell)


def place_of(excess: Excess, rows: Sequence[Row], plan: ReadPlan) -> tuple[int, str | None]:
    """Return line and column of the first entry left out of a product's list.

    The column is None, and the line that of the first row, if no single cell states the entry.
    """
    places = ((line, column_of(excess, line, cells, plan)) for line, cells in rows)
    return next((place for place in places if place[1] is not None), (rows[0][0], None))


def column_of(excess: Excess, line: int, cells: Sequence[Any], plan: ReadPlan) -> str | None:
    """Return the header of the column that states the entry, or None.

    The row is read again with each column by itself.
    """
    for reader in plan.readers:
        row = RowDraft(ProductDraft(), line)
        read_row(plan, cells, row, (reader,))
        if _states(row, excess):
            return plan.header(reader[0])
    return None


def _states(row: RowDraft, excess: Excess) -> bool:
    product, first = row.product, excess.first
    match excess.field:
        case "tags":
            return first in product.tags
        case "features":
            return first in product.features
        case "category_path":
            return first in product.category_path()
        case "prop65_chemicals":
            return first in product.compliance.get("prop65_chemicals", ())
        case "media":
            return first["url"] in (*row.media_urls, *row.variant_media)
        case "materials":
            return first in row.materials
        case "axes":
            return first[0] in row.axes or first[1] in row.option_values.values()
        case "components":
            return first in row.components
    return excess.field in ("cartons", "rug.size_text") and bool(row.cartons or row.rug or row.spread)
