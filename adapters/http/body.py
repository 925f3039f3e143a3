"""Reader of response bodies with limits of the received size, the decompressed size and the minimum rate."""

import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

import aiohttp

from adapters.http import errors
from adapters.http.errors import BadEncoding, TooLarge

_CHUNK_BYTES = 256 * 1024
_MAX_RATIO = 200
_RATIO_FROM = 8 * 1024 * 1024


class BodyDecompressor:
    """Decompressor of a body with the content coding identity, gzip or deflate (RFC 9110 §8.4.1).

    `decompress` raises TooLarge above `max_bytes` decompressed bytes, or if the compression ratio is too high.
    """

    def __init__(self, encoding: str, max_bytes: int) -> None:
        coding = encoding.strip().lower()
        if coding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise BadEncoding("The response has an unsupported content coding. Only gzip and deflate are supported.")
        self._coding = coding
        self._limit = max_bytes
        self._read = 0
        self._out = 0
        self._is_compressed = False
        self._inflate: zlib._Decompress | None = None

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """Decompress received bytes and yield the result in chunks of limited size. Raises TooLarge or BadEncoding."""
        self._read += len(data)
        if self._coding in {"", "identity"}:
            yield self._count_output(data)
            return
        while data:
            chunk, data = self._decompress_chunk(data)
            if chunk:
                yield self._count_output(chunk)

    def _decompress_chunk(self, data: bytes) -> tuple[bytes, bytes]:
        """Return a chunk of decompressed bytes of limited size, and the bytes that remain to be decompressed."""
        # A body may consist of several compressed streams.
        inflate = self._inflate or zlib.decompressobj(self._window_bits(data))
        try:
            chunk = inflate.decompress(data, _CHUNK_BYTES)
        except zlib.error:
            raise BadEncoding("The response cannot be decompressed.") from None
        self._inflate = None if inflate.eof else inflate
        self._is_compressed = True
        return chunk, inflate.unused_data.lstrip(b"\0") if inflate.eof else inflate.unconsumed_tail

    def check_complete(self) -> None:
        """Raise BadEncoding if the compressed body is incomplete."""
        if self._inflate is not None:
            raise BadEncoding("The compressed response is incomplete.")

    def _window_bits(self, data: bytes) -> int:
        if self._coding != "deflate":
            return 31
        has_zlib_header = len(data) > 1 and data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
        return 15 if has_zlib_header else -15

    def _count_output(self, chunk: bytes) -> bytes:
        self._out += len(chunk)
        if self._out > self._limit:
            raise TooLarge(f"The response is larger than {self._limit // (1024 * 1024)} MiB.")
        if self._is_compressed and self._out > max(_RATIO_FROM, self._read * _MAX_RATIO):
            raise TooLarge(f"The response's compression ratio is higher than the permitted {_MAX_RATIO}:1.")
        return chunk


_READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class MinimumResponseRate:
    """Minimum rate at which a response's body must arrive.

    The rate is the average over the total time of waiting for data, and applies after `grace_seconds` of waiting.
    """

    bytes_per_second: float = 512.0
    grace_seconds: float = 20.0


class ResponseBody:
    """Body of one response, as a stream of decompressed chunks.

    Args:
        response: The response.
        max_received_bytes: Maximum size of the body as received.
        max_body_bytes: Maximum size of the decompressed body.
        minimum_rate: Minimum rate at which the body must arrive.
    """

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        max_received_bytes: int,
        max_body_bytes: int,
        minimum_rate: MinimumResponseRate,
    ) -> None:
        self._response = response
        self._wire_bytes = max_received_bytes
        self._body_bytes = max_body_bytes
        self._pace = minimum_rate
        self._read = 0
        self._waited = 0.0

    async def iterate_chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the decompressed body in chunks. Raises TooLarge, TooSlow, TimedOut, Aborted or BadEncoding."""
        content_length = self._response.content_length
        if content_length is not None and content_length > self._wire_bytes:
            raise self._build_size_error()
        unpacker = BodyDecompressor(self._response.headers.get("Content-Encoding", ""), self._body_bytes)
        while data := await self._read_chunk():
            for chunk in unpacker.decompress(data):
                yield chunk
        unpacker.check_complete()

    async def _read_chunk(self) -> bytes:
        before = monotonic()
        with translate_http_errors():
            data = await self._response.content.read(_READ_BYTES)
        self._waited += monotonic() - before
        self._read += len(data)
        if self._read > self._wire_bytes:
            raise self._build_size_error()
        if data and self._is_slow():
            raise errors.TooSlow(
                f"The response arrives too slowly, at less than {self._pace.bytes_per_second:.0f} bytes per second."
            )
        return data

    def _is_slow(self) -> bool:
        is_checked = self._waited > self._pace.grace_seconds
        return is_checked and self._read < self._pace.bytes_per_second * self._waited

    def _build_size_error(self) -> errors.TooLarge:
        return errors.TooLarge(f"The response is larger than {self._wire_bytes // (1024 * 1024)} MiB.")


_Translation = tuple[tuple[type[Exception], ...], type[errors.OutboundError], str]

_TRANSLATIONS: tuple[_Translation, ...] = (
    ((aiohttp.ConnectionTimeoutError,), errors.ConnectTimedOut, "The server did not respond in time."),
    ((TimeoutError,), errors.TimedOut, "The server did not respond in time."),
    ((aiohttp.ClientConnectorDNSError,), errors.DnsFailed, "The host name has no IP address."),
    (
        (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch),
        errors.TlsFailed,
        "The TLS connection failed.",
    ),
    ((aiohttp.ClientConnectorError,), errors.ConnectFailed, "The connection failed."),
    ((aiohttp.InvalidURL,), errors.RefusedAddress, "The URL is invalid."),
    ((UnicodeError,), errors.RefusedAddress, "The host name is invalid."),
    ((aiohttp.ClientError, OSError), errors.Aborted, "The connection was closed before the response was complete."),
)
"""Exceptions of aiohttp, the most specific first, each with the OutboundError and the message that replace it."""


@contextmanager
def translate_http_errors() -> Iterator[None]:
    """Replace exceptions of aiohttp that the context raises by exceptions of type OutboundError."""
    try:
        yield
    except (aiohttp.ClientError, OSError, UnicodeError) as error:
        failure, message = next((kind, text) for types, kind, text in _TRANSLATIONS if isinstance(error, types))
        raise failure(message) from None
