"""Parser of web pages for website checks, which takes linear time whatever the depth of nesting."""

import re
from time import monotonic
from typing import Any

from lxml import etree

from domain.kernel import charsets
from domain.probes.facts import MAX_FOUND_URL_CHARS, MAX_LINK_CHARS, PageFacts, resolve_link
from domain.probes.structured_data import extract_products

MAX_CHARS = 2 * 1024 * 1024
"""Maximum number of characters of a page that are read."""
MAX_DEPTH = 1_000
"""Maximum depth of nested elements that are read; browsers permit less."""
MAX_SECONDS = 5.0
_CHUNK_CHARS = 16 * 1024
_MAX_ASSETS = 500
_MAX_LINKS = 2_000
_MAX_BLOCKS = 50
_MAX_TEXT_CHARS = 20_000
_MAX_BLOCK_CHARS = 1024 * 1024
_ASSET_ATTRIBUTES = {"link": "href", "script": "src", "img": "src", "iframe": "src"}
_INVISIBLE_TAGS = frozenset({"script", "style", "noscript", "template", "svg", "head"})
_CHARSET = re.compile(rb"charset\s{0,5}=\s{0,5}[\"']?([A-Za-z0-9_.:-]{1,40})")


def parse_page(body: bytes, url: str, content_type: str) -> PageFacts:
    """Parse a web page; return facts about it, up to the position where the page is too deep, too long or invalid."""
    target = _PageTarget(url)
    text = _decode_page(body, content_type)
    if not text.strip():
        return PageFacts()
    parser = etree.HTMLParser(target=target, recover=True, no_network=True, encoding="utf-8")
    deadline = monotonic() + MAX_SECONDS
    is_truncated = len(text) > MAX_CHARS
    try:
        for start in range(0, min(len(text), MAX_CHARS), _CHUNK_CHARS):
            parser.feed(text[start : start + _CHUNK_CHARS].encode("utf-8", "replace"))
            if monotonic() > deadline:
                is_truncated = True
                break
        parser.close()
    except (_TooDeep, etree.LxmlError, ValueError, AssertionError):
        is_truncated = True
    return target.build_facts(is_truncated=is_truncated)


def _decode_page(body: bytes, content_type: str) -> str:
    """Decode a page by its byte order mark, or else the charset that `content_type` or the page states, or else UTF-8."""
    stated = _CHARSET.search(content_type.encode("ascii", "replace")) or _CHARSET.search(body[:2048])
    is_utf16 = body.startswith((b"\xff\xfe", b"\xfe\xff"))
    label = "utf-16" if is_utf16 else stated[1].decode() if stated else None
    return charsets.decode(body, label, MAX_CHARS + 1).replace("\0", "")


class _TooDeep(Exception):
    """Error for a page whose elements are nested too deeply."""


class _PageTarget:
    """Target object of lxml's parser, which collects facts from tags and texts."""

    def __init__(self, url: str) -> None:
        self._base = url
        self._depth = 0
        self._invisible_depth = 0
        self._script_texts: list[str] | None = None
        self._script_chars = 0
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
        self._has_password_field = False

    def start(self, tag: str, attributes: Any) -> None:
        """Process a start tag. Raises _TooDeep."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _TooDeep
        if tag in _INVISIBLE_TAGS:
            self._invisible_depth += 1
        if tag in _ASSET_ATTRIBUTES:
            self._store_asset(attributes.get(_ASSET_ATTRIBUTES[tag]))
        self._process_attributes(tag, attributes)

    def _process_attributes(self, tag: str, attributes: Any) -> None:
        match tag:
            case "base":
                self._base = resolve_link(self._base, attributes.get("href", "")) or self._base
            case "title" if self._title is None:  # the first is the page's; SVG images have others
                self._title, self._in_title = [], True
            case "meta" if len(self._metas) < 100:
                name = (attributes.get("name") or attributes.get("property") or "").strip().lower()[:100]
                if name:
                    self._metas.setdefault(name, attributes.get("content", "")[:500])
            case "script":
                self._store_script(attributes.get("type", "").partition(";")[0].strip().lower()[:100])
            case "a" if len(self._links) < _MAX_LINKS:
                url = resolve_link(self._base, attributes.get("href", "")[:MAX_LINK_CHARS])
                if url is not None and len(url) <= MAX_FOUND_URL_CHARS:
                    self._links.setdefault(url)
            case "input":
                self._has_password_field = (
                    self._has_password_field or attributes.get("type", "").strip().lower() == "password"
                )
            case "body":  # platforms state the kind of page in its class
                self._classes.update(attributes.get("class", "").lower().split()[:100])

    def end(self, tag: str) -> None:
        """Process an end tag."""
        self._depth -= 1
        if tag in _INVISIBLE_TAGS:
            self._invisible_depth = max(0, self._invisible_depth - 1)
        if tag == "script" and self._script_texts is not None:
            self._blocks.append("".join(self._script_texts))
            self._script_texts = None
        if tag == "title":
            self._in_title = False

    def data(self, text: str) -> None:
        """Process text between two tags, or a part of it."""
        if self._script_texts is not None:
            if self._script_chars < _MAX_BLOCK_CHARS:
                self._script_texts.append(text)
                self._script_chars += len(text)
        elif self._title is not None and self._in_title:
            self._title.append(text[:500])
        elif not self._invisible_depth:
            self._length += len(text.strip())
            if self._text_chars < _MAX_TEXT_CHARS:
                self._texts.append(text[:_MAX_TEXT_CHARS])
                self._text_chars += len(text)

    def comment(self, text: str) -> None:
        """Ignore a comment."""

    def close(self) -> None:
        """Do nothing at the end of the page; lxml requires the method."""

    def _store_script(self, kind: str) -> None:
        if kind and len(self._types) < 50:
            self._types.add(kind)
        if kind == "application/ld+json" and len(self._blocks) < _MAX_BLOCKS:
            self._script_texts = []

    def _store_asset(self, url: str | None) -> None:
        if url and len(self._assets) < _MAX_ASSETS:
            self._assets.setdefault(url[:500])

    def build_facts(self, *, is_truncated: bool) -> PageFacts:
        """Return the collected facts; `is_truncated` means that the page was not read to its end."""
        if self._script_texts is not None:
            self._blocks.append("".join(self._script_texts))
        return PageFacts(
            title=" ".join("".join(self._title or ()).split())[:500],
            meta_values=self._metas,
            assets=tuple(self._assets),
            links=tuple(self._links),
            classes=frozenset(self._classes),
            script_types=frozenset(self._types),
            text=" ".join("".join(self._texts).split())[:_MAX_TEXT_CHARS],
            text_length=self._length,
            has_password_field=self._has_password_field,
            json_ld=extract_products(self._blocks),
            is_truncated=is_truncated,
        )
