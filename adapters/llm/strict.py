"""A JSON Schema as providers take it for answers that must fit: a subset of the language, with everything required."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_KEPT = frozenset(
    {"type", "properties", "items", "enum", "const", "anyOf", "$ref", "$defs", "description", "minimum", "maximum"}
    | {"minItems", "maxItems", "pattern"}
)
"""Keywords that strict answers know. What is left out is checked when the answer has come."""
_SCHEMAS = ("properties", "$defs")
_TYPES: Final[Sequence[tuple[type, str]]] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (type(None), "null"),
)


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in that subset: objects closed, each property required, each enumeration with its types."""
    made: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _SCHEMAS:
            made[name] = {key: strict(part) for key, part in value.items()}
        elif name == "items":
            made[name] = strict(value)
        elif name == "anyOf":
            made[name] = [strict(part) for part in value]
        elif name in _KEPT:
            made[name] = value
    if "enum" in made and "type" not in made:
        made["type"] = _types(made["enum"])
    if "properties" in made:
        made |= {"type": "object", "required": list(made["properties"]), "additionalProperties": False}
    return made


def _types(values: Sequence[Any]) -> str | list[str]:
    found = [name for kind, name in _TYPES if any(type(value) is kind for value in values)]
    return found[0] if len(found) == 1 else found
