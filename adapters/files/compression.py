"""Gzip compression (RFC 1952) of downloads, and downloads that are stored as they are."""

from hashlib import sha256

from isal import isal_zlib

DEFAULT_LEVEL = 1
"""Default compression level of the library ISA-L, 0 to 3 (docs/decisions/0047-exports-from-one-snapshot.md)."""
_GZIP_WINDOW_BITS = 31


class Copier:
    """Compressor that returns data unchanged (port Compressor in domain/exports/ports.py)."""

    def __init__(self) -> None:
        self._hash = sha256()
        self._bytes = 0

    @property
    def size(self) -> int:
        """Number of bytes returned so far."""
        return self._bytes

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the bytes returned so far."""
        return self._hash.hexdigest()

    def compress(self, data: bytes) -> bytes:
        return self._count_output(data)

    def finish(self) -> bytes:
        return b""

    def _count_output(self, data: bytes) -> bytes:
        """Add the returned data to size and digest; return the data."""
        self._hash.update(data)
        self._bytes += len(data)
        return data


class GzipCompressor(Copier):
    """Gzip compressor of one file (port Compressor in domain/exports/ports.py)."""

    def __init__(self, level: int = DEFAULT_LEVEL) -> None:
        super().__init__()
        self._gzip = isal_zlib.compressobj(level, isal_zlib.DEFLATED, _GZIP_WINDOW_BITS)

    def compress(self, data: bytes) -> bytes:
        return self._count_output(self._gzip.compress(data))

    def finish(self) -> bytes:
        return self._count_output(self._gzip.flush())
