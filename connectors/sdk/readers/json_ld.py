"""Reader of JSON-LD in web pages, and of the products in it."""

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
    """Yield the text of each JSON-LD script of a page, in order, at most 200. Comments are skipped."""
    found = 0
    for markup in _scripts(html):
        script = _Script()
        script.feed(f"{markup}</script>")  # a page may end within it
        script.close()
        if script.kind == _TYPE and found < _MOST_BLOCKS:
            found += 1
            yield "".join(script.text)


class _Script(HTMLParser):
    """Parser of one script element: its type and its text."""

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
    """Yield the script elements that may contain JSON-LD, each with its tags."""
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
    """Parse a block's JSON, tolerating line breaks inside texts and wrapping comments. Raises BadData."""
    text = _WRAPPED.sub("", block.lstrip("\ufeff"), count=1)
    text = text[:-_TAIL] + _UNWRAPPED.sub("", text[-_TAIL:])
    text = text.strip().rstrip(";")
    try:
        return decoded(text)
    except BadData:
        return decoded(_escaped(text))


def _escaped(text: str) -> str:
    """Escape line breaks and tabs inside the JSON strings of a text."""
    return _STRING.sub(lambda found: found[0].translate(_BREAKS), text)


_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BREAKS = {number: json.dumps(chr(number))[1:-1] for number in range(32)}


def kinds(node: Node) -> set[str]:
    """Return the types of a node, in lower case and without the vocabulary's address."""
    given = node.get("@type", node.get("type"))
    names = given if isinstance(given, list) else [given]
    return {re.split(r"[/#:]", name)[-1].lower() for name in names if isinstance(name, str)}


def products(document: Any) -> Iterator[Node]:
    """Yield the products and product groups of a block, at any depth; variants of a group stay inside the group."""
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
    """Return the value as a list: a list as it is, None as an empty one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(value: Any) -> str | None:
    """Return the first text of a value: itself, or the name or value of an object; None if there is none."""
    for element in each(value):
        if isinstance(element, dict):
            element = element.get("name", element.get("@value", element.get("value")))
        if isinstance(element, bool) or element is None or isinstance(element, (list, dict)):
            continue
        text = str(element).strip()
        if text:
            return text
    return None
