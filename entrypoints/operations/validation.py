"""Validation of values by JSON Schema (Draft 2020-12).

A field error has a field name, a code and a sentence (docs/conventions.md#error-fields).
"""

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

from domain.kernel.errors import FieldError
from domain.kernel.ids import LENGTH, NOUNS, find_pattern_prefix
from domain.kernel.schema import parse_time
from domain.kernel.suggestions import MAX_LISTED_NAMES, WordSuggester, format_list

_texts = tomllib.loads(files(__package__).joinpath("field_errors.toml").read_text("utf-8"))
FORMAT_WORDS: Final[dict[str, str]] = _texts["formats"]
TYPE_WORDS: Final[dict[str, str]] = _texts["types"]
CODES: Final[dict[str, str]] = _texts["codes"]
SENTENCES: Final[dict[str, str]] = _texts["sentences"]
COUNTED: Final[dict[str, list[str]]] = _texts["counted"]


def describe_format(schema: Mapping[str, Any]) -> str | None:
    """Return a noun phrase for texts that match the schema's pattern or format; None if the schema has neither."""
    prefix = find_pattern_prefix(str(schema.get("pattern", "")))
    if prefix is not None:
        return describe_id(prefix)
    words = schema.get("x-words") or FORMAT_WORDS.get(str(schema.get("format")))
    return None if words is None else str(words)


def describe_id(prefix: str) -> str:
    """Return a noun phrase for IDs with the prefix: `the ID of a product (prod_ and 22 letters and digits)`."""
    return f"the ID of {NOUNS[prefix]} ({prefix}_ and {LENGTH} letters and digits)"


MAX_SENTENCE_LENGTH = 400
"""Maximum characters of the sentence for an invalid value; a longer sentence is truncated."""
_LONGEST_EXAMPLE = 100
Schema = Mapping[str, Any]


def describe_invalid_value(
    keyword: str, keyword_value: Any, value: Any, schema: Schema, suggester: WordSuggester
) -> str:
    """Return the sentence for a value that violates a keyword of its schema.

    The sentence does not contain the value, which may be a secret, or large.

    Args:
        keyword: The violated JSON Schema keyword.
        keyword_value: The keyword's value in the schema.
        value: The invalid value.
        schema: The schema that contains the keyword.
        suggester: Finds the allowed value that is most similar to an invalid one.
    """
    if keyword in SENTENCES:
        description = str(schema.get("description", "")).strip()
        text = SENTENCES[keyword].format(wanted=_format_value(keyword_value), about=description).strip()
    elif keyword in COUNTED:
        text = _describe_count_error(keyword, keyword_value, len(value))
    elif keyword == "type":
        text = _describe_type_error(keyword_value, value, schema)
    elif keyword == "enum":
        text = _describe_enum_error([_format_value(choice) for choice in keyword_value], value, suggester)
    elif keyword in ("pattern", "format"):
        text = _describe_pattern_error(schema)
    elif keyword in ("minimum", "maximum"):
        low, high = schema.get("minimum"), schema.get("maximum")
        has_both = low is not None and high is not None
        text = (
            f"Must be between {low} and {high}."
            if has_both
            else f"Must be at {'most' if low is None else 'least'} {keyword_value}."
        )
    elif keyword == "propertyNames":
        text = _describe_name_error(
            keyword_value if isinstance(keyword_value, Mapping) else schema.get("propertyNames")
        )
    else:
        text = f"Must be {describe_expected(schema)}."
    return text if len(text) <= MAX_SENTENCE_LENGTH else text[: MAX_SENTENCE_LENGTH - 1] + "…"


def describe_missing_field(name: str, schema: Schema) -> str:
    """Return the sentence for a required field that is missing from an object with the schema."""
    inner = schema.get("properties", {}).get(name)
    return (
        f"This field is required: {describe_expected(inner)}."
        if isinstance(inner, Mapping)
        else "This field is required."
    )


