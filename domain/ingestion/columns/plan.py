"""Plan for reading the rows of a table: functions for cells and keys that are derived from a column mapping."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from domain.catalogue.data_limits import TrimmedEntries
from domain.catalogue.differences import STOCK_CHECK_FIELDS
from domain.catalogue.statements import NO_LOCATION
from domain.ingestion.columns.families import create_family_reader, create_stem_hash_reader
from domain.ingestion.columns.readers import CellReader, create_cell_reader
from domain.ingestion.data import load_word_set
from domain.ingestion.drafts import ProductDraft, RowDraft
from domain.ingestion.model import Cell, Column, FeedSettings, HeaderMapping, Row
from domain.ingestion.values.text import ParseFault, clean_code, clean_value, convert_to_text, quote_text
from domain.ingestion.values.words import parse_number
from domain.ingestion.vocabulary.fields import KEYS, MONEY, OFFER, find_removed_fields
from domain.ingestion.vocabulary.header_meanings import normalise_words
from domain.kernel.problems import Problem, ProblemKind

_ROW_KIND_HEADERS, _PART_WORDS, _VOLUME_HEADERS, _STOCK_TRACKING_HEADERS, _SPREADSHEET_ERRORS = (
    load_word_set("rows", name) for name in "kinds parts volumes trackers errors".split()
)
_FORMULA = re.compile(r"=\s?(?:[A-Z][A-Z.]{1,20}\(|[$']?[A-Z]{1,3}\$?\d{1,7}\b\s?[-+*/&!:)]|[\w' ]{1,40}!\$?[A-Z])")
_MAX_FACT_CHARS = 100
MAX_VALUE_CHARS = 200
"""Maximum number of characters of a cell that a problem contains, and that a column can replace."""
_READ_FIRST = (
    "title category_path google_category dimension_unit weight_unit currency location option_name status".split()
)
_READ_LAST = ("features", "availability")
_ITEM_CODES = frozenset(("sku", "variant_key", "gtin"))
_KEY_ORDER = ("variant_key", "sku", "mpn", "gtin")
_WITHOUT_OPTIONS: Final = (None,)
_COMPARED_FIELDS = MONEY | {"quantity"}
"""Fields of which a second column, which is not read, is compared with the first."""
RowTest = Callable[[Sequence[Any]], bool]
RowKeyReader = Callable[[Sequence[Cell]], "str | None"]


def find_spreadsheet_fault(cell: str) -> ParseFault | None:
    """Return the fault of a cell with a spreadsheet's error value (`#N/A`) or an unevaluated formula; None for other cells."""
    text = cell.strip()
    if text.upper() in _SPREADSHEET_ERRORS:
        return ParseFault(ProblemKind.UNREADABLE, f"{quote_text(text)} is an error value of a spreadsheet.")
    if _FORMULA.match(text):
        return ParseFault(ProblemKind.UNREADABLE, f"{quote_text(text)} is a formula without a result.")
    return None


def fold_value(text: str) -> str:
    """Return a cell's text in the form in which replacements are compared: regardless of case and repeated blanks."""
    return " ".join(text.split()).casefold()


def _fallback_rank(column: Column) -> int:
    """Return the rank of a column among the columns of the same field: 0 for the main column, from 1 for fallbacks."""
    given = str(column.settings.get("fallback", "0"))
    return int(given) if given.isdecimal() and len(given) < 4 else 0


def _compute_reading_order(column: Column) -> tuple[int, int, int]:
    """Return a sort key for columns: first columns on which others depend (such as units), last columns that depend on others."""
    head = column.field.partition(".")[0]
    return 0 if head in _READ_FIRST else 2 if head in _READ_LAST else 1, _fallback_rank(column), column.position


def _create_first_value_reader(
    positions: Sequence[int], read: Callable[[str], str | None] = clean_code
) -> RowKeyReader:
    """Return a function that reads the first value in some columns of a row, or None if all of these cells are blank.

    Args:
        positions: The positions of the columns.
        read: Returns the value in the text of a cell, or None.
    """

    def read_first_value(cells: Sequence[Cell]) -> str | None:
        for position in positions:
            if position < len(cells):
                cell = cells[position]
                if found := read(cell if isinstance(cell, str) else convert_to_text(cell)):
                    return found
        return None

    return read_first_value


