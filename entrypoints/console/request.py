"""Parsing of browser requests within limits: headers, cookies, query, forms and files."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, TypeAlias, cast
from urllib.parse import parse_qsl

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Event, Field, File, MultipartDecoder, NeedData, State

from domain.kernel.errors import InvalidRequest, PayloadTooLarge
from entrypoints.console.translation import N_, gettext
from entrypoints.http.body import FILE_PACE, Gone, IncomingBody, TooSlow, too_large

LONGEST_COOKIES = 8192
"""Maximum length of a Cookie header in characters."""
LONGEST_COOKIE = 4096
"""Maximum length of a cookie's name and value: the minimum that browsers must store (RFC 6265 §6.1)."""
LONGEST = 256 << 10
"""Maximum size of a form without files in bytes, unless its page sets another."""
ANONYMOUS = 32 << 10
"""Maximum size of a form in bytes if nobody is signed in."""
_INLINE = 16 << 10
"""Maximum bytes of a form that are decoded on the event loop, which takes at most about ten milliseconds."""
_SLICE = 16 << 10
"""Bytes of a file that are decoded at once; other requests run between two slices."""
_FIELDS = 500
_UNREADABLE = N_("The form could not be read. Send it again.")
_PART_HEADERS = 2 << 10
"""Maximum size of a part's headers in bytes; parsing headers is far slower than reading contents."""
_BLANK_LINE = re.compile(rb"\r\n\r\n|\r\r|\n\n")


class FormData:
    """Names and values of a query or form, with repeated names allowed; missing names are empty texts."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs

    @cached_property
    def _last(self) -> dict[str, str]:
        return dict(self.pairs)

    def __getitem__(self, name: str) -> str:
        """Return the last value of the name, or an empty text."""
        return self._last.get(name, "")

    def __contains__(self, name: object) -> bool:
        """Return whether the name is present."""
        return name in self._last

    def get(self, name: str, otherwise: str = "") -> str:
        """Return the last value without surrounding blanks, or `otherwise` if it is empty."""
        return self[name].strip() or otherwise

    def number(self, name: str) -> int | None:
        """Return the value as a whole number of at most nine digits, or None."""
        return whole_number(self.get(name))

    def all(self, name: str) -> list[str]:
        """Return all values of the name, in order."""
        return [value for key, value in self.pairs if key == name]

    def entries(self, name: str) -> list[str]:
        """Return the entries in all values of the name, separated by blanks, commas or lines."""
        return ",".join(self.all(name)).replace(",", " ").split()

    def given(self, *names: str) -> dict[str, str]:
        """Return the non-empty values of the names."""
        return {name: value for name in names if (value := self.get(name))}


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file: its name as sent by the browser, its size, and its contents from the start."""

    name: str
    size: int
    file: IO[bytes]


Form: TypeAlias = tuple[FormData, Mapping[str, Upload]]
"""The fields and files of a form."""


@dataclass(slots=True)
class ConsoleRequest:
    """A request. `path` is decoded, `query` raw, and `headers` has lower-case names with the last value of each."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    client: str
    body: IncomingBody
    cookies: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_scope(cls, scope: Any, body: IncomingBody) -> "ConsoleRequest":
        """Return the request of an ASGI HTTP scope."""
        headers: dict[str, str] = {}
        for key, value in scope["headers"]:
            name, text = key.decode("latin-1"), value.decode("latin-1")
            headers[name] = f"{headers[name]}; {text}" if name == "cookie" and name in headers else text
        client = scope.get("client")
        return cls(
            scope["method"],
            scope["path"],
            scope["query_string"].decode("latin-1"),
            headers,
            client[0] if client else "",
            body,
            parse_cookies(headers.get("cookie", "")),
        )

    @property
    def target(self) -> str:
        """Path and query, for redirects back."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def by_script(self) -> bool:
        """True if htmx sent the request."""
        return self.headers.get("hx-request") == "true"

    @property
    def partial(self) -> str | None:
        """The ID of the element that htmx replaces; None for a whole page."""
        if not self.by_script or self.headers.get("hx-history-restore-request") == "true":
            return None
        return self.headers.get("hx-target") or None

    async def form(self, most: int, folder: Path | None = None) -> Form:
        """Read the form.

        Args:
            most: The maximum size in bytes, including files; without files, LONGEST also applies.
            folder: Folder for unnamed temporary files, which disappear with the process.

        Raises:
            InvalidRequest: The body is not a form.
            PayloadTooLarge: The form is too large.

        """
        kind, options = parse_options_header(self.headers.get("content-type", "")[:300])
        if kind == "application/x-www-form-urlencoded" or not kind:
            raw = await self.body.read(min(most, LONGEST))
            return (_decode(raw) if len(raw) <= _INLINE else await asyncio.to_thread(_decode, raw)), {}
        boundary = options.get("boundary", "")
        if kind != "multipart/form-data" or not 0 < len(boundary) <= 70:  # RFC 2046, section 5.1.1
            raise InvalidRequest(
                gettext("This page only accepts application/x-www-form-urlencoded and multipart/form-data.")
            )
        try:
            return await _read_multipart(self.body, boundary.encode("latin-1", "replace"), most, folder)
        except (TooSlow, Gone):
            raise InvalidRequest(
                gettext("The connection closed before the form was complete. Send it again.")
            ) from None
        except RequestEntityTooLarge:
            raise PayloadTooLarge(too_large(LONGEST)) from None
        except ValueError:
            raise InvalidRequest(gettext(_UNREADABLE)) from None