def describe_unknown_name(
    name: str, existing_names: Sequence[str], suggester: WordSuggester, noun: str = "field"
) -> str:
    """Return the sentence for an unknown field or parameter, with the most similar existing name.

    Args:
        name: The unknown name.
        existing_names: The existing names.
        suggester: Finds the most similar name.
        noun: `field` or `parameter`.
    """
    if not existing_names:
        return f"This {noun} does not exist: no {noun} is accepted here."
    closest = suggester.find_closest(name, existing_names)
    if closest is not None:
        return f"This {noun} does not exist. Did you mean {closest}?"
    return f"This {noun} does not exist. Available: {format_list(sorted(existing_names), MAX_LISTED_NAMES)}."


def describe_expected(schema: Schema) -> str:
    """Return a noun phrase for the values that the schema allows, for example `text, such as oak`."""
    if "const" in schema:
        return _format_value(schema["const"])
    if "enum" in schema:
        return _format_choices(format_list([_format_value(choice) for choice in schema["enum"]]), len(schema["enum"]))
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        typed_branches = [branch for branch in branches if isinstance(branch, Mapping) and branch.get("type") != "null"]
        phrase = " or ".join(dict.fromkeys(describe_expected(branch) for branch in typed_branches))
        return phrase if len(typed_branches) == len(branches) else f"null or {phrase}"
    if schema.get("type") == "object" and schema.get("required"):
        return f"an object with {' and '.join(schema['required'])}"
    return (describe_format(schema) or _format_types(schema.get("type"))) + _format_example(schema)


def _format_choices(values: str, count: int) -> str:
    return values if count == 1 else f"one of {values}"


def _format_types(types: Any) -> str:
    names = [types] if isinstance(types, str) else list(types or ())
    return " or ".join(TYPE_WORDS[name] for name in names if name in TYPE_WORDS) or "another value"


def _format_example(schema: Schema) -> str:
    for example in schema.get("examples", ()):
        if isinstance(example, bool) or example is None or example == "":
            continue
        if isinstance(example, (str, int, float, Decimal)) and len(str(example)) <= _LONGEST_EXAMPLE:
            return f", such as {example}"
    return ""


def _format_value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value) if isinstance(value, (str, int, float, Decimal)) else _describe_type(value)


