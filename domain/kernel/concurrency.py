"""Limits of concurrency, so that no organisation can use a whole process."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from domain.kernel.errors import Overloaded, RateLimited


class ConcurrencyLimit:
    """Limit on the amount in use (such as running requests), for each key (such as an organisation) and in total.

    `immediate_slot` and `acquire` raise an error if a maximum would be exceeded; `slot` waits. When capacity becomes free, the caller
    whose key uses least is served first, and among equal ones the caller that has waited longest.

    Args:
        max_total: Maximum amount of all keys together; None for no limit.
        max_per_key: Maximum amount of one key; by default half of `max_total`, and at least 1.
        noun: What is counted, in the plural, for error messages.
        retry_after: Seconds after which a refused caller may retry.
    """

    def __init__(
        self,
        max_total: int | None,
        max_per_key: int | None = None,
        *,
        noun: str = "running requests",
        retry_after: int = 1,
    ) -> None:
        self.max_total, self.max_per_key = (
            max_total,
            max(1, (max_total or 0) // 2) if max_per_key is None else max_per_key,
        )
        self.amount_in_use = 0
        self._noun, self._retry_after = noun, retry_after
        self._held: Counter[str] = Counter()
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    def get_used(self, key: str) -> int:
        """Return the amount that the key uses now."""
        return self._held[key]

    def check(self, key: str, amount: int = 1) -> None:
        """Check that the key may use an additional amount, without adding the amount.

        Raises:
            RateLimited: The key would exceed its maximum.
            Overloaded: All keys together would exceed the total.
        """
        if self._held[key] + amount > self.max_per_key:
            raise RateLimited(
                f"Your organisation has {self.max_per_key} {self._noun}, the maximum. Nothing was done. Try again later.",
                retry_after=self._retry_after,
            )
        if self.max_total is not None and self.amount_in_use + amount > self.max_total:
            raise Overloaded(retry_after=max(2, self._retry_after))

    def acquire(self, key: str, amount: int = 1) -> None:
        """Add an amount to what the key uses, until `release` is called. Raises the errors of `check`."""
        self.check(key, amount)
        self.acquire_unchecked(key, amount)

    def acquire_unchecked(self, key: str, amount: int = 1) -> None:
        """Add an amount to what the key uses, even if a maximum is exceeded."""
        self._held[key] += amount
        self.amount_in_use += amount

    def release(self, key: str, amount: int = 1) -> None:
        """Subtract an amount from what the key uses, and admit waiting callers."""
        self.amount_in_use -= amount
        self._held[key] -= amount
        if not self._held[key]:
            del self._held[key]
        self._admit()

    @contextmanager
    def immediate_slot(self, key: str, *, is_checked: bool = True) -> Iterator[None]:
        """Add one to the amount that the key uses while the context is open, without waiting.

        Raises the errors of `check`, unless `is_checked` is False.
        """
        if is_checked:
            self.check(key)
        self.acquire_unchecked(key)
        try:
            yield
        finally:
            self.release(key)

    @asynccontextmanager
    async def slot(self, key: str) -> AsyncIterator[None]:
        """Wait until the key may use one more; add one to the amount that the key uses while the context is open."""
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
        while self._waiting and (self.max_total is None or self.amount_in_use < self.max_total):
            able = [entry for entry in self._waiting if not entry[1].done() and self._held[entry[0]] < self.max_per_key]
            if not able:
                return
            key, turn = entry = min(able, key=lambda waiter: self._held[waiter[0]])  # the first with the least
            self._waiting.remove(entry)
            self.acquire_unchecked(key)
            turn.set_result(None)
