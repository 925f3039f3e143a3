"""Tables, settings and mappings: the input of normalisation.

A feed is read as tables of headers and rows of cells. A mapping assigns a field to each column. The rows that share a
product key are normalised to one `ProductStatement` and a list of problems.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from domain.kernel.enums import StoredEnum

Cell: TypeAlias = "str | int | Decimal | bool | list[Any] | dict[str, Any] | None"
Row: TypeAlias = "tuple[int, list[Cell]]"
"""Line number (from 1, as shown to people) and unprocessed cells, one for each header."""


class MappingTier(StoredEnum):
    """Origin of a column's field."""

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
    """One sheet, page set or file. `rows` can be iterated once; `sheet` is None in formats without sheets.

    `given` is set if the connector defines the columns: the field of each header, or None for no field.
    """

    sheet: str | None
    headers: tuple[str, ...]
    rows: Iterator[Row]
    given: tuple[str | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """Settings of a source for reading its values.

    Attributes:
        currency: The default currency, lower-case ISO 4217, or None.
        decimal: The decimal mark: dot, comma or auto.
        warehouse: The location of offers without a stated location.
        price_code: The name of the price column to read if there are several.
        stream: The stream: catalogue or stock.
        media_base_url: The base address of files given by name.

    """

    currency: str | None = None
    decimal: str = "auto"
    warehouse: str | None = None
    price_code: str | None = None
    stream: str = "catalogue"
    media_base_url: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """Field of one column. `settings` may contain unit, location, index, axis and others; `prefix` marks a numbered family.

    `confidence`, from 0 to 1, estimates the probability that the field is correct.
    """

    position: int
    column: str
    field: str
    settings: Mapping[str, Any]
    tier: MappingTier = MappingTier.BUILT_IN
    prefix: bool = False
    confidence: float = 1.0

    @property
    def is_alternative(self) -> bool:
        """True if the column is listed but not read, such as another price level or another party's item number."""
        return "alternative" in self.settings

    def setting(self, name: str) -> str | None:
        """Return a setting as text, or None if it is absent or blank."""
        value = self.settings.get(name)
        return str(value) if value not in (None, "") else None


@dataclass(frozen=True, slots=True)
class Unmapped:
    """Column without a field."""

    position: int
    column: str
    reason: UnmappedReason


@dataclass(frozen=True, slots=True)
class HeaderMapping:
    """Mapping of one header set; `missing` lists required facts without a column: "key" or "stock"."""

    headers: tuple[str, ...]
    columns: tuple[Column, ...]
    unmapped: tuple[Unmapped, ...]
    missing: tuple[str, ...] = ()
