"""Rate limits in the memory of one process."""

import time
from collections.abc import Callable

from domain.kernel.buckets import Bucket, full
from ports.limits import Budget, Take

KEPT = 10_000
"""Number of buckets above which full ones are dropped; a full bucket equals a new one."""


class MemoryLimits:
    """Limits (ports/limits.py); `clock` returns monotonic seconds."""

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
        """Create a full bucket, or one with the old bucket's tokens if the plan's size or rate changed."""
        if len(self._buckets) >= KEPT:
            self._buckets = {key: other for key, other in self._buckets.items() if other.refill(now) < other.burst}
        bucket = full(budget.burst, budget.rate, now)
        if old is not None:
            bucket.tokens = min(bucket.tokens, old.refill(now))
        self._buckets[budget.key] = bucket
        return bucket
