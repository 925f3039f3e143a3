"""A mapping made ready for reading rows: what each column does, and what keys a row."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from domain.catalogue.differences import CHECKED
from domain.catalogue.statements import NO_LOCATION
from domain.catalogue.trimming import Excess
from domain.ingestion.columns.families import FamilyOf, family_of, stems_of
from domain.ingestion.columns.readers import CellReader, reader_of
from domain.ingestion.drafts import ProductDraft, RowDraft
from domain.ingestion.model import Cell, Column, FeedSettings, Group, HeaderMapping
from domain.ingestion.values.text import Fault, as_text, code, quoted, stated
from domain.ingestion.values.words import parse_number
from domain.ingestion.vocabulary.fields import KEYS, OFFER, blank_fields
from domain.ingestion.vocabulary.senses import plain_words
from domain.kernel.problems import ProblemKind

# Columns that no field stands for and that still tell what a row means: its kind, its volume, whether its stock is counted.


_KIND: Final = frozenset(
    "single item set or part|record kind|record type|item type|row type|item kind|product kind|kind of item".split("|")
)
_PART: Final = frozenset("part|parts|component|components|set part|set component|part of set|kit part".split("|"))
_VOLUME: Final = frozenset(
    "volume|volume cuft|volume cu ft|cuft|cube|cubic feet|cu ft|cft|cbm|volume cbm|shipping volume|carton volume".split(
        "|"
    )
)
_ERRORS: Final = frozenset(
    "#N/A #REF! #VALUE! #NAME? #DIV/0! #NULL! #NUM! #SPILL! #CALC! #GETTING_DATA #FIELD!".split()
)
_FORMULA: Final = re.compile(
    r"=\s?(?:[A-Z][A-Z.]{1,20}\(|[$']?[A-Z]{1,3}\$?\d{1,7}\b\s?[-+*/&!:)]|[\w' ]{1,40}!\$?[A-Z])"
)
_LONGEST_SUM: Final = 60
_TRACKER: Final = frozenset(
    "variant inventory tracker|inventory tracker|inventory management|variants inventory management".split("|")
)

_SUM: Final = re.compile(
    r"(?:sub|grand|sheet|page)?[ -]?totals?(?: (?:items?|qty|quantity|price|amount|pcs|pieces|rows?))?|sum|gesamt(?:summe)?"
    r"|zwischensumme|summe|suma|total general|subtotal[ :-]{1,3}[^\d]{1,40}",
    re.I,
)

RowTest = Callable[[Sequence[Any]], bool]
VolumeOf = Callable[[Sequence[Any]], "Decimal | None"]


def broken(cell: str) -> Fault | None:
    """The fault of a cell that holds a spreadsheet's error (`#N/A`) or a formula that was never worked out."""
    text = cell.strip()
    if text.upper() in _ERRORS:
        return Fault(ProblemKind.UNREADABLE, f"{quoted(text)} is a spreadsheet's error, not a value.")
    if _FORMULA.match(text):
        return Fault(ProblemKind.UNREADABLE, f"{quoted(text)} is a formula without its result.")
    return None


def is_sum(key: str) -> bool:
    """Whether what should name an item says that the row adds up others (`Subtotal`, `Grand Total:`)."""
    # Keys of items have digits, as a rule at their end.
    return not key[-1:].isdecimal() and len(key) <= _LONGEST_SUM and _SUM.fullmatch(key.strip(" :*=-")) is not None


def part_test(mapping: HeaderMapping) -> RowTest | None:
    """Tells rows that call themselves parts of others; None where no column says what rows are."""
    at = _place(mapping, _KIND)
    if at is None:
        return None
    return lambda cells: at < len(cells) and plain_words(as_text(cells[at])[:100]) in _PART


def untracked_test(mapping: HeaderMapping) -> RowTest | None:
    """Tells rows whose stock nobody counts: platforms leave the tracker blank and state a quantity of 0."""
    at = _place(mapping, _TRACKER)
    if at is None:
        return None
    return lambda cells: at >= len(cells) or stated(as_text(cells[at])[:100]) is None


def volume_of(mapping: HeaderMapping) -> VolumeOf | None:
    """Reads a row's volume, in the unit that all rows of the table use; None where no column has it."""
    at = _place(mapping, _VOLUME)
    if at is None:
        return None

    def read(cells: Sequence[Any]) -> Decimal | None:
        text = as_text(cells[at]) if at < len(cells) else ""
        return (parse_number(text).value or None) if stated(text[:100]) else None

    return read


