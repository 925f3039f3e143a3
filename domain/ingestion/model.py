"""Feed tables, reading settings and column mappings, which are the input of normalisation.

A feed is read as tables with headers and rows of cells. A mapping assigns a field to each column. The rows with the same
product key are normalised to one `ProductStatement` and a list of problems.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as create_field
from decimal import Decimal
from typing import Any, TypeAlias

from domain.kernel.enums import StoredEnum
from domain.kernel.problems import ProblemKind

Cell: TypeAlias = "str | int | Decimal | bool | list[Any] | dict[str, Any] | None"
Row: TypeAlias = "tuple[int, list[Cell]]"
"""Line number from 1 as a spreadsheet shows it, and the unparsed cells, one for each header."""


class MappingTier(StoredEnum):
    """Origin of the assignment of a field to a column (`tier` in the API).

    Attributes:
        BUILT_IN: The rules for headers.
        LEARNED: Mappings that people confirmed earlier.
        FUZZY: The rules for headers, although words of the header were unknown or had to be corrected.
        MODEL: A language model.
        PERSON: A person.
    """

    BUILT_IN = "built_in"
    LEARNED = "learned"
    FUZZY = "fuzzy"
    MODEL = "model"
    PERSON = "person"


class UnmappedReason(StoredEnum):
    """Reason why a column has no field."""

    UNKNOWN = "unknown"
    EMPTY = "empty"
    AMBIGUOUS = "ambiguous"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class FeedTable:
    """Table of a feed: a sheet of a workbook, a file, or the records of several pages.

    Attributes:
        sheet: The name of the sheet, or None in formats without sheets.
        headers: The headers of the columns.
        rows: The rows; the iterator can be used only once.
        declared_fields: The field of each column (None for a column without a field) if the connector declares the fields. None if
            they must be inferred from the headers.
        notes: Text above the table that applies to it, such as `Dealer price list` or `All prices in EUR`.
    """

    sheet: str | None
    headers: tuple[str, ...]
    rows: Iterator[Row]
    declared_fields: tuple[str | None, ...] | None = None
    notes: str = ""


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """Settings of a source that determine how cells are parsed.

    Attributes:
        currency: The default currency in lower-case ISO 4217, or None.
        decimal: The decimal mark: `dot`, `comma` or `auto`.
        warehouse: The location of offers whose rows name no location.
        price_code: Text that identifies the price column to read, by its header, if there are several price columns.
        stream: The stream: `catalogue` or `stock`.
        media_base_url: The URL to which the names of image files are appended if cells contain no full URLs.
        length_unit: The unit of lengths for which neither the cells nor the column state one, or None.
        weight_unit: The unit of weights, as for `length_unit`.
    """

    currency: str | None = None
    decimal: str = "auto"
    warehouse: str | None = None
    price_code: str | None = None
    stream: str = "catalogue"
    media_base_url: str | None = None
    length_unit: str | None = None
    weight_unit: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table with the field that is assigned to it.

    Attributes:
        position: The index of the column, from 0.
        column: The header of the column.
        field: The path of the field, such as `dimensions.width`.
        settings: The settings of the column by name, such as `unit` or `location`.
        tier: Who or what assigned the field.
        prefix: Whether the column is one of a numbered series whose headers share a prefix, such as `Image 1` and `Image 2`.
        confidence: The estimated probability, from 0 to 1, that the field is correct.
        values: Replacements of cells by the text that is read instead; an empty text stands for a blank cell.
        ignored_problems: The kinds of problems with cells of the column that are not reported.
    """

    position: int
    column: str
    field: str
    settings: Mapping[str, Any]
    tier: MappingTier = MappingTier.BUILT_IN
    prefix: bool = False
    confidence: float = 1.0
    values: Mapping[str, str] = create_field(default_factory=dict)
    ignored_problems: tuple[ProblemKind, ...] = ()

    @property
    def is_alternative(self) -> bool:
        """True if people see the column in the mapping but its cells are not read, such as a second price level."""
        return "alternative" in self.settings

    def find_setting(self, name: str) -> str | None:
        """Return the value of a setting as text, or None if the setting is absent or empty."""
        value = self.settings.get(name)
        return str(value) if value not in (None, "") else None


@dataclass(frozen=True, slots=True)
class UnmappedColumn:
    """Column without an assigned field, and the reason."""

    position: int
    column: str
    reason: UnmappedReason


@dataclass(frozen=True, slots=True)
class HeaderMapping:
    """Assignment of fields to the columns of one table.

    Attributes:
        columns: The columns with a field.
        unmapped: The columns without a field.
        missing: What no column contains although it is required: `key` (a value that identifies items) or `stock`.
    """

    headers: tuple[str, ...]
    columns: tuple[Column, ...]
    unmapped: tuple[UnmappedColumn, ...]
    missing: tuple[str, ...] = ()
