"""Decoders of JSON with exact numbers: whole texts, and large documents element by element."""

import asyncio
import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, TextIO

from ..errors import BadData

_READ = 256 * 1024
_DIGITS = 1_000
_ENTRIES = 1_000_000
"""Values and members that one value may hold."""


def _number(text: str) -> Decimal:
    """Parse an exact decimal. Raises ValueError if it is too long or too large."""
    if len(text) > _DIGITS:
        raise ValueError("a number is too long")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError("a number is too large") from None


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_float=_number, parse_constant=_constant)


def decoded(text: str) -> Any:
    """Decode one JSON document; fractions are Decimal. Raises BadData."""
    _count(text)
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise BadData(f"this is not valid JSON: {_reason(error)}") from None


async def decoded_page(body: bytes) -> Any:
    """Decode one response of an API, limited by `Limits.page_bytes` and the number of entries. Raises BadData.

    Decoding runs in a thread: 8 MiB take some 50 ms, but a second if they are only fractions. Each fraction calls
    `_number`, which lets the event loop run in between.
    """
    try:
        return await asyncio.to_thread(lambda: decoded(body.decode("utf-8-sig")))
    except UnicodeDecodeError:
        raise BadData("the answer is not UTF-8") from None


def _count(text: str, start: int = 0) -> None:
    """Raise BadData for a text with more values than a record or page may have; values take many times their text's memory."""
    if len(text) - start > _ENTRIES and sum(text.count(mark, start) for mark in ",[{") > _ENTRIES:
        raise BadData(
            f"one value of the JSON holds more than {_ENTRIES:,} entries; send it in smaller pages or as lines"
        )


def _reason(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"syntax error at line {error.lineno}, column {error.colno}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "a number is too long" if "digits" in str(error) else str(error)


class JsonStream:
    """Position in a JSON text. One value at a time is in memory, at most `limit` characters of text."""

    def __init__(self, file: TextIO, limit: int) -> None:
        self._file = file
        self._limit = limit
        self._text = ""
        self._at = 0
        self._passed = 0
        self._ended = False

    def peek(self) -> str:
        """Return the next character that is not blank, or '' at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in " \t\r\n\ufeff":
                    return self._text[self._at]
                self._at += 1
            if not self._more(_READ):
                return ""

    def take(self, character: str) -> None:
        """Consume this character. Raises BadData if the next one differs."""
        if self.peek() != character:
            raise self._bad(f"the sign {character} is missing")
        self._at += 1

    def value(self) -> Any:
        """Read the next value whole. Raises BadData if there is none, or it is too large."""
        self.peek()
        size = _READ
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                # The text read so far belongs to this value, whose end has not been reached.
                _count(self._text, self._at)
                if isinstance(error, json.JSONDecodeError) and self._more(size):
                    size *= 2
                    continue
                raise self._bad(error.msg if isinstance(error, json.JSONDecodeError) else _reason(error)) from None
            if end < len(self._text) or not self._more(size):
                self._at = end
                return value

    def elements(self) -> Iterator[Any]:
        """Yield the values of the array that begins here."""
        self.take("[")
        if self.peek() == "]":
            self._at += 1
            return
        while True:
            yield self.value()
            if self.peek() == "]":
                self._at += 1
                return
            self.take(",")

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that begins here; the caller reads each key's value before the next key."""
        self.take("{")
        if self.peek() == "}":
            self._at += 1
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise self._bad("a key is missing")
            self.take(":")
            yield key
            if self.peek() == "}":
                self._at += 1
                return
            self.take(",")

    def _more(self, size: int) -> bool:
        """Read more text and drop the consumed part. Raises BadData if one value grows beyond the limit."""
        if self._ended:
            return False
        pending = len(self._text) - self._at
        if pending > self._limit:
            raise self._bad(f"one value is larger than {self._limit // (1024 * 1024)} MiB")
        try:
            piece = self._file.read(min(size, self._limit - pending + 1))
        except UnicodeDecodeError:
            raise self._bad("it is not UTF-8") from None
        self._ended = not piece
        self._passed += self._at
        self._text = self._text[self._at :] + piece
        self._at = 0
        return bool(piece)

    def _bad(self, reason: str) -> BadData:
        return BadData(f"this is not valid JSON: {reason} near character {self._passed + self._at + 1}")
