"""The mappings of the header sets that a run has read: what is kept of a table, and how it is brought up to date."""

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
"""Columns of a table that is mapped by people."""
HEADER_BYTES = 128 << 10
"""Characters of all its headers together."""
SAMPLE_ROWS = 5
_TOLD_COLUMNS = 500
_TOLD_CHARS = 200
_SAMPLE_CHARS = 100
_SAMPLES_CHARS = 48 << 10
_FEWEST_CHARS = 8


def few_rows(rows: Sequence[Sequence[str]], width: int) -> tuple[tuple[str, ...], ...]:
    """The first rows with something in them, each cell shortened so that all together stay small."""
    filled = [row for row in rows if any(cell.strip() for cell in row)][:SAMPLE_ROWS]
    longest = max(_FEWEST_CHARS, min(_SAMPLE_CHARS, _SAMPLES_CHARS // max(1, width * SAMPLE_ROWS)))
    return tuple(tuple(_shortened(cell, longest) for cell in row[:width]) for row in filled)


def _shortened(cell: str, longest: int) -> str:
    plain = cell if cell.isprintable() else "".join(letter if letter.isprintable() else " " for letter in cell)
    return plain if len(plain) <= longest else plain[: longest - 1] + CUT


def is_mappable(headers: Sequence[str]) -> bool:
    """Whether people can be asked about a table of these headers: a few thousand columns are nobody's to review."""
    return 0 < len(headers) <= MOST_COLUMNS and sum(map(len, headers)) <= HEADER_BYTES


@dataclass(slots=True)
class TableLog:
    """How the tables of a feed are read: the first of them one by one, each header set of a sheet once; all are counted."""

    first: list[ReadTable] = field(default_factory=list)
    columns: int = 0
    unmapped: int = 0
    room: int = MOST_COLUMNS * 4
    _seen: set[tuple[str | None, tuple[str, ...]]] = field(default_factory=set)

    def add(self, sheet: str | None, mapping: HeaderMapping, rows: Sequence[Sequence[str]], *, given: bool) -> None:
        """Note one; `rows` are its first rows as texts, `given` says that its connector knows what the columns mean."""
        if (sheet, mapping.headers) in self._seen:
            return
        self.columns += len(mapping.headers)
        self.unmapped += len(mapping.unmapped)
        if len(self.first) == MOST_TABLES or self.room <= 0:
            return
        self._seen.add((sheet, mapping.headers))
        asked = not given and is_mappable(mapping.headers)
        samples = few_rows(rows, len(mapping.headers)) if asked else ()
        told = _clean(mapping if asked else _beginning(mapping))
        table = ReadTable(storable(sheet) if sheet else None, told, samples, asked)
        self.room -= len(table.mapping.headers)
        self.first.append(table)

    def tables(self) -> ReadTables:
        """What there is by now."""
        return ReadTables(tuple(self.first), self.columns, self.unmapped)


def _clean(mapping: HeaderMapping) -> HeaderMapping:
    """The mapping with its texts as databases and messages take them."""
    return HeaderMapping(
        tuple(map(storable, mapping.headers)),
        tuple(replace(one, column=storable(one.column), settings=dict(one.settings)) for one in mapping.columns),
        tuple(replace(one, column=storable(one.column)) for one in mapping.unmapped),
        mapping.missing,
    )


def _beginning(mapping: HeaderMapping) -> HeaderMapping:
    """The first columns of a mapping, their headers shortened: enough to tell of."""
    columns = tuple(replace(c, column=c.column[:_TOLD_CHARS]) for c in mapping.columns if c.position < _TOLD_COLUMNS)
    unmapped = tuple(replace(u, column=u.column[:_TOLD_CHARS]) for u in mapping.unmapped if u.position < _TOLD_COLUMNS)
    headers = tuple(header[:_TOLD_CHARS] for header in mapping.headers[:_TOLD_COLUMNS])
    return HeaderMapping(headers, columns, unmapped, mapping.missing)


def new_mapping(source: str, stream: Stream, table: ReadTable, now: datetime) -> SourceMapping:
    """The mapping of a header set that the source has not had before."""
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
    """The mapping as this run proposes it; the very same one where nothing changes, or a person has confirmed it.

    What a model was asked before, and still stands beside the rest, is kept: it is not asked the same thing twice.
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
