"""What a form sends: fields as text, files spooled to disk, both within the bounds of the page that takes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import IO, Final, cast

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, NeedData

from domain.kernel.errors import InvalidRequest, PayloadTooLarge
from entrypoints.console.asked import Asked, Values, values_of
from entrypoints.http.incoming_body import FILE_PACE, Gone, TooSlow, too_large

LONGEST: Final = 1 << 20
"""Bytes of a form without files, unless its page says otherwise."""
_IN_MEMORY: Final = 1 << 20
_SLICE: Final = 64 << 10
"""The decoder counts what it holds at once; servers hand on pieces of any size."""
_MOST_PARTS: Final = 500


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


async def read_form(asked: Asked, most: int) -> Form:
    """The form of a request. Raises InvalidRequest when it is none, PayloadTooLarge beyond `most` bytes."""
    kind, options = parse_options_header(asked.headers.get("content-type"))
    if kind == "application/x-www-form-urlencoded" or not kind:
        text = (await asked.body.read(most)).decode("utf-8", "replace")
        return Form(values_of(text))
    boundary = options.get("boundary", "")
    if kind != "multipart/form-data" or not boundary:
        raise InvalidRequest(
            "This page takes what a form sends: application/x-www-form-urlencoded or multipart/form-data."
        )
    return await _Parts(boundary.encode("latin-1", "replace"), most).read(asked)


class _Parts:
    """Takes a multipart body piece by piece (RFC 7578)."""

    def __init__(self, boundary: bytes, most: int) -> None:
        self._decoder = MultipartDecoder(boundary, max_form_memory_size=LONGEST, max_parts=_MOST_PARTS)
        self._most = most
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
            self._take(None)
        except (TooSlow, Gone):
            raise InvalidRequest("The form broke off before its end; send it again.") from None
        except RequestEntityTooLarge:
            raise PayloadTooLarge(too_large(LONGEST)) from None
        except ValueError:
            raise InvalidRequest("The form could not be read; send it again.") from None
        return Form(Values(self._pairs), self._files)

    def _take(self, piece: bytes | None) -> None:
        self._decoder.receive_data(piece)
        while not isinstance(event := self._decoder.next_event(), NeedData | Epilogue):
            if isinstance(event, Field | File):
                # It holds what is sent from the disk, once it is large; whoever reads the form closes it by forgetting it.
                self._part, self._sink = event, cast("IO[bytes]", SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115
            elif isinstance(event, Data):
                self._add(event)

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
            self._pairs.append((part.name or "", sink.read().decode("utf-8", "replace")))
