"""Validating values by JSON Schema (Draft 2020-12) and telling each fault by path and code (docs/conventions.md#error-fields)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Final

import jsonschema_rs

from domain.kernel.closeness import Closeness
from domain.kernel.errors import FieldError
from domain.kernel.schema import moment_of
from entrypoints.http.fault_search import Part, Path, has_few_values
from entrypoints.http.fault_sentences import missing, sentence, unknown, wanted_by

MOST_FAULTS: Final = 100
"""How many faults of a request are told."""
LONGEST_FIELD: Final = 300
"""Characters of a field's name."""

CODES: Final = {
    "type": "invalid_type",
    "enum": "invalid_value",
    "const": "invalid_value",
    "pattern": "invalid_format",
    "format": "invalid_format",
    "minLength": "too_short",
    "maxLength": "too_long",
    "minimum": "too_small",
    "exclusiveMinimum": "too_small",
    "maximum": "too_large",
    "exclusiveMaximum": "too_large",
    "minItems": "too_few",
    "minProperties": "too_few",
    "maxItems": "too_many",
    "maxProperties": "too_many",
    "uniqueItems": "duplicate",
    "required": "required",
    "additionalProperties": "unknown_field",
    "unevaluatedProperties": "unknown_field",
    "propertyNames": "unknown_field",
    "falseSchema": "unknown_field",
}
"""The code of each JSON Schema keyword; any other keyword is an `invalid_value`."""

_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})"
)

Names = Callable[[Sequence[str | int]], str]
Fault = tuple[Sequence[str | int], str, str]


def is_moment(text: str) -> bool:
    """Whether the text is an RFC 3339 time with offset that a datetime in UTC can hold (so no leap second)."""
    try:
        return _MOMENT.fullmatch(text) is not None and moment_of(text) is not None
    except (ValueError, OverflowError):
        return False


def is_day(text: str) -> bool:
    """Whether the text is an RFC 3339 full date."""
    try:
        return len(text) == 10 and text[4] == "-" and date.fromisoformat(text) is not None
    except ValueError:
        return False


FORMATS: Final[dict[str, Callable[[str], bool]]] = {"date-time": is_moment, "date": is_day}


def dotted(path: Sequence[str | int]) -> str:
    """The dotted path of a body's field; the body itself is called `body`."""
    return ".".join(map(str, path)) or "body"


def in_query(path: Sequence[str | int]) -> str:
    """The path of a query parameter."""
    return ".".join(("query", *map(str, path)))


class Validator:
    """One schema, compiled once. `names` turns a path into a field's name."""

    def __init__(self, schema: Mapping[str, Any], names: Names = dotted) -> None:
        self._part = Part(dict(schema), {"validate_formats": True, "formats": FORMATS})
        self._schema = jsonschema_rs.Draft202012Validator(dict(schema), validate_formats=True, formats=FORMATS)
        self.schema: Final = dict(schema)
        self._names = names

    def faults(self, value: Any) -> tuple[FieldError, ...]:
        """The faults of the value, in the order of the schema; none when it is valid, at most one over MOST_FAULTS."""
        if self._schema.is_valid(value):
            return ()
        found: dict[tuple[str, str], FieldError] = {}
        for path, code, detail in self._found(value):
            fault = FieldError(self._names(path)[:LONGEST_FIELD], code, detail)
            found.setdefault((fault.field, fault.code), fault)
            if len(found) > MOST_FAULTS:
                break
        return tuple(found.values())

    def _found(self, value: Any) -> Iterator[Fault]:
        telling = Telling("parameter" if self._names is in_query else "field")
        if has_few_values(value):
            for error in self._schema.iter_errors(value):
                yield from telling.faults(error, [], self.schema)
            return
        told = False
        for at, error, schema in self._part.errors(value, []):
            told = True
            yield from telling.faults(error, at, schema)
        if not told:
            yield [], "invalid_value", f"Must be {wanted_by(self.schema)}."


class Telling:
    """Tells the errors of one request as faults. `what` is what its names are names of."""

    def __init__(self, what: str) -> None:
        self._what, self._closeness = what, Closeness()

    def faults(self, error: Any, at: Path, whole: Any) -> Iterator[Fault]:
        """One error as faults: a missing or unknown field is named itself, alternatives by their best branch.

        `at` is the path of the value that was looked at, `whole` the schema it was held against.
        """
        kind, path = error.kind, [*at, *error.instance_path]
        schema = _place(whole, error.schema_path)
        if kind.name == "required":
            yield [*path, kind.property], "required", missing(kind.property, schema)
        elif kind.name in ("additionalProperties", "unevaluatedProperties"):
            known = list(schema.get("properties", {}))
            for name in kind.unexpected:
                yield [*path, name], "unknown_field", unknown(name, known, self._closeness, self._what)
        elif kind.name in ("anyOf", "oneOf") and (branch := _best(kind, list(error.instance_path))):
            for inner in branch:
                yield from self.faults(inner, at, whole)
        else:
            several = type(kind).__name__ == "OneOfMultipleValid"
            keyword = "oneOfMultiple" if several else kind.name
            said = sentence(keyword, getattr(kind, "value", None), error.instance, schema, self._closeness)
            yield path, CODES.get(kind.name, _alternative(kind)), said


def _place(schema: Any, path: Sequence[str | int]) -> Mapping[str, Any]:
    """The schema that the path's keyword stands in; an empty one where it cannot be found."""
    for step in list(path)[:-1]:
        if isinstance(schema, Mapping):
            schema = schema.get(step, schema.get("oneOf") if step == "anyOf" else None)
        elif isinstance(schema, list) and isinstance(step, int) and step < len(schema):
            schema = schema[step]
        else:
            return {}
    return schema if isinstance(schema, Mapping) else {}


def _alternative(kind: Any) -> str:
    context = getattr(kind, "context", None)
    every = context and all(any(error.kind.name == "type" for error in branch) for branch in context)
    return "invalid_type" if every else "invalid_value"


def _best(kind: Any, path: list[str | int]) -> list[Any] | None:
    """The branch that was meant: the only one whose type fits the value."""
    context = getattr(kind, "context", None) or []
    fitting = [b for b in context if not any(e.kind.name == "type" and list(e.instance_path) == path for e in b)]
    return fitting[0] if len(fitting) == 1 else None


class SchemaFaults:
    """ports.schemas.Schemas. A schema is compiled each time: settings are seldom changed."""

    def faults(self, schema: Mapping[str, Any], value: Any, path: str) -> tuple[FieldError, ...]:
        """What is wrong with the value, each fault under its dotted path below `path`."""

        def below(parts: Sequence[str | int]) -> str:
            return ".".join((path, *map(str, parts)))

        return Validator(schema, below).faults(value)
