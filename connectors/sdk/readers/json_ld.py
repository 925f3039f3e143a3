"""Reader of JSON-LD scripts in web pages, and of the schema.org products in them."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from ..errors import BadData
from .json_stream import decode_json

Node = dict[str, Any]

PRODUCT_TYPES = frozenset({"product", "individualproduct", "productmodel", "someproducts", "productgroup"})
_MEDIA_TYPE = "application/ld+json"
_SCRIPT_START, _TYPE_MARK = "<script", "ld+json"
_LOWER_CASE = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_MAX_TAG_CHARS = 4_096
_MAX_BLOCKS = 200
_MAX_NODES = 20_000
_OPENING_COMMENT = re.compile(r"\A\s*(?:/\*|//)?\s*(?:<!\[CDATA\[|<!--)\s*(?:\*/)?")
_CLOSING_COMMENT = re.compile(r"(?:/\*|//)?[ \t]*(?:\]\]>|-->)[ \t]*(?:\*/)?\s*\Z")
_CONTAINER_PROPERTIES = ("@graph", "mainEntity", "mainEntityOfPage", "itemListElement", "item", "hasVariant")
_TAIL_CHARS = 64


def extract_scripts(html: str) -> Iterator[str]:
    """Yield the texts of the JSON-LD scripts in a page.

    Scripts in HTML comments and scripts after the first 200 are skipped.
    """
    found = 0
    for markup in _iterate_scripts(html):
        script = _ScriptParser()
        script.feed(f"{markup}</script>")  # a page may end within it
        script.close()
        if script.kind == _MEDIA_TYPE and found < _MAX_BLOCKS:
            found += 1
            yield "".join(script.text)


class _ScriptParser(HTMLParser):
    """Parser of one script element, which collects the element's type and text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.kind: str | None = None
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.kind is None:
            self.kind = (dict(reversed(attrs)).get("type") or "").split(";", 1)[0].strip().lower()

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _iterate_scripts(html: str) -> Iterator[str]:
    """Yield each script element with its tags, if the start tag contains `ld+json`."""
    lower_html = html.translate(_LOWER_CASE)
    script, comment = lower_html.find(_SCRIPT_START), lower_html.find("<!--")
    while script >= 0:
        if 0 <= comment < script:
            at = lower_html.find("-->", comment + 2)
            if at < 0:
                return
        else:
            body = lower_html.find(">", script) + 1
            closed = lower_html.find("</script", body) if body else -1
            at = lower_html.find(">", closed) + 1 if closed >= 0 else 0
            if body and body - script < _MAX_TAG_CHARS and _TYPE_MARK in lower_html[script:body]:
                yield html[script : at or len(html)]
            if not at:
                return
        if 0 <= script < at:
            script = lower_html.find(_SCRIPT_START, at)
        if 0 <= comment < at:
            comment = lower_html.find("<!--", at)


def parse_script(script: str) -> Any:
    """Parse the JSON of a script. Raises BadData.

    Line breaks inside strings and comments around the JSON are tolerated.
    """
    text = _OPENING_COMMENT.sub("", script.lstrip("\ufeff"), count=1)
    text = text[:-_TAIL_CHARS] + _CLOSING_COMMENT.sub("", text[-_TAIL_CHARS:])
    text = text.strip().rstrip(";")
    try:
        return decode_json(text)
    except BadData:
        return decode_json(_escape_breaks(text))


def _escape_breaks(text: str) -> str:
    """Escape line breaks and tabs inside the JSON strings of a text."""
    return _STRING.sub(lambda found: found[0].translate(_ESCAPES), text)


_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_ESCAPES = {number: json.dumps(chr(number))[1:-1] for number in range(32)}


def find_node_types(node: Node) -> set[str]:
    """Return the names of a node's types in lower case: `product` for `https://schema.org/Product`."""
    types = node.get("@type", node.get("type"))
    names = types if isinstance(types, list) else [types]
    return {re.split(r"[/#:]", name)[-1].lower() for name in names if isinstance(name, str)}


def find_products(document: Any) -> Iterator[Node]:
    """Yield the product nodes in a document, at any depth, but none inside a product, such as a group's variants."""
    left, seen = [document], 0
    while left and seen < _MAX_NODES:
        value = left.pop()
        seen += 1
        if isinstance(value, list):
            left.extend(reversed(value))
        elif isinstance(value, dict):
            if find_node_types(value) & PRODUCT_TYPES:
                yield value
            else:
                left.extend(value[name] for name in reversed(_CONTAINER_PROPERTIES) if name in value)


def to_list(value: Any) -> list[Any]:
    """Return the value if it is a list, an empty list for None, and a list with the value otherwise."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def find_first_text(value: Any) -> str | None:
    """Return the first text or number in a value or list of values as text; None if there is none.

    Blank texts are skipped. An object counts as its `name`, `@value` or `value`.
    """
    for element in to_list(value):
        if isinstance(element, dict):
            element = element.get("name", element.get("@value", element.get("value")))
        if isinstance(element, bool) or element is None or isinstance(element, (list, dict)):
            continue
        text = str(element).strip()
        if text:
            return text
    return None
