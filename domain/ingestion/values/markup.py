"""The text of a fragment of HTML, read in one pass: each character is looked at a bounded number of times, whatever is left open."""

import html
import re
from typing import Final

_ENTITY: Final = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[a-zA-Z]\w*);")
# No character has a number this long, and making a number of it takes time and is refused beyond 4,300 digits.
_ENDLESS: Final = re.compile(r"&#\d{100,};?")
_OPENING: Final = re.compile(r"<[a-zA-Z/!]")
_TAG: Final = re.compile(r"<(/?)\s*+([a-zA-Z][^\s/>\x00]*+)")
_REST: Final = re.compile(r"""(?:=\s*+(?:"[^"]*+"|'[^']*+')|[^>])*+>""")
_ENDS: Final = {
    "script": re.compile(r"</\s*+script\s*+>", re.I),
    "style": re.compile(r"</\s*+style\s*+>", re.I),
}
_BLOCKS: Final = frozenset(
    "p div br li ul ol tr table h1 h2 h3 h4 h5 h6 section article header footer hr dd dt dl blockquote pre".split()
)
_SILENT: Final = frozenset(("script", "style", "template", "noscript", "head", "iframe", "svg"))
_VOID: Final = frozenset(("br", "hr", "img", "meta", "input", "link"))


def has_markup(text: str) -> bool:
    """Whether a text holds a tag or an entity."""
    opening = _OPENING.search(text) if "<" in text else None
    if opening is not None and text.find(">", opening.end()) >= 0:
        return True
    return "&" in text and _ENTITY.search(text) is not None


def flattened(text: str) -> str:
    """The text outside tags, entities resolved, with a line break at each block; scripts and comments say nothing."""
    return _Walk(text).run()


class _Walk:
    """One pass over one fragment. What is left open at its end is text, for nothing proves it to be a tag."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[str] = []
        self._silent = 0
        self._quotes = True

    def run(self) -> str:
        text, at = self._text, 0
        last = text.rfind(">")
        while (start := text.find("<", at, last + 1)) >= 0:
            self._say(at, start)
            at = self._construct(start)
        self._say(at, len(text))
        return "".join(self._parts)

    def _say(self, start: int, end: int) -> None:
        if start < end and not self._silent:
            self._parts.append(html.unescape(_ENDLESS.sub("\ufffd", self._text[start:end])))

    def _construct(self, start: int) -> int:
        """Take what begins with the `<` at `start`; where to go on."""
        text = self._text
        if tag := _TAG.match(text, start):
            return self._tag(tag) if tag[1] or tag.start(2) == start + 1 else self._sign(start)
        if text.startswith("<!--", start):
            return self._behind("-->", start + 4)
        if text.startswith("<![CDATA[", start):
            return self._behind("]]>", start + 9)
        if text.startswith(("<!", "<?", "</"), start):
            return self._behind(">", start + 2)
        return self._sign(start)

    def _sign(self, start: int) -> int:
        """A `<` that begins nothing is a sign like any other."""
        self._say(start, start + 1)
        return start + 1

    def _behind(self, end: str, start: int) -> int:
        """Behind the next `end`; behind all of the text where there is none, so that nobody looks for it twice."""
        found = self._text.find(end, start)
        return len(self._text) if found < 0 else found + len(end)

    def _tag(self, tag: re.Match[str]) -> int:
        end = self._end_of(tag.end())
        name = tag[2].lower()
        if tag[1] or self._text[end - 2] == "/":
            if not tag[1]:
                self._start(name)
            self._end(name)
            return end
        self._start(name)
        if name in _ENDS:
            closing = _ENDS[name].search(self._text, end)
            return len(self._text) if closing is None else closing.start()
        return end

    def _end_of(self, start: int) -> int:
        """Behind the `>` that ends a tag: the next one outside quoted values, and the very next once quotes do not close."""
        rest = _REST.match(self._text, start) if self._quotes else None
        if rest is not None:
            return rest.end()
        self._quotes = False
        return self._behind(">", start)

    def _start(self, name: str) -> None:
        if name in _SILENT:
            self._silent += 1
        elif name in _BLOCKS:
            self._parts.append("\n- " if name == "li" else "\n")

    def _end(self, name: str) -> None:
        if name in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif name in _BLOCKS and name not in _VOID:
            self._parts.append("\n")
