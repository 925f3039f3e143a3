"""How many messages are in hand at /mcp: none of a process's organisations may fill it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from domain.kernel.errors import Overloaded, RateLimited

MOST: Final = (64, 512)
"""Messages being answered: of one organisation, and of all."""


class Admission:
    """Who has how many in hand."""

    def __init__(self, most: tuple[int, int] = MOST) -> None:
        self._most = most
        self._open: Counter[str] = Counter()
        self.open = 0

    @contextmanager
    def counted(self, org: str) -> Iterator[None]:
        """While one more of the organisation's is in hand. Raises RateLimited or Overloaded."""
        if self._open[org] >= self._most[0]:
            raise RateLimited(
                f"Your organisation has {self._most[0]} calls in hand over MCP; nothing was done.", retry_after=1
            )
        if self.open >= self._most[1]:
            raise Overloaded(retry_after=2)
        self._open[org] += 1
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1
            self._open[org] -= 1
            if not self._open[org]:
                del self._open[org]
