"""Validation by JSON Schema (Draft 2020-12) with field, code and sentence of each fault (docs/conventions.md#error-fields)."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cached_property
from importlib.resources import files
from types import SimpleNamespace
from typing import Any, Final

import jsonschema_rs

from domain.kernel.closeness import FEW_NAMES, Closeness, listed
from domain.kernel.errors import FieldError
from domain.kernel.ids import LENGTH, NOUNS, prefix_in
from domain.kernel.schema import moment_of

_texts = tomllib.loads(files(__package__).joinpath("faults.toml").read_text("utf-8"))
FORMAT_WORDS: Final[dict[str, str]] = _texts["formats"]
TYPE_WORDS: Final[dict[str, str]] = _texts["types"]
CODES: Final[dict[str, str]] = _texts["codes"]
SENTENCES: Final[dict[str, str]] = _texts["sentences"]
COUNTED: Final[dict[str, list[str]]] = _texts["counted"]


def words_of(schema: Mapping[str, Any]) -> str | None:
    """Return a noun phrase for the schema's pattern or format; None if it has none."""
    prefix = prefix_in(str(schema.get("pattern", "")))
    if prefix is not None:
        return id_words(prefix)
    words = schema.get("x-words") or FORMAT_WORDS.get(str(schema.get("format")))
    return None if words is None else str(words)


def id_words(prefix: str) -> str:
    """Return the noun phrase of an ID: `the ID of a product (prod_ and 22 letters and digits)`."""
    return f"the ID of {NOUNS[prefix]} ({prefix}_ and {LENGTH} letters and digits)"


LONGEST_SENTENCE = 400
"""Maximum characters of a sentence."""
_LONGEST_EXAMPLE = 100
Given = Mapping[str, Any]


def sentence(keyword: str, wanted: Any, value: Any, schema: Given, closeness: Closeness) -> str:
    """Return the sentence of one fault of `keyword`, whose value in `schema` is `wanted`.

    No sentence contains the invalid value, because it may be a secret, or large.
    """
    if keyword in SENTENCES:
        about = str(schema.get("description", "")).strip()
        text = SENTENCES[keyword].format(wanted=_format_value(wanted), about=about).strip()
    elif keyword in COUNTED:
        text = _count_sentence(keyword, wanted, len(value))
    elif keyword == "type":
        text = _type_sentence(wanted, value, schema)
    elif keyword == "enum":
        text = _enum_sentence([_format_value(one) for one in wanted], value, closeness)
    elif keyword in ("pattern", "format"):
        text = _pattern_sentence(schema)
    elif keyword in ("minimum", "maximum"):
        low, high = schema.get("minimum"), schema.get("maximum")
        both = low is not None and high is not None
        text = (
            f"Must be between {low} and {high}."
            if both
            else f"Must be at {'most' if low is None else 'least'} {wanted}."
        )
    elif keyword == "propertyNames":
        text = _name_sentence(wanted if isinstance(wanted, Mapping) else schema.get("propertyNames"))
    else:
        text = f"Must be {wanted_by(schema)}."
    return text if len(text) <= LONGEST_SENTENCE else text[: LONGEST_SENTENCE - 1] + "…"


def missing(name: str, schema: Given) -> str:
    """Return the sentence for a missing required field."""
    inner = schema.get("properties", {}).get(name)
    return f"This field is required: {wanted_by(inner)}." if isinstance(inner, Mapping) else "This field is required."


def unknown(name: str, known: Sequence[str], closeness: Closeness, what: str = "field") -> str:
    """Return the sentence for an unknown field or parameter."""
    if not known:
        return f"This {what} does not exist: none is accepted here."
    closest = closeness.closest(name, known)
    if closest is not None:
        return f"This {what} does not exist. Did you mean {closest}?"
    return f"This {what} does not exist. Available: {listed(sorted(known), FEW_NAMES)}."


def wanted_by(schema: Given) -> str:
    """Return the schema's allowed values as a noun phrase: `text, such as oak`."""
    if "const" in schema:
        return _format_value(schema["const"])
    if "enum" in schema:
        return _one_of_phrase(listed([_format_value(one) for one in schema["enum"]]), len(schema["enum"]))
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        typed_branches = [branch for branch in branches if isinstance(branch, Mapping) and branch.get("type") != "null"]
        wanted = " or ".join(dict.fromkeys(wanted_by(branch) for branch in typed_branches))
        return wanted if len(typed_branches) == len(branches) else f"null or {wanted}"
    if schema.get("type") == "object" and schema.get("required"):
        return f"an object with {' and '.join(schema['required'])}"
    return (words_of(schema) or _type_phrase(schema.get("type"))) + _example_phrase(schema)


def _one_of_phrase(values: str, count: int) -> str:
    return values if count == 1 else f"one of {values}"


