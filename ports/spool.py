"""Rows put aside by the bucket, so that a feed of any size is worked through in bounded memory."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol


class Spool(Protocol):
    """Lines by bucket, in the order they came; a line holds no line break."""

    def put(self, bucket: int, line: bytes) -> None:
        """Put a line aside."""
        ...

    def lines(self, bucket: int) -> Sequence[bytes]:
        """The bucket's lines, in the order they were put."""
        ...


class Spools(Protocol):
    """Where spools are made."""

    def open(self, buckets: int) -> AbstractContextManager[Spool]:
        """A spool of that many buckets, gone with the context."""
        ...