def whole_number(text: str) -> int | None:
    """Return the number of a text of up to nine digits, else None; the limit guards against megabytes of digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def number_or_text(text: str) -> int | str:
    """Return the number, or the text itself, which the operation refuses."""
    return text if (number := whole_number(text)) is None else number


def parse_query(text: str, errors: str = "replace") -> FormData:
    """Return a query string's values, or none if it has too many fields. NUL becomes U+FFFD, as in browsers.

    Raises:
        UnicodeDecodeError: The text is not UTF-8 and `errors` is "strict".

    """
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS, errors=errors)
    except UnicodeDecodeError:
        raise
    except ValueError:
        return FormData([])
    return FormData([(_storable(name), _storable(value)) for name, value in pairs])


def parse_cookies(header: str) -> dict[str, str]:
    """Return the cookies of a header (RFC 6265 §4.2.1); of repeated names, the last.

    Values are not unquoted: no cookie of the service needs it, and unquoting takes quadratic time in some parsers.
    """
    if len(header) > LONGEST_COOKIES:
        return {}
    pairs = (pair.partition("=") for pair in header.split(";") if len(pair) <= LONGEST_COOKIE)
    return {name.strip(): value.strip() for name, separator, value in pairs if separator}


def moment_of(text: str) -> str:
    """Return the time of a datetime field in UTC. Invalid text is returned as it is, and the operation refuses it."""
    try:
        at = datetime.fromisoformat(text.strip())
        return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return text.strip()


def beginning_of_day(text: str, later: int = 0) -> str:
    """Return the start (UTC) of a day, plus `later` days. Invalid text is returned as it is, and the operation refuses it."""
    try:
        return f"{(date.fromisoformat(text) + timedelta(days=later)).isoformat()}T00:00:00Z"
    except (ValueError, OverflowError):
        return text


def _storable(text: str) -> str:
    """Return the text with U+FFFD for every NUL (WHATWG HTML, 13.2.5), as databases can't store NUL."""
    return text.replace("\0", "\ufffd")


def _decode(raw: bytes) -> FormData:
    try:
        return parse_query(raw.decode("utf-8"), errors="strict")
    except UnicodeDecodeError:  # replacing invalid bytes one by one would block all threads
        raise InvalidRequest(gettext(_UNREADABLE)) from None


async def _read_multipart(body: IncomingBody, boundary: bytes, most: int, folder: Path | None) -> Form:
    pairs: list[tuple[str, str]] = []
    files: dict[str, Upload] = {}
    part: Field | File | None = None
    sink: IO[bytes] | None = None
    async for event in _multipart_events(body, boundary, most):
        if isinstance(event, Field | File):
            # Large contents spill to disk; the file closes when the form is garbage-collected.
            spool = SpooledTemporaryFile(max_size=1 << 20, dir=str(folder) if folder else None)  # noqa: SIM115
            part, sink = event, cast("IO[bytes]", spool)
        elif isinstance(event, Data) and part is not None and sink is not None:
            sink.write(event.data)
            size = sink.tell()
            if isinstance(part, Field) and size > LONGEST:
                raise PayloadTooLarge(too_large(LONGEST))
            if event.more_data:
                continue
            sink.seek(0)
            if isinstance(part, Field):
                pairs.append((_storable(part.name or ""), _storable(sink.read().decode("utf-8"))))
            elif part.filename:
                files[part.name or ""] = Upload(part.filename, size, sink)
    return FormData(pairs), files


async def _multipart_events(body: IncomingBody, boundary: bytes, most: int) -> AsyncIterator[Event]:
    """Yield the parts of a multipart body (RFC 7578) as they arrive."""
    decoder, received = MultipartDecoder(boundary, max_form_memory_size=LONGEST, max_parts=_FIELDS), 0
    async for piece in body.chunks(FILE_PACE):
        received += len(piece)
        if received > most:
            raise PayloadTooLarge(too_large(most))
        for start in range(0, len(piece), _SLICE):
            for event in _decoded_events(decoder, piece[start : start + _SLICE]):
                yield event
            await asyncio.sleep(0)
    for event in _decoded_events(decoder, None):
        yield event


def _decoded_events(decoder: MultipartDecoder, piece: bytes | None) -> Iterator[Event]:
    decoder.receive_data(piece)
    while True:
        if (
            decoder.state is State.PART
            and len(decoder.buffer) > _PART_HEADERS
            and not _BLANK_LINE.search(decoder.buffer, 0, _PART_HEADERS)
        ):
            raise ValueError("the headers of a part are too long")
        event = decoder.next_event()
        if isinstance(event, NeedData | Epilogue):
            return
        yield event
