"""Reader of a response body within limits: received bytes, decompressed bytes, and the lowest rate."""

import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

import aiohttp

from adapters.http import errors
from adapters.http.errors import BadEncoding, TooLarge

_PIECE = 256 * 1024
_RATIO = 200
_RATIO_FROM = 8 * 1024 * 1024


class Unpacker:
    """Decoder of one body's content coding (RFC 9110 §8.4.1): identity, gzip or deflate. `limit` bounds the output."""

    def __init__(self, encoding: str, limit: int) -> None:
        coding = encoding.strip().lower()
        if coding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise BadEncoding("The response has a content coding that was not requested.")
        self._coding = coding
        self._limit = limit
        self._read = 0
        self._out = 0
        self._packed = False
        self._inflate: zlib._Decompress | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed bytes in bounded pieces. Raises TooLarge or BadEncoding."""
        self._read += len(data)
        if self._coding in {"", "identity"}:
            yield self._counted(data)
            return
        while data:
            piece, data = self._step(data)
            if piece:
                yield self._counted(piece)

    def _step(self, data: bytes) -> tuple[bytes, bytes]:
        """Return one bounded piece and the remaining bytes; a body may contain several compressed streams."""
        inflate = self._inflate or zlib.decompressobj(self._window(data))
        try:
            piece = inflate.decompress(data, _PIECE)
        except zlib.error:
            raise BadEncoding("The answer cannot be unpacked.") from None
        self._inflate = None if inflate.eof else inflate
        self._packed = True
        return piece, inflate.unused_data.lstrip(b"\0") if inflate.eof else inflate.unconsumed_tail

    def finish(self) -> None:
        if self._inflate is not None:
            raise BadEncoding("The packed answer ends too early.")

    def _window(self, data: bytes) -> int:
        if self._coding != "deflate":
            return 31
        whole = len(data) > 1 and data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
        return 15 if whole else -15

    def _counted(self, piece: bytes) -> bytes:
        self._out += len(piece)
        if self._out > self._limit:
            raise TooLarge(f"The answer is larger than {self._limit // (1024 * 1024)} MiB.")
        if self._packed and self._out > max(_RATIO_FROM, self._read * _RATIO):
            raise TooLarge("The answer unpacks to far more than was sent.")
        return piece


_READ = 64 * 1024


@dataclass(frozen=True, slots=True)
class Pace:
    """Lowest rate of a body: bytes a second over the total waiting time, checked after `grace_seconds`."""

    bytes_per_second: float = 512.0
    grace_seconds: float = 20.0


class Body:
    """Body of one response."""

    def __init__(self, response: aiohttp.ClientResponse, wire_bytes: int, body_bytes: int, pace: Pace) -> None:
        self._response = response
        self._wire_bytes = wire_bytes
        self._body_bytes = body_bytes
        self._pace = pace
        self._read = 0
        self._waited = 0.0

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the decompressed bytes. Raises TooLarge, TooSlow, TimedOut, Aborted or BadEncoding."""
        announced = self._response.content_length
        if announced is not None and announced > self._wire_bytes:
            raise self._too_large()
        unpacker = Unpacker(self._response.headers.get("Content-Encoding", ""), self._body_bytes)
        while data := await self._next():
            for piece in unpacker.feed(data):
                yield piece
        unpacker.finish()

    async def _next(self) -> bytes:
        before = monotonic()
        with translated():
            data = await self._response.content.read(_READ)
        self._waited += monotonic() - before
        self._read += len(data)
        if self._read > self._wire_bytes:
            raise self._too_large()
        if data and self._is_slow():
            raise errors.TooSlow("The answer comes too slowly.")
        return data

    def _is_slow(self) -> bool:
        late = self._waited > self._pace.grace_seconds
        return late and self._read < self._pace.bytes_per_second * self._waited

    def _too_large(self) -> errors.TooLarge:
        return errors.TooLarge(f"The answer is larger than {self._wire_bytes // (1024 * 1024)} MiB.")


_Translation = tuple[tuple[type[Exception], ...], type[errors.OutboundError], str]

_TRANSLATIONS: tuple[_Translation, ...] = (
    ((aiohttp.ConnectionTimeoutError,), errors.ConnectTimedOut, "The server did not answer in time."),
    ((TimeoutError,), errors.TimedOut, "The server did not answer in time."),
    ((aiohttp.ClientConnectorDNSError,), errors.DnsFailed, "The host's name has no address."),
    (
        (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch),
        errors.TlsFailed,
        "No secure connection could be made.",
    ),
    ((aiohttp.ClientConnectorError,), errors.ConnectFailed, "No connection could be made."),
    ((aiohttp.InvalidURL,), errors.RefusedAddress, "The URL is not valid."),
    ((UnicodeError,), errors.RefusedAddress, "The host's name is not valid."),
    ((aiohttp.ClientError, OSError), errors.Aborted, "The server broke off before its answer was whole."),
)
"""Exceptions of aiohttp, the most specific first, with their errors and messages here."""


@contextmanager
def translated() -> Iterator[None]:
    """Translate exceptions of aiohttp to OutboundError."""
    try:
        yield
    except (aiohttp.ClientError, OSError, UnicodeError) as error:
        failure, message = next((kind, text) for types, kind, text in _TRANSLATIONS if isinstance(error, types))
        raise failure(message) from None
