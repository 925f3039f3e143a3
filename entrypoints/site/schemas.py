"""Rendering of JSON Schemas as HTML: names, types, bounds and descriptions of fields, nested like the JSON."""

import re
from collections.abc import Mapping
from functools import lru_cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt

from domain.kernel import schema as wire
from entrypoints.operations.operation import Operation

Schema = Mapping[str, Any]

CALLER_DESCRIPTIONS = {
    "any": "any credential",
    "person": "a signed-in person",
    "member_session": "a member signed in to the console",
    "owner": "a signed-in owner of the organisation",
}
"""Descriptions of who can call an operation, by kind of caller."""
_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
_DOCUMENT_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")

BOUNDS = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} entries"),
    ("maxItems", "at most {} entries"),
    ("default", "default {}"),
)
"""Phrases for the bounds of a value, by keyword of JSON Schema."""
_IMPLIED_BOUNDS = (("minLength", 0), ("minLength", 1))
"""Bounds that `describe_bounds` omits because they are obvious, as keyword and value."""
_ID = re.compile(r"\^(\w+_)\[0-9A-Za-z\]")


def render_inline(text: str) -> str:
    """Render inline Markdown, such as one sentence, as HTML without a paragraph."""
    return str(_MARKDOWN.renderInline(text))


def render_paragraphs(text: str) -> str:
    """Render Markdown as HTML paragraphs."""
    return str(_MARKDOWN.render(text))


@lru_cache(maxsize=8)  # the longest text takes two seconds
def render_document(text: str) -> str:
    """Render Markdown that is not from this project as HTML: raw HTML is escaped, images are links, headings start at level 2."""
    tokens = _DOCUMENT_MARKDOWN.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"
    return str(_DOCUMENT_MARKDOWN.renderer.render(tokens, _DOCUMENT_MARKDOWN.options, {}))


def describe_type(schema: Schema) -> str:
    """Return a short description of a schema's type as HTML: `string`, `array of integer`, `string or null`."""
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"][:40])
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(describe_type(part) for part in alternatives))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(describe_type({**schema, "type": part}) for part in kind)
    if kind == "array":
        return f"array of {describe_type(schema.get('items', {}))}"
    if found := _ID.match(schema.get("pattern", "")):
        return f"ID, <code>{found[1]}…</code>"
    name = schema.get("title") or schema.get("format") or kind
    return escape(str(name if kind in ("object", "string") else kind))


def describe_bounds(schema: Schema) -> str:
    """Return the bounds of a value as a phrase, such as `at least 1, at most 100`; empty for a cursor."""
    if schema.get("format") == "cursor":
        return ""  # nobody composes cursors
    bounds = [(key, words) for key, words in BOUNDS if key in schema and (key, schema[key]) not in _IMPLIED_BOUNDS]
    return ", ".join(words.format(schema[key]) for key, words in bounds)


def _find_object_schema(schema: Schema) -> Schema | None:
    """Return the schema of the object that a schema describes directly or as items of a list; None if there is no object."""
    kinds = schema.get("type", ())
    if "object" in kinds:
        if schema.get("properties"):
            return schema
        values = schema.get("additionalProperties")
        return _find_object_schema(values) if isinstance(values, Mapping) else None
    if "array" in kinds:
        return _find_object_schema(schema.get("items", {}))
    return next((found for part in schema.get("anyOf", ()) if (found := _find_object_schema(part)) is not None), None)


def render_description(schema: Schema, with_bounds: bool = True) -> str:
    """Render the description of a value as HTML, followed by the bounds if `with_bounds` is true."""
    bounds = describe_bounds(schema) if with_bounds else ""
    parts = [render_inline(str(schema.get("description", ""))), f"{bounds[:1].upper()}{bounds[1:]}"]
    return " ".join(f"{part.rstrip('.')}." for part in parts if part)


def render_fields(schema: Schema, with_bounds: bool = True, depth: int = 0) -> str:
    """Render the fields of an object schema as nested HTML lists; empty if the schema contains no object.

    The lists at depth 2 and deeper are collapsed.

    Args:
        schema: The schema.
        with_bounds: Whether the list contains the bounds of values, as for request bodies.
        depth: The level of nesting, 0 for the outermost object.
    """
    object_schema = _find_object_schema(schema)
    if object_schema is None:
        return ""
    required = set(object_schema.get("required", ()))
    items = "".join(
        _render_field(name, part, name in required, with_bounds, depth)
        for name, part in object_schema["properties"].items()
    )
    return f'<ul class="fields">{items}</ul>'


def _render_field(name: str, schema: Schema, required: bool, with_bounds: bool, depth: int) -> str:
    """Render a field of an object as an HTML list item, with the fields of nested objects."""
    head = f'<code>{escape(name)}</code> <span class="soft">{describe_type(schema)}{"" if required else ", optional"}</span>'
    note = render_description(schema, with_bounds)
    nested = render_fields(schema, with_bounds, depth + 1)
    if nested:
        nested = (
            f"<details{' open' if depth == 0 else ''}><summary>fields of {escape(name)}</summary>{nested}</details>"
        )
    return f"<li>{head}{'<br>' + note if note else ''}{nested}</li>"


def build_response_example(operation: Operation) -> Any:
    """Return an example of the response of an operation, decoded."""
    return operation.example if operation.example is not None else wire.build_example(dict(operation.reply or {}))
