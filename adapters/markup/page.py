"""Reader of a web page as a stream of tags, so that nesting cannot cost more than the page's length."""

import re
from time import monotonic
from typing import Any

from lxml import etree

from domain.kernel import charsets
from domain.probes.facts import LONGEST_FOUND, LONGEST_URL, PageFacts, joined
from domain.probes.structured_data import read as read_blocks

LONGEST = 2 * 1024 * 1024
"""Maximum characters of a page that are read."""
DEEPEST = 1_000
"""Depth at which reading stops; browsers allow less."""
SECONDS = 5.0
_PIECE = 16 * 1024
_ASSETS = 500
_LINKS = 2_000
_BLOCKS = 50
_TEXT = 20_000
_BLOCK_CHARS = 1024 * 1024
_ASSETS_IN = {"link": "href", "script": "src", "img": "src", "iframe": "src"}
_SILENT = frozenset({"script", "style", "noscript", "template", "svg", "head"})
_CHARSET = re.compile(rb"charset\s{0,5}=\s{0,5}[\"']?([A-Za-z0-9_.:-]{1,40})")


def facts_of(body: bytes, url: str, content_type: str) -> PageFacts:
    """Return the facts of a page, up to where it becomes too deep, too long or invalid."""
    listener = _Listener(url)
    text = _decoded(body, content_type)
    if not text.strip():
        return PageFacts()
    parser = etree.HTMLParser(target=listener, recover=True, no_network=True, encoding="utf-8")
    until = monotonic() + SECONDS
    cut = len(text) > LONGEST
    try:
        for start in range(0, min(len(text), LONGEST), _PIECE):
            parser.feed(text[start : start + _PIECE].encode("utf-8", "replace"))
            if monotonic() > until:
                cut = True
                break
        parser.close()
    except (_TooDeep, etree.LxmlError, ValueError, AssertionError):
        cut = True
    return listener.facts(cut=cut)


def _decoded(body: bytes, content_type: str) -> str:
    """Decode by the byte order mark, by the header, by what the page states, else as UTF-8."""
    stated = _CHARSET.search(content_type.encode("ascii", "replace")) or _CHARSET.search(body[:2048])
    marked = body.startswith((b"\xff\xfe", b"\xfe\xff"))
    label = "utf-16" if marked else stated[1].decode() if stated else None
    return charsets.decode(body, label, LONGEST + 1).replace("\0", "")


class _TooDeep(Exception):
    """Nesting beyond that of any page for people."""


class _Listener:
    """Target of lxml's parser, which collects tags and texts."""

    def __init__(self, url: str) -> None:
        self._base = url
        self._depth = 0
        self._silent = 0
        self._collecting: list[str] | None = None
        self._collected = 0
        self._title: list[str] | None = None
        self._in_title = False
        self._texts: list[str] = []
        self._text_chars = self._length = 0
        self._metas: dict[str, str] = {}
        self._assets: dict[str, None] = {}
        self._links: dict[str, None] = {}
        self._classes: set[str] = set()
        self._types: set[str] = set()
        self._blocks: list[str] = []
        self._password = False

    def start(self, tag: str, attributes: Any) -> None:
        """Process a start tag."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise _TooDeep
        if tag in _SILENT:
            self._silent += 1
        if tag in _ASSETS_IN:
            self._take_asset(attributes.get(_ASSETS_IN[tag]))
        self._take(tag, attributes)

    def _take(self, tag: str, attributes: Any) -> None:
        match tag:
            case "base":
                self._base = joined(self._base, attributes.get("href", "")) or self._base
            case "title" if self._title is None:  # the first is the page's; SVG images have others
                self._title, self._in_title = [], True
            case "meta" if len(self._metas) < 100:
                name = (attributes.get("name") or attributes.get("property") or "").strip().lower()[:100]
                if name:
                    self._metas.setdefault(name, attributes.get("content", "")[:500])
            case "script":
                self._take_script(attributes.get("type", "").partition(";")[0].strip().lower()[:100])
            case "a" if len(self._links) < _LINKS:
                url = joined(self._base, attributes.get("href", "")[:LONGEST_URL])
                if url is not None and len(url) <= LONGEST_FOUND:
                    self._links.setdefault(url)
            case "input":
                self._password = self._password or attributes.get("type", "").strip().lower() == "password"
            case "body":  # platforms state the kind of page in its class
                self._classes.update(attributes.get("class", "").lower().split()[:100])

    def end(self, tag: str) -> None:
        """Process an end tag."""
        self._depth -= 1
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        if tag == "script" and self._collecting is not None:
            self._blocks.append("".join(self._collecting))
            self._collecting = None
        if tag == "title":
            self._in_title = False

    def data(self, text: str) -> None:
        """Process a piece of text."""
        if self._collecting is not None:
            if self._collected < _BLOCK_CHARS:
                self._collecting.append(text)
                self._collected += len(text)
        elif self._title is not None and self._in_title:
            self._title.append(text[:500])
        elif not self._silent:
            self._length += len(text.strip())
            if self._text_chars < _TEXT:
                self._texts.append(text[:_TEXT])
                self._text_chars += len(text)

    def comment(self, text: str) -> None:
        """Ignore a comment."""

    def close(self) -> None:
        """Do nothing at the end of the page."""

    def _take_script(self, kind: str) -> None:
        if kind and len(self._types) < 50:
            self._types.add(kind)
        if kind == "application/ld+json" and len(self._blocks) < _BLOCKS:
            self._collecting = []

    def _take_asset(self, address: str | None) -> None:
        if address and len(self._assets) < _ASSETS:
            self._assets.setdefault(address[:500])

    def facts(self, *, cut: bool) -> PageFacts:
        """Return the collected facts."""
        if self._collecting is not None:
            self._blocks.append("".join(self._collecting))
        return PageFacts(
            title=" ".join("".join(self._title or ()).split())[:500],
            metas=self._metas,
            assets=tuple(self._assets),
            links=tuple(self._links),
            classes=frozenset(self._classes),
            script_types=frozenset(self._types),
            text=" ".join("".join(self._texts).split())[:_TEXT],
            text_length=self._length,
            asks_password=self._password,
            blocks=read_blocks(self._blocks),
            cut=cut,
        )
