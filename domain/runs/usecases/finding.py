"""Rows of a feed that are sought by what stands in them, so that people see what a product was read from."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from domain.ingestion.model import FeedTable, Row
from domain.ingestion.reading import FoundRow, FoundRows

LONGEST: Final = 2_000
"""Characters of a cell that are told."""
COLUMNS: Final = 300
"""Columns of a row that are told."""


def find_in_tables(tables: Iterator[FeedTable], texts: Collection[str], most: int, limit: int | None) -> FoundRows:
    """The first `most` rows that have one of the texts as a cell, among the first `limit`."""
    sought = frozenset(texts)
    found: list[FoundRow] = []
    looked = 0
    for table in tables:
        left = None if limit is None else limit - looked
        for line, cells in islice(table.rows, left):
            looked += 1
            if any(_text(cell) in sought for cell in cells if cell is not None):
                found.append(_row(table, (line, cells)))
                if len(found) >= most:
                    return FoundRows(found, looked, whole=False)
        if limit is not None and looked >= limit:
            return FoundRows(found, looked, whole=False)
    return FoundRows(found, looked, whole=True)


def find_in_records(
    records: Iterable[Mapping[str, Any]], texts: Collection[str], most: int, limit: int | None
) -> FoundRows:
    """The first `most` pushed records whose product or a variant of it goes by one of the texts."""
    sought = frozenset(texts)
    found: list[FoundRow] = []
    looked = 0
    for record in islice(records, limit):
        looked += 1
        named = [record["product"], *record.get("variants", ())]
        if any(str(one.get(name)) in sought for one in named for name in ("external_id", "sku")):
            found.append(FoundRow(None, looked, tuple(_leaves(record, ""))[:COLUMNS]))
            if len(found) >= most:
                break
    return FoundRows(found, looked, whole=len(found) < most and (limit is None or looked < limit))


def _row(table: FeedTable, row: Row) -> FoundRow:
    line, cells = row
    named = zip(table.headers, cells, strict=False)
    told = [(header, _text(cell)[:LONGEST]) for header, cell in islice(named, COLUMNS)]
    return FoundRow(table.sheet, line, tuple(told))


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """The values of a record by their dotted paths."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _leaves(part, f"{path}.{name}" if path else name)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, part in enumerate(value):
            yield from _leaves(part, f"{path}.{number}")
    else:
        yield path, _text(value)[:LONGEST]