def _list_carton_columns(columns: Sequence[Column]) -> list[tuple[int, int, frozenset[str]]]:
    """Return the position, carton index and properties of each column about a numbered carton (1 for `Box 2 Width`).

    The result is empty if another column lists all cartons in one cell.
    """
    found = []
    for column in columns:
        if column.field == "cartons":
            return []
        if column.field.startswith("cartons."):
            _, index, part = column.field.split(".")
            parts = frozenset(("width", "depth", "height") if part == "dimensions" else (part,))
            found.append((column.position, int(index), parts))
    return found


@dataclass(frozen=True, slots=True)
class ColumnOption:
    """Option of variants that some columns describe, such as one fabric group in a price list with a column for each.

    Attributes:
        axis: The name of the axis.
        value: The value of the axis.
        label: The value in the keys of variants, after the axis if another axis has the same value: `PG 1` and `Leather 1`.
        positions: The positions of the option's columns.
        readers: The position and the reader of these columns, and of all columns without an option that have other fields.
    """

    axis: str
    value: str
    label: str
    positions: frozenset[int]
    readers: Sequence[tuple[int, CellReader]]


def _list_options(columns: Sequence[Column], readers: Sequence[tuple[int, CellReader]]) -> list[ColumnOption]:
    """Return the options that columns describe, in the order of the columns."""
    columns_by_option: dict[tuple[str, str], list[Column]] = {}
    for column in columns:
        if option := column.find_setting("option"):
            axis = column.find_setting("axis") or "Option"
            columns_by_option.setdefault((axis, option), []).append(column)
    axis_counts = Counter(value.casefold() for _, value in columns_by_option)
    option_positions = {one.position for columns in columns_by_option.values() for one in columns}
    shared = [column for column in columns if column.position not in option_positions]

    def create_option(axis: str, value: str, own: Sequence[Column]) -> ColumnOption:
        positions = frozenset(one.position for one in own)
        # The price of an option takes precedence over a price of the whole row at the same location.
        targets = {(one.field, one.find_setting("location")) for one in own}
        read = positions.union(
            one.position for one in shared if (one.field, one.find_setting("location")) not in targets
        )
        label = value if axis_counts[value.casefold()] == 1 else f"{axis} {value}"
        return ColumnOption(axis, value, label, positions, [entry for entry in readers if entry[0] in read])

    return [create_option(axis, value, own) for (axis, value), own in columns_by_option.items()]


