"""Parsing of browser requests within limits: headers, cookies, query, forms and files."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
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
from entrypoints.http.body import FILE_MINIMUM_RATE, BodyTooSlow, ClientDisconnected, IncomingBody, describe_size_limit

MAX_COOKIE_HEADER_CHARS = 8192
"""Maximum length of a Cookie header in characters."""
MAX_COOKIE_CHARS = 4096
"""Maximum length of a cookie's name and value: the minimum that browsers must store (RFC 6265 §6.1)."""
MAX_FORM_BYTES = 256 << 10
"""Maximum size of a form without files in bytes, unless its page sets another."""
MAX_ANONYMOUS_FORM_BYTES = 32 << 10
"""Maximum size of a form in bytes if nobody is signed in."""
_MAX_INLINE_BYTES = 16 << 10
"""Maximum size in bytes of a form that is decoded on the event loop; decoding then takes at most about 10 ms."""
_SLICE_BYTES = 16 << 10
"""Bytes of a file that are decoded at once; other requests run between two slices."""
_MAX_FIELDS = 500
_UNREADABLE_FORM = N_("The form could not be read. Send it again.")
_MAX_PART_HEADER_BYTES = 2 << 10
"""Maximum size of a part's headers in bytes; parsing headers is far slower than reading contents."""
_BLANK_LINE = re.compile(rb"\r\n\r\n|\r\r|\n\n")


class FormData:
    """Fields of a query string or form. A field may occur several times; the value of a missing field is an empty text."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs

    @cached_property
    def _last_values(self) -> dict[str, str]:
        """Last value of each field."""
        return dict(self.pairs)

    def __getitem__(self, name: str) -> str:
        """Return the last value of a field; an empty text if the field is missing."""
        return self._last_values.get(name, "")

    def __contains__(self, name: object) -> bool:
        """Return whether a field of this name is present, even without a value."""
        return name in self._last_values

    def get(self, name: str, default: str = "") -> str:
        """Return the last value of a field without leading and trailing spaces; `default` if it is empty or missing."""
        return self[name].strip() or default

    def get_number(self, name: str) -> int | None:
        """Return the value of a field as an integer; None unless it consists of one to nine digits."""
        return parse_whole_number(self.get(name))

    def get_minute(self, name: str) -> int | None:
        """Return the value of a time field, such as `08:00` or `8:00`, as a minute of the day; None if it is empty.

        Raises InvalidRequest.
        """
        text = self.get(name)
        if not text:
            return None
        try:
            at = time.fromisoformat(text.zfill(5))
        except ValueError:
            raise InvalidRequest.for_field(name, "invalid_format", gettext("Enter a time such as 08:00.")) from None
        return at.hour * 60 + at.minute

    def get_all(self, name: str) -> list[str]:
        """Return all values of a field, in order."""
        return [value for key, value in self.pairs if key == name]

    def split_values(self, name: str) -> list[str]:
        """Split all values of a field at spaces, commas and line breaks, and return the resulting entries."""
        return ",".join(self.get_all(name)).replace(",", " ").split()

    def select(self, *names: str) -> dict[str, str]:
        """Return the values of the named fields by name, without empty ones."""
        return {name: value for name in names if (value := self.get(name))}


@dataclass(frozen=True, slots=True)
class FormFile:
    """Uploaded file: the name that the browser sent, the size in bytes, and the contents."""

    name: str
    size: int
    file: IO[bytes]


Form: TypeAlias = tuple[FormData, Mapping[str, FormFile]]
"""The fields and files of a form."""


@dataclass(slots=True)
class ConsoleRequest:
    """Request of a browser.

    Attributes:
        method: The HTTP method.
        path: The decoded path.
        query: The raw query string.
        headers: The last value of each header by lower-case name.
        client: The IP address from which the connection comes.
        body: The body, which has not been read yet.
        cookies: The cookies by name.
    """

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
        """Path and query, to redirect back to the page."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def is_htmx(self) -> bool:
        """True if htmx sent the request."""
        return self.headers.get("hx-request") == "true"

    @property
    def element_id(self) -> str | None:
        """The ID of the element that htmx replaces; None if a whole page is requested."""
        if not self.is_htmx or self.headers.get("hx-history-restore-request") == "true":
            return None
        return self.headers.get("hx-target") or None

    async def read_form(self, max_bytes: int, folder: Path | None = None) -> Form:
        """Read the form in the body of the request.

        Args:
            max_bytes: The maximum size, including files. A form without files is also limited to MAX_FORM_BYTES.
            folder: Folder of the temporary files for large contents; None for the system's folder.

        Raises:
            InvalidRequest: The body is not a form.
            PayloadTooLarge: The form is too large.
        """
        kind, options = parse_options_header(self.headers.get("content-type", "")[:300])
        if kind == "application/x-www-form-urlencoded" or not kind:
            raw = await self.body.read(min(max_bytes, MAX_FORM_BYTES))
            return (
                _decode_form(raw) if len(raw) <= _MAX_INLINE_BYTES else await asyncio.to_thread(_decode_form, raw)
            ), {}
        boundary = options.get("boundary", "")
        if kind != "multipart/form-data" or not 0 < len(boundary) <= 70:  # RFC 2046, section 5.1.1
            raise InvalidRequest(
                gettext("This page only accepts application/x-www-form-urlencoded and multipart/form-data.")
            )
        try:
            return await _read_multipart(self.body, boundary.encode("latin-1", "replace"), max_bytes, folder)
        except (BodyTooSlow, ClientDisconnected):
            raise InvalidRequest(
                gettext("The connection closed before the form was complete. Send it again.")
            ) from None
        except RequestEntityTooLarge:
            raise PayloadTooLarge(describe_size_limit(MAX_FORM_BYTES)) from None
        except ValueError:
            raise InvalidRequest(gettext(_UNREADABLE_FORM)) from None


