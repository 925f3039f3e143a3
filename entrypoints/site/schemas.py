"""JSON Schemas as HTML: names, types, bounds and descriptions, nested like the JSON."""

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from markdown_it import MarkdownIt

from domain.kernel import schema as wire
from entrypoints.operations.operation import Operation

Schema = Mapping[str, Any]

WHO = {
    "any": "any credential",
    "person": "a signed-in person",
    "member_session": "a member signed in to the console",
    "owner": "a signed-in owner of the organisation",
}
_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")

BOUNDS = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} entries"),
    ("maxItems", "at most {} entries"),
    ("default", "default {}"),
)


_IMPLIED_BOUNDS = (("minLength", 0), ("minLength", 1))
"""Bounds that are not mentioned."""
_ID = re.compile(r"\^(\w+_)\[0-9A-Za-z\]")


def inline(text: str) -> str:
    """Render one line of Markdown as HTML."""
    return str(_MARKDOWN.renderInline(text))


def paragraphs(text: str) -> str:
    """Render Markdown without headings as HTML."""
    return str(_MARKDOWN.render(text))


def type_of(schema: Schema) -> str:
    """Return a short description of the type: `string`, `array of integer`, `string or null`."""
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
    if found := _ID.match(schema.get("pattern", "")):
        return f"ID, <code>{found[1]}…</code>"
    name = schema.get("title") or schema.get("format") or kind
    return escape(str(name if kind in ("object", "string") else kind))


def bounds_of(schema: Schema) -> str:
    """Return the bounds as a phrase; empty for cursors."""
    if schema.get("format") == "cursor":
        return ""
    bounds = [(key, words) for key, words in BOUNDS if key in schema and (key, schema[key]) not in _IMPLIED_BOUNDS]
    return ", ".join(words.format(schema[key]) for key, words in bounds)


def _object_schema(schema: Schema) -> Schema | None:
    """Return the object schema inside a schema whose fields are worth listing, or None."""
    kinds = schema.get("type", ())
    if "object" in kinds:
        if schema.get("properties"):
            return schema
        values = schema.get("additionalProperties")
        return _object_schema(values) if isinstance(values, Mapping) else None
    if "array" in kinds:
        return _object_schema(schema.get("items", {}))
    return next((found for part in schema.get("anyOf", ()) if (found := _object_schema(part)) is not None), None)


def note_of(schema: Schema, bounded: bool = True) -> str:
    """Return the description and, if `bounded`, the bounds as a sentence."""
    bounds = bounds_of(schema) if bounded else ""
    parts = [inline(str(schema.get("description", ""))), f"{bounds[:1].upper()}{bounds[1:]}"]
    return " ".join(f"{part.rstrip('.')}." for part in parts if part)


def fields(schema: Schema, bounded: bool = True, depth: int = 0) -> str:
    """Render the fields of an object schema as nested lists, with deep levels collapsed.

    `bounded` adds the bounds of values, for request bodies.
    """
    inner = _object_schema(schema)
    if inner is None:
        return ""
    required = set(inner.get("required", ()))
    items = "".join(_field(name, part, name in required, bounded, depth) for name, part in inner["properties"].items())
    return f'<ul class="fields">{items}</ul>'


def _field(name: str, schema: Schema, required: bool, bounded: bool, depth: int) -> str:
    head = f'<code>{escape(name)}</code> <span class="soft">{type_of(schema)}{"" if required else ", optional"}</span>'
    note = note_of(schema, bounded)
    nested = fields(schema, bounded, depth + 1)
    if nested:
        nested = (
            f"<details{' open' if depth == 0 else ''}><summary>fields of {escape(name)}</summary>{nested}</details>"
        )
    return f"<li>{head}{'<br>' + note if note else ''}{nested}</li>"


def example_of(operation: Operation) -> Any:
    """Return the example of an operation's response."""
    return operation.example if operation.example is not None else wire.example(dict(operation.reply or {}))
