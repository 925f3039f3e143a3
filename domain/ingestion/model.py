"""What goes into and comes out of normalising.

A feed is read as tables: headers, and rows of cells with their line. A mapping says what each column means. Normalising the
rows that share a product key gives one `ProductStatement` and the problems found on the way.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from domain.kernel.enums import StoredEnum

Cell: TypeAlias = "str | int | Decimal | bool | list[Any] | dict[str, Any] | None"
Row: TypeAlias = "tuple[int, list[Cell]]"
"""The line (from 1, as a person counts them in the file) and the cells, one for each header, as the feed gave them."""


class MappingTier(StoredEnum):
    """What a column's meaning rests on."""

    BUILT_IN = "built_in"
    LEARNED = "learned"
    FUZZY = "fuzzy"
    MODEL = "model"
    PERSON = "person"


class UnmappedReason(StoredEnum):
    """Why a column has no field."""

    UNKNOWN = "unknown"
    EMPTY = "empty"
    AMBIGUOUS = "ambiguous"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class FeedTable:
    """One sheet, page set or file. `rows` can be walked once; `sheet` is None where a format has no sheets.

    `given` is set when the connector itself knows what the columns mean: the field of each header (or None for none).
    """

    sheet: str | None
    headers: tuple[str, ...]
    rows: Iterator[Row]
    given: tuple[str | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """What the source's settings say about reading its values.

    `currency` lower-case ISO 4217 or None; `decimal` dot, comma or auto; `warehouse` the location of offers that name
    none; `price_code` which price column to take when several are there; `stream` catalogue or stock; `media_base_url`
    where the files lie that are given by their names alone.
    """

    currency: str | None = None
    decimal: str = "auto"
    warehouse: str | None = None
    price_code: str | None = None
    stream: str = "catalogue"
    media_base_url: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """What one column means. `settings` may hold unit, location, index, axis and the like; `prefix` marks a numbered family.

    `confidence`, from 0 to 1, is how often columns that were read on the like evidence turn out to mean it.
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
        """Whether the column is told and not read: another price level, somebody else's number of the item."""
        return "alternative" in self.settings

    def setting(self, name: str) -> str | None:
        """A setting as text, or None where it is absent or blank."""
        value = self.settings.get(name)
        return str(value) if value not in (None, "") else None


@dataclass(frozen=True, slots=True)
class Unmapped:
    """A column without a field."""

    position: int
    column: str
    reason: UnmappedReason


@dataclass(frozen=True, slots=True)
class HeaderMapping:
    """What the columns of one header set mean; `missing` names what a run cannot do without (a key, say)."""

    headers: tuple[str, ...]
    columns: tuple[Column, ...]
    unmapped: tuple[Unmapped, ...]
    missing: tuple[str, ...] = ()
