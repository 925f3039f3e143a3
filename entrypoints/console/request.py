"""A browser's request as plain values: headers, cookies, query, and what its form sends, within bounds."""

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
from entrypoints.http.body import FILE_PACE, Gone, IncomingBody, TooSlow, too_large

LONGEST_COOKIES = 8192
"""Characters of a Cookie header that are read."""
LONGEST_COOKIE = 4096
"""Characters of one name and value: the least that browsers must store (RFC 6265 §6.1)."""
LONGEST = 256 << 10
"""Bytes of a form without files, unless its page says otherwise."""
ANONYMOUS = 32 << 10
"""Bytes of a form of a browser that is not signed in, whatever its page takes of others."""
_INLINE = 16 << 10
"""Bytes of a form that are decoded on the event loop, in some ten milliseconds, whatever is escaped in them."""
_SLICE = 16 << 10
"""Bytes of a file that are decoded at once; other requests have their turn between two slices."""
_FIELDS = 500
_UNREADABLE = "The form could not be read; send it again."
_PART_HEADERS = 2 << 10
"""Bytes of a part's headers, which take far longer to read than what they announce."""
_BLANK_LINE = re.compile(rb"\r\n\r\n|\r\r|\n\n")


class FormData:
    """Names and values of a query or form; a name may have several. Missing names are empty texts."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs

    @cached_property
    def _last(self) -> dict[str, str]:
        return dict(self.pairs)

    def __getitem__(self, name: str) -> str:
        """Return the last value of that name; empty when there is none."""
        return self._last.get(name, "")

    def __contains__(self, name: object) -> bool:
        """Return whether the name was sent."""
        return name in self._last

    def get(self, name: str, otherwise: str = "") -> str:
        """Return the last value without blanks around it, or `otherwise` when that leaves nothing."""
        return self[name].strip() or otherwise

    def number(self, name: str) -> int | None:
        """Return the whole number of that name, of at most nine digits; None for anything else."""
        return whole_number(self.get(name))

    def all(self, name: str) -> list[str]:
        """Return every value of that name, in order."""
        return [value for key, value in self.pairs if key == name]

    def entries(self, name: str) -> list[str]:
        """Return what all values of that name list, separated by blanks, commas or lines."""
        return ",".join(self.all(name)).replace(",", " ").split()

    def given(self, *names: str) -> dict[str, str]:
        """Return those of the names that have a value, as an operation takes them."""
        return {name: value for name in names if (value := self.get(name))}


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was sent with a form: its name as the browser stated it, and its bytes from the beginning."""

    name: str
    size: int
    file: IO[bytes]


Form: TypeAlias = tuple[FormData, Mapping[str, Upload]]
"""The fields and files of one form."""


@dataclass(slots=True)
class ConsoleRequest:
    """One request. `path` is decoded, `query` the raw query string, `headers` under lower-case names, the last of each."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    client: str
    body: IncomingBody
    cookies: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_scope(cls, scope: Any, body: IncomingBody) -> "ConsoleRequest":
        """Return the request that an ASGI HTTP scope describes."""
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
        """Path and query, to come back to."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def by_script(self) -> bool:
        """Whether htmx asks, and not the browser itself."""
        return self.headers.get("hx-request") == "true"

    @property
    def partial(self) -> str | None:
        """The id of the element that htmx wants new contents for; None for a whole page."""
        if not self.by_script or self.headers.get("hx-history-restore-request") == "true":
            return None
        return self.headers.get("hx-target") or None

    async def form(self, most: int, folder: Path | None = None) -> Form:
        """Read the form.

        Args:
            most: Bytes that it may have, files included; without files it has LONGEST at most.
            folder: Where its files are spooled, without a name, so that they go with the process.

        Raises:
            InvalidRequest: It is no form.
            PayloadTooLarge: It is too large.

        """
        kind, options = parse_options_header(self.headers.get("content-type", "")[:300])
        if kind == "application/x-www-form-urlencoded" or not kind:
            raw = await self.body.read(min(most, LONGEST))
            return (_decode(raw) if len(raw) <= _INLINE else await asyncio.to_thread(_decode, raw)), {}
        boundary = options.get("boundary", "")
        if kind != "multipart/form-data" or not 0 < len(boundary) <= 70:  # RFC 2046, section 5.1.1
            raise InvalidRequest(
                "This page takes what a form sends: application/x-www-form-urlencoded or multipart/form-data."
            )
        try:
            return await _read_multipart(self.body, boundary.encode("latin-1", "replace"), most, folder)
        except (TooSlow, Gone):
            raise InvalidRequest("The form broke off before its end; send it again.") from None
        except RequestEntityTooLarge:
            raise PayloadTooLarge(too_large(LONGEST)) from None
        except ValueError:
            raise InvalidRequest(_UNREADABLE) from None


def whole_number(text: str) -> int | None:
    """Return the number that up to nine digits say; None for any other text, which could be a number of megabytes."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def number_or_text(text: str) -> int | str:
    """Return the number; what is none goes on as it is, for an operation to say what is wrong with it."""
    return text if (number := whole_number(text)) is None else number


def parse_query(text: str, errors: str = "replace") -> FormData:
    """Return a query string's values; none of one with too many fields. NUL is read as browsers read it, as U+FFFD.

    Raises:
        UnicodeDecodeError: With `errors` "strict", the text is no UTF-8.

    """
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS, errors=errors)
    except UnicodeDecodeError:
        raise
    except ValueError:
        return FormData([])
    return FormData([(_storable(name), _storable(value)) for name, value in pairs])


def parse_cookies(header: str) -> dict[str, str]:
    """Split a Cookie header (RFC 6265 §4.2.1) into names and values, of which the last of a name counts.

    Values are not unquoted: the service sets none that would need it, and unquoting is where parsers take quadratic time.
    """
    if len(header) > LONGEST_COOKIES:
        return {}
    pairs = (pair.partition("=") for pair in header.split(";") if len(pair) <= LONGEST_COOKIE)
    return {name.strip(): value.strip() for name, separator, value in pairs if separator}


def moment_of(text: str) -> str:
    """Return the moment of a field of date and time, in UTC; empty for none. What is no moment stays, to be refused by name."""
    try:
        at = datetime.fromisoformat(text.strip())
        return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return text.strip()


def beginning_of_day(text: str, later: int = 0) -> str:
    """Return the beginning (UTC) of a day, or of one so many days later. What is no day stays, to be refused by name."""
    try:
        return f"{(date.fromisoformat(text) + timedelta(days=later)).isoformat()}T00:00:00Z"
    except (ValueError, OverflowError):
        return text


def _storable(text: str) -> str:
    """Return the text with U+FFFD for every NUL (WHATWG HTML, 13.2.5), which nothing can store."""
    return text.replace("\0", "\ufffd")


def _decode(raw: bytes) -> FormData:
    try:
        return parse_query(raw.decode("utf-8"), errors="strict")
    except UnicodeDecodeError:  # to replace it bit by bit would hold every thread for long
        raise InvalidRequest(_UNREADABLE) from None


async def _read_multipart(body: IncomingBody, boundary: bytes, most: int, folder: Path | None) -> Form:
    pairs: list[tuple[str, str]] = []
    files: dict[str, Upload] = {}
    part: Field | File | None = None
    sink: IO[bytes] | None = None
    async for event in _multipart_events(body, boundary, most):
        if isinstance(event, Field | File):
            # It holds what is sent, on the disk once it is large; whoever reads the form closes it by forgetting it.
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
    """Yield the parts of a multipart body (RFC 7578) as they come."""
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
