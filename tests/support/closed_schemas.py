"""JSON schemas that refuse undescribed fields."""

from typing import Any


def close_schema(schema: Any) -> Any:
    """Return the schema with `additionalProperties: false` in every object."""
    if isinstance(schema, list):
        return [close_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {
        name: part if name in ("examples", "enum", "const") else close_schema(part) for name, part in schema.items()
    }
    if "properties" in schema:
        closed["properties"] = {name: close_schema(part) for name, part in schema["properties"].items()}
        closed.setdefault("additionalProperties", False)
    return closed
