"""Schemas made closed: nothing may stand in an answer or event that its description does not name."""

from typing import Any


def close_schema(schema: Any) -> Any:
    """The schema with every object in it refusing fields that it does not describe."""
    if isinstance(schema, list):
        return [close_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        name: part if name in ("examples", "enum", "const") else close_schema(part) for name, part in schema.items()
    }
    if "properties" in schema:
        made["properties"] = {name: close_schema(part) for name, part in schema["properties"].items()}
        made.setdefault("additionalProperties", False)
    return made