class ReadPlan:
    """Plan for reading rows, derived from a column mapping and the settings of a source.

    Attributes:
        readers: The position and the cell reader of each column; columns on which others depend (such as units) come first.
        read_product_key: Returns the product key of a row, or None.
        read_variant_key: Returns the variant key of a row, or None.
        has_product_column: Whether a column contains product keys.
        has_key_column: Whether a column contains keys; if not, titles are used as keys.
        has_item_codes: Whether a column contains codes of items; a manufacturer's number can be the name of a model.
        default_location: The location of offers whose row and column name no location.
        component_positions: The positions of columns that list the parts of sets.
        options: The options, if columns describe different variants of one row; empty otherwise.
        identifier_positions: The field and position of each column with GTINs or manufacturer's numbers that are not the keys of items.
        carton_columns: The position, carton index (from 0) and properties of columns about numbered cartons.
        is_part: Returns whether a row is a part of a set; None if no column distinguishes parts.
        is_untracked: Returns whether the stock of a row is not tracked; None if no column contains this.
        read_volume: Returns the volume in a row, in the unit of the table; None if no column contains volumes.
        read_title: Returns the title in a row; None if no column contains titles.
        read_family: Returns the family of a row (families.py); None if `has_product_column` is set or there are no codes or titles.
        read_stem_hash: Returns a hash that is equal for all rows of a family and faster to compute than `read_family`; None if that is None.
        covers_locations: Whether the columns together contain the stock at every location, so that other stored locations can be
            withdrawn.
        ignored_problems: The headers and kinds of problems that are not reported.
    """

    def __init__(self, mapping: HeaderMapping, settings: FeedSettings, *, none_means_absent: bool = False) -> None:
        """Derive the plan from a column mapping.

        Args:
            mapping: The column mapping.
            settings: The settings of the source.
            none_means_absent: Whether None in a row means that the cell is absent; otherwise the cell is blank.
        """
        columns = [column for column in mapping.columns if not column.is_alternative]

        def find_positions(*names: str) -> list[int]:
            """Return the positions of columns with these fields, in the order of `names`, and fallbacks of a field after its main column."""
            found = sorted(
                (names.index(one.field), _fallback_rank(one), one.position) for one in columns if one.field in names
            )
            return [position for _, _, position in found]

        def create_unmapped_reader(names: frozenset[str]) -> Callable[[Sequence[Any]], str] | None:
            """Return a function that reads the first unmapped column whose header is in `names`; None if there is no such column."""
            at = next((column.position for column in mapping.unmapped if normalise_words(column.column) in names), None)
            return (
                None
                if at is None
                else lambda cells: convert_to_text(cells[at])[:_MAX_FACT_CHARS] if at < len(cells) else ""
            )

        if find_positions("quantity"):
            # If there is a column of quantities, a 1 or 0 in a column of availabilities means yes or no.
            columns = [
                replace(one, settings={**one.settings, "flag": "yes"}) if one.field == "availability" else one
                for one in columns
            ]
        first_field_parts = {column.field.partition(".")[0] for column in columns}
        product_key_positions, titles, codes = (
            find_positions("product_key"),
            find_positions("title"),
            find_positions("sku"),
        )
        has_options = "option_value" in first_field_parts
        # Where options distinguish the variants of a product, a manufacturer's number may apply to all of them.
        variant_key_positions = find_positions(
            *(_KEY_ORDER[:2] if product_key_positions and has_options else _KEY_ORDER)
        )
        read_title = _create_first_value_reader(titles, clean_value)
        self._headers, self._sparse, self._columns = mapping.headers, none_means_absent, columns
        self._alternatives = [
            [(column, (column.position, create_cell_reader(column, settings))) for column in (used, other)]
            for other in mapping.columns
            for used in columns
            if other.is_alternative and other.field == used.field and used.field in _COMPARED_FIELDS
        ]
        self.readers = [
            (column.position, create_cell_reader(column, settings))
            for column in sorted(columns, key=_compute_reading_order)
            if column.field != "variant_key"
        ]
        self.options = _list_options(columns, self.readers)
        self.has_product_column = bool(product_key_positions or self.options)
        self.has_key_column = any(column.field in KEYS for column in columns)
        self.has_item_codes = any(column.field in _ITEM_CODES for column in columns)
        self.read_product_key = (
            _create_first_value_reader([*product_key_positions, *variant_key_positions])
            if self.has_key_column
            else read_title
        )
        self.read_variant_key = (
            _create_first_value_reader(variant_key_positions)
            if variant_key_positions or has_options
            else _create_first_value_reader(product_key_positions)
            if product_key_positions
            else read_title
        )
        self.read_title = read_title if titles else None
        self.read_stem_hash = None if self.has_product_column else create_stem_hash_reader(codes, titles)
        self.read_family = (
            None
            if self.has_product_column
            else create_family_reader(codes, titles, find_positions("colour"), find_positions("description"))
        )
        self.default_location = settings.warehouse or NO_LOCATION
        self.component_positions = find_positions("components")
        # Variants with options can have the manufacturer's number of their product.
        self.identifier_positions = (
            [
                (one.field, one.position)
                for one in columns
                if one.field == "gtin" or (one.field == "mpn" and not has_options)
            ]
            if codes or product_key_positions
            else []
        )
        kind, tracking, volume = map(
            create_unmapped_reader, (_ROW_KIND_HEADERS, _STOCK_TRACKING_HEADERS, _VOLUME_HEADERS)
        )
        self.is_part: RowTest | None = (
            None if kind is None else lambda cells: normalise_words(kind(cells)) in _PART_WORDS
        )
        self.is_untracked: RowTest | None = (
            None if tracking is None else lambda cells: clean_value(tracking(cells)) is None
        )
        self.read_volume: Callable[[Sequence[Any]], Decimal | None] | None = (
            None if volume is None else lambda cells: parse_number(volume(cells)).value or None
        )
        self._blank: dict[str, set[int]] = {}
        for column in columns:
            for path in find_removed_fields(column.field):
                self._blank.setdefault(path, set()).add(column.position)
        names_location = (
            settings.warehouse
            or "location" in first_field_parts
            or any("location" in column.settings for column in columns)
        )
        self.covers_locations = bool(
            first_field_parts.intersection(STOCK_CHECK_FIELDS) or (names_location and first_field_parts & OFFER)
        )
        self._coverage = [
            one.position for one in columns if one.field.partition(".")[0] in (*STOCK_CHECK_FIELDS, "location")
        ]
        self._status, self._availability = find_positions("status", "discontinued"), find_positions("availability")
        self.carton_columns = _list_carton_columns(columns)
        self._replacements = {
            column.position: {fold_value(value): text for value, text in column.values.items()}
            for column in columns
            if column.values
        }
        self.ignored_problems = frozenset(
            (one.column, kind) for one in mapping.columns for kind in one.ignored_problems
        )

    def replace_values(self, cells: list[Cell]) -> list[Cell]:
        """Return the cells with the replacements of their columns; the same object if no column has replacements."""
        if not self._replacements:
            return cells
        replaced = list(cells)
        for position, text_by_value in self._replacements.items():
            if (
                position < len(cells)
                and (text := text_by_value.get(fold_value(convert_to_text(cells[position])))) is not None
            ):
                replaced[position] = text
        return replaced

    def select_reported(self, problems: Sequence[Problem], rows: Sequence[Row]) -> list[Problem]:
        """Return the problems that no column ignores, each with the text of its cell if the text is short.

        A problem without a column is about values of several cells; it gets the column of its field.

        Args:
            problems: The problems in the rows.
            rows: The rows that were read.
        """
        rows_by_line: dict[int, list[Sequence[Any]]] = {}
        for line, cells in rows if problems else ():
            rows_by_line.setdefault(line, []).append(cells)
        reported = []
        for problem in problems:
            # The variants of one JSON record have the same line.
            line_rows = rows_by_line.get(problem.line or 0, [])
            if problem.column is None:
                headers = (self.find_header_of_field(problem.field, cells) for cells in line_rows)
                problem = replace(problem, column=next(filter(None, headers), None))
            if (problem.column, problem.problem) in self.ignored_problems:
                continue
            if problem.column in self._headers:
                position = self._headers.index(problem.column)
                texts = {convert_to_text(cells[position]) for cells in line_rows if position < len(cells)}
                text = texts.pop() if len(texts) == 1 else ""
                if 0 < len(text) <= MAX_VALUE_CHARS:
                    problem = replace(problem, value=text)
            reported.append(problem)
        return reported

    def find_differing_alternatives(self, rows: Sequence[Row], sheet: str | None) -> Iterator[Problem]:
        """Yield a problem for each column of prices or quantities that is not read and differs from the one that is read.

        Args:
            rows: The first rows of the table.
            sheet: The name of the sheet, for the problems.
        """
        for (used, read_used), (other, read_other) in self._alternatives:
            differing = []
            for line, cells in rows:
                first, second = (
                    self._read_offer_value(column.field, reader, cells)
                    for column, reader in ((used, read_used), (other, read_other))
                )
                if first is not None and second is not None and first != second:
                    differing.append((line, cells))
            if differing:
                detail = (
                    f"{quote_text(other.column)} can be read as {other.field}, but differs from {quote_text(used.column)}, "
                    f"which is read, in {len(differing)} of the first {len(rows)} rows. Check which column to read."
                )
                problem = Problem(other.field, ProblemKind.CONFLICT, detail, differing[0][0], other.column, sheet)
                yield from self.select_reported([problem], differing[:1])

    def _read_offer_value(self, field: str, reader: tuple[int, CellReader], cells: Sequence[Any]) -> Any:
        """Return the value of a field of the offer in one cell of a row, or None."""
        row = RowDraft(ProductDraft(), 0)
        read_row(self, cells, row, (reader,))
        return next((offer.get(field) for offer in row.offers.values()), None)

    def find_header(self, position: int) -> str | None:
        """Return the header of the column at a position, or None if the table has no such column."""
        return self._headers[position] if position < len(self._headers) else None

    def find_header_of_field(self, field: str, cells: Sequence[Any]) -> str | None:
        """Return the header of the first filled column of a row with the given field, or else with its parent or a part of it.

        Columns of one option or location are not used, because the row has several.
        """
        filled = [
            column
            for column in self._columns
            if column.position < len(cells)
            and "option" not in column.settings
            and convert_to_text(cells[column.position]).strip()
        ]
        for test in (field.__eq__, field.partition(".")[0].__eq__, lambda other: other.startswith(f"{field}.")):
            for column in filled:
                if test(column.field):
                    return column.column
        return None

    def find_header_of_offer(self, field: str, location: str | None, axes: Mapping[str, str]) -> str | None:
        """Return the header of the column with a field for one location, or for the option of a variant with these axes; None without one."""
        for column in self._columns:
            is_own_location = location is not None and column.find_setting("location") == location
            option = column.find_setting("option")
            is_own_option = option is not None and axes.get(column.find_setting("axis") or "Option") == option
            if column.field == field and (is_own_location or is_own_option):
                return column.column
        return None

    def _has_cell(self, cells: Sequence[Any], position: int) -> bool:
        """Return whether the row has a cell at a position, which can be blank."""
        return not self._sparse or (position < len(cells) and cells[position] is not None)

    def find_options(self, cells: Sequence[Any]) -> Sequence[ColumnOption | None]:
        """Return the options for which a row has values; None stands for a row without an option."""
        if not self.options:
            return _WITHOUT_OPTIONS
        stated = frozenset(
            position for position, cell in enumerate(cells) if cell is not None and convert_to_text(cell)
        )
        return [option for option in self.options if option.positions & stated] or _WITHOUT_OPTIONS

    def row_covers_locations(self, cells: Sequence[Any]) -> bool:
        """Return whether `covers_locations` applies to a row, because none of the cells for stock is absent."""
        return self.covers_locations and all(self._has_cell(cells, at) for at in self._coverage)

    def has_status_cell(self, cells: Sequence[Any]) -> bool:
        """Return whether the row has a cell for the status, or a non-blank cell for the availability."""
        return any(self._has_cell(cells, at) for at in self._status) or any(
            at < len(cells) and convert_to_text(cells[at]).strip() for at in self._availability
        )

    def find_carton_properties(self, cells: Sequence[Any]) -> dict[int, frozenset[str]]:
        """Return the properties of cartons (such as `width`) for which the row has cells, by carton index."""
        found: dict[int, frozenset[str]] = {}
        for position, index, parts in self.carton_columns:
            if self._has_cell(cells, position):
                found[index] = found.get(index, frozenset()) | parts
        return found

    def find_blank_fields(self, cells: Sequence[Any]) -> frozenset[str]:
        """Return the paths of the catalogue fields for which the row has only blank cells."""
        filled = {
            at
            for at, cell in enumerate(cells)
            if cell is not None and (cell if cell.__class__ is str else convert_to_text(cell)).strip()
        }
        absent = {at for at, cell in enumerate(cells) if cell is None} if self._sparse else set()
        return frozenset(
            path for path, places in self._blank.items() if filled.isdisjoint(places) and not places <= absent
        )