def parse_whole_number(text: str) -> int | None:
    """Parse a text of one to nine digits; return None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def parse_number_or_text(text: str) -> int | str:
    """Parse a text of one to nine digits; any other text is returned unchanged, so that the API operation rejects it."""
    return text if (number := parse_whole_number(text)) is None else number


def parse_query(text: str, errors: str = "replace") -> FormData:
    """Parse a query string; the result is empty if it has more than 500 fields. NUL becomes U+FFFD, as in browsers.

    Args:
        text: The query string.
        errors: How invalid UTF-8 is treated: "replace" or "strict".

    Raises:
        UnicodeDecodeError: The text is not valid UTF-8 and `errors` is "strict".
    """
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors=errors)
    except UnicodeDecodeError:
        raise
    except ValueError:
        return FormData([])
    return FormData([(_replace_nul(name), _replace_nul(value)) for name, value in pairs])


def parse_cookies(header: str) -> dict[str, str]:
    """Parse a Cookie header (RFC 6265 §4.2.1); if a name occurs repeatedly, the last value counts."""
    # Values are not unquoted: no cookie of the service needs this, and unquoting takes quadratic time in some parsers.
    if len(header) > MAX_COOKIE_HEADER_CHARS:
        return {}
    pairs = (pair.partition("=") for pair in header.split(";") if len(pair) <= MAX_COOKIE_CHARS)
    return {name.strip(): value.strip() for name, separator, value in pairs if separator}


def convert_to_utc(text: str) -> str:
    """Convert the text of a datetime field to a UTC timestamp of the API.

    Invalid text is returned unchanged, so that the API operation rejects it.
    """
    try:
        at = datetime.fromisoformat(text.strip())
        return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return text.strip()


def parse_number(text: str) -> Any:
    """Parse a number with an optional `$` or `%`; any other text is returned unchanged, so that the API rejects it."""
    try:
        found = Decimal(text.replace(",", ".").removesuffix("%").strip().removeprefix("$"))
    except InvalidOperation:
        return text
    # Conversion of a number with a large exponent would use too much memory.
    return found if found.is_finite() and abs(found.adjusted()) < 12 else text


def parse_dollars(text: str) -> Any:
    """Parse an amount in US dollars as millionths of a dollar; text that is not a number is returned unchanged."""
    amount = parse_number(text)
    return int(amount.scaleb(6)) if isinstance(amount, Decimal) else amount


def convert_to_day_start(text: str, days_later: int = 0) -> str:
    """Convert the text of a date field to the UTC timestamp of the start of the day `days_later` days after it.

    Invalid text is returned unchanged, so that the API operation rejects it.
    """
    try:
        return f"{(date.fromisoformat(text) + timedelta(days=days_later)).isoformat()}T00:00:00Z"
    except (ValueError, OverflowError):
        return text


def _replace_nul(text: str) -> str:
    """Replace NUL, which databases cannot store, by U+FFFD (WHATWG HTML, 13.2.5)."""
    return text.replace("\0", "\ufffd")


def _decode_form(raw: bytes) -> FormData:
    """Decode a form without files. Raises InvalidRequest if it is not valid UTF-8."""
    try:
        return parse_query(raw.decode("utf-8"), errors="strict")
    except UnicodeDecodeError:  # replacing invalid bytes one by one would block all threads
        raise InvalidRequest(gettext(_UNREADABLE_FORM)) from None


async def _read_multipart(body: IncomingBody, boundary: bytes, max_bytes: int, folder: Path | None) -> Form:
    """Read a form with files (RFC 7578). Large contents are stored in temporary files in the folder."""
    pairs: list[tuple[str, str]] = []
    files: dict[str, FormFile] = {}
    part: Field | File | None = None
    target: IO[bytes] | None = None
    async for event in _decode_multipart(body, boundary, max_bytes):
        if isinstance(event, Field | File):
            # The file is closed when the form is garbage-collected.
            file = SpooledTemporaryFile(max_size=1 << 20, dir=str(folder) if folder else None)  # noqa: SIM115
            part, target = event, cast("IO[bytes]", file)
        elif isinstance(event, Data) and part is not None and target is not None:
            target.write(event.data)
            size = target.tell()
            if isinstance(part, Field) and size > MAX_FORM_BYTES:
                raise PayloadTooLarge(describe_size_limit(MAX_FORM_BYTES))
            if event.more_data:
                continue
            target.seek(0)
            if isinstance(part, Field):
                pairs.append((_replace_nul(part.name or ""), _replace_nul(target.read().decode("utf-8"))))
            elif part.filename:
                files[part.name or ""] = FormFile(part.filename, size, target)
    return FormData(pairs), files


async def _decode_multipart(body: IncomingBody, boundary: bytes, max_bytes: int) -> AsyncIterator[Event]:
    """Yield the headers and data of the parts of a multipart body as they arrive. Raises PayloadTooLarge."""
    decoder, received = MultipartDecoder(boundary, max_form_memory_size=MAX_FORM_BYTES, max_parts=_MAX_FIELDS), 0
    async for chunk in body.iter_chunks(FILE_MINIMUM_RATE):
        received += len(chunk)
        if received > max_bytes:
            raise PayloadTooLarge(describe_size_limit(max_bytes))
        for start in range(0, len(chunk), _SLICE_BYTES):
            for event in _decode_slice(decoder, chunk[start : start + _SLICE_BYTES]):
                yield event
            await asyncio.sleep(0)
    for event in _decode_slice(decoder, None):
        yield event


def _decode_slice(decoder: MultipartDecoder, data: bytes | None) -> Iterator[Event]:
    """Pass received bytes to the decoder (None at the end), and yield the headers and data that are now complete.

    Raises ValueError if the headers of a part are too long.
    """
    decoder.receive_data(data)
    while True:
        if (
            decoder.state is State.PART
            and len(decoder.buffer) > _MAX_PART_HEADER_BYTES
            and not _BLANK_LINE.search(decoder.buffer, 0, _MAX_PART_HEADER_BYTES)
        ):
            raise ValueError("the headers of a part are too long")
        event = decoder.next_event()
        if isinstance(event, NeedData | Epilogue):
            return
        yield event
