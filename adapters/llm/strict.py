"""Conversion of JSON Schemas to the subset that model providers can enforce."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_SUPPORTED_KEYWORDS = frozenset(
    {"type", "properties", "items", "enum", "const", "anyOf", "$ref", "$defs", "description", "minimum", "maximum"}
    | {"minItems", "maxItems", "pattern"}
)
"""Keywords that providers enforce; other keywords are removed, and checked when the output is validated."""
_SCHEMA_MAPS = ("properties", "$defs")
_TYPES: Final[Sequence[tuple[type, str]]] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (type(None), "null"),
)


def to_strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema in the subset that providers enforce: no other properties, all properties required, enumerations with types."""
    result: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _SCHEMA_MAPS:
            result[name] = {key: to_strict_schema(part) for key, part in value.items()}
        elif name == "items":
            result[name] = to_strict_schema(value)
        elif name == "anyOf":
            result[name] = [to_strict_schema(part) for part in value]
        elif name in _SUPPORTED_KEYWORDS:
            result[name] = value
    if "enum" in result and "type" not in result:
        result["type"] = _find_json_types(result["enum"])
    if "properties" in result:
        result |= {"type": "object", "required": list(result["properties"]), "additionalProperties": False}
    return result


def _find_json_types(values: Sequence[Any]) -> str | list[str]:
    """Return the name of the JSON type of the values; a list of names if the types differ."""
    found = [name for kind, name in _TYPES if any(type(value) is kind for value in values)]
    return found[0] if len(found) == 1 else found
