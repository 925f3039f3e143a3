"""Decoders of JSON with exact numbers, for whole texts and for large files that are read element by element."""

import asyncio
import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, TextIO

from ..errors import BadData

_READ_CHARS = 256 * 1024
_MAX_DIGITS = 1_000
_MAX_VALUES = 1_000_000
"""Maximum number of elements and members inside one JSON value, at all levels."""


def _parse_decimal(text: str) -> Decimal:
    """Parse a JSON number that has a fraction or an exponent. Raises ValueError if it is too long or too large."""
    if len(text) > _MAX_DIGITS:
        raise ValueError("a number is too long")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError("a number is too large") from None


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_float=_parse_decimal, parse_constant=_reject_constant)


def decode_json(text: str) -> Any:
    """Decode one JSON document; numbers with a fraction or an exponent become Decimal. Raises BadData."""
    _check_value_count(text)
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise BadData(f"the text is not valid JSON: {_describe_error(error)}") from None


async def decode_page(body: bytes) -> Any:
    """Decode the JSON of one API response of at most `Limits.page_bytes`, in a thread. Raises BadData."""
    # 8 MiB take some 50 ms, but a second if they are only fractions. Each fraction calls `_parse_decimal`, which lets
    # the event loop run in between.
    try:
        return await asyncio.to_thread(lambda: decode_json(body.decode("utf-8-sig")))
    except UnicodeDecodeError:
        raise BadData("the response is not UTF-8") from None


def _check_value_count(text: str, start: int = 0) -> None:
    """Raise BadData if the text from `start` contains too many JSON values."""
    # Values take many times the memory of their text.
    if len(text) - start > _MAX_VALUES and sum(text.count(mark, start) for mark in ",[{") > _MAX_VALUES:
        raise BadData(
            f"one JSON value contains more than {_MAX_VALUES:,} entries; send smaller pages, or one record per line (JSON Lines)"
        )


def _describe_error(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"syntax error at line {error.lineno}, column {error.colno}"
    if isinstance(error, RecursionError):
        return "the value is nested too deeply"
    return "a number is too long" if "digits" in str(error) else str(error)


class JsonStream:
    """Streaming reader of a JSON file, with one value at a time in memory, of at most `max_chars` characters."""

    def __init__(self, file: TextIO, max_chars: int) -> None:
        self._file = file
        self._limit = max_chars
        self._text = ""
        self._at = 0
        self._consumed_chars = 0
        self._ended = False

    def peek(self) -> str:
        """Skip blanks and return the next character without consuming it, or '' at the end of the file."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in " \t\r\n\ufeff":
                    return self._text[self._at]
                self._at += 1
            if not self._read_more(_READ_CHARS):
                return ""

    def consume(self, character: str) -> None:
        """Consume the next character that is not blank. Raises BadData if it is not `character`."""
        if self.peek() != character:
            raise self._build_error(f"the character {character} is missing")
        self._at += 1

    def read_value(self) -> Any:
        """Read and return the next value. Raises BadData if there is no value, or the value is too large."""
        self.peek()
        size = _READ_CHARS
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                # The text read so far belongs to this value, whose end has not been reached.
                _check_value_count(self._text, self._at)
                if isinstance(error, json.JSONDecodeError) and self._read_more(size):
                    size *= 2
                    continue
                raise self._build_error(
                    error.msg if isinstance(error, json.JSONDecodeError) else _describe_error(error)
                ) from None
            if end < len(self._text) or not self._read_more(size):
                self._at = end
                return value

    def iterate_elements(self) -> Iterator[Any]:
        """Yield the elements of the array at the current position."""
        self.consume("[")
        if self.peek() == "]":
            self._at += 1
            return
        while True:
            yield self.read_value()
            if self.peek() == "]":
                self._at += 1
                return
            self.consume(",")

    def iterate_keys(self) -> Iterator[str]:
        """Yield the keys of the object at the current position.

        The caller must read the value of each key before it requests the next key.
        """
        self.consume("{")
        if self.peek() == "}":
            self._at += 1
            return
        while True:
            key = self.read_value()
            if not isinstance(key, str):
                raise self._build_error("a key is missing")
            self.consume(":")
            yield key
            if self.peek() == "}":
                self._at += 1
                return
            self.consume(",")

    def _read_more(self, size: int) -> bool:
        """Read more text into the buffer and remove consumed text. Raises BadData if one value exceeds the limit."""
        if self._ended:
            return False
        pending = len(self._text) - self._at
        if pending > self._limit:
            raise self._build_error(f"one value is larger than {self._limit // (1024 * 1024)} MiB")
        try:
            chunk = self._file.read(min(size, self._limit - pending + 1))
        except UnicodeDecodeError:
            raise self._build_error("the text is not UTF-8") from None
        self._ended = not chunk
        self._consumed_chars += self._at
        self._text = self._text[self._at :] + chunk
        self._at = 0
        return bool(chunk)

    def _build_error(self, reason: str) -> BadData:
        return BadData(f"the text is not valid JSON: {reason} near character {self._consumed_chars + self._at + 1}")
