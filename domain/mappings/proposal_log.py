"""Record of the tables that a run has read, and proposals of column mappings for these tables."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from domain.catalogue.model import Stream
from domain.ingestion.mapping.columns import SECOND_FIELD, add_second_field
from domain.ingestion.mapping.learned import compute_header_digest
from domain.ingestion.model import HeaderMapping, MappingTier
from domain.ingestion.snapshot_results import MAX_LISTED_TABLES, MappedTable, TableSummary
from domain.kernel.ids import new_id
from domain.kernel.json_values import replace_unstorable
from domain.mappings.confirmation import ELLIPSIS
from domain.mappings.model import MappingStatus, SourceMapping
from domain.mappings.model_requests import add_model_columns

MAX_COLUMNS = 2_000
"""Maximum number of columns of a table that users can map."""
MAX_HEADER_CHARS = 128 << 10
"""Maximum total number of characters of the headers of a table that users can map."""
MAX_SAMPLE_ROWS = 5
"""Maximum number of sample rows of a table."""
_LOGGED_COLUMNS = 500
_LOGGED_CHARS = 200
_SAMPLE_CHARS = 100
_SAMPLES_CHARS = 48 << 10
_MIN_CELL_CHARS = 8


def select_samples(rows: Sequence[Sequence[str]], width: int) -> tuple[tuple[str, ...], ...]:
    """Return the first `MAX_SAMPLE_ROWS` rows that are not blank, as samples of a table with `width` columns.

    Further cells of a row are omitted. Long cells are shortened; the more columns, the shorter the cells.
    """
    filled = [row for row in rows if any(cell.strip() for cell in row)][:MAX_SAMPLE_ROWS]
    max_chars = max(_MIN_CELL_CHARS, min(_SAMPLE_CHARS, _SAMPLES_CHARS // max(1, width * MAX_SAMPLE_ROWS)))
    return tuple(tuple(_shorten(cell, max_chars) for cell in row[:width]) for row in filled)


def _shorten(cell: str, max_chars: int) -> str:
    """Replace characters of a cell that cannot be printed by spaces, and shorten the cell to `max_chars` characters."""
    plain = cell if cell.isprintable() else "".join(letter if letter.isprintable() else " " for letter in cell)
    return plain if len(plain) <= max_chars else plain[: max_chars - 1] + ELLIPSIS


def is_mappable(headers: Sequence[str]) -> bool:
    """Return whether users can map a table with these headers: the headers are not too many and not too long."""
    return 0 < len(headers) <= MAX_COLUMNS and sum(map(len, headers)) <= MAX_HEADER_CHARS


@dataclass(slots=True)
class TableLog:
    """Record of how the tables of a feed are mapped.

    Only the first tables are recorded in detail, and each header set of a sheet once. Columns are counted for all
    header sets.

    Attributes:
        detailed_tables: The tables that are recorded in detail.
        column_count: The number of columns of all tables.
        unmapped_count: The number of unmapped columns of all tables.
        remaining_columns: The number of columns that can still be recorded in detail.
    """

    detailed_tables: list[MappedTable] = field(default_factory=list)
    column_count: int = 0
    unmapped_count: int = 0
    remaining_columns: int = MAX_COLUMNS * 4
    _seen: set[tuple[str | None, tuple[str, ...]]] = field(default_factory=set)

    def add_table(
        self, sheet: str | None, mapping: HeaderMapping, rows: Sequence[Sequence[str]], *, is_predefined: bool
    ) -> None:
        """Add a table to the record.

        Args:
            sheet: The name of the sheet, or None.
            mapping: The mapping of the headers.
            rows: The first rows as texts.
            is_predefined: Whether the connector has defined the columns, so that users cannot map them.
        """
        if (sheet, mapping.headers) in self._seen:
            return
        self.column_count += len(mapping.headers)
        self.unmapped_count += len(mapping.unmapped)
        if len(self.detailed_tables) == MAX_LISTED_TABLES or self.remaining_columns <= 0:
            return
        self._seen.add((sheet, mapping.headers))
        is_confirmable = not is_predefined and is_mappable(mapping.headers)
        samples = select_samples(rows, len(mapping.headers)) if is_confirmable else ()
        logged = _make_storable(mapping if is_confirmable else _truncate(mapping))
        table = MappedTable(replace_unstorable(sheet) if sheet else None, logged, samples, is_confirmable)
        self.remaining_columns -= len(table.mapping.headers)
        self.detailed_tables.append(table)

    def build_summary(self) -> TableSummary:
        """Return the recorded tables and the total numbers of columns."""
        return TableSummary(tuple(self.detailed_tables), self.column_count, self.unmapped_count)


def _make_storable(mapping: HeaderMapping) -> HeaderMapping:
    """Return the mapping with characters in headers replaced if the database cannot store them."""
    return HeaderMapping(
        tuple(map(replace_unstorable, mapping.headers)),
        tuple(
            replace(column, column=replace_unstorable(column.column), settings=dict(column.settings))
            for column in mapping.columns
        ),
        tuple(replace(column, column=replace_unstorable(column.column)) for column in mapping.unmapped),
        mapping.missing,
    )


def _truncate(mapping: HeaderMapping) -> HeaderMapping:
    """Return the mapping with up to `_LOGGED_COLUMNS` columns and with headers of up to `_LOGGED_CHARS` characters."""
    columns = tuple(
        replace(c, column=c.column[:_LOGGED_CHARS]) for c in mapping.columns if c.position < _LOGGED_COLUMNS
    )
    unmapped = tuple(
        replace(u, column=u.column[:_LOGGED_CHARS]) for u in mapping.unmapped if u.position < _LOGGED_COLUMNS
    )
    headers = tuple(header[:_LOGGED_CHARS] for header in mapping.headers[:_LOGGED_COLUMNS])
    return HeaderMapping(headers, columns, unmapped, mapping.missing)


def propose_mapping(source: str, stream: Stream, table: MappedTable, now: datetime) -> SourceMapping:
    """Return a proposed mapping for a table with headers that the source has not had before."""
    return SourceMapping(
        id=new_id("map"),
        source=source,
        digest=compute_header_digest(table.mapping.headers),
        stream=stream,
        status=MappingStatus.PROPOSED,
        headers=table.mapping.headers,
        samples=table.samples,
        columns=table.mapping.columns,
        unmapped=table.mapping.unmapped,
        created_at=now,
        updated_at=now,
    )


def update_proposal(stored_mapping: SourceMapping, table: MappedTable, stream: Stream, now: datetime) -> SourceMapping:
    """Return a stored mapping with this run's proposal; if it is confirmed or unchanged, return the same object.

    Columns of tier `model` stay unless they conflict with the new proposal, and so do second fields, because a column is
    sent to a model only once.
    """
    if stored_mapping.status != MappingStatus.PROPOSED:
        return stored_mapping
    fields = {(one.position, one.field): one.find_setting(SECOND_FIELD) for one in stored_mapping.columns}
    proposed = replace(
        stored_mapping,
        columns=tuple(
            add_second_field(column, second) if (second := fields.get((column.position, column.field))) else column
            for column in table.mapping.columns
        ),
        unmapped=table.mapping.unmapped,
        stream=stream,
        samples=table.samples or stored_mapping.samples,
    )
    after = add_model_columns(
        proposed, [column for column in stored_mapping.columns if column.tier == MappingTier.MODEL]
    )
    if (stored_mapping.columns, stored_mapping.unmapped, stored_mapping.stream) == (
        after.columns,
        after.unmapped,
        stream,
    ):
        return stored_mapping
    return replace(after, updated_at=now)
