"""Preview of how a column's samples are read as a field, before the mapping is confirmed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from domain.catalogue.statements import ProductStatement
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.columns.settings import validate_settings
from domain.ingestion.mapping.columns import SECOND_FIELD
from domain.ingestion.model import Column, FeedSettings, HeaderMapping
from domain.ingestion.normalisation import normalise_rows
from domain.ingestion.vocabulary.fields import KEYS, is_field
from domain.kernel.errors import DomainError
from domain.kernel.json_values import to_json_value
from domain.mappings.model import SourceMapping

_DERIVED_FIELDS = frozenset({"currency", "availability", "position", "role", "index"})
"""Fields that are derived from other values; previews omit them unless an offer has no other field."""
_EXPLANATIONS = frozenset({"unit_by", SECOND_FIELD})
"""Settings that explain a proposal, and that people cannot set."""
_CONTEXT_FIELDS = frozenset({"currency", "dimension_unit", "weight_unit"})
"""Fields of other columns on which the values of a column depend."""


@dataclass(frozen=True, slots=True)
class SampleResult:
    """Result of reading one sample of a column.

    Attributes:
        cell: The sample.
        values: The path and value of each field that was read from the sample.
        problem: The first problem, or None.
    """

    cell: str
    values: tuple[tuple[str, Any], ...]
    problem: str | None = None


def preview_column(mapping: SourceMapping, column: Column, settings: FeedSettings) -> Sequence[SampleResult]:
    """Return the values and problems of a column's samples, read without other columns except those of units and currencies.

    Return an empty sequence if the field or a setting of the column is invalid.
    """
    if not is_field(column.field):
        return ()
    requested = {name: value for name, value in column.settings.items() if name not in _EXPLANATIONS}
    settings_read, faults = validate_settings(column.field, requested, {})
    if faults:
        return ()
    single_column = replace(column, settings=settings_read)
    try:
        context = [one for one in mapping.columns if one.field in _CONTEXT_FIELDS and one.position != column.position]
        plan = ReadPlan(HeaderMapping(mapping.headers, (single_column, *context), ()), settings)
    except (DomainError, ValueError):
        return ()
    return [_read_sample(row, column, plan) for row in mapping.samples if column.position < len(row)]


def _read_sample(row: Sequence[str], column: Column, plan: Any) -> SampleResult:
    """Return the values and the first problem of the column's cell in a sample row.

    `plan` is a ReadPlan with this column only.
    """
    cell = row[column.position]
    if not cell:
        return SampleResult(cell, ())
    if column.field in KEYS and column.field != "title":
        return SampleResult(cell, ((column.field, cell),))
    statement, problems = normalise_rows("sample", [(1, plan.replace_values(list(row)))], plan)
    own = [problem for problem in problems if problem.column in (None, column.column)]
    problem = own[0].detail if own else None
    return SampleResult(cell, tuple(_iterate_values(statement)) if statement else (), problem)


def _iterate_values(statement: ProductStatement) -> Iterator[tuple[str, Any]]:
    """Yield the path and value of each field of a product, its variants and their offers."""
    yield from _flatten("", to_json_value(statement.data))
    for variant in statement.variants:
        yield from _flatten("", to_json_value(variant.data))
        for offer in variant.offers:
            leaves = list(_flatten("", to_json_value(offer.data)))
            yield from [leaf for leaf in leaves if leaf[0] not in _DERIVED_FIELDS] or leaves


def _flatten(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each value with its dotted path; a measure or a list of texts is one value."""
    if isinstance(value, Mapping) and "given" not in value and value:
        for name, inner in value.items():
            if name not in ("role", "position"):
                yield from _flatten(f"{path}.{name}" if path else str(name), inner)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for inner in value:
            yield from _flatten(path, inner)
    elif value not in (None, "", [], {}):
        yield path, value
