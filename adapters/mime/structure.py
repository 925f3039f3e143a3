"""Parser of a message's parts in linear time: the standard parser reads every line once for each level."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesHeaderParser

from domain.mail.model import MessageUnreadable

MOST_PARTS = 1000
DEEPEST = 10
LONGEST_HEADERS = 64 * 1024
"""Bytes of one part's headers."""
_MOST_FIELDS = 500
_LONGEST_BOUNDARY = 200
_LONGEST_VALUE = 4096
_MOST_PARAMETERS = 64
_END = re.compile(rb"\n\n|\A\n")
_PARSER = BytesHeaderParser()


@dataclass(frozen=True, slots=True)
class Leaf:
    """Part without parts: its headers, and its body as sent. `cut` states that the message ends before the part."""

    headers: "Message[str, str]"
    body: bytes
    cut: bool


class Taken:
    """Message being split into parts; one beyond the limits is refused as a whole."""

    def __init__(self, raw: bytes) -> None:
        self._parts = 0
        self.headers, self._body = _split(raw.replace(b"\r\n", b"\n"))

    def leaves(self) -> Iterator[Leaf]:
        """Yield the parts with content, in order. Raises MessageUnreadable."""
        yield from self._within(self.headers, self._body, 0, cut=False)

    def _within(self, headers: "Message[str, str]", body: bytes, depth: int, *, cut: bool) -> Iterator[Leaf]:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise MessageUnreadable(f"The message has more than {MOST_PARTS} parts.")
        if depth > DEEPEST:
            raise MessageUnreadable(f"The message's parts are nested more than {DEEPEST} levels deep.")
        kind, boundary = content_type(headers), _boundary(headers)
        if kind.startswith("multipart/") and boundary:
            for piece, open_ended in _pieces(body, boundary):
                inner, rest = _split(piece)
                yield from self._within(inner, rest, depth + 1, cut=cut or open_ended)
        elif kind in ("message/rfc822", "message/global") and _is_plain(headers):
            inner, rest = _split(body.lstrip(b"\n"))
            yield from self._within(inner, rest, depth + 1, cut=cut)
        else:
            yield Leaf(headers, body, cut or kind.startswith("multipart/"))


def content_type(headers: "Message[str, str]") -> str:
    """Return the declared type in lower case; text/plain for none or an invalid one."""
    try:
        return headers.get_content_type().lower()
    except Exception:  # the standard library raises undocumented errors for some headers
        return "text/plain"


def _is_plain(headers: "Message[str, str]") -> bool:
    return str(headers.get("content-transfer-encoding", "")).strip().lower() in ("", "7bit", "8bit", "binary")


def _split(piece: bytes) -> tuple["Message[str, str]", bytes]:
    end = _END.search(piece)
    head, body = (piece[: end.start()], piece[end.end() :]) if end else (piece, b"")
    if len(head) > LONGEST_HEADERS or head.count(b"\n") > _MOST_FIELDS * 8:
        raise MessageUnreadable(f"The headers of a part take more than {LONGEST_HEADERS} bytes.")
    try:
        headers = _PARSER.parsebytes(head)
    except Exception as error:  # as above
        raise MessageUnreadable("The headers of a part cannot be read.") from error
    if len(headers) > _MOST_FIELDS:
        raise MessageUnreadable(f"A part has more than {_MOST_FIELDS} headers.")
    return headers, body


def has_parameters(headers: "Message[str, str]", name: str) -> bool:
    """Return whether a header's parameters are few enough, as the standard parser takes quadratic time."""
    value = str(headers.get(name, ""))
    return len(value) <= _LONGEST_VALUE and value.count(";") <= _MOST_PARAMETERS


def _boundary(headers: "Message[str, str]") -> bytes | None:
    if not has_parameters(headers, "content-type"):
        return None
    try:
        text = headers.get_boundary()
    except Exception:  # as above
        return None
    if not text or len(text) > _LONGEST_BOUNDARY:
        return None
    return text.encode("utf-8", "surrogateescape")


def _pieces(body: bytes, boundary: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the parts between the boundary's lines, and whether the closing line is missing."""
    line = re.compile(rb"(?:\A|\n)--" + re.escape(boundary) + rb"(--)?[ \t]*(?=\n|\Z)")
    start: int | None = None
    for found in line.finditer(body):
        if start is not None:
            yield body[start : found.start()], False
        start = found.end() + 1
        if found[1]:
            return
    if start is not None:
        yield body[start:], True
