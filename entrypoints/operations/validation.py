"""Validates values by JSON Schema (Draft 2020-12), and says of each fault where it is, its code and what is wanted (docs/conventions.md#error-fields)."""

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

_words = tomllib.loads(files(__package__).joinpath("faults.toml").read_text("utf-8"))
FORMAT_WORDS: Final[dict[str, str]] = _words["formats"]
TYPE_WORDS: Final[dict[str, str]] = _words["types"]
CODES: Final[dict[str, str]] = _words["codes"]
SENTENCES: Final[dict[str, str]] = _words["sentences"]
COUNTED: Final[dict[str, list[str]]] = _words["counted"]


def words_of(schema: Mapping[str, Any]) -> str | None:
    """What the schema's pattern or format asks for, or None where nothing says so."""
    prefix = prefix_in(str(schema.get("pattern", "")))
    if prefix is not None:
        return id_words(prefix)
    words = schema.get("x-words") or FORMAT_WORDS.get(str(schema.get("format")))
    return None if words is None else str(words)


def id_words(prefix: str) -> str:
    """What an id of that kind is: `the id of a product (prod_ and 22 letters and digits)`."""
    return f"the id of {NOUNS[prefix]} ({prefix}_ and {LENGTH} letters and digits)"


LONGEST_SENTENCE = 400
"""Characters of a sentence."""
_LONGEST_EXAMPLE = 100
Given = Mapping[str, Any]


def sentence(keyword: str, wanted: Any, value: Any, schema: Given, closeness: Closeness) -> str:
    """Return the sentence of one fault: `wanted` is what the keyword asks, `schema` where it stands.

    No sentence repeats the value: it may be a secret, or large.
    """
    if keyword in SENTENCES:
        about = str(schema.get("description", "")).strip()
        text = SENTENCES[keyword].format(wanted=_shown(wanted), about=about).strip()
    elif keyword in COUNTED:
        text = _counted(keyword, wanted, len(value))
    elif keyword == "type":
        text = _type(wanted, value, schema)
    elif keyword == "enum":
        text = _enum([_shown(one) for one in wanted], value, closeness)
    elif keyword in ("pattern", "format"):
        text = _pattern(schema)
    elif keyword in ("minimum", "maximum"):
        low, high = schema.get("minimum"), schema.get("maximum")
        both = low is not None and high is not None
        text = (
            f"Must lie between {low} and {high}."
            if both
            else f"Must be at {'most' if low is None else 'least'} {wanted}."
        )
    elif keyword == "propertyNames":
        text = _name(wanted if isinstance(wanted, Mapping) else schema.get("propertyNames"))
    else:
        text = f"Must be {wanted_by(schema)}."
    return text if len(text) <= LONGEST_SENTENCE else text[: LONGEST_SENTENCE - 1] + "…"


def missing(name: str, schema: Given) -> str:
    """What to say of a required field that is left out."""
    inner = schema.get("properties", {}).get(name)
    return f"This field is required: {wanted_by(inner)}." if isinstance(inner, Mapping) else "This field is required."


def unknown(name: str, known: Sequence[str], closeness: Closeness, what: str = "field") -> str:
    """What to say of a name that nobody knows here."""
    if not known:
        return f"There is no such {what}; none is taken here."
    meant = closeness.closest(name, known)
    if meant is not None:
        return f"There is no such {what}. Did you mean {meant}?"
    return f"There is no such {what}. These can be used: {listed(sorted(known), FEW_NAMES)}."


def wanted_by(schema: Given) -> str:
    """What the schema asks for, as the end of a sentence: `text, such as oak`."""
    if "const" in schema:
        return _shown(schema["const"])
    if "enum" in schema:
        return _one_of(listed([_shown(one) for one in schema["enum"]]), len(schema["enum"]))
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        told = [branch for branch in branches if isinstance(branch, Mapping) and branch.get("type") != "null"]
        wanted = " or ".join(dict.fromkeys(wanted_by(branch) for branch in told))
        return wanted if len(told) == len(branches) else f"null or {wanted}"
    if schema.get("type") == "object" and schema.get("required"):
        return f"an object with {' and '.join(schema['required'])}"
    return (words_of(schema) or _typed(schema.get("type"))) + _such_as(schema)


