"""Descriptions come as HTML; the catalogue keeps plain text."""

import html
import re
from functools import lru_cache
from html.parser import HTMLParser
from typing import Final

from domain.ingestion.values.text import paragraphs

_MARKUP: Final = re.compile(r"<[a-zA-Z/!][^>]*>|&(?:#\d+|#[xX][0-9a-fA-F]+|[a-zA-Z]\w*);")
_BLOCKS: Final = frozenset(
    "p div br li ul ol tr table h1 h2 h3 h4 h5 h6 section article header footer hr dd dt dl blockquote pre".split()
)
_SILENT: Final = frozenset(("script", "style", "template", "noscript", "head", "iframe", "svg"))
_VOID: Final = frozenset(("br", "hr", "img", "meta", "input", "link"))


class _Flattener(HTMLParser):
    """Collects the text of a fragment, with a line break at each block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag in _BLOCKS:
            self.parts.append("\n- " if tag == "li" else "\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag in _BLOCKS and tag not in _VOID:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)


def _flattened(text: str) -> str:
    flattener = _Flattener()
    try:
        flattener.feed(text)
        flattener.close()
    except (AssertionError, ValueError):
        # A broken declaration makes the parser give up; dropping the marks alone loses nothing that can be read.
        return html.unescape(re.sub(r"<[^>]*>", " ", text))
    return "".join(flattener.parts)


@lru_cache(maxsize=2048)
def plain(text: str) -> str:
    """`text` without markup and entities, as lines; text without markup keeps its wording."""
    if not _MARKUP.search(text):
        return paragraphs(text)
    return re.sub(r"\n- *\n", "\n- ", re.sub(r"\n{2,}", "\n", paragraphs(_flattened(text))))


@lru_cache(maxsize=16384)
def unescaped(text: str) -> str:
    """A one-line text whose entities (`&amp;`) and stray tags are resolved."""
    return text if not _MARKUP.search(text) else " ".join(_flattened(text).split())