def _type_phrase(given: Any) -> str:
    names = [given] if isinstance(given, str) else list(given or ())
    return " or ".join(TYPE_WORDS[name] for name in names if name in TYPE_WORDS) or "another value"


def _example_phrase(schema: Given) -> str:
    for example in schema.get("examples", ()):
        if isinstance(example, bool) or example is None or example == "":
            continue
        if isinstance(example, (str, int, float, Decimal)) and len(str(example)) <= _LONGEST_EXAMPLE:
            return f", such as {example}"
    return ""


def _format_value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value) if isinstance(value, (str, int, float, Decimal)) else _type_name(value)


def _type_name(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return _format_value(value)
    if isinstance(value, str):
        return "text"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return "a number" if isinstance(value, int) else "a number with a fraction"


def _type_sentence(wanted: Any, value: Any, schema: Given) -> str:
    kinds = [wanted] if isinstance(wanted, str) else list(wanted)
    unquoted = isinstance(value, str) and (
        (value in ("true", "false") and "boolean" in kinds) or (value.isdigit() and {"integer", "number"} & set(kinds))
    )
    statement = f"Must be {_type_phrase(wanted)}{_example_phrase(schema)}; this is {_type_name(value)}."
    return f"{statement} Leave out the quotation marks." if unquoted else statement


def _enum_sentence(known: list[str], value: Any, closeness: Closeness) -> str:
    closest = closeness.closest(value, known) if isinstance(value, str) else None
    if closest is None:
        return f"Must be {_one_of_phrase(listed(known), len(known))}."
    if value.lower() == closest:
        return f"Use lower case: {closest}."
    if value.upper() == closest:
        return f"Use upper case: {closest}."
    if value.strip().lower() == closest.lower():
        return f"Write it exactly as {closest}."
    return f"Did you mean {closest}? Must be {_one_of_phrase(closeness.listed(value, known), len(known))}."


def _name_sentence(schema: Any) -> str:
    noun_phrase = words_of(schema) if isinstance(schema, Mapping) else None
    return (
        f"A field name is not allowed: names must be {noun_phrase}." if noun_phrase else "A field name is not allowed."
    )


def _pattern_sentence(schema: Given) -> str:
    noun_phrase = words_of(schema)
    if noun_phrase is not None:
        return f"Must be {noun_phrase}{_example_phrase(schema)}."
    about = str(schema.get("description") or schema.get("title") or "").strip().rstrip(".")
    return f"Has the wrong format{f': {about}' if about else ''}{_example_phrase(schema)}."


def _count_sentence(keyword: str, wanted: int, count: int) -> str:
    least = keyword.startswith("min")
    if least and wanted == 1:
        return "Must not be empty."
    return (
        f"Must have at {'least' if least else 'most'} {wanted} {COUNTED[keyword][wanted != 1]}; this one has {count}."
    )


Path = list[str | int]
Found = tuple[Path, Any, Any]
FEW_VALUES = 1000
"""Number of values up to which all errors of a body are collected."""
_NESTED_KEYWORDS = ("properties", "items", "additionalProperties", "anyOf", "oneOf")
_LOCAL_KEYWORDS = frozenset(
    "type enum const pattern format minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf "
    "minItems maxItems uniqueItems minProperties maxProperties required properties additionalProperties title "
    "description examples default x-words $schema $id".split()
)
"""Keywords that do not refer to other parts of the schema."""


def has_few_values(value: Any) -> bool:
    """Return whether the value contains at most FEW_VALUES others."""
    left, open_ = FEW_VALUES, [value]
    while open_:
        item = open_.pop()
        if isinstance(item, (dict, list)):
            left -= len(item)
            if left < 0:
                return False
            open_.extend(item.values() if isinstance(item, dict) else item)
    return True


class Part:
    """One place of a schema, compiled on first use separately from its nested places. `options` are those of the library."""

    def __init__(self, schema: Any, options: Mapping[str, Any]) -> None:
        self._schema, self._options = schema, options

    def errors(self, value: Any, at: Path) -> Iterator[Found]:
        """Yield the errors of a value.

        Each comes with the path of the value in which it was found, and the schema to which its own path is relative.
        """
        if self._whole_validator.is_valid(value):
            return
        if not self._allows_container(value):
            stand_in: Any = {} if isinstance(value, dict) else []
            for name in self._schema.keys() & {"type", "enum", "const"}:
                kind = SimpleNamespace(name=name, value=self._schema[name])
                yield (
                    at,
                    SimpleNamespace(kind=kind, instance=stand_in, schema_path=(name,), instance_path=()),
                    self._schema,
                )
            return
        for error in self._own_errors(value):
            yield at, error, self._schema
        for name, part, inner in self._members(value):
            yield from part.errors(inner, [*at, name])
        if (closest := self._intended_branch(value)) is not None:
            yield from closest.errors(value, at)

    def _members(self, value: Any) -> Iterator[tuple[str | int, "Part", Any]]:
        """Yield the members of the value, each with the part that applies to it."""
        if isinstance(value, dict):
            for name, inner in value.items():
                if (part := self._properties.get(name, self._additional)) is not None:
                    yield name, part, inner
        elif isinstance(value, list) and (items := self._items) is not None:
            for index, inner in enumerate(value):
                yield index, items, inner

    def _allows_container(self, value: Any) -> bool:
        """Return whether a container may have this type; the library would include all of it in its message."""
        if not isinstance(value, (dict, list)) or not self._can_split or "type" not in self._schema:
            return True
        return ("object" if isinstance(value, dict) else "array") in self._schema["type"]

    @cached_property
    def _whole_validator(self) -> Any:
        return self._compile(self._schema)

    @cached_property
    def _can_split(self) -> bool:
        """True if the schema can be split; a schema with references cannot."""
        return isinstance(self._schema, dict) and "$ref" not in repr(self._schema)

    @cached_property
    def _own_validator(self) -> Any:
        """The schema without what its nested parts check."""
        if not self._can_split:
            return self._whole_validator
        schema = {name: given for name, given in self._schema.items() if name not in _NESTED_KEYWORDS}
        if self._properties:
            schema["properties"] = dict.fromkeys(self._properties, True)
        if self._schema.get("additionalProperties") is False:
            schema["additionalProperties"] = False
        for name in ("anyOf", "oneOf"):
            if name in self._schema:
                schema["anyOf"] = [_type_only(branch) for branch in self._schema[name]]
        return self._compile(schema)

    @cached_property
    def _is_plain(self) -> bool:
        return self._can_split and self._schema.keys() <= _LOCAL_KEYWORDS | set(_NESTED_KEYWORDS)

    @cached_property
    def _properties(self) -> dict[str, "Part"]:
        given = self._schema.get("properties", {}) if self._can_split else {}
        return {name: Part(schema, self._options) for name, schema in given.items()}

    @cached_property
    def _additional(self) -> "Part | None":
        return self._part("additionalProperties")

    @cached_property
    def _items(self) -> "Part | None":
        return self._part("items")

    @cached_property
    def _branches(self) -> list[tuple[Any, "Part"]]:
        given = (self._schema.get("anyOf") or self._schema.get("oneOf") or []) if self._can_split else []
        return [(self._compile(_type_only(branch)), Part(branch, self._options)) for branch in given]

    def _part(self, name: str) -> "Part | None":
        given = self._schema.get(name) if self._can_split else None
        return Part(given, self._options) if isinstance(given, dict) else None

    def _intended_branch(self, value: Any) -> "Part | None":
        """Return the intended alternative: the only one whose type fits the value, or None."""
        fitting = [part for typed, part in self._branches if typed.is_valid(value)]
        return fitting[0] if len(fitting) == 1 else None

    def _own_errors(self, value: Any) -> Iterator[Any]:
        if self._is_plain:
            yield from self._own_validator.iter_errors(value)
            return
        try:
            self._own_validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            yield error

    def _compile(self, schema: Any) -> Any:
        return jsonschema_rs.Draft202012Validator(schema, **self._options)


def _type_only(branch: Any) -> Any:
    return {"type": branch["type"]} if isinstance(branch, dict) and "type" in branch else True


MOST_FAULTS = 100
"""Maximum faults reported per request."""
LONGEST_FIELD = 300
"""Maximum characters of a field name."""


_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})")

