"""Gzip compression (RFC 1952) of downloads, run in threads, as the library releases the interpreter lock."""

from hashlib import sha256

from isal import isal_zlib

LEVEL = 1
"""Of ISA-L (0 to 3); measured in docs/decisions/0047-exports-are-copied-out-of-one-snapshot.md."""
_GZIP = 31


class GzipPacker:
    """Packer (ports/packing.py)."""

    def __init__(self, level: int = LEVEL) -> None:
        self._gzip = isal_zlib.compressobj(level, isal_zlib.DEFLATED, _GZIP)
        self._hash = sha256()
        self._bytes = 0

    @property
    def size(self) -> int:
        return self._bytes

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def pack(self, data: bytes) -> bytes:
        return self._noted(self._gzip.compress(data))

    def end(self) -> bytes:
        return self._noted(self._gzip.flush())

    def _noted(self, packed: bytes) -> bytes:
        self._hash.update(packed)
        self._bytes += len(packed)
        return packed