def _describe_type(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return _format_value(value)
    if isinstance(value, str):
        return "text"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return "a number" if isinstance(value, int) else "a decimal number"


def _describe_type_error(types: Any, value: Any, schema: Schema) -> str:
    names = [types] if isinstance(types, str) else list(types)
    is_quoted = isinstance(value, str) and (
        (value in ("true", "false") and "boolean" in names) or (value.isdigit() and {"integer", "number"} & set(names))
    )
    statement = f"Must be {_format_types(types)}{_format_example(schema)}; this is {_describe_type(value)}."
    return f"{statement} Remove the quotation marks." if is_quoted else statement


def _describe_enum_error(choices: list[str], value: Any, suggester: WordSuggester) -> str:
    closest = suggester.find_closest(value, choices) if isinstance(value, str) else None
    if closest is None:
        return f"Must be {_format_choices(format_list(choices), len(choices))}."
    if value.lower() == closest:
        return f"Use lower case: {closest}."
    if value.upper() == closest:
        return f"Use upper case: {closest}."
    if value.strip().lower() == closest.lower():
        return f"Write it exactly as {closest}."
    return f"Did you mean {closest}? Must be {_format_choices(suggester.format_by_similarity(value, choices), len(choices))}."


def _describe_name_error(schema: Any) -> str:
    noun_phrase = describe_format(schema) if isinstance(schema, Mapping) else None
    return (
        f"A field name in this object is not allowed. Names must be {noun_phrase}."
        if noun_phrase
        else "A field name in this object is invalid, too long or reserved. Correct this name."
    )


def _describe_pattern_error(schema: Schema) -> str:
    noun_phrase = describe_format(schema)
    if noun_phrase is not None:
        return f"Must be {noun_phrase}{_format_example(schema)}."
    description = str(schema.get("description") or schema.get("title") or "").strip().rstrip(".")
    return f"Has the wrong format{f': {description}' if description else ''}{_format_example(schema)}."


def _describe_count_error(keyword: str, limit: int, count: int) -> str:
    is_minimum = keyword.startswith("min")
    if is_minimum and limit == 1:
        return "Must not be empty."
    return f"Must have at {'least' if is_minimum else 'most'} {limit} {COUNTED[keyword][limit != 1]}; this one has {count}."


Path = list[str | int]
LocatedError = tuple[Path, Any, Any]
"""Path of a validated value, error of jsonschema_rs, and schema. The error's paths begin at this value and schema."""
MAX_SMALL_VALUE_COUNT = 1000
"""Maximum number of values nested in a value that is validated at once; a larger one is validated by subschemas."""
_NESTED_KEYWORDS = ("properties", "items", "additionalProperties", "anyOf", "oneOf")
_LOCAL_KEYWORDS = frozenset(
    "type enum const pattern format minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf "
    "minItems maxItems uniqueItems minProperties maxProperties required properties additionalProperties title "
    "description examples default x-words $schema $id".split()
)
"""Keywords that do not refer to other parts of the schema."""


def is_small_value(value: Any) -> bool:
    """Return whether at most MAX_SMALL_VALUE_COUNT values are nested in the value."""
    remaining, values = MAX_SMALL_VALUE_COUNT, [value]
    while values:
        item = values.pop()
        if isinstance(item, (dict, list)):
            remaining -= len(item)
            if remaining < 0:
                return False
            values.extend(item.values() if isinstance(item, dict) else item)
    return True


class Subschema:
    """Subschema of a JSON schema, with validators that are compiled at first use.

    Args:
        schema: The subschema.
        options: Keyword arguments of jsonschema_rs.Draft202012Validator.
    """

    def __init__(self, schema: Any, options: Mapping[str, Any]) -> None:
        self._schema, self._options = schema, options

    def find_errors(self, value: Any, path: Path) -> Iterator[LocatedError]:
        """Yield the errors of the value at `path`, and of the values nested in it."""
        if self._full_validator.is_valid(value):
            return
        if not self._allows_container(value):
            empty_container: Any = {} if isinstance(value, dict) else []
            for name in self._schema.keys() & {"type", "enum", "const"}:
                kind = SimpleNamespace(name=name, value=self._schema[name])
                yield (
                    path,
                    SimpleNamespace(kind=kind, instance=empty_container, schema_path=(name,), instance_path=()),
                    self._schema,
                )
            return
        for error in self._find_shallow_errors(value):
            yield path, error, self._schema
        for name, subschema, inner in self._iter_members(value):
            yield from subschema.find_errors(inner, [*path, name])
        if (branch := self._find_intended_branch(value)) is not None:
            yield from branch.find_errors(value, path)

    def _iter_members(self, value: Any) -> Iterator[tuple[str | int, "Subschema", Any]]:
        """Yield name or index, subschema and value of each member of an object or list that has a subschema."""
        if isinstance(value, dict):
            for name, inner in value.items():
                if (subschema := self._properties.get(name, self._additional_properties)) is not None:
                    yield name, subschema, inner
        elif isinstance(value, list) and (items := self._items) is not None:
            for index, inner in enumerate(value):
                yield index, items, inner

    def _allows_container(self, value: Any) -> bool:
        """Return False if the value is an object or list and the schema does not allow this type, else True."""
        # jsonschema_rs would include the whole object or list in its error message
        if not isinstance(value, (dict, list)) or not self._can_split or "type" not in self._schema:
            return True
        return ("object" if isinstance(value, dict) else "array") in self._schema["type"]

    @cached_property
    def _full_validator(self) -> Any:
        return self._compile(self._schema)

    @cached_property
    def _can_split(self) -> bool:
        """True if nested subschemas can be validated separately, because the schema contains no `$ref`."""
        return isinstance(self._schema, dict) and "$ref" not in repr(self._schema)

    @cached_property
    def _shallow_validator(self) -> Any:
        """Validator of the schema without the nested subschemas."""
        if not self._can_split:
            return self._full_validator
        schema = {name: keyword_value for name, keyword_value in self._schema.items() if name not in _NESTED_KEYWORDS}
        if self._properties:
            schema["properties"] = dict.fromkeys(self._properties, True)
        if self._schema.get("additionalProperties") is False:
            schema["additionalProperties"] = False
        for name in ("anyOf", "oneOf"):
            if name in self._schema:
                schema["anyOf"] = [_keep_type(branch) for branch in self._schema[name]]
        return self._compile(schema)

    @cached_property
    def _is_self_contained(self) -> bool:
        """True if the schema has only keywords that do not refer to other parts of it."""
        return self._can_split and self._schema.keys() <= _LOCAL_KEYWORDS | set(_NESTED_KEYWORDS)

    @cached_property
    def _properties(self) -> dict[str, "Subschema"]:
        schemas = self._schema.get("properties", {}) if self._can_split else {}
        return {name: Subschema(schema, self._options) for name, schema in schemas.items()}

    @cached_property
    def _additional_properties(self) -> "Subschema | None":
        return self._create_subschema("additionalProperties")

    @cached_property
    def _items(self) -> "Subschema | None":
        """Subschema of the items of a list; None if there is none."""
        return self._create_subschema("items")

    @cached_property
    def _branches(self) -> list[tuple[Any, "Subschema"]]:
        """Branches of anyOf or oneOf, each as a pair: validator of the branch's type, and subschema."""
        branches = (self._schema.get("anyOf") or self._schema.get("oneOf") or []) if self._can_split else []
        return [(self._compile(_keep_type(branch)), Subschema(branch, self._options)) for branch in branches]

    def _create_subschema(self, keyword: str) -> "Subschema | None":
        """Return the subschema that is the value of the keyword, or None."""
        schema = self._schema.get(keyword) if self._can_split else None
        return Subschema(schema, self._options) if isinstance(schema, dict) else None

    def _find_intended_branch(self, value: Any) -> "Subschema | None":
        """Return the branch of anyOf or oneOf that allows the type of the value; None unless there is exactly one."""
        fitting_branches = [branch for type_validator, branch in self._branches if type_validator.is_valid(value)]
        return fitting_branches[0] if len(fitting_branches) == 1 else None

    def _find_shallow_errors(self, value: Any) -> Iterator[Any]:
        """Yield the errors of the value itself: all if `_is_self_contained`, else at most one.

        Nested values are included only if the schema cannot be split (`_can_split`).
        """
        if self._is_self_contained:
            yield from self._shallow_validator.iter_errors(value)
            return
        try:
            self._shallow_validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            yield error

    def _compile(self, schema: Any) -> Any:
        return jsonschema_rs.Draft202012Validator(schema, **self._options)


def _keep_type(branch: Any) -> Any:
    """Return a schema with only the type of the branch; True, which allows every value, for a branch without type."""
    return {"type": branch["type"]} if isinstance(branch, dict) and "type" in branch else True


MAX_FIELD_ERRORS = 100
"""Maximum number of field errors in an error response; further ones are omitted."""
MAX_FIELD_LENGTH = 300
"""Maximum characters of a field name in a field error; longer names are truncated."""


_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})"
)

