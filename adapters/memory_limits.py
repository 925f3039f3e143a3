"""Rate limits in the memory of one process."""

import time
from collections.abc import Callable

from domain.kernel.buckets import TokenBucket, create_full_bucket
from ports.limits import RateLimitBucket, TakeResult

CLEANUP_THRESHOLD = 10_000
"""Number of token buckets at which full buckets are deleted, because a full bucket equals a new one."""


class MemoryLimits:
    """Rate limits in the memory of one process (port RateLimits in ports/limits.py).

    Args:
        clock: Returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}

    async def take_token(self, limit: RateLimitBucket) -> TakeResult:
        now = self._clock()
        bucket = self._buckets.get(limit.key)
        if bucket is None or bucket.burst != limit.burst or bucket.rate != limit.rate:
            bucket = self._create_bucket(limit, bucket, now)
        allowed = bucket.take_token(now)
        return TakeResult(allowed, int(bucket.tokens), bucket.seconds_until_full(), bucket.seconds_until_token())

    def _create_bucket(self, limit: RateLimitBucket, old: TokenBucket | None, now: float) -> TokenBucket:
        """Create and store the bucket of a rate limit: full, or with the tokens of `old` if the rate limit has changed."""
        if len(self._buckets) >= CLEANUP_THRESHOLD:
            self._buckets = {key: other for key, other in self._buckets.items() if other.refill(now) < other.burst}
        bucket = create_full_bucket(limit.burst, limit.rate, now)
        if old is not None:
            bucket.tokens = min(bucket.tokens, old.refill(now))
        self._buckets[limit.key] = bucket
        return bucket
