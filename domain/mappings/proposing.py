"""Proposals of mappings for the header sets that a run has read, and updates of stored proposals."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from domain.catalogue.model import Stream
from domain.ingestion.mapping.learned import digest_of
from domain.ingestion.model import HeaderMapping, MappingTier
from domain.ingestion.reading import MOST_TABLES, ReadTable, ReadTables
from domain.kernel.ids import new_id
from domain.kernel.plain import storable
from domain.mappings.asking import with_guessed
from domain.mappings.confirming import CUT
from domain.mappings.model import MappingStatus, SourceMapping

MOST_COLUMNS = 2_000
"""Maximum number of columns of a table that people can map."""
HEADER_BYTES = 128 << 10
"""Maximum number of characters of all headers of such a table."""
SAMPLE_ROWS = 5
_LOGGED_COLUMNS = 500
_LOGGED_CHARS = 200
_SAMPLE_CHARS = 100
_SAMPLES_CHARS = 48 << 10
_FEWEST_CHARS = 8


def few_rows(rows: Sequence[Sequence[str]], width: int) -> tuple[tuple[str, ...], ...]:
    """Return the first rows that are not blank, with cells shortened to a common limit on total size."""
    filled = [row for row in rows if any(cell.strip() for cell in row)][:SAMPLE_ROWS]
    longest = max(_FEWEST_CHARS, min(_SAMPLE_CHARS, _SAMPLES_CHARS // max(1, width * SAMPLE_ROWS)))
    return tuple(tuple(_shortened(cell, longest) for cell in row[:width]) for row in filled)


def _shortened(cell: str, longest: int) -> str:
    plain = cell if cell.isprintable() else "".join(letter if letter.isprintable() else " " for letter in cell)
    return plain if len(plain) <= longest else plain[: longest - 1] + CUT


def is_mappable(headers: Sequence[str]) -> bool:
    """Return whether a table has few and short enough headers to be mapped by people."""
    return 0 < len(headers) <= MOST_COLUMNS and sum(map(len, headers)) <= HEADER_BYTES


@dataclass(slots=True)
class TableLog:
    """Log of how a feed's tables are mapped: the first tables in full, each header set of a sheet once; totals for all."""

    first: list[ReadTable] = field(default_factory=list)
    columns: int = 0
    unmapped: int = 0
    room: int = MOST_COLUMNS * 4
    _seen: set[tuple[str | None, tuple[str, ...]]] = field(default_factory=set)

    def add(self, sheet: str | None, mapping: HeaderMapping, rows: Sequence[Sequence[str]], *, given: bool) -> None:
        """Add a table; `rows` are its first rows as texts, `given` states that its connector defines the columns."""
        if (sheet, mapping.headers) in self._seen:
            return
        self.columns += len(mapping.headers)
        self.unmapped += len(mapping.unmapped)
        if len(self.first) == MOST_TABLES or self.room <= 0:
            return
        self._seen.add((sheet, mapping.headers))
        asked = not given and is_mappable(mapping.headers)
        samples = few_rows(rows, len(mapping.headers)) if asked else ()
        logged = _clean(mapping if asked else _truncated(mapping))
        table = ReadTable(storable(sheet) if sheet else None, logged, samples, asked)
        self.room -= len(table.mapping.headers)
        self.first.append(table)

    def tables(self) -> ReadTables:
        """Return the tables and totals so far."""
        return ReadTables(tuple(self.first), self.columns, self.unmapped)


def _clean(mapping: HeaderMapping) -> HeaderMapping:
    """Return the mapping with all texts made storable."""
    return HeaderMapping(
        tuple(map(storable, mapping.headers)),
        tuple(
            replace(column, column=storable(column.column), settings=dict(column.settings))
            for column in mapping.columns
        ),
        tuple(replace(column, column=storable(column.column)) for column in mapping.unmapped),
        mapping.missing,
    )


def _truncated(mapping: HeaderMapping) -> HeaderMapping:
    """Return the first columns of a mapping, with shortened headers."""
    columns = tuple(
        replace(c, column=c.column[:_LOGGED_CHARS]) for c in mapping.columns if c.position < _LOGGED_COLUMNS
    )
    unmapped = tuple(
        replace(u, column=u.column[:_LOGGED_CHARS]) for u in mapping.unmapped if u.position < _LOGGED_COLUMNS
    )
    headers = tuple(header[:_LOGGED_CHARS] for header in mapping.headers[:_LOGGED_COLUMNS])
    return HeaderMapping(headers, columns, unmapped, mapping.missing)


def new_mapping(source: str, stream: Stream, table: ReadTable, now: datetime) -> SourceMapping:
    """Return the proposed mapping of a header set that is new to the source."""
    return SourceMapping(
        id=new_id("map"),
        source=source,
        digest=digest_of(table.mapping.headers),
        stream=stream,
        status=MappingStatus.PROPOSED,
        headers=table.mapping.headers,
        samples=table.samples,
        columns=table.mapping.columns,
        unmapped=table.mapping.unmapped,
        created_at=now,
        updated_at=now,
    )


def brought_up_to_date(known: SourceMapping, table: ReadTable, stream: Stream, now: datetime) -> SourceMapping:
    """Return the mapping as this run proposes it; the same object if it is confirmed or nothing changes.

    Columns of tier `model` are kept where they do not conflict with the new proposal, since a model is asked only once.
    """
    if known.status != MappingStatus.PROPOSED:
        return known
    proposed = replace(
        known,
        columns=table.mapping.columns,
        unmapped=table.mapping.unmapped,
        stream=stream,
        samples=table.samples or known.samples,
    )
    after = with_guessed(proposed, [column for column in known.columns if column.tier == MappingTier.MODEL])
    if (known.columns, known.unmapped, known.stream) == (after.columns, after.unmapped, stream):
        return known
    return replace(after, updated_at=now)
