"""What a fault is told as: for each keyword of JSON Schema a sentence of our own that says what is wanted, in plain words.

No sentence repeats the value: it may be a secret, or large.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from domain.kernel.closeness import FEW_NAMES, Closeness, listed
from entrypoints.http.pattern_words import words_of

LONGEST: Final = 400
"""Characters of a sentence."""
_LONGEST_EXAMPLE: Final = 100
_TYPES: Final = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
Given = Mapping[str, Any]


def sentence(keyword: str, wanted: Any, value: Any, schema: Given, closeness: Closeness) -> str:
    """The sentence of one fault: `wanted` is what the keyword asks, `schema` where it stands."""
    say = _SENTENCES.get(keyword)
    text = say(wanted, value, schema, closeness) if say else f"Must be {wanted_by(schema)}."
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


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
    return " or ".join(_TYPES[name] for name in names if name in _TYPES) or "another value"


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


def _type(wanted: Any, value: Any, schema: Given, _closeness: Closeness) -> str:
    kinds = [wanted] if isinstance(wanted, str) else list(wanted)
    unquoted = isinstance(value, str) and (
        (value in ("true", "false") and "boolean" in kinds) or (value.isdigit() and {"integer", "number"} & set(kinds))
    )
    said = f"Must be {_typed(wanted)}{_such_as(schema)}; this is {_what(value)}."
    return f"{said} Leave out the quotation marks." if unquoted else said


def _enum(wanted: Any, value: Any, schema: Given, closeness: Closeness) -> str:
    known = [_shown(one) for one in wanted]
    if not isinstance(value, str):
        return f"Must be {_one_of(listed(known), len(known))}."
    meant = closeness.closest(value, known)
    if meant is None:
        return f"Must be {_one_of(listed(known), len(known))}."
    if value.lower() == meant:
        return f"Use lower case: {meant}."
    if value.upper() == meant:
        return f"Use upper case: {meant}."
    if value.strip().lower() == meant.lower():
        return f"Write it exactly so: {meant}."
    return f"Did you mean {meant}? Must be {_one_of(closeness.listed(value, known), len(known))}."


def _pattern(_wanted: Any, _value: Any, schema: Given, _closeness: Closeness) -> str:
    form = words_of(schema)
    if form is not None:
        return f"Must be {form}{_such_as(schema)}."
    about = str(schema.get("description") or schema.get("title") or "").strip().rstrip(".")
    if about:
        return f"Does not have the form wanted here: {about}{_such_as(schema)}."
    return f"Does not have the form wanted here{_such_as(schema)}."


def _bounds(least: str, most: str) -> Callable[[Any, Any, Given, Closeness], str]:
    def say(wanted: Any, _value: Any, schema: Given, _closeness: Closeness) -> str:
        low, high = schema.get(least), schema.get(most)
        if low is not None and high is not None:
            return f"Must lie between {low} and {high}."
        return f"Must be at least {wanted}." if low is not None else f"Must be at most {wanted}."

    return say


def _exclusive(than: str) -> Callable[[Any, Any, Given, Closeness], str]:
    return lambda wanted, _value, _schema, _closeness: f"Must be {than} than {wanted}."


def _counted(least: bool, one: str, many: str) -> Callable[[Any, Any, Given, Closeness], str]:
    def say(wanted: Any, value: Any, _schema: Given, _closeness: Closeness) -> str:
        count = len(value)
        if least and wanted == 1:
            return "Must not be empty."
        bound = f"at {'least' if least else 'most'} {wanted} {one if wanted == 1 else many}"
        return f"Must have {bound}; this has {count}."

    return say


def _unique(_wanted: Any, value: Any, _schema: Given, _closeness: Closeness) -> str:
    return "Every entry may stand here only once; leave out what is repeated."


def _name(wanted: Any, value: Any, schema: Given, _closeness: Closeness) -> str:
    inner = wanted if isinstance(wanted, Mapping) else schema.get("propertyNames")
    form = words_of(inner) if isinstance(inner, Mapping) else None
    return (
        f"The name of a field in it is not allowed: a name must be {form}." if form else "A name in it is not allowed."
    )


def _alternatives(_wanted: Any, _value: Any, schema: Given, _closeness: Closeness) -> str:
    return f"Must be {wanted_by(schema)}."


def _several(_wanted: Any, _value: Any, schema: Given, _closeness: Closeness) -> str:
    about = str(schema.get("description", "")).strip()
    return f"Fits more than one of the alternatives; give exactly one. {about}".strip()


def _const(wanted: Any, _value: Any, _schema: Given, _closeness: Closeness) -> str:
    return f"Must be {_shown(wanted)}."


def _multiple(wanted: Any, _value: Any, _schema: Given, _closeness: Closeness) -> str:
    return f"Must be a multiple of {wanted}."


def _not(_wanted: Any, _value: Any, schema: Given, _closeness: Closeness) -> str:
    about = str(schema.get("description", "")).strip()
    return f"This value is not allowed here. {about}".strip()


_SENTENCES: Final[dict[str, Callable[[Any, Any, Given, Closeness], str]]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "pattern": _pattern,
    "format": _pattern,
    "minLength": _counted(True, "character", "characters"),
    "maxLength": _counted(False, "character", "characters"),
    "minimum": _bounds("minimum", "maximum"),
    "maximum": _bounds("minimum", "maximum"),
    "exclusiveMinimum": _exclusive("more"),
    "exclusiveMaximum": _exclusive("less"),
    "multipleOf": _multiple,
    "minItems": _counted(True, "entry", "entries"),
    "maxItems": _counted(False, "entry", "entries"),
    "minProperties": _counted(True, "field", "fields"),
    "maxProperties": _counted(False, "field", "fields"),
    "uniqueItems": _unique,
    "propertyNames": _name,
    "anyOf": _alternatives,
    "oneOf": _alternatives,
    "oneOfMultiple": _several,
    "not": _not,
}
