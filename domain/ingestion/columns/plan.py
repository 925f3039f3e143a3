"""A mapping made ready for reading rows: what each column does, and what keys a row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from domain.catalogue.differences import CHECKED
from domain.catalogue.statements import NO_LOCATION
from domain.ingestion.columns import offer as offer_columns
from domain.ingestion.columns import product as product_columns
from domain.ingestion.columns import sizes
from domain.ingestion.columns import variant as variant_columns
from domain.ingestion.columns.attributes import with_attributes
from domain.ingestion.columns.beside import RowTest, VolumeOf, broken, part_test, untracked_test, volume_of
from domain.ingestion.columns.families import FamilyOf, family_of, stems_of
from domain.ingestion.columns.readers import CellReader, ReaderFactory
from domain.ingestion.model import Cell, Column, FeedSettings, HeaderMapping
from domain.ingestion.values.text import as_text, code, stated
from domain.ingestion.vocabulary.fields import KEYS, OFFER, blank_fields

_FIRST: Final = (
    "title category_path google_category dimension_unit weight_unit currency location option_name status".split()
)
_LAST: Final = frozenset(("features", "availability"))
_FACTORIES: Final[dict[str, ReaderFactory]] = {
    **product_columns.FACTORIES,
    **variant_columns.FACTORIES,
    **offer_columns.FACTORIES,
}
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


def _factory(name: str) -> ReaderFactory:
    if name == "dimensions":
        return sizes.DIMENSIONS
    if name.startswith("dimensions."):
        return sizes.SIDE
    if name == "cartons":
        return variant_columns.PACKAGES
    if name.startswith("cartons."):
        return variant_columns.CARTON_PART
    return _FACTORIES[name if name in _FACTORIES else name.partition(".")[0]]


def _turn(column: Column) -> int:
    """The place of a column among those of one field: 0 for the first, higher for those that stand in for it."""
    given = str(column.settings.get("fallback", "0"))
    return int(given) if given.isdecimal() and len(given) < 4 else 0


def _order(column: Column) -> tuple[int, int, int]:
    head = column.field.partition(".")[0]
    phase = 0 if head in _FIRST else 2 if head in _LAST else 1
    return phase, _turn(column), column.position


def _positions(columns: Sequence[Column], name: str) -> list[int]:
    found = sorted((_turn(column), column.position) for column in columns if column.field == name)
    return [position for _, position in found]


def _keyer(positions: Sequence[int]) -> Keyer:
    """The first code that stands at one of the positions."""

    def key(cells: Sequence[Cell]) -> str | None:
        for position in positions:
            if position < len(cells):
                cell = cells[position]
                found = code(cell if cell.__class__ is str else as_text(cell))
                if found:
                    return found
        return None

    return key


def _titled(positions: Sequence[int]) -> Keyer:
    def key(cells: Sequence[Cell]) -> str | None:
        return next((found for at in positions if at < len(cells) and (found := stated(as_text(cells[at])))), None)

    return key


def _with_flags(columns: Sequence[Column]) -> list[Column]:
    """Beside a column of quantities a 1 or 0 under availability is a yes or no, not a quantity."""
    if not any(column.field == "quantity" for column in columns):
        return list(columns)
    return [
        replace(column, settings={**column.settings, "flag": "yes"}) if column.field == "availability" else column
        for column in columns
    ]


def _carton_columns(columns: Sequence[Column]) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """The columns of numbered cartons with number and parts; none if one lists whole cartons."""
    if any(column.field == "cartons" for column in columns):
        return ()
    found = []
    for column in columns:
        if column.field.startswith("cartons."):
            _, number, part = column.field.split(".")
            parts = frozenset(("width", "depth", "height")) if part == "dimensions" else frozenset((part,))
            found.append((column.position, int(number), parts))
    return tuple(found)


def compile_plan(mapping: HeaderMapping, settings: FeedSettings, *, sparse: bool = False) -> ReadPlan:
    """The plan of a mapping under a source's settings."""
    columns = _with_flags([column for column in mapping.columns if not column.is_alternative])
    readers: list[tuple[int, CellReader]] = []
    for column in sorted(columns, key=_order):
        if column.field != "variant_key":
            read = _factory(column.field)(column, settings)
            if column.field == "features":
                read = with_attributes(read, column, settings, _factory)
            readers.append((column.position, read))
    group = _positions(columns, "product_key")
    own = [position for name in _KEY_ORDER for position in _positions(columns, name)]
    options = any(column.field.startswith("option_value") for column in columns)
    if group and options:
        # Where options distinguish the variants of a product, a number of the maker's may stand for all of them.
        own = [position for name in ("variant_key", "sku") for position in _positions(columns, name)]
    keyed = any(column.field in KEYS for column in columns)
    titles = _positions(columns, "title")
    blank: dict[str, tuple[int, ...]] = {}
    for column in columns:
        for path in blank_fields(column.field):
            blank[path] = (*blank.get(path, ()), column.position)
    heads = {column.field.partition(".")[0] for column in columns}
    located = settings.warehouse or "location" in heads or any("location" in column.settings for column in columns)
    return ReadPlan(
        readers=tuple(readers),
        product_key=_keyer([*group, *own]) if keyed else _titled(titles),
        variant_key=_keyer(own) if own or options else _keyer(group) if group else _titled(titles),
        grouped=bool(group),
        location=settings.warehouse or NO_LOCATION,
        headers=mapping.headers,
        keyed=keyed,
        components=tuple(_positions(columns, "components")),
        is_part=part_test(mapping),
        is_untracked=untracked_test(mapping),
        volume=volume_of(mapping),
        title=_titled(titles) if titles else None,
        blank=blank,
        sparse=sparse,
        covers_locations=bool(heads.intersection(CHECKED) or (located and heads & OFFER)),
        coverage=tuple(
            column.position
            for column in columns
            if column.field.partition(".")[0] in CHECKED or column.field == "location"
        ),
        status=tuple(column.position for column in columns if column.field in ("status", "discontinued")),
        availability=tuple(column.position for column in columns if column.field == "availability"),
        cartons=_carton_columns(columns),
        stem=None if group else stems_of(_positions(columns, "sku"), titles),
        family=None
        if group
        else family_of(
            _positions(columns, "sku"), titles, *(_positions(columns, name) for name in ("colour", "description"))
        ),
    )


def _header(plan: ReadPlan, position: int) -> str | None:
    return plan.headers[position] if position < len(plan.headers) else None


def read_row(plan: ReadPlan, cells: Sequence[Any], row: Any) -> None:
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
                    row.report("cell", _header(plan, position), (fault,))
                    continue
                read(row, cell, cell)
        elif cell is not None and ((text := as_text(cell)) or cell):
            read(row, text, cell)
