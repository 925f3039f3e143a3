"""How many forms with files are in hand: each may lie on the disk whole, and none of a process's organisations may fill it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from domain.kernel.errors import Overloaded, RateLimited

MOST: Final = (4, 64)
"""Forms with files that are read or carried out at a time: of one organisation, and of all."""


class FilesInHand:
    """Who has how many."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def counted(self, org: str) -> Iterator[None]:
        """While one more of the organisation's is in hand. Raises RateLimited or Overloaded."""
        if self._open[org] >= MOST[0]:
            raise RateLimited(f"Your organisation is sending {MOST[0]} files already; nothing was done.", retry_after=5)
        if self._open.total() >= MOST[1]:
            raise Overloaded(retry_after=5)
        self._open[org] += 1
        try:
            yield
        finally:
            self._open[org] -= 1
            if not self._open[org]:
                del self._open[org]
