"""JSON Schemas as readable HTML: names, types, bounds and descriptions, nested as the JSON is."""

from collections.abc import Mapping
from html import escape
from typing import Any, Final

Schema = Mapping[str, Any]

BOUNDS: Final = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} entries"),
    ("maxItems", "at most {} entries"),
    ("default", "default {}"),
)


def type_of(schema: Schema) -> str:
    """The type in a few words: `string`, `array of integer`, `string or null`."""
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"][:40])
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(type_of(part) for part in alternatives))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(type_of({**schema, "type": part}) for part in kind)
    if kind == "array":
        return f"array of {type_of(schema.get('items', {}))}"
    name = schema.get("title") or schema.get("format") or kind
    return escape(str(name if kind in ("object", "string") else kind))


def bounds_of(schema: Schema) -> str:
    """The bounds as a phrase; those of one character at least go without saying."""
    stated = [(key, words) for key, words in BOUNDS if key in schema and (key, schema[key]) != ("minLength", 1)]
    return ", ".join(words.format(schema[key]) for key, words in stated)


def _inner(schema: Schema) -> Schema | None:
    """The object inside a schema whose fields are worth listing."""
    kinds = schema.get("type", ())
    if "object" in kinds:
        if schema.get("properties"):
            return schema
        values = schema.get("additionalProperties")
        return _inner(values) if isinstance(values, Mapping) else None
    if "array" in kinds:
        return _inner(schema.get("items", {}))
    return next((found for part in schema.get("anyOf", ()) if (found := _inner(part)) is not None), None)


def note_of(schema: Schema) -> str:
    """Bounds and description in one sentence each."""
    parts = [bounds_of(schema), escape(str(schema.get("description", "")))]
    return ". ".join(part.rstrip(".") for part in parts if part)


def fields(schema: Schema, depth: int = 0) -> str:
    """The fields of an object schema as nested lists; deep levels are folded away."""
    inner = _inner(schema)
    if inner is None:
        return ""
    required = set(inner.get("required", ()))
    items = "".join(_field(name, part, name in required, depth) for name, part in inner["properties"].items())
    return f'<ul class="fields">{items}</ul>'


def _field(name: str, schema: Schema, required: bool, depth: int) -> str:
    head = f"<code>{escape(name)}</code> <span class=soft>{type_of(schema)}{'' if required else ', optional'}</span>"
    note = note_of(schema)
    nested = fields(schema, depth + 1)
    if nested:
        nested = (
            f"<details{' open' if depth == 0 else ''}><summary>fields of {escape(name)}</summary>{nested}</details>"
        )
    return f"<li>{head}{' — ' + note if note else ''}{nested}</li>"
