"""Concurrency limits, so that no organisation fills a process."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from domain.kernel.errors import Overloaded, RateLimited


class ConcurrencyLimit:
    """Limit of the amount in use, by key (an organisation, an address) and in total.

    `holding` and `take` refuse what exceeds a bound; `slot` waits for room. Free capacity goes to the key that holds
    the least, and among those to the longest waiting.

    Args:
        total: The maximum of all keys together; None for no bound.
        each: The maximum of one key; by default half of `total`, and at least 1.
        noun: What is counted, in the plural, for the text of a refusal.
        retry_after: Seconds after which a refused caller may retry.
    """

    def __init__(
        self, total: int | None, each: int | None = None, *, noun: str = "requests in hand", retry_after: int = 1
    ) -> None:
        self.total, self.each = total, max(1, (total or 0) // 2) if each is None else each
        self.in_hand = 0
        self._noun, self._retry_after = noun, retry_after
        self._held: Counter[str] = Counter()
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    def of(self, key: str) -> int:
        """Return how much one key holds."""
        return self._held[key]

    def check(self, key: str, amount: int = 1) -> None:
        """Check that a key may use this amount more.

        Raises:
            RateLimited: The key would exceed its maximum.
            Overloaded: All keys together would.
        """
        if self._held[key] + amount > self.each:
            raise RateLimited(
                f"Your organisation has {self.each} {self._noun}; nothing was done.", retry_after=self._retry_after
            )
        if self.total is not None and self.in_hand + amount > self.total:
            raise Overloaded(retry_after=max(2, self._retry_after))

    def take(self, key: str, amount: int = 1) -> None:
        """Add the amount until `release`. Raises what `check` raises, with nothing counted."""
        self.check(key, amount)
        self.add(key, amount)

    def add(self, key: str, amount: int = 1) -> None:
        """Add the amount, regardless of the bounds."""
        self._held[key] += amount
        self.in_hand += amount

    def release(self, key: str, amount: int = 1) -> None:
        """Subtract the amount and admit waiting callers."""
        self.in_hand -= amount
        self._held[key] -= amount
        if not self._held[key]:
            del self._held[key]
        self._admit()

    @contextmanager
    def holding(self, key: str, *, checked: bool = True) -> Iterator[None]:
        """Count one more of a key meanwhile; unless `checked`, regardless of the bounds. Raises what `check` raises."""
        if checked:
            self.check(key)
        self.add(key)
        try:
            yield
        finally:
            self.release(key)

    @asynccontextmanager
    async def slot(self, key: str) -> AsyncIterator[None]:
        """Wait until there is room for one more of a key, and count it meanwhile."""
        entry = key, asyncio.get_running_loop().create_future()
        self._waiting.append(entry)
        self._admit()
        try:
            await entry[1]
            yield
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)
            else:
                self.release(key)

    def _admit(self) -> None:
        while self._waiting and (self.total is None or self.in_hand < self.total):
            able = [entry for entry in self._waiting if not entry[1].done() and self._held[entry[0]] < self.each]
            if not able:
                return
            key, turn = entry = min(able, key=lambda waiter: self._held[waiter[0]])  # the first with the least
            self._waiting.remove(entry)
            self.add(key)
            turn.set_result(None)
