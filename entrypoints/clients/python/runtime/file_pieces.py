"""Reads a file piece by piece while it is sent, and notices when it is not the file that was announced."""

import asyncio
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Final

_PIECE: Final = 1 << 16


class _Left:
    """How many bytes are still to come."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._bytes = path, size

    def take(self, piece: bytes) -> None:
        """Count a piece; an empty one is the end. Raises OSError when the file is longer or shorter than announced."""
        self._bytes -= len(piece)
        if self._bytes < 0 or (self._bytes and not piece):
            raise OSError(f"{self._path} has changed its size while it was sent. Hand it in again once it is whole.")


def pieces(path: Path, size: int) -> Generator[bytes, None, None]:
    """The pieces of a file of `size` bytes. Raises OSError."""
    left = _Left(path, size)
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            left.take(piece)
            yield piece
        left.take(b"")


async def awaited_pieces(path: Path, size: int) -> AsyncIterator[bytes]:
    """The same, read in threads."""
    left = _Left(path, size)
    file = await asyncio.to_thread(path.open, "rb")
    try:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            left.take(piece)
            yield piece
        left.take(b"")
    finally:
        file.close()
