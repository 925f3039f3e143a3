"""What reading a snapshot gives, before anything is held against the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.catalogue.batch import RowFingerprint
from domain.catalogue.statements import ProductStatement
from domain.ingestion.model import HeaderMapping
from domain.kernel.problems import Problem

MOST_TABLES = 50
"""Tables of one feed that are told of one by one."""


@dataclass(frozen=True, slots=True)
class ReadTable:
    """One table of a feed as it was read: its sheet, its mapping, and a few rows as texts.

    `asked`: people can be asked what its columns mean. Of one that nobody is asked about (its connector knows, or it has
    more columns than anybody reviews) the first columns alone are here, and no rows.
    """

    sheet: str | None
    mapping: HeaderMapping
    samples: tuple[tuple[str, ...], ...] = ()
    asked: bool = True


@dataclass(frozen=True, slots=True)
class ReadTables:
    """The tables of a feed: the first of them, and how many columns all of them have, with and without a field."""

    first: Sequence[ReadTable] = ()
    columns: int = 0
    unmapped: int = 0


class NeedsMapping(Exception):
    """No table of the feed says which column names the item; a person must map the columns."""

    def __init__(self, message: str, tables: ReadTables | None = None) -> None:
        super().__init__(message)
        self.tables = tables or ReadTables()


class StockSheet(Exception):
    """The file states stock of items that the catalogue knows, and nothing about the items themselves."""


@dataclass(frozen=True, slots=True)
class SpooledRows:
    """What a snapshot holds, its rows put aside by bucket.

    `held` counts the rows of each bucket (long ones several times), `slots` are those of its keys (domain.runs.chunks), `places` the locations
    that its sheets can state offers at (None where the rows name them). Of `problem_count` problems, `problems` are the
    first. `tables` tells how its columns were read. `names_products` is false if a sheet has no column
    for products, so that its keys are those of variants.
    """

    rows: int
    held: Sequence[int]
    slots: Sequence[int]
    places: frozenset[str] | None
    problems: Sequence[Problem]
    problem_count: int
    tables: ReadTables = field(default_factory=ReadTables)
    names_products: bool = True


@dataclass(frozen=True, slots=True)
class Gathered:
    """The keys of some buckets: a fingerprint of each, the line it is first named on, and how many rows it has."""

    fingerprints: Sequence[RowFingerprint]
    lines: Sequence[int]
    rows: Sequence[int]


@dataclass(frozen=True, slots=True)
class Stated:
    """What a feed states under some keys, and what could not be read of it."""

    statements: Sequence[ProductStatement]
    problems: Sequence[Problem]


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row as it stands in a feed: its sheet (None where there are none), its line, and each column's header with its text."""

    sheet: str | None
    line: int
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows that were sought; `looked` rows were looked at, `whole`: those are all."""

    rows: Sequence[FoundRow]
    looked: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some lines of one table: its headers, and of each line its number and its cells as texts, long ones shortened."""

    sheet: str | None
    headers: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """The first records of a snapshot, by column; `failure` tells why there are not more.

    `mapping` is what the first table's columns mean, `problems` what could not be read of the first rows.
    """

    records: Sequence[Mapping[str, Any]]
    failure: str | None = None
    mapping: HeaderMapping | None = None
    problems: Sequence[Problem] = ()
