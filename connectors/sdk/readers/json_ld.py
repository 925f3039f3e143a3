"""Finds the JSON-LD in web pages, and the products in it."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from ..errors import BadData
from .json_stream import decoded

Node = dict[str, Any]

PRODUCTS = frozenset({"product", "individualproduct", "productmodel", "someproducts", "productgroup"})
_TYPE = "application/ld+json"
_OPENED, _MARK = "<script", "ld+json"
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_LONGEST_TAG = 4_096
_MOST_BLOCKS = 200
_MOST_NODES = 20_000
_WRAPPED = re.compile(r"\A\s*(?:/\*|//)?\s*(?:<!\[CDATA\[|<!--)\s*(?:\*/)?")
_UNWRAPPED = re.compile(r"(?:/\*|//)?[ \t]*(?:\]\]>|-->)[ \t]*(?:\*/)?\s*\Z")
_WITHIN = ("@graph", "mainEntity", "mainEntityOfPage", "itemListElement", "item", "hasVariant")
_TAIL = 64


def blocks(html: str) -> Iterator[str]:
    """Yield the text of each JSON-LD script of a page, in order; the first 200. What is commented out is none."""
    found = 0
    for markup in _scripts(html):
        script = _Script()
        script.feed(f"{markup}</script>")  # a page may end within it
        script.close()
        if script.kind == _TYPE and found < _MOST_BLOCKS:
            found += 1
            yield "".join(script.text)


class _Script(HTMLParser):
    """One script element: its type, and the text inside it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.kind: str | None = None
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.kind is None:
            self.kind = (dict(reversed(attrs)).get("type") or "").split(";", 1)[0].strip().lower()

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _scripts(html: str) -> Iterator[str]:
    """The script elements that may hold JSON-LD, each with its tags."""
    plain = html.translate(_LOWER)
    script, comment = plain.find(_OPENED), plain.find("<!--")
    while script >= 0:
        if 0 <= comment < script:
            at = plain.find("-->", comment + 2)
            if at < 0:
                return
        else:
            body = plain.find(">", script) + 1
            closed = plain.find("</script", body) if body else -1
            at = plain.find(">", closed) + 1 if closed >= 0 else 0
            if body and body - script < _LONGEST_TAG and _MARK in plain[script:body]:
                yield html[script : at or len(html)]
            if not at:
                return
        if 0 <= script < at:
            script = plain.find(_OPENED, at)
        if 0 <= comment < at:
            comment = plain.find("<!--", at)


def parsed(block: str) -> Any:
    """A block's JSON. Line breaks inside texts and the comments that old pages wrap around are let pass. Raises BadData."""
    text = _WRAPPED.sub("", block.lstrip("\ufeff"), count=1)
    text = text[:-_TAIL] + _UNWRAPPED.sub("", text[-_TAIL:])
    text = text.strip().rstrip(";")
    try:
        return decoded(text)
    except BadData:
        return decoded(_escaped(text))


def _escaped(text: str) -> str:
    """The text with line breaks and tabs inside its JSON strings written as JSON writes them."""
    return _STRING.sub(lambda found: found[0].translate(_BREAKS), text)


_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BREAKS = {number: json.dumps(chr(number))[1:-1] for number in range(32)}


def kinds(node: Node) -> set[str]:
    """The types of a node, in lower case and without the vocabulary's address."""
    given = node.get("@type", node.get("type"))
    names = given if isinstance(given, list) else [given]
    return {re.split(r"[/#:]", name)[-1].lower() for name in names if isinstance(name, str)}


def products(document: Any) -> Iterator[Node]:
    """The products and product groups of a block, wherever such may stand; variants of a group stay within it."""
    left, seen = [document], 0
    while left and seen < _MOST_NODES:
        value = left.pop()
        seen += 1
        if isinstance(value, list):
            left.extend(reversed(value))
        elif isinstance(value, dict):
            if kinds(value) & PRODUCTS:
                yield value
            else:
                left.extend(value[name] for name in reversed(_WITHIN) if name in value)


def each(value: Any) -> list[Any]:
    """A value that may be one or a list, as a list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(value: Any) -> str | None:
    """The text of a value: itself, or the name or value of an object; the first of a list."""
    for one in each(value):
        if isinstance(one, dict):
            one = one.get("name", one.get("@value", one.get("value")))
        if isinstance(one, bool) or one is None or isinstance(one, (list, dict)):
            continue
        text = str(one).strip()
        if text:
            return text
    return None
