"""Sees what is on a page of JSON without decoding it: how many records, which links; the reader decodes, in its own process.

Decoding a page of eight MiB holds an event loop for a tenth of a second. This looks at it piece by piece and lets others
go first in between.
"""

import asyncio
import re
from collections.abc import Generator
from typing import Any

from ..errors import BadData
from .json_stream import decoded

Steps = Generator[None, None, Any]

_RUN = re.compile(rb'[^"\[\]{}]{0,16384}+(?:"[^"\\]{0,4096}+"[^"\[\]{}]{0,4096}+){0,64}+')
_TEXT = re.compile(rb"(?:[^\"\\]{1,4096}+|\\.){0,64}+", re.DOTALL)
_BLANK = re.compile(rb"[ \t\r\n]{0,65536}+")
_PLAIN = re.compile(rb"[-+.0-9A-Za-z]{1,1000}+")
_DEPTH = 5
_DEEPEST = 1_000
_LONGEST = 8_192
_SMALL = 1024 * 1024
_MOST_RECORDS = 1_000_000
_PAUSE = 512
"""Steps between two pauses; a step looks at some KiB at most."""
_ELEMENT: dict[str, Any] = {}
_NEVER_JSON = "this is not valid JSON"


async def outline(body: bytes, *, keep: frozenset[str] = frozenset()) -> Any:
    """The document with its lists emptied: objects in them are `{}`, or hold their plain values named in `keep`.

    The first object of a list keeps all its plain values; values that are no objects are None there. Texts beyond 8 KiB
    are ''. Deeper than five objects nothing is kept. Raises BadData for what cannot be JSON; much that is none passes here
    and is told by who decodes it.
    """
    look = _Look(body, keep).document()
    while True:
        try:
            next(look)
        except StopIteration as ended:
            return ended.value
        await asyncio.sleep(0)


def small(body: bytes) -> Any:
    """A small answer, decoded: one that a page's bounds do not need, of 1 MiB at most. Raises BadData."""
    if len(body) > _SMALL:
        raise BadData("the answer is larger than expected")
    try:
        return decoded(body.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise BadData("the answer is not UTF-8") from None


class _Look:
    def __init__(self, body: bytes, keep: frozenset[str]) -> None:
        self._body = body
        self._keep = keep
        self._at = 3 if body.startswith(b"\xef\xbb\xbf") else 0
        self._steps = 0
        self._records = 0

    def document(self) -> Steps:
        value = yield from self._value(1)
        yield from self._blanks()
        if self._at < len(self._body):
            raise self._bad("something follows it")
        return value

    def _value(self, depth: int) -> Steps:
        start = yield from self._ahead()
        if start == b"{" and depth <= _DEPTH:
            return (yield from self._object(depth))
        if start == b"[" and depth <= _DEPTH:
            return (yield from self._list())
        if start in {b"{", b"["}:
            yield from self._skip()
            return None
        return (yield from self._plain())

    def _object(self, depth: int) -> Steps:
        found: dict[str, Any] = {}
        self._at += 1
        while (yield from self._ahead()) != b"}":
            key = yield from self._key()
            found[key] = yield from self._value(depth + 1)
            yield from self._comma(b"}")
        self._at += 1
        return found

    def _list(self) -> Steps:
        found: list[Any] = []
        self._at += 1
        while (start := (yield from self._ahead())) != b"]":
            self._records += 1
            if self._records > _MOST_RECORDS:
                raise BadData(f"a page of the source holds more than {_MOST_RECORDS:,} entries")
            if start == b"{" and (self._keep or not found):
                found.append((yield from self._record(first=not found)))
            elif start in {b"{", b"["}:
                yield from self._skip()
                found.append(_ELEMENT if start == b"{" else None)
            else:
                yield from self._pass_plain()
                found.append(None)
            yield from self._comma(b"]")
        self._at += 1
        return found

    def _record(self, *, first: bool) -> Steps:
        """The plain values of an object in a list."""
        found: dict[str, Any] = {}
        self._at += 1
        while (yield from self._ahead()) != b"}":
            key = yield from self._key()
            if (yield from self._ahead()) in {b"{", b"["}:
                yield from self._skip()
            elif first or key in self._keep:
                found[key] = yield from self._plain()
            else:
                yield from self._pass_plain()
            yield from self._comma(b"}")
        self._at += 1
        return found

    def _key(self) -> Steps:
        if (yield from self._ahead()) != b'"':
            raise self._bad("a key is missing")
        key = yield from self._plain()
        if (yield from self._ahead()) != b":":
            raise self._bad("':' is missing")
        self._at += 1
        return key

    def _comma(self, end: bytes) -> Steps:
        ahead = yield from self._ahead()
        if ahead == b",":
            self._at += 1
        elif ahead != end:
            raise self._bad(f"the sign {end.decode()} is missing")

    def _plain(self) -> Steps:
        """A text, a number, or one of the three words; a long text is not kept."""
        start = self._at
        yield from self._pass_plain()
        if self._at - start > _LONGEST:
            return ""
        return decoded(self._body[start : self._at].decode("utf-8", errors="replace"))

    def _pass_plain(self) -> Steps:
        yield from self._step()
        start = self._at
        if self._body[start : start + 1] == b'"':
            yield from self._text()
        else:
            found = _PLAIN.match(self._body, start)
            if found is None:
                raise self._bad("a value is missing")
            self._at = found.end()

    def _text(self) -> Steps:
        """Pass the text that begins here."""
        self._at += 1
        while self._body[self._at : self._at + 1] != b'"':
            found = _TEXT.match(self._body, self._at)
            if found is None or found.end() == self._at:
                raise self._bad("a text is not closed")
            self._at = found.end()
            yield from self._step()
        self._at += 1

    def _skip(self) -> Steps:
        """Pass the object or list that begins here, whatever is in it."""
        depth = 0
        while True:
            found = _RUN.match(self._body, self._at)
            self._at = found.end() if found else self._at
            mark = self._body[self._at : self._at + 1]
            if mark in {b"{", b"["}:
                depth += 1
                self._at += 1
            elif mark in {b"}", b"]"}:
                depth -= 1
                self._at += 1
                if not depth:
                    return
            elif mark == b'"':
                yield from self._text()
            elif not mark:
                raise self._bad("it ends too early")
            if depth > _DEEPEST:
                raise self._bad("it is nested too deeply")
            yield from self._step()

    def _blanks(self) -> Steps:
        while (found := _BLANK.match(self._body, self._at)) and found.end() > self._at:
            self._at = found.end()
            yield from self._step()

    def _ahead(self) -> Steps:
        yield from self._blanks()
        return self._body[self._at : self._at + 1]

    def _step(self) -> Generator[None, None, None]:
        self._steps += 1
        if self._steps % _PAUSE == 0:
            yield

    def _bad(self, reason: str) -> BadData:
        return BadData(f"{_NEVER_JSON}: {reason} near byte {self._at + 1}")
