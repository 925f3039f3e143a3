"""Splitting of an email message into its parts in linear time.

The parser of the standard library is used for headers only, because it reads every line once for each level of nesting.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesHeaderParser

from domain.mail.model import MessageUnreadable

MAX_PARTS = 1000
MAX_LEVELS = 10
MAX_HEADERS_BYTES = 64 * 1024
"""Maximum size of the headers of one part in bytes; a message with larger headers is refused."""
_MAX_FIELDS = 500
_MAX_BOUNDARY_LENGTH = 200
_MAX_VALUE_LENGTH = 4096
_MAX_PARAMETERS = 64
_HEADERS_END = re.compile(rb"\n\n|\A\n")
_PARSER = BytesHeaderParser()


@dataclass(frozen=True, slots=True)
class MessagePart:
    """Part of a message that contains no further parts, with its headers and its encoded body.

    `is_truncated` states that the message ended inside the part.
    """

    headers: "Message[str, str]"
    body: bytes
    is_truncated: bool


class MessageSplitter:
    """Splitter of a message into its parts.

    Attributes:
        headers: Headers of the message.

    Raises:
        MessageUnreadable: The headers of the message exceed a limit or cannot be read.
    """

    def __init__(self, raw: bytes) -> None:
        self._part_count = 0
        self.headers, self._body = _split_headers(raw.replace(b"\r\n", b"\n"))

    def iterate_leaves(self) -> Iterator[MessagePart]:
        """Yield the parts that contain no further parts, in order.

        Raises MessageUnreadable if a part exceeds a limit or cannot be read.
        """
        yield from self._iterate_parts(self.headers, self._body, 0, is_truncated=False)

    def _iterate_parts(
        self, headers: "Message[str, str]", body: bytes, depth: int, *, is_truncated: bool
    ) -> Iterator[MessagePart]:
        self._part_count += 1
        if self._part_count > MAX_PARTS:
            raise MessageUnreadable(f"The message has more than {MAX_PARTS} parts.")
        if depth > MAX_LEVELS:
            raise MessageUnreadable(f"The message's parts are nested more than {MAX_LEVELS} levels deep.")
        kind, boundary = find_content_type(headers), _read_boundary(headers)
        if kind.startswith("multipart/") and boundary:
            for part, is_open_ended in _split_parts(body, boundary):
                inner, rest = _split_headers(part)
                yield from self._iterate_parts(inner, rest, depth + 1, is_truncated=is_truncated or is_open_ended)
        elif kind in ("message/rfc822", "message/global") and _has_identity_encoding(headers):
            inner, rest = _split_headers(body.lstrip(b"\n"))
            yield from self._iterate_parts(inner, rest, depth + 1, is_truncated=is_truncated)
        else:
            yield MessagePart(headers, body, is_truncated or kind.startswith("multipart/"))


def find_content_type(headers: "Message[str, str]") -> str:
    """Return the content type of a part in lower case; text/plain if the header is missing or invalid."""
    try:
        return headers.get_content_type().lower()
    except Exception:  # the standard library raises undocumented errors for some headers
        return "text/plain"


def _has_identity_encoding(headers: "Message[str, str]") -> bool:
    return str(headers.get("content-transfer-encoding", "")).strip().lower() in ("", "7bit", "8bit", "binary")


def _split_headers(part: bytes) -> tuple["Message[str, str]", bytes]:
    end = _HEADERS_END.search(part)
    head, body = (part[: end.start()], part[end.end() :]) if end else (part, b"")
    if len(head) > MAX_HEADERS_BYTES or head.count(b"\n") > _MAX_FIELDS * 8:
        raise MessageUnreadable(f"The headers of a part take more than {MAX_HEADERS_BYTES} bytes.")
    try:
        headers = _PARSER.parsebytes(head)
    except Exception as error:  # as above
        raise MessageUnreadable("The headers of a part cannot be read.") from error
    if len(headers) > _MAX_FIELDS:
        raise MessageUnreadable(f"A part has more than {_MAX_FIELDS} headers.")
    return headers, body


def has_parsable_parameters(headers: "Message[str, str]", name: str) -> bool:
    """Return whether the parameters of the header `name` are few and short enough to be parsed."""
    # The standard library parses parameters in quadratic time.
    value = str(headers.get(name, ""))
    return len(value) <= _MAX_VALUE_LENGTH and value.count(";") <= _MAX_PARAMETERS


def _read_boundary(headers: "Message[str, str]") -> bytes | None:
    if not has_parsable_parameters(headers, "content-type"):
        return None
    try:
        text = headers.get_boundary()
    except Exception:  # as above
        return None
    if not text or len(text) > _MAX_BOUNDARY_LENGTH:
        return None
    return text.encode("utf-8", "surrogateescape")


def _split_parts(body: bytes, boundary: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield each part of a multipart body, and whether the boundary line after the part is missing."""
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
