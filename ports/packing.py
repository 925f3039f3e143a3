"""Packing what is written, piece by piece, with what tells whether it arrived whole."""

from collections.abc import Callable
from typing import Protocol


class Packer(Protocol):
    """One file's; each call may take a while, and lets other threads run meanwhile."""

    @property
    def size(self) -> int:
        """How many bytes have come out so far."""
        ...

    @property
    def sha256(self) -> str:
        """The hexadecimal SHA-256 of what has come out so far."""
        ...

    def pack(self, data: bytes) -> bytes:
        """What comes out for these bytes; it may be nothing yet."""
        ...

    def end(self) -> bytes:
        """The rest, once."""
        ...


Packing = Callable[[], Packer]
"""Begins a file."""
