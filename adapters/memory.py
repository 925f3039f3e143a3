"""Rate budgets of one process."""

import time
from collections.abc import Callable

from domain.kernel.buckets import Bucket, full
from ports.limits import Budget, Take

KEPT = 10_000
"""Buckets after which the full ones, which say nothing, are dropped."""


class MemoryLimits:
    """Limits (ports/limits.py); `clock` answers seconds that never run backwards."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}

    async def take(self, budget: Budget) -> Take:
        now = self._clock()
        bucket = self._buckets.get(budget.key)
        if bucket is None or bucket.burst != budget.burst or bucket.rate != budget.rate:
            bucket = self._open(budget, bucket, now)
        allowed = bucket.take(now)
        return Take(allowed, int(bucket.tokens), bucket.full_in(), bucket.next_in())

    def _open(self, budget: Budget, old: Bucket | None, now: float) -> Bucket:
        """A full bucket, or one of the new size with what the old one had, when a plan changed."""
        if len(self._buckets) >= KEPT:
            self._buckets = {key: kept for key, kept in self._buckets.items() if kept.refill(now) < kept.burst}
        bucket = full(budget.burst, budget.rate, now)
        if old is not None:
            bucket.tokens = min(bucket.tokens, old.refill(now))
        self._buckets[budget.key] = bucket
        return bucket