def _one_of(values: str, count: int) -> str:
    return values if count == 1 else f"one of {values}"


def _typed(given: Any) -> str:
    names = [given] if isinstance(given, str) else list(given or ())
    return " or ".join(TYPE_WORDS[name] for name in names if name in TYPE_WORDS) or "another value"


def _such_as(schema: Given) -> str:
    for example in schema.get("examples", ()):
        if isinstance(example, bool) or example is None or example == "":
            continue
        if isinstance(example, (str, int, float, Decimal)) and len(str(example)) <= _LONGEST_EXAMPLE:
            return f", such as {example}"
    return ""


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value) if isinstance(value, (str, int, float, Decimal)) else _what(value)


def _what(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return _shown(value)
    if isinstance(value, str):
        return "text"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return "a number" if isinstance(value, int) else "a number with a fraction"


def _type(wanted: Any, value: Any, schema: Given) -> str:
    kinds = [wanted] if isinstance(wanted, str) else list(wanted)
    unquoted = isinstance(value, str) and (
        (value in ("true", "false") and "boolean" in kinds) or (value.isdigit() and {"integer", "number"} & set(kinds))
    )
    said = f"Must be {_typed(wanted)}{_such_as(schema)}; this is {_what(value)}."
    return f"{said} Leave out the quotation marks." if unquoted else said


def _enum(known: list[str], value: Any, closeness: Closeness) -> str:
    meant = closeness.closest(value, known) if isinstance(value, str) else None
    if meant is None:
        return f"Must be {_one_of(listed(known), len(known))}."
    if value.lower() == meant:
        return f"Use lower case: {meant}."
    if value.upper() == meant:
        return f"Use upper case: {meant}."
    if value.strip().lower() == meant.lower():
        return f"Write it exactly so: {meant}."
    return f"Did you mean {meant}? Must be {_one_of(closeness.listed(value, known), len(known))}."


def _name(schema: Any) -> str:
    form = words_of(schema) if isinstance(schema, Mapping) else None
    return (
        f"The name of a field in it is not allowed: a name must be {form}." if form else "A name in it is not allowed."
    )


def _pattern(schema: Given) -> str:
    form = words_of(schema)
    if form is not None:
        return f"Must be {form}{_such_as(schema)}."
    about = str(schema.get("description") or schema.get("title") or "").strip().rstrip(".")
    return f"Does not have the form wanted here{f': {about}' if about else ''}{_such_as(schema)}."


def _counted(keyword: str, wanted: int, count: int) -> str:
    least = keyword.startswith("min")
    if least and wanted == 1:
        return "Must not be empty."
    return f"Must have at {'least' if least else 'most'} {wanted} {COUNTED[keyword][wanted != 1]}; this has {count}."


Path = list[str | int]
Found = tuple[Path, Any, Any]
FEW_VALUES = 1000
"""Values of a body whose errors may all be gathered."""
_APART = ("properties", "items", "additionalProperties", "anyOf", "oneOf")
_PLAIN = frozenset(
    "type enum const pattern format minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf "
    "minItems maxItems uniqueItems minProperties maxProperties required properties additionalProperties title "
    "description examples default x-words $schema $id".split()
)
"""Keywords that look no further than at their own value, or say nothing of it."""


def has_few_values(value: Any) -> bool:
    """Whether the value holds no more than FEW others."""
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
    """One place of a schema, its inner ones apart; made when it is first looked at. `options` are the library's."""

    def __init__(self, schema: Any, options: Mapping[str, Any]) -> None:
        self._schema, self._options = schema, options

    def errors(self, value: Any, at: Path) -> Iterator[Found]:
        """The errors, each with the path of the value that it was found in, and the schema that its own path starts at."""
        if self._whole.is_valid(value):
            return
        if not self._may_be(value):
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
        for name, part, inner in self._inside(value):
            yield from part.errors(inner, [*at, name])
        if (meant := self._meant(value)) is not None:
            yield from meant.errors(value, at)

    def _inside(self, value: Any) -> Iterator[tuple[str | int, "Part", Any]]:
        """What the value holds, each with the part that it must fit."""
        if isinstance(value, dict):
            for name, inner in value.items():
                if (part := self._properties.get(name, self._others)) is not None:
                    yield name, part, inner
        elif isinstance(value, list) and (items := self._items) is not None:
            for index, inner in enumerate(value):
                yield index, items, inner

    def _may_be(self, value: Any) -> bool:
        """Whether a container may stand here at all: the library would write the whole of it into its message."""
        if not isinstance(value, (dict, list)) or not self._apart or "type" not in self._schema:
            return True
        return ("object" if isinstance(value, dict) else "array") in self._schema["type"]

    @cached_property
    def _whole(self) -> Any:
        return self._compiled(self._schema)

    @cached_property
    def _apart(self) -> bool:
        """Whether it can be taken apart: what refers to another place needs to stay where it is."""
        return isinstance(self._schema, dict) and "$ref" not in repr(self._schema)

    @cached_property
    def _own(self) -> Any:
        """The schema without what its parts answer for."""
        if not self._apart:
            return self._whole
        schema = {name: given for name, given in self._schema.items() if name not in _APART}
        if self._properties:
            schema["properties"] = dict.fromkeys(self._properties, True)
        if self._schema.get("additionalProperties") is False:
            schema["additionalProperties"] = False
        for name in ("anyOf", "oneOf"):
            if name in self._schema:
                schema["anyOf"] = [_type_alone(branch) for branch in self._schema[name]]
        return self._compiled(schema)

    @cached_property
    def _is_plain(self) -> bool:
        return self._apart and self._schema.keys() <= _PLAIN | set(_APART)

    @cached_property
    def _properties(self) -> dict[str, "Part"]:
        given = self._schema.get("properties", {}) if self._apart else {}
        return {name: Part(schema, self._options) for name, schema in given.items()}

    @cached_property
    def _others(self) -> "Part | None":
        return self._part("additionalProperties")

    @cached_property
    def _items(self) -> "Part | None":
        return self._part("items")

    @cached_property
    def _branches(self) -> list[tuple[Any, "Part"]]:
        given = (self._schema.get("anyOf") or self._schema.get("oneOf") or []) if self._apart else []
        return [(self._compiled(_type_alone(branch)), Part(branch, self._options)) for branch in given]

    def _part(self, name: str) -> "Part | None":
        given = self._schema.get(name) if self._apart else None
        return Part(given, self._options) if isinstance(given, dict) else None

    def _meant(self, value: Any) -> "Part | None":
        """The alternative that was meant: the only one whose type fits the value."""
        fitting = [part for typed, part in self._branches if typed.is_valid(value)]
        return fitting[0] if len(fitting) == 1 else None

    def _own_errors(self, value: Any) -> Iterator[Any]:
        if self._is_plain:
            yield from self._own.iter_errors(value)
            return
        try:
            self._own.validate(value)
        except jsonschema_rs.ValidationError as error:
            yield error

    def _compiled(self, schema: Any) -> Any:
        return jsonschema_rs.Draft202012Validator(schema, **self._options)


def _type_alone(branch: Any) -> Any:
    return {"type": branch["type"]} if isinstance(branch, dict) and "type" in branch else True


MOST_FAULTS = 100
"""How many faults of a request are told."""
LONGEST_FIELD = 300
"""Characters of a field's name."""


_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})")

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


def summary_of(faults: Sequence[FieldError]) -> str:
    """Return the first fault in words, and how many more there are."""
    first = f"{faults[0].field}: {faults[0].detail}"
    if len(faults) == 1:
        return first
    others = f"{len(faults) - 1}" if len(faults) <= MOST_FAULTS else f"at least {MOST_FAULTS}"
    return f"{first} And {others} more; errors[] names each."
