"""Functions that build the JSON Schemas of the API, each with an example."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from domain.kernel.ids import build_id_pattern
from domain.kernel.money import EXPONENTS

Schema = dict[str, Any]
_CAPITAL = re.compile("(?<!^)(?=[A-Z])")
_SAMPLE = "01J8ZQ5T3V7XK2M9RB4CDW"


def id_schema(prefix: str, description: str = "") -> Schema:
    """Return the schema of an ID with the prefix."""
    schema: Schema = {"type": "string", "pattern": build_id_pattern(prefix), "examples": [f"{prefix}_{_SAMPLE}"]}
    return schema | ({"description": description} if description else {})


def text(example: str, *, max_length: int = 500, min_length: int = 1, description: str = "") -> Schema:
    """Return the schema of a string; `max_length` and `min_length` limit its length in characters."""
    schema: Schema = {"type": "string", "minLength": min_length, "maxLength": max_length, "examples": [example]}
    return schema | ({"description": description} if description else {})


def enum(*values: str) -> Schema:
    """Return the schema of an enumeration.

    If `values` are all members of an enum class, the title of the schema is the name of the class in snake case.
    """
    schema: Schema = {"type": "string", "enum": list(values), "examples": [values[0]]}
    kind = type(values[0])
    if issubclass(kind, StrEnum) and set(values) == set(kind):
        schema["title"] = _CAPITAL.sub("_", kind.__name__).lower()
    return schema


def integer(example: int, *, minimum: int | None = None, maximum: int | None = None, description: str = "") -> Schema:
    """Return the schema of an integer from `minimum` to `maximum`; None for no limit."""
    schema: Schema = {"type": "integer", "examples": [example]}
    if minimum is not None:
        schema["minimum"] = minimum
    if maximum is not None:
        schema["maximum"] = maximum
    return schema | ({"description": description} if description else {})


def number(example: float, description: str = "") -> Schema:
    """Return the schema of a number."""
    return {"type": "number", "examples": [example]} | ({"description": description} if description else {})


def boolean(example: bool = True, description: str = "") -> Schema:
    """Return the schema of a boolean."""
    return {"type": "boolean", "examples": [example]} | ({"description": description} if description else {})


def timestamp(description: str = "") -> Schema:
    """Return the schema of a time: RFC 3339, UTC, with milliseconds."""
    schema: Schema = {"type": "string", "format": "date-time", "examples": ["2026-11-20T13:08:00.123Z"]}
    return schema | ({"description": description} if description else {})


def parse_time(text: str) -> datetime:
    """Parse RFC 3339 text to a time in UTC, truncated to microseconds. Raises ValueError or OverflowError."""
    return datetime.fromisoformat(text).astimezone(UTC)


def create_time_parser(properties: Mapping[str, Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that returns the times of a JSON object by property name, parsed to `datetime`.

    Other properties of the object are omitted.

    Args:
        properties: The schemas of the object's properties by name.
    """
    names = tuple(name for name, schema in properties.items() if schema.get("format") == "date-time")
    return lambda values: {name: parse_time(values[name]) for name in names if isinstance(values.get(name), str)}


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
    return with_title("currency", {"type": "string", "enum": sorted(EXPONENTS), "examples": ["usd"]})


def money(
    example: int = 49900, description: str = "The amount in minor units of the currency, such as cents."
) -> Schema:
    """Return the schema of money in minor units."""
    return {"type": "integer", "examples": [example], "description": description}


def with_title(name: str, schema: Schema) -> Schema:
    """Return the schema with a title; API descriptions then define it once, and clients have one type for it."""
    return schema | {"title": name}


def failure(example_code: str, example_message: str, description: str) -> Schema:
    """Return the schema of a failure: an object with a machine-readable code and a message."""
    schema = response_object(
        None, {"code": text(example_code), "message": text(example_message, max_length=2000)}, description=description
    )
    return with_title("failure", schema)


def constant(value: str) -> Schema:
    """Return the schema of a string that always has the value, such as the property `object`."""
    return {"type": "string", "const": value, "examples": [value]}


def nullable(schema: Schema) -> Schema:
    """Return a schema that permits null in addition to the values of the schema."""
    return {"anyOf": [schema, {"type": "null"}], "examples": schema.get("examples", [None])}


def array(
    items: Schema, *, max_items: int | None = None, min_items: int | None = None, description: str = ""
) -> Schema:
    """Return the schema of a list with `min_items` to `max_items` items; None for no limit."""
    schema: Schema = {"type": "array", "items": items}
    if max_items is not None:
        schema["maxItems"] = max_items
    if min_items is not None:
        schema["minItems"] = min_items
    return schema | ({"description": description} if description else {})


def map_schema(values: Schema, example: Mapping[str, Any], description: str = "") -> Schema:
    """Return the schema of an object with arbitrary keys, and with values of the schema `values`."""
    schema: Schema = {"type": "object", "additionalProperties": values, "examples": [dict(example)]}
    return schema | ({"description": description} if description else {})


def strict_object(properties: Mapping[str, Schema], required: tuple[str, ...] = (), description: str = "") -> Schema:
    """Return the schema of an object without unknown fields, for request bodies."""
    schema: Schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
    return schema | ({"description": description} if description else {})


def response_object(
    object_name: str | None, properties: Mapping[str, Schema], optional: tuple[str, ...] = (), description: str = ""
) -> Schema:
    """Return the schema of an object in a response.

    Properties are required unless listed in `optional`; clients must ignore unknown ones. `object_name` is the value of the
    property `object`, None if there is none.
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


def list_response(item: Schema) -> Schema:
    """Return the schema of a response with a page of a list, whose items have the schema `item`."""
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


def build_example(schema: Schema) -> Any:
    """Return an example value, composed of the examples in the schema."""
    if schema.get("examples"):
        return schema["examples"][0]
    if "anyOf" in schema:
        return build_example(schema["anyOf"][0])
    kinds = schema.get("type", ())
    if "array" in kinds:
        return [build_example(schema["items"])]
    if "object" in kinds:
        return {name: build_example(part) for name, part in schema.get("properties", {}).items()}
    return None