Names = Callable[[Sequence[str | int]], str]
Fault = tuple[Sequence[str | int], str, str]


def is_moment(text: str) -> bool:
    """Return whether the text is an RFC 3339 time with offset that a UTC datetime can represent (so no leap second)."""
    try:
        return _MOMENT.fullmatch(text) is not None and moment_of(text) is not None
    except (ValueError, OverflowError):
        return False


def is_day(text: str) -> bool:
    """Return whether the text is an RFC 3339 full date."""
    try:
        return len(text) == 10 and text[4] == "-" and date.fromisoformat(text) is not None
    except ValueError:
        return False


FORMATS: Final[dict[str, Callable[[str], bool]]] = {"date-time": is_moment, "date": is_day}


def dotted(path: Sequence[str | int]) -> str:
    """Return the dotted path of a body's field; the body itself is `body`."""
    return ".".join(map(str, path)) or "body"


def in_query(path: Sequence[str | int]) -> str:
    """Return the path of a query parameter."""
    return ".".join(("query", *map(str, path)))


class Validator:
    """Compiled schema. `names` converts a path into a field name."""

    def __init__(self, schema: Mapping[str, Any], names: Names = dotted) -> None:
        self._part = Part(dict(schema), {"validate_formats": True, "formats": FORMATS})
        self._schema = jsonschema_rs.Draft202012Validator(dict(schema), validate_formats=True, formats=FORMATS)
        self.schema: Final = dict(schema)
        self._names = names

    def faults(self, value: Any) -> tuple[FieldError, ...]:
        """Return the faults of the value in the order of the schema; at most MOST_FAULTS + 1."""
        if self._schema.is_valid(value):
            return ()
        found: dict[tuple[str, str], FieldError] = {}
        for path, code, detail in self._find_faults(value):
            fault = FieldError(self._names(path)[:LONGEST_FIELD], code, detail)
            found.setdefault((fault.field, fault.code), fault)
            if len(found) > MOST_FAULTS:
                break
        return tuple(found.values())

    def _find_faults(self, value: Any) -> Iterator[Fault]:
        telling = Telling("parameter" if self._names is in_query else "field")
        if has_few_values(value):
            for error in self._schema.iter_errors(value):
                yield from telling.faults(error, [], self.schema)
            return
        has_errors = False
        for at, error, schema in self._part.errors(value, []):
            has_errors = True
            yield from telling.faults(error, at, schema)
        if not has_errors:
            yield [], "invalid_value", f"Must be {wanted_by(self.schema)}."