PathFormatter = Callable[[Sequence[str | int]], str]
"""Function that converts the path of a value to a field name."""
FieldErrorParts = tuple[Sequence[str | int], str, str]
"""Parts of a FieldError: path of the invalid value (converted to the field name by a PathFormatter), code, sentence."""


def is_date_time(text: str) -> bool:
    """Return whether the text is an RFC 3339 time with an offset. Leap seconds are not allowed."""
    try:
        return _DATE_TIME.fullmatch(text) is not None and parse_time(text) is not None
    except (ValueError, OverflowError):
        return False


def is_date(text: str) -> bool:
    """Return whether the text is a date in the format of RFC 3339, such as 2026-11-20."""
    try:
        return len(text) == 10 and text[4] == "-" and date.fromisoformat(text) is not None
    except ValueError:
        return False


FORMATS: Final[dict[str, Callable[[str], bool]]] = {"date-time": is_date_time, "date": is_date}


def format_body_path(path: Sequence[str | int]) -> str:
    """Return the field name of a path in a body: the path joined by dots, or `body` for the body itself."""
    return ".".join(map(str, path)) or "body"


def format_query_path(path: Sequence[str | int]) -> str:
    """Return the field name of a path in a query string, such as `query.limit`."""
    return ".".join(("query", *map(str, path)))