def _place(mapping: HeaderMapping, words: frozenset[str]) -> int | None:
    return next((column.position for column in mapping.unmapped if plain_words(column.column) in words), None)


_FIRST: Final = (
    "title category_path google_category dimension_unit weight_unit currency location option_name status".split()
)
_LAST: Final = ("features", "availability")
_KEY_ORDER: Final = ("variant_key", "sku", "mpn", "gtin")
Keyer = Callable[[Sequence[Cell]], "str | None"]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """How the rows of one header set are read.

    `readers` are the columns' positions with what reads them, in the order facts need each other. `product_key` and
    `variant_key` give a row's keys, None when it has none. `grouped` says that a column names the product of a row. `headers` are
    the columns' names, by position. `keyed` is false where items have no key but their title. `components` are the positions of columns that list a set's parts; `is_part`, `is_untracked` and `volume`
    are there where columns say that a row is only a part, that its stock is not counted, and its volume; `title` is None where no column names items,
    `family` and `stem`, which asks less, where a column names their products, or none their codes. `blank` are the fields that
    the columns' blank cells remove, each with the columns' positions; in a `sparse` table a cell that is None is absent, not blank.
    `covers_locations` says that columns state stock or locations, and `coverage` are their positions; `status` and
    `availability` are those of such columns, `cartons` those of numbered cartons with the carton's number and parts.
    """

    readers: tuple[tuple[int, CellReader], ...]
    product_key: Keyer
    variant_key: Keyer
    grouped: bool
    location: str
    headers: tuple[str, ...] = ()
    keyed: bool = True
    components: tuple[int, ...] = ()
    is_part: RowTest | None = None
    is_untracked: RowTest | None = None
    volume: VolumeOf | None = None
    title: Keyer | None = None
    family: FamilyOf | None = None
    stem: Callable[[Sequence[Any]], int] | None = None
    blank: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sparse: bool = False
    covers_locations: bool = True
    coverage: tuple[int, ...] = ()
    status: tuple[int, ...] = ()
    availability: tuple[int, ...] = ()
    cartons: tuple[tuple[int, int, frozenset[str]], ...] = ()

    def header(self, position: int) -> str | None:
        """Return the name of a column."""
        return self.headers[position] if position < len(self.headers) else None

    def has_cell(self, cells: Sequence[Any], position: int) -> bool:
        """Return whether the row has a cell there, filled or blank."""
        return not self.sparse or (position < len(cells) and cells[position] is not None)

    def covers(self, cells: Sequence[Any]) -> bool:
        """Return whether the row has a cell for each location's stock, and for its location."""
        return self.covers_locations and all(self.has_cell(cells, at) for at in self.coverage)

    def states_status(self, cells: Sequence[Any]) -> bool:
        """Return whether the row has a cell of the status, or a filled one of the availability."""
        if any(self.has_cell(cells, at) for at in self.status):
            return True
        return any(at < len(cells) and cells[at] is not None and as_text(cells[at]).strip() for at in self.availability)

    def carton_parts(self, cells: Sequence[Any]) -> dict[int, frozenset[str]]:
        """Return the parts of numbered cartons for which the row has cells."""
        found: dict[int, frozenset[str]] = {}
        for position, number, parts in self.cartons:
            if self.has_cell(cells, position):
                found[number] = found.get(number, frozenset()) | parts
        return found

    def blank_in(self, cells: Sequence[Any]) -> frozenset[str]:
        """Return the fields that have columns of which none is filled, and one at least is there, in this row."""
        filled = {at for at, cell in enumerate(cells) if cell is not None and as_text(cell).strip()}
        absent = {at for at, cell in enumerate(cells) if cell is None} if self.sparse else set()
        return frozenset(
            path
            for path, positions in self.blank.items()
            if filled.isdisjoint(positions) and not absent.issuperset(positions)
        )


def _turn(column: Column) -> int:
    """The place of a column among those of one field: 0 for the first, higher for those that stand in for it."""
    given = str(column.settings.get("fallback", "0"))
    return int(given) if given.isdecimal() and len(given) < 4 else 0


def _order(column: Column) -> tuple[int, int, int]:
    head = column.field.partition(".")[0]
    return 0 if head in _FIRST else 2 if head in _LAST else 1, _turn(column), column.position


