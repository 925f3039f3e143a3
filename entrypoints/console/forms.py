"""What a form sends: fields as text, files spooled to disk, both within the bounds of the page that takes them."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Final, cast

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, NeedData, State

from domain.kernel.errors import InvalidRequest, PayloadTooLarge
from entrypoints.console.asked import Asked, Values, storable, values_of
from entrypoints.http.body import FILE_PACE, Gone, TooSlow, too_large

LONGEST: Final = 256 << 10
"""Bytes of a form without files, unless its page says otherwise."""
STRANGERS: Final = 32 << 10
"""Bytes of a form of who is not signed in, whatever its page takes of others."""
SMALL: Final = 16 << 10
"""Bytes of text that are decoded at once, in some ten milliseconds, whatever is escaped in them; more is decoded beside the event loop."""
_IN_MEMORY: Final = 1 << 20
_SLICE: Final = 16 << 10
"""The decoder counts what it holds at once; servers hand on pieces of any size. Others have their turn between two slices."""
_MOST_PARTS: Final = 500
_UNREADABLE: Final = "The form could not be read; send it again."
_LONGEST_KIND: Final = 300
_LONGEST_BOUNDARY: Final = 70
"""RFC 2046, section 5.1.1."""
_HEADERS: Final = 2 << 10
"""Bytes of a part's headers, which take far longer to read than what they announce: its names, each of 255 characters at most."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was sent with a form: its name as the browser told it, and its bytes from the beginning."""

    name: str
    content_type: str
    size: int
    file: IO[bytes]


@dataclass(frozen=True, slots=True)
class Form:
    """The fields and files of one form."""

    values: Values
    files: Mapping[str, Upload] = field(default_factory=dict)


async def read_form(asked: Asked, most: int, folder: Path | None = None) -> Form:
    """The form of a request; files lie in the folder (the system's temporary one) without a name, so that they go with the process.

    Raises InvalidRequest when it is none, PayloadTooLarge beyond `most` bytes, or LONGEST without files.
    """
    kind, options = parse_options_header(asked.headers.get("content-type", "")[:_LONGEST_KIND])
    if kind == "application/x-www-form-urlencoded" or not kind:
        raw = await asked.body.read(min(most, LONGEST))
        return Form(_decoded(raw) if len(raw) <= SMALL else await asyncio.to_thread(_decoded, raw))
    boundary = options.get("boundary", "")
    if kind != "multipart/form-data" or not 0 < len(boundary) <= _LONGEST_BOUNDARY:
        raise InvalidRequest(
            "This page takes what a form sends: application/x-www-form-urlencoded or multipart/form-data."
        )
    return await _Parts(boundary.encode("latin-1", "replace"), most, str(folder) if folder else None).read(asked)


def _decoded(raw: bytes) -> Values:
    """A form's values. What is no UTF-8 is refused: to replace it bit by bit would hold every thread for long. Raises InvalidRequest."""
    try:
        return values_of(raw.decode("utf-8"), errors="strict")
    except UnicodeDecodeError:
        raise InvalidRequest(_UNREADABLE) from None


_BLANK: Final = re.compile(rb"\r\n\r\n|\r\r|\n\n")


class _Parts:
    """Takes a multipart body piece by piece (RFC 7578)."""

    def __init__(self, boundary: bytes, most: int, folder: str | None) -> None:
        self._decoder = MultipartDecoder(boundary, max_form_memory_size=LONGEST, max_parts=_MOST_PARTS)
        self._most, self._folder = most, folder
        self._pairs: list[tuple[str, str]] = []
        self._files: dict[str, Upload] = {}
        self._part: Field | File | None = None
        self._sink: IO[bytes] | None = None

    async def read(self, asked: Asked) -> Form:
        """Its fields and files."""
        received = 0
        try:
            async for piece in asked.body.chunks(FILE_PACE):
                received += len(piece)
                if received > self._most:
                    raise PayloadTooLarge(too_large(self._most))
                for start in range(0, len(piece), _SLICE):
                    self._take(piece[start : start + _SLICE])
                    await asyncio.sleep(0)
            self._take(None)
        except (TooSlow, Gone):
            raise InvalidRequest("The form broke off before its end; send it again.") from None
        except RequestEntityTooLarge:
            raise PayloadTooLarge(too_large(LONGEST)) from None
        except ValueError:
            raise InvalidRequest(_UNREADABLE) from None
        return Form(Values(self._pairs), self._files)

    def _take(self, piece: bytes | None) -> None:
        self._decoder.receive_data(piece)
        self._check_headers()
        while not isinstance(event := self._decoder.next_event(), NeedData | Epilogue):
            if isinstance(event, Field | File):
                # It holds what is sent from the disk, once it is large; whoever reads the form closes it by forgetting it.
                spool = SpooledTemporaryFile(max_size=_IN_MEMORY, dir=self._folder)  # noqa: SIM115  whoever reads it closes it
                self._part, self._sink = event, cast("IO[bytes]", spool)
            elif isinstance(event, Data):
                self._add(event)
            self._check_headers()

    def _check_headers(self) -> None:
        """Refuse a part whose headers are too long, before they are read. Raises ValueError."""
        decoder = self._decoder
        if (
            decoder.state is State.PART
            and len(decoder.buffer) > _HEADERS
            and not _BLANK.search(decoder.buffer, 0, _HEADERS)
        ):
            raise ValueError("the headers of a part are too long")

    def _add(self, data: Data) -> None:
        part, sink = self._part, self._sink
        if part is None or sink is None:
            return
        sink.write(data.data)
        if isinstance(part, Field) and sink.tell() > LONGEST:
            raise PayloadTooLarge(too_large(LONGEST))
        if data.more_data:
            return
        size = sink.tell()
        sink.seek(0)
        if isinstance(part, File):
            if part.filename:
                kind = part.headers.get("content-type", "application/octet-stream")
                self._files[part.name or ""] = Upload(part.filename, kind, size, sink)
        else:
            self._pairs.append((storable(part.name or ""), storable(sink.read().decode("utf-8"))))