class Telling:
    """Converter of one request's errors into faults. `what` is `field` or `parameter`."""

    def __init__(self, what: str) -> None:
        self._what, self._closeness = what, Closeness()

    def faults(self, error: Any, at: Path, whole: Any) -> Iterator[Fault]:
        """Yield one error as faults: missing and unknown fields by their own name, alternatives by the best branch.

        `at` is the path of the validated value, `whole` its schema.
        """
        kind, path = error.kind, [*at, *error.instance_path]
        schema = _schema_at(whole, error.schema_path)
        if kind.name == "required":
            yield [*path, kind.property], "required", missing(kind.property, schema)
        elif kind.name in ("additionalProperties", "unevaluatedProperties"):
            known = list(schema.get("properties", {}))
            for name in kind.unexpected:
                yield [*path, name], "unknown_field", unknown(name, known, self._closeness, self._what)
        elif kind.name in ("anyOf", "oneOf") and (branch := _best_branch(kind, list(error.instance_path))):
            for inner in branch:
                yield from self.faults(inner, at, whole)
        else:
            several = type(kind).__name__ == "OneOfMultipleValid"
            keyword = "oneOfMultiple" if several else kind.name
            statement = sentence(keyword, getattr(kind, "value", None), error.instance, schema, self._closeness)
            yield path, CODES.get(kind.name, _alternative_code(kind)), statement


def _schema_at(schema: Any, path: Sequence[str | int]) -> Mapping[str, Any]:
    """Return the schema that contains the path's keyword; empty if it cannot be found."""
    for step in list(path)[:-1]:
        if isinstance(schema, Mapping):
            schema = schema.get(step, schema.get("oneOf") if step == "anyOf" else None)
        elif isinstance(schema, list) and isinstance(step, int) and step < len(schema):
            schema = schema[step]
        else:
            return {}
    return schema if isinstance(schema, Mapping) else {}


def _alternative_code(kind: Any) -> str:
    context = getattr(kind, "context", None)
    every = context and all(any(error.kind.name == "type" for error in branch) for branch in context)
    return "invalid_type" if every else "invalid_value"


def _best_branch(kind: Any, path: list[str | int]) -> list[Any] | None:
    """Return the errors of the intended branch: the only one whose type fits the value, or None."""
    context = getattr(kind, "context", None) or []
    fitting = [b for b in context if not any(e.kind.name == "type" and list(e.instance_path) == path for e in b)]
    return fitting[0] if len(fitting) == 1 else None


class SchemaFaults:
    """Implementation of ports.schemas.Schemas; compiles a schema on each call, as settings seldom change."""

    def faults(self, schema: Mapping[str, Any], value: Any, path: str) -> tuple[FieldError, ...]:
        """Return the faults of the value, each with its dotted path below `path`."""

        def prefixed(parts: Sequence[str | int]) -> str:
            return ".".join((path, *map(str, parts)))

        return Validator(schema, prefixed).faults(value)


def summary_of(faults: Sequence[FieldError]) -> str:
    """Return the first fault as a sentence, and the number of further ones."""
    first = f"{faults[0].field}: {faults[0].detail}"
    if len(faults) == 1:
        return first
    others = f"{len(faults) - 1}" if len(faults) <= MOST_FAULTS else f"at least {MOST_FAULTS}"
    return f"{first} See errors[] for {others} more."
