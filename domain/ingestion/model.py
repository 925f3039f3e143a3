"""What goes into and comes out of normalising.

A feed is read as tables: headers, and rows of cells with their line. A mapping says what each column means. Rows that
share a product key form a group; normalising a group gives one `ProductStatement` and the problems found on the way.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

from domain.catalogue.data import OfferData, ProductData, VariantData

Cell: TypeAlias = "str | int | Decimal | bool | list[Any] | dict[str, Any] | None"
Row: TypeAlias = "tuple[int, list[Cell]]"
"""The line (from 1, as a person counts them in the file) and the cells, one for each header, as the feed gave them."""


@dataclass(frozen=True, slots=True)
class Table:
    """One sheet, page set or file. `rows` can be walked once; `sheet` is None where a format has no sheets.

    `given` is set when the connector itself knows what the columns mean: the field of each header (or None for none).
    """

    sheet: str | None
    headers: tuple[str, ...]
    rows: Iterator[Row]
    given: tuple[str | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be read, and where. `problem` is one of decisions.md §2 (run.problems[].problem)."""

    field: str
    problem: str
    detail: str
    line: int | None = None
    column: str | None = None
    sheet: str | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What the source's settings say about reading its values.

    `currency` lower-case ISO 4217 or None; `decimal` dot, comma or auto; `warehouse` the location of offers that name
    none; `price_code` which price column to take when several are there; `stream` catalogue or stock.
    """

    currency: str | None = None
    decimal: str = "auto"
    warehouse: str | None = None
    price_code: str | None = None
    stream: str = "catalogue"


@dataclass(frozen=True, slots=True)
class Column:
    """What one column means. `settings` may hold unit, location, index, axis and the like; `prefix` marks a numbered family."""

    position: int
    column: str
    field: str
    settings: Mapping[str, Any]
    tier: str = "built_in"
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Unmapped:
    """A column without a field. `reason`: unknown, empty, ambiguous or ignored."""

    position: int
    column: str
    reason: str


@dataclass(frozen=True, slots=True)
class HeaderMapping:
    """What the columns of one header set mean; `missing` names what a run cannot do without (a key, say)."""

    headers: tuple[str, ...]
    columns: tuple[Column, ...]
    unmapped: tuple[Unmapped, ...]
    missing: tuple[str, ...] = ()


@dataclass(slots=True)
class OfferStatement:
    """A source's offer of one variant at one location; `data` holds only what this feed states."""

    location: str
    data: OfferData


@dataclass(slots=True)
class VariantStatement:
    """A source's statement of one variant; `key` is the source's own key for it, unique within the source."""

    key: str
    data: VariantData
    offers: list[OfferStatement] = field(default_factory=list)


@dataclass(slots=True)
class ProductStatement:
    """A source's statement of one product; `key` is the source's own key for it."""

    key: str
    data: ProductData
    variants: list[VariantStatement] = field(default_factory=list)
    discontinued: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """All rows of one table that share a product key, in the feed's order."""

    key: str
    rows: Sequence[Row]
    sheet: str | None = None
