"""JSON Schema for providers' strict answers: a subset of the language, with all properties required."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_KEPT = frozenset(
    {"type", "properties", "items", "enum", "const", "anyOf", "$ref", "$defs", "description", "minimum", "maximum"}
    | {"minItems", "maxItems", "pattern"}
)
"""Keywords that providers support. The others are checked in the answer."""
_SCHEMAS = ("properties", "$defs")
_TYPES: Final[Sequence[tuple[type, str]]] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (type(None), "null"),
)


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema in that subset: closed objects, required properties, enumerations with types."""
    result: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _SCHEMAS:
            result[name] = {key: strict(part) for key, part in value.items()}
        elif name == "items":
            result[name] = strict(value)
        elif name == "anyOf":
            result[name] = [strict(part) for part in value]
        elif name in _KEPT:
            result[name] = value
    if "enum" in result and "type" not in result:
        result["type"] = _types(result["enum"])
    if "properties" in result:
        result |= {"type": "object", "required": list(result["properties"]), "additionalProperties": False}
    return result


def _types(values: Sequence[Any]) -> str | list[str]:
    found = [name for kind, name in _TYPES if any(type(value) is kind for value in values)]
    return found[0] if len(found) == 1 else found
