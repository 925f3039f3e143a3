"""Building blocks of all JSON Schemas, each with an example: ids, money, times, lists, closed objects."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from domain.kernel.ids import pattern_of
from domain.kernel.money import EXPONENTS

Schema = dict[str, Any]
_CAPITAL = re.compile("(?<!^)(?=[A-Z])")
_SAMPLE = "01J8ZQ5T3V7XK2M9RB4CDW"


def id_of(prefix: str, description: str = "") -> Schema:
    """Return the schema of an identifier with that prefix."""
    schema: Schema = {"type": "string", "pattern": pattern_of(prefix), "examples": [f"{prefix}_{_SAMPLE}"]}
    return schema | ({"description": description} if description else {})


def text(example: str, *, longest: int = 500, shortest: int = 1, description: str = "") -> Schema:
    """Return the schema of a string with bounds."""
    schema: Schema = {"type": "string", "minLength": shortest, "maxLength": longest, "examples": [example]}
    return schema | ({"description": description} if description else {})


def enum(*values: str) -> Schema:
    """Return the schema of one of the values; a complete enumeration of the domain gets its name as title."""
    schema: Schema = {"type": "string", "enum": list(values), "examples": [values[0]]}
    kind = type(values[0])
    if issubclass(kind, StrEnum) and set(values) == set(kind):
        schema["title"] = _CAPITAL.sub("_", kind.__name__).lower()
    return schema


def integer(example: int, *, least: int | None = None, most: int | None = None, description: str = "") -> Schema:
    """Return the schema of a whole number with bounds."""
    schema: Schema = {"type": "integer", "examples": [example]}
    if least is not None:
        schema["minimum"] = least
    if most is not None:
        schema["maximum"] = most
    return schema | ({"description": description} if description else {})


def number(example: float, description: str = "") -> Schema:
    """Return the schema of a number."""
    return {"type": "number", "examples": [example]} | ({"description": description} if description else {})


def boolean(example: bool = True, description: str = "") -> Schema:
    """Return the schema of a boolean."""
    return {"type": "boolean", "examples": [example]} | ({"description": description} if description else {})


def timestamp(description: str = "") -> Schema:
    """Return the schema of a time in RFC 3339, UTC, with milliseconds."""
    schema: Schema = {"type": "string", "format": "date-time", "examples": ["2026-11-20T13:08:00.123Z"]}
    return schema | ({"description": description} if description else {})


def moment_of(text: str) -> datetime:
    """Parse RFC 3339 text to a time in UTC, truncated to microseconds. Raises ValueError or OverflowError."""
    return datetime.fromisoformat(text).astimezone(UTC)


def moments_in(properties: Mapping[str, Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that parses the times among the values of these properties."""
    names = tuple(name for name, schema in properties.items() if schema.get("format") == "date-time")
    return lambda values: {name: moment_of(values[name]) for name in names if isinstance(values.get(name), str)}


def date() -> Schema:
    """Return the schema of a calendar date."""
    return {"type": "string", "format": "date", "examples": ["2026-12-04"]}


def url(example: str = "https://vendor.example/feed.csv") -> Schema:
    """Return the schema of an absolute http or https URL."""
    return {
        "type": "string",
        "format": "uri",
        "maxLength": 2048,
        "pattern": "^https?://",
        "x-words": "an address that starts with http:// or https://",
        "examples": [example],
    }


def currency() -> Schema:
    """Return the schema of a lower-case ISO 4217 code."""
    return named("currency", {"type": "string", "enum": sorted(EXPONENTS), "examples": ["usd"]})


def minor(example: int = 49900, description: str = "Minor units of the currency.") -> Schema:
    """Return the schema of money in minor units."""
    return {"type": "integer", "examples": [example], "description": description}


def named(name: str, schema: Schema) -> Schema:
    """Return the schema with a name: API descriptions show it once, and clients get one type for it."""
    return schema | {"title": name}


def failure(code: str, message: str, description: str) -> Schema:
    """Return the schema of a failure: a code for programs, a sentence for people."""
    schema = record(None, {"code": text(code), "message": text(message, longest=2000)}, description=description)
    return named("failure", schema)


def constant(value: str) -> Schema:
    """Return the schema of a constant, such as an object marker."""
    return {"type": "string", "const": value, "examples": [value]}


def nullable(schema: Schema) -> Schema:
    """Return the schema that also permits null."""
    return {"anyOf": [schema, {"type": "null"}], "examples": schema.get("examples", [None])}


def array(items: Schema, *, most: int | None = None, least: int | None = None, description: str = "") -> Schema:
    """Return the schema of a list."""
    schema: Schema = {"type": "array", "items": items}
    if most is not None:
        schema["maxItems"] = most
    if least is not None:
        schema["minItems"] = least
    return schema | ({"description": description} if description else {})


def map_of(values: Schema, example: Mapping[str, Any], description: str = "") -> Schema:
    """Return the schema of an object with any keys and values of one schema."""
    schema: Schema = {"type": "object", "additionalProperties": values, "examples": [dict(example)]}
    return schema | ({"description": description} if description else {})


def strict_object(properties: Mapping[str, Schema], required: tuple[str, ...] = (), description: str = "") -> Schema:
    """Return the schema of an object that refuses unknown fields, for request bodies."""
    schema: Schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
    return schema | ({"description": description} if description else {})


def record(
    object_name: str | None, properties: Mapping[str, Schema], optional: tuple[str, ...] = (), description: str = ""
) -> Schema:
    """Return the schema of an object in a response.

    All properties but the optional ones are required; readers ignore unknown ones.
    """
    marked = {"object": constant(object_name), **properties} if object_name else dict(properties)
    schema: Schema = {
        "type": "object",
        "properties": marked,
        "required": [name for name in marked if name not in optional],
    }
    if object_name:
        schema["title"] = object_name
    return schema | ({"description": description} if description else {})


def list_of(item: Schema) -> Schema:
    """Return the schema of the list envelope."""
    title = {"title": f"{item['title']}_list"} if "title" in item else {}
    return {
        **title,
        "type": "object",
        "properties": {
            "object": constant("list"),
            "data": array(item),
            "has_more": boolean(False),
            "next_cursor": nullable({"type": "string", "examples": ["c2F2ZWQ"]}),
        },
        "required": ["object", "data", "has_more", "next_cursor"],
    }


def example(schema: Schema) -> Any:
    """Return an example composed of the examples inside the schema."""
    if schema.get("examples"):
        return schema["examples"][0]
    if "anyOf" in schema:
        return example(schema["anyOf"][0])
    kinds = schema.get("type", ())
    if "array" in kinds:
        return [example(schema["items"])]
    if "object" in kinds:
        return {name: example(part) for name, part in schema.get("properties", {}).items()}
    return None
