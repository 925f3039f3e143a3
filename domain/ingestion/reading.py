"""Results of reading a snapshot, before they are compared with the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.catalogue.batch import RowFingerprint
from domain.catalogue.statements import ProductStatement
from domain.ingestion.model import HeaderMapping
from domain.kernel.problems import Problem

MOST_TABLES = 50
"""Maximum number of tables of a feed that are listed individually."""


@dataclass(frozen=True, slots=True)
class ReadTable:
    """One table of a feed: its sheet, its mapping and a few rows as texts.

    `asked` states whether people can confirm the mapping. They cannot if the connector defines the columns or the table
    has too many; then only the first columns are included, and no rows.
    """

    sheet: str | None
    mapping: HeaderMapping
    samples: tuple[tuple[str, ...], ...] = ()
    asked: bool = True


@dataclass(frozen=True, slots=True)
class ReadTables:
    """Tables of a feed: the first of them, and the numbers of all columns and of unmapped columns in all tables."""

    first: Sequence[ReadTable] = ()
    columns: int = 0
    unmapped: int = 0


class NeedsMapping(Exception):
    """Error of a feed in which no column identifies the items, so that a person must map the columns."""

    def __init__(self, message: str, tables: ReadTables | None = None) -> None:
        super().__init__(message)
        self.tables = tables or ReadTables()


class StockSheet(Exception):
    """Signal that a file states only stock of known items and nothing about the items themselves."""


@dataclass(frozen=True, slots=True)
class SpooledRows:
    """Result of spooling a snapshot's rows into buckets.

    Attributes:
        rows: The number of rows.
        held: The number of rows in each bucket; long rows count several times.
        slots: The slots of the keys (domain.runs.chunks).
        places: The locations for which the sheets can state offers; None if rows state them.
        problems: The first problems.
        problem_count: The number of all problems.
        tables: The tables and their mappings.
        names_products: Whether every sheet has a column of product keys; otherwise keys are those of variants.

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
    """Keys of some buckets: the fingerprint, the first line and the number of rows of each."""

    fingerprints: Sequence[RowFingerprint]
    lines: Sequence[int]
    rows: Sequence[int]


@dataclass(frozen=True, slots=True)
class Stated:
    """Statements of a feed for some keys, and the problems found."""

    statements: Sequence[ProductStatement]
    problems: Sequence[Problem]


@dataclass(frozen=True, slots=True)
class FoundRow:
    """Row as it is in a feed: its sheet (None without sheets), its line, and header and text of each cell."""

    sheet: str | None
    line: int
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows found by a search; `looked` rows were searched, and `whole` states whether these are all rows."""

    rows: Sequence[FoundRow]
    looked: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of one table: its headers, and the number and the cells of each line; long texts are shortened."""

    sheet: str | None
    headers: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """First records of a snapshot, by column; `failure` states why reading ended early.

    `mapping` is that of the first table, `problems` are those of the first rows.
    """

    records: Sequence[Mapping[str, Any]]
    failure: str | None = None
    mapping: HeaderMapping | None = None
    problems: Sequence[Problem] = ()
