"""What a column's samples would be read as under a field, before anybody confirms it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.catalogue.statements import ProductStatement
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.columns.settings import read_settings
from domain.ingestion.model import Column, FeedSettings, HeaderMapping
from domain.ingestion.normalise import normalise
from domain.ingestion.vocabulary.fields import KEYS, is_field
from domain.kernel.errors import DomainError
from domain.kernel.plain import plain
from domain.mappings.model import SourceMapping

_BESIDE = frozenset({"currency", "availability", "position", "role", "index"})
"""What follows from a value and is none of its own."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One sample: the cell, what it is read as (path and value), and what is wrong with it."""

    cell: str
    values: tuple[tuple[str, Any], ...]
    problem: str | None = None


def tried(mapping: SourceMapping, column: Column, settings: FeedSettings) -> Sequence[Tried]:
    """Each sample of the column as the field reads it alone; none for a field or settings that there are not."""
    if not is_field(column.field):
        return ()
    given = {name: value for name, value in column.settings.items() if name != "unit_by"}
    read, faults = read_settings(column.field, given, {})
    if faults:
        return ()
    alone = Column(column.position, column.column, column.field, read)
    try:
        plan = ReadPlan(HeaderMapping(mapping.headers, (alone,), ()), settings)
    except (DomainError, ValueError):
        return ()
    return [_read(row, column, plan) for row in mapping.samples if column.position < len(row)]


def _read(row: Sequence[str], column: Column, plan: Any) -> Tried:
    cell = row[column.position]
    if not cell:
        return Tried(cell, ())
    if column.field in KEYS and column.field != "title":
        return Tried(cell, ((column.field, cell),))
    statement, problems = normalise("sample", [(1, list(row))], plan)
    problem = problems[0].detail if problems else None
    return Tried(cell, tuple(_values(statement)) if statement else (), problem)


def _values(statement: ProductStatement) -> Iterator[tuple[str, Any]]:
    yield from _leaves("", plain(statement.data))
    for variant in statement.variants:
        yield from _leaves("", plain(variant.data))
        for offer in variant.offers:
            found = list(_leaves("", plain(offer.data)))
            yield from [one for one in found if one[0] not in _BESIDE] or found


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Values by dotted path; a measure or a list of texts is one value."""
    if isinstance(value, Mapping) and "given" not in value and value:
        for name, part in value.items():
            if name not in ("role", "position"):
                yield from _leaves(f"{path}.{name}" if path else str(name), part)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for part in value:
            yield from _leaves(path, part)
    elif value not in (None, "", [], {}):
        yield path, value
