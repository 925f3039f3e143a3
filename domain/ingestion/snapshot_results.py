"""Results of reading a stored file in a reader process, before the results are compared with the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.catalogue.batch import RowFingerprint
from domain.catalogue.statements import ProductStatement
from domain.ingestion.model import HeaderMapping
from domain.kernel.problems import Problem

MAX_LISTED_TABLES = 50
"""Maximum number of tables of a feed that are listed individually."""


@dataclass(frozen=True, slots=True)
class MappedTable:
    """Table of a feed with its column mapping and a few rows as texts.

    Attributes:
        sheet: The name of the sheet, or None in formats without sheets.
        is_confirmable: Whether people can confirm the mapping. False if the connector declares the fields, or if the table has too many
            columns; in the second case, only the first columns are included, and no rows.
    """

    sheet: str | None
    mapping: HeaderMapping
    samples: tuple[tuple[str, ...], ...] = ()
    is_confirmable: bool = True


@dataclass(frozen=True, slots=True)
class TableSummary:
    """Summary of the tables of a feed.

    Attributes:
        listed_tables: The first tables.
        columns: The number of columns in all tables.
        unmapped: The number of columns without a field in all tables.
    """

    listed_tables: Sequence[MappedTable] = ()
    columns: int = 0
    unmapped: int = 0


class MappingRequired(Exception):
    """Error: no column of the feed identifies the items, so a person must map the columns."""

    def __init__(self, message: str, tables: TableSummary | None = None) -> None:
        super().__init__(message)
        self.tables = tables or TableSummary()


class StockOnlySnapshot(Exception):
    """Signal: the file contains only stock of items, so it belongs to the stream `stock` instead of `catalogue`."""


@dataclass(frozen=True, slots=True)
class SpoolResult:
    """Result of writing the rows of a stored file to buckets (temporary files).

    Attributes:
        row_count: The number of rows.
        bucket_sizes: The number of rows in each bucket. A row counts once more for every BYTES_PER_COUNTED_ROW bytes.
        slots: The slots of the keys in ascending order. A slot is a hash of a key that determines the chunk of the key
            (domain.runs.chunks).
        locations: The locations of offers if headers name all of them; None if cells of the rows name locations.
        problems: The first problems.
        problem_count: The number of all problems, listed or not.
        tables: The tables and their mappings.
        has_product_keys: Whether every sheet has a column with product keys; if not, the keys are those of variants.
    """

    row_count: int
    bucket_sizes: Sequence[int]
    slots: Sequence[int]
    locations: frozenset[str] | None
    problems: Sequence[Problem]
    problem_count: int
    tables: TableSummary = field(default_factory=TableSummary)
    has_product_keys: bool = True


@dataclass(frozen=True, slots=True)
class BucketKeys:
    """Keys of the rows in some buckets. All sequences have one entry for each key, in the same order.

    Attributes:
        fingerprints: The keys, each with its slot and the fingerprint of its rows.
        lines: The line number of the first row of each key.
        row_counts: The number of rows of each key. A row counts once more for every BYTES_PER_COUNTED_ROW bytes.
    """

    fingerprints: Sequence[RowFingerprint]
    lines: Sequence[int]
    row_counts: Sequence[int]


@dataclass(frozen=True, slots=True)
class FeedStatements:
    """Statements of a feed about the products with some keys, and the problems found in their rows."""

    statements: Sequence[ProductStatement]
    problems: Sequence[Problem]


@dataclass(frozen=True, slots=True)
class FeedRow:
    """Row of a feed with the original text of its cells.

    Attributes:
        sheet: The name of the sheet, or None in formats without sheets.
        line: The line number from 1.
        cells: The header of the column and the text of each cell.
    """

    sheet: str | None
    line: int
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RowSearchResult:
    """Rows of a stored file that a search found.

    Attributes:
        rows: The rows that match.
        searched_rows: The number of rows that were searched.
        is_complete: Whether the search reached the end of the file.
    """

    rows: Sequence[FeedRow]
    searched_rows: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class FeedExcerpt:
    """Some lines of one table, in which long texts are shortened.

    Attributes:
        sheet: The name of the sheet, or None in formats without sheets.
        headers: The headers of the table.
        rows: The line number and the texts of the cells of each line.
    """

    sheet: str | None
    headers: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class SnapshotSample:
    """First records of a stored file.

    Attributes:
        records: The values of each record, by header of the column.
        failure: The reason why reading ended before the end of the file, or None.
        mapping: The column mapping of the first table.
        problems: The problems in these records.
    """

    records: Sequence[Mapping[str, Any]]
    failure: str | None = None
    mapping: HeaderMapping | None = None
    problems: Sequence[Problem] = ()
