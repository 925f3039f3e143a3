"""Rows put aside by the chunk, so that a feed of any size is worked through in bounded memory."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol


class Spool(Protocol):
    """Lines by chunk, in the order they came; a line holds no line break."""

    def put(self, chunk: int, line: bytes) -> None:
        """Put a line aside."""
        ...

    def lines(self, chunk: int) -> Sequence[bytes]:
        """The chunk's lines, in the order they were put."""
        ...


class Spools(Protocol):
    """Where spools are made."""

    def open(self, chunks: int) -> AbstractContextManager[Spool]:
        """A spool of that many chunks, gone with the context."""
        ...
