"""Unpacks gzip and deflate answers piece by piece, and stops where a small answer turns into a huge one."""

import zlib
from collections.abc import Iterator

from adapters.http.errors import BadEncoding, TooLarge

_PIECE = 256 * 1024
_RATIO = 200
_RATIO_FROM = 8 * 1024 * 1024


class Unpacker:
    """One body's content coding (RFC 9110 §8.4.1): identity, gzip or deflate. `limit` bounds what comes out."""

    def __init__(self, encoding: str, limit: int) -> None:
        coding = encoding.strip().lower()
        if coding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise BadEncoding("The answer is packed in a way that was not asked for.")
        self._coding = coding
        self._limit = limit
        self._read = 0
        self._out = 0
        self._packed = False
        self._inflate: zlib._Decompress | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What these bytes unpack to, in bounded pieces. Raises TooLarge or BadEncoding."""
        self._read += len(data)
        if self._coding in {"", "identity"}:
            yield self._counted(data)
            return
        while data:
            piece, data = self._step(data)
            if piece:
                yield self._counted(piece)

    def _step(self, data: bytes) -> tuple[bytes, bytes]:
        """One bounded piece, and the packed bytes that are left; a body may be several packed streams in a row."""
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
