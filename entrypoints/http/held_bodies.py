"""How many bodies a process holds, and how many bytes of them: none of its organisations may fill it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from domain.kernel.errors import Overloaded, RateLimited

OPEN: Final = (64, 1024)
"""Bodies still arriving: of one organisation, and of all."""
BYTES: Final = (64 << 20, 256 << 20)
"""Bytes of the bodies of requests in hand: of one organisation, and of all."""


class HeldBodies:
    """The bodies of the requests in hand; `open` and `bytes` are what all of them come to."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self.open = 0
        self.bytes = 0

    @contextmanager
    def arriving(self, org: str) -> Iterator[None]:
        """While one more body of the organisation comes. Raises RateLimited or Overloaded."""
        self._room(self._open[org], self.open, OPEN, "bodies that are still arriving")
        self._open[org] += 1
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1
            _less(self._open, org, 1)

    def hold(self, org: str, count: int) -> None:
        """Count so many bytes more, until `release`. Raises RateLimited or Overloaded, with nothing counted."""
        self._room(self._bytes[org] + count, self.bytes + count, BYTES, "bytes of bodies in hand")
        self._bytes[org] += count
        self.bytes += count

    def release(self, org: str, count: int) -> None:
        """The request with so many bytes is answered."""
        self.bytes -= count
        _less(self._bytes, org, count)

    @staticmethod
    def _room(of_org: int, of_all: int, most: tuple[int, int], what: str) -> None:
        if of_org >= most[0]:
            raise RateLimited(f"Your organisation has {most[0]} {what}; nothing was done.", retry_after=1)
        if of_all >= most[1]:
            raise Overloaded(retry_after=2)


def _less(counter: Counter[str], org: str, count: int) -> None:
    counter[org] -= count
    if counter[org] <= 0:
        del counter[org]