def _keyer(positions: Sequence[int], read: Callable[[str], str | None] = code) -> Keyer:
    """The first code, or what `read` finds, that stands at one of the positions."""

    def key(cells: Sequence[Cell]) -> str | None:
        for position in positions:
            if position < len(cells):
                cell = cells[position]
                if found := read(cell if isinstance(cell, str) else as_text(cell)):
                    return found
        return None

    return key


def _carton_columns(columns: Sequence[Column]) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """The columns of numbered cartons with number and parts; none if one lists whole cartons."""
    found = []
    for column in columns:
        if column.field == "cartons":
            return ()
        if column.field.startswith("cartons."):
            _, number, part = column.field.split(".")
            parts = frozenset(("width", "depth", "height") if part == "dimensions" else (part,))
            found.append((column.position, int(number), parts))
    return tuple(found)


def compile_plan(mapping: HeaderMapping, settings: FeedSettings, *, sparse: bool = False) -> ReadPlan:
    """The plan of a mapping under a source's settings."""
    columns = [column for column in mapping.columns if not column.is_alternative]

    def positions(*names: str) -> list[int]:
        """The places of the columns of fields, those that stand in for others last."""
        found = sorted((names.index(one.field), _turn(one), one.position) for one in columns if one.field in names)
        return [position for _, _, position in found]

    if positions("quantity"):
        # Beside a column of quantities a 1 or 0 under availability is a yes or no, not a quantity.
        columns = [
            replace(one, settings={**one.settings, "flag": "yes"}) if one.field == "availability" else one
            for one in columns
        ]
    group, titles, options = (
        positions("product_key"),
        positions("title"),
        any(column.field.startswith("option_value") for column in columns),
    )
    # Where options distinguish the variants of a product, a number of the maker's may stand for all of them.
    own = positions(*(_KEY_ORDER[:2] if group and options else _KEY_ORDER))
    keyed = any(column.field in KEYS for column in columns)
    blank: dict[str, tuple[int, ...]] = {}
    for column in columns:
        for path in blank_fields(column.field):
            blank[path] = (*blank.get(path, ()), column.position)
    heads = {column.field.partition(".")[0] for column in columns}
    located = settings.warehouse or "location" in heads or any("location" in column.settings for column in columns)
    title_of, codes = _keyer(titles, stated), positions("sku")
    return ReadPlan(
        readers=tuple(
            (column.position, reader_of(column, settings))
            for column in sorted(columns, key=_order)
            if column.field != "variant_key"
        ),
        product_key=_keyer([*group, *own]) if keyed else title_of,
        variant_key=_keyer(own) if own or options else _keyer(group) if group else title_of,
        grouped=bool(group),
        location=settings.warehouse or NO_LOCATION,
        headers=mapping.headers,
        keyed=keyed,
        components=tuple(positions("components")),
        is_part=part_test(mapping),
        is_untracked=untracked_test(mapping),
        volume=volume_of(mapping),
        title=title_of if titles else None,
        blank=blank,
        sparse=sparse,
        covers_locations=bool(heads.intersection(CHECKED) or (located and heads & OFFER)),
        coverage=tuple(
            column.position
            for column in columns
            if column.field.partition(".")[0] in CHECKED or column.field == "location"
        ),
        status=tuple(positions("status", "discontinued")),
        availability=tuple(positions("availability")),
        cartons=_carton_columns(columns),
        stem=None if group else stems_of(codes, titles),
        family=None if group else family_of(codes, titles, positions("colour"), positions("description")),
    )


def read_row(plan: ReadPlan, cells: Sequence[Any], row: RowDraft) -> None:
    """Read every cell that says something into a row's draft."""
    width = len(cells)
    for position, read in plan.readers:
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


def place_of(excess: Excess, group: Group, plan: ReadPlan) -> tuple[int, str | None]:
    """Line and column of the first entry left out of a product's list; the first line, where no cell states it by itself."""
    for line, cells in group.rows:
        column = column_of(excess, line, cells, plan)
        if column is not None:
            return line, column
    return group.rows[0][0], None


def column_of(excess: Excess, line: int, cells: Sequence[Any], plan: ReadPlan) -> str | None:
    """The column of one row that states the entry, found by reading it once more, a column at a time.

    None where none does by itself.
    """
    for reader in plan.readers:
        row = RowDraft(ProductDraft(None), line)
        read_row(replace(plan, readers=(reader,)), cells, row)
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
