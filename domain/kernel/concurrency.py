"""Bounds what is in hand at once, so that no organisation fills a process."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from domain.kernel.errors import Overloaded, RateLimited


class ConcurrencyLimit:
    """The one limit of how much may be in hand, by key (an organisation, an address) and in total.

    `holding` and `take` refuse what exceeds a bound; `slot` waits for room. What is free goes to the key that holds the
    least, and among those to who has waited longest.

    Args:
        total: The most of all keys together; None for no bound.
        each: The most of one key; half of `total`, and at least 1, unless it is given.
        noun: What is counted, in the plural, for the text of a refusal.
        retry_after: Seconds after which whoever was refused may try again.

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
        """Refuse so much more of a key.

        Raises:
            RateLimited: The key would hold too much.
            Overloaded: All keys together would.

        """
        if self._held[key] + amount > self.each:
            raise RateLimited(
                f"Your organisation has {self.each} {self._noun}; nothing was done.", retry_after=self._retry_after
            )
        if self.total is not None and self.in_hand + amount > self.total:
            raise Overloaded(retry_after=max(2, self._retry_after))

    def take(self, key: str, amount: int = 1) -> None:
        """Count so much more, until `release`. Raises what `check` raises, with nothing counted."""
        self.check(key, amount)
        self.add(key, amount)

    def add(self, key: str, amount: int = 1) -> None:
        """Count so much more, whatever the bounds."""
        self._held[key] += amount
        self.in_hand += amount

    def release(self, key: str, amount: int = 1) -> None:
        """Count so much less, and let in who waits."""
        self.in_hand -= amount
        self._held[key] -= amount
        if not self._held[key]:
            del self._held[key]
        self._admit()

    @contextmanager
    def holding(self, key: str, *, checked: bool = True) -> Iterator[None]:
        """Count one more of a key meanwhile; unless `checked`, whatever the bounds. Raises what `check` raises."""
        if checked:
            self.check(key)
        self.add(key)
        try:
            yield
        finally:
            self.release(key)

    @asynccontextmanager
    async def slot(self, key: str) -> AsyncIterator[None]:
        """Wait until one more of a key may be in hand, and count it meanwhile."""
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
            key, turn = entry = min(able, key=lambda one: self._held[one[0]])  # the first of the least
            self._waiting.remove(entry)
            self.add(key)
            turn.set_result(None)