def read_row(
    plan: ReadPlan, cells: Sequence[Any], row: RowDraft, readers: Sequence[tuple[int, CellReader]] | None = None
) -> None:
    """Read every non-blank cell of a row into the draft of the row.

    Args:
        plan: The plan for reading the table.
        cells: The cells of the row.
        row: The draft, which is changed.
        readers: The readers to use; None for all readers of the plan.
    """
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
                if cell[0] in "#=" and (fault := find_spreadsheet_fault(cell)):
                    row.report_faults("cell", plan.find_header(position), (fault,))
                else:
                    read(row, cell, cell)
        elif cell is not None and ((text := convert_to_text(cell)) or cell):
            read(row, text, cell)


def locate_first_omitted_entry(omitted: TrimmedEntries, rows: Sequence[Row], plan: ReadPlan) -> tuple[int, str | None]:
    """Return the line number and the header of the cell with the first entry that was omitted from a list.

    If no single cell contains the entry, the line is that of the first row and the header is None.

    Args:
        omitted: The omitted entries.
        rows: The rows of the product.
        plan: The plan for reading the table.
    """
    places = ((line, find_column_of_first_omitted_entry(omitted, line, cells, plan)) for line, cells in rows)
    return next((place for place in places if place[1] is not None), (rows[0][0], None))


def find_column_of_first_omitted_entry(
    omitted: TrimmedEntries, line: int, cells: Sequence[Any], plan: ReadPlan
) -> str | None:
    """Return the header of the column of a row that contains the first omitted entry, or None."""
    for reader in plan.readers:
        # Each column is read again alone.
        row = RowDraft(ProductDraft(), line)
        read_row(plan, cells, row, (reader,))
        if _contains_first_entry(row, omitted):
            return plan.find_header(reader[0])
    return None


def _contains_first_entry(row: RowDraft, omitted: TrimmedEntries) -> bool:
    """Return whether the draft of a row contains the first of the omitted entries."""
    product, first = row.product, omitted.first
    match omitted.field:
        case "tags":
            return first in product.tags
        case "features":
            return first in product.features
        case "category_path":
            return first in product.find_category_path()
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
    return omitted.field in ("cartons", "rug.size_text") and bool(row.cartons or row.rug or row.parsed_size)
