"""Gzip compression (RFC 1952) of downloads."""

from hashlib import sha256

from isal import isal_zlib

DEFAULT_LEVEL = 1
"""Default compression level of the library ISA-L, 0 to 3 (docs/decisions/0047-exports-from-one-snapshot.md)."""
_GZIP_WINDOW_BITS = 31


class GzipCompressor:
    """Gzip compressor of one file (port Compressor in domain/exports/ports.py)."""

    def __init__(self, level: int = DEFAULT_LEVEL) -> None:
        self._gzip = isal_zlib.compressobj(level, isal_zlib.DEFLATED, _GZIP_WINDOW_BITS)
        self._hash = sha256()
        self._bytes = 0

    @property
    def size(self) -> int:
        """Number of compressed bytes returned so far."""
        return self._bytes

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the compressed bytes returned so far."""
        return self._hash.hexdigest()

    def compress(self, data: bytes) -> bytes:
        return self._count_output(self._gzip.compress(data))

    def finish(self) -> bytes:
        return self._count_output(self._gzip.flush())

    def _count_output(self, compressed: bytes) -> bytes:
        """Add the compressed data to size and digest; return the data."""
        self._hash.update(compressed)
        self._bytes += len(compressed)
        return compressed
