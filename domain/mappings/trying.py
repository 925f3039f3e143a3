"""Preview of how a column's samples would be read as a field, before the mapping is confirmed."""

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

_DERIVED = frozenset({"currency", "availability", "position", "role", "index"})
"""Fields that are derived from another value."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One sample: the cell, the path and value of each field read from it, and its first problem."""

    cell: str
    values: tuple[tuple[str, Any], ...]
    problem: str | None = None


def tried(mapping: SourceMapping, column: Column, settings: FeedSettings) -> Sequence[Tried]:
    """Return each sample as read by this column alone; empty if the field or a setting is invalid."""
    if not is_field(column.field):
        return ()
    given = {name: value for name, value in column.settings.items() if name != "unit_by"}
    settings_read, faults = read_settings(column.field, given, {})
    if faults:
        return ()
    alone = Column(column.position, column.column, column.field, settings_read)
    try:
        plan = ReadPlan(HeaderMapping(mapping.headers, (alone,), ()), settings)
    except (DomainError, ValueError):
        return ()
    return [_read_sample(row, column, plan) for row in mapping.samples if column.position < len(row)]


def _read_sample(row: Sequence[str], column: Column, plan: Any) -> Tried:
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
            leaves = list(_leaves("", plain(offer.data)))
            yield from [leaf for leaf in leaves if leaf[0] not in _DERIVED] or leaves


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values with their dotted paths; a measure or a list of texts is one value."""
    if isinstance(value, Mapping) and "given" not in value and value:
        for name, part in value.items():
            if name not in ("role", "position"):
                yield from _leaves(f"{path}.{name}" if path else str(name), part)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for part in value:
            yield from _leaves(path, part)
    elif value not in (None, "", [], {}):
        yield path, value