class Validator:
    """Validator of values against one JSON schema.

    Args:
        schema: The JSON schema, which is compiled.
        format_path: Returns the field name for the path of an invalid value.
    """

    def __init__(self, schema: Mapping[str, Any], format_path: PathFormatter = format_body_path) -> None:
        self._root_subschema = Subschema(dict(schema), {"validate_formats": True, "formats": FORMATS})
        self._schema = jsonschema_rs.Draft202012Validator(dict(schema), validate_formats=True, formats=FORMATS)
        self.schema: Final = dict(schema)
        self._format_path = format_path

    def find_field_errors(self, value: Any) -> tuple[FieldError, ...]:
        """Return the field errors of the value in the order of the schema, one per field and code.

        The search stops at MAX_FIELD_ERRORS + 1 errors, which shows the caller that the maximum is exceeded.
        """
        if self._schema.is_valid(value):
            return ()
        error_by_name: dict[tuple[str, str], FieldError] = {}
        for field_error in self._iter_field_errors(value):
            error_by_name.setdefault((field_error.field, field_error.code), field_error)
            if len(error_by_name) > MAX_FIELD_ERRORS:
                break
        return tuple(error_by_name.values())

    def find_first_error(self, value: Any) -> FieldError | None:
        """Return the first field error of the value, or None."""
        return None if self._schema.is_valid(value) else next(self._iter_field_errors(value), None)

    def _iter_field_errors(self, value: Any) -> Iterator[FieldError]:
        for path, code, detail in self._iter_errors(value):
            yield FieldError(self._format_path(path)[:MAX_FIELD_LENGTH], code, detail)

    def _iter_errors(self, value: Any) -> Iterator[FieldErrorParts]:
        """Yield the parts of the value's field errors. A large value is validated subschema by subschema to save memory."""
        converter = FieldErrorConverter("parameter" if self._format_path is format_query_path else "field")
        if is_small_value(value):
            for error in self._schema.iter_errors(value):
                yield from converter.convert_error(error, [], self.schema)
            return
        has_errors = False
        for path, error, schema in self._root_subschema.find_errors(value, []):
            has_errors = True
            yield from converter.convert_error(error, path, schema)
        if not has_errors:
            yield [], "invalid_value", f"Must be {describe_expected(self.schema)}."


class FieldErrorConverter:
    """Converter of errors of jsonschema_rs into field errors, for one request.

    Args:
        noun: The word for an unknown name in sentences: `field` or `parameter`.
    """

    def __init__(self, noun: str) -> None:
        self._noun, self._suggester = noun, WordSuggester()

    def convert_error(self, error: Any, value_path: Path, root_schema: Any) -> Iterator[FieldErrorParts]:
        """Yield the parts of the field errors for one error of jsonschema_rs.

        Each unknown field is a separate field error. For anyOf and oneOf, the errors of the intended branch are described.

        Args:
            error: The error.
            value_path: The path of the validated value in the request.
            root_schema: The schema to which the error's paths are relative.
        """
        kind, path = error.kind, [*value_path, *error.instance_path]
        schema = _find_schema_at(root_schema, error.schema_path)
        if kind.name == "required":
            yield [*path, kind.property], "required", describe_missing_field(kind.property, schema)
        elif kind.name in ("additionalProperties", "unevaluatedProperties"):
            existing_names = list(schema.get("properties", {}))
            for name in kind.unexpected:
                sentence = describe_unknown_name(name, existing_names, self._suggester, self._noun)
                yield [*path, name], "unknown_field", sentence
        elif kind.name in ("anyOf", "oneOf") and (branch := _find_intended_errors(kind, list(error.instance_path))):
            for branch_error in branch:
                yield from self.convert_error(branch_error, value_path, root_schema)
        else:
            matches_several = type(kind).__name__ == "OneOfMultipleValid"
            keyword = "oneOfMultiple" if matches_several else kind.name
            statement = describe_invalid_value(
                keyword, getattr(kind, "value", None), error.instance, schema, self._suggester
            )
            yield path, CODES.get(kind.name, _choose_code(kind)), statement


def _find_schema_at(schema: Any, path: Sequence[str | int]) -> Mapping[str, Any]:
    """Return the subschema that contains the keyword at the path; an empty mapping if there is none.

    Args:
        schema: The whole schema.
        path: The path of the keyword in the schema (`schema_path` in jsonschema_rs).
    """
    for segment in list(path)[:-1]:
        if isinstance(schema, Mapping):
            schema = schema.get(segment, schema.get("oneOf") if segment == "anyOf" else None)
        elif isinstance(schema, list) and isinstance(segment, int) and segment < len(schema):
            schema = schema[segment]
        else:
            return {}
    return schema if isinstance(schema, Mapping) else {}


def _choose_code(kind: Any) -> str:
    """Return `invalid_type` if every branch of anyOf or oneOf has a type error, else `invalid_value`.

    Args:
        kind: The kind of the error in jsonschema_rs; for anyOf and oneOf, this contains the errors of each branch.
    """
    context = getattr(kind, "context", None)
    has_type_errors_only = context and all(any(error.kind.name == "type" for error in branch) for branch in context)
    return "invalid_type" if has_type_errors_only else "invalid_value"


def _find_intended_errors(kind: Any, path: list[str | int]) -> list[Any] | None:
    """Return the errors of the only branch of anyOf or oneOf that allows the type of the value.

    Return None if no or several branches allow it.

    Args:
        kind: The kind of an anyOf or oneOf error in jsonschema_rs, which contains the errors of each branch.
        path: The path of the invalid value (`instance_path` in jsonschema_rs).
    """
    context = getattr(kind, "context", None) or []
    fitting_branches = [
        branch
        for branch in context
        if not any(error.kind.name == "type" and list(error.instance_path) == path for error in branch)
    ]
    return fitting_branches[0] if len(fitting_branches) == 1 else None


class JsonSchemaValidator:
    """Implementation of SchemaValidator (ports/schemas.py), which compiles the schema on each call."""

    def find_field_errors(self, schema: Mapping[str, Any], value: Any, path: str) -> tuple[FieldError, ...]:
        """Return the field errors of the value. Their field names are paths joined by dots that begin with `path`."""

        def format_prefixed_path(segments: Sequence[str | int]) -> str:
            return ".".join((path, *map(str, segments)))

        return Validator(schema, format_prefixed_path).find_field_errors(value)


def summarise_field_errors(errors: Sequence[FieldError]) -> str:
    """Return a text with the first field error and the number of further ones."""
    first = f"{errors[0].field}: {errors[0].detail}"
    if len(errors) == 1:
        return first
    further_count = f"{len(errors) - 1}" if len(errors) <= MAX_FIELD_ERRORS else f"at least {MAX_FIELD_ERRORS}"
    return f"{first} See errors[] for {further_count} more."
