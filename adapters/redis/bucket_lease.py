"""Lease of tokens of a shared token bucket to one process."""

import asyncio
from dataclasses import dataclass, field

from domain.kernel.buckets import TokenBucket
from ports.limits import RateLimitBucket, TakeResult

FAST_USE_SECONDS = 0.25
"""Seconds between two requests to Redis below which the second one requests twice as many tokens."""
BURST_DIVISOR = 8
"""Divisor of the bucket's size. The quotient, but at least 1, is the maximum number of tokens per request."""


@dataclass(slots=True)
class BucketLease:
    """Lease of tokens of a shared bucket to one process. Times are monotonic seconds.

    Attributes:
        bucket: This process's estimate of the shared bucket.
        tokens_left: The number of leased tokens that are left.
        expires_at: The time at which the lease expires.
        refused_until: The time until which requests are refused without a call to Redis.
        requested_tokens: The number of tokens in the last request.
        last_lease_size: The number of tokens that the last lease granted; 0 if the last request took one token without a lease.
        generation: The number of the lease period at the last request. A new period begins when all leases of the shared
            bucket have expired (lease.lua).
        last_requested_at: The time of the last request.
        pending_request: The task of a running request, or None.
    """

    bucket: TokenBucket
    tokens_left: int = 0
    expires_at: float = 0.0
    refused_until: float = 0.0
    requested_tokens: int = 1
    last_lease_size: int = 0
    generation: int = 0
    last_requested_at: float = field(default=float("-inf"))
    pending_request: "asyncio.Task[None] | None" = None

    def matches_limit(self, limit: RateLimitBucket) -> bool:
        """Return whether the rate limit still has the size and rate of the bucket."""
        return self.bucket.burst == limit.burst and self.bucket.rate == limit.rate

    def decide(self, now: float) -> TakeResult | None:
        """Return the decision about one request; None if tokens must be requested from Redis first."""
        whole = self.bucket
        if self.tokens_left and now < self.expires_at:
            self.tokens_left -= 1
            whole.refill(now)
            whole.tokens = left = max(float(self.tokens_left), whole.tokens - 1.0)
            return TakeResult(
                True, int(left), (whole.burst - left) / whole.rate, 0.0 if left >= 1.0 else whole.seconds_until_token()
            )
        if now < self.refused_until:
            whole.refill(now)
            return TakeResult(
                False, 0, whole.seconds_until_full(), max(whole.seconds_until_token(), self.refused_until - now)
            )
        return None

    def decide_locally(self, now: float) -> TakeResult:
        """Return a decision about one request from this process's estimate of the bucket, while Redis is unavailable."""
        allowed = self.bucket.take_token(now)
        return TakeResult(
            allowed, int(self.bucket.tokens), self.bucket.seconds_until_full(), self.bucket.seconds_until_token()
        )

    def choose_request_size(self, now: float) -> int:
        """Return the number of tokens to request from Redis, and store the number and the time of the request.

        If the last request was less than FAST_USE_SECONDS ago, the number is doubled, up to the maximum. Otherwise it
        remains unchanged, or becomes 1 if the lease has expired.
        """
        if now - self.last_requested_at < FAST_USE_SECONDS:
            self.requested_tokens = min(max(1, self.bucket.burst // BURST_DIVISOR), self.requested_tokens * 2)
        elif now >= self.expires_at:
            self.requested_tokens = 1
        self.last_requested_at = now
        return self.requested_tokens

    def apply_grant(
        self, requested_at: float, lifetime_seconds: float, granted: int, remaining: float, generation: int
    ) -> None:
        """Apply the response of Redis to a request for tokens.

        Args:
            requested_at: The time at which the request was sent.
            lifetime_seconds: Seconds for which the tokens may be used.
            granted: The number of leased tokens.
            remaining: The number of tokens that are left in the shared bucket.
            generation: The number of the current lease period.
        """
        self.tokens_left, self.expires_at = granted, requested_at + lifetime_seconds
        self.last_lease_size, self.generation = (granted if granted > 1 else 0), generation
        self.bucket.tokens, self.bucket.at = granted + remaining, requested_at
        self.refused_until = 0.0 if granted else requested_at + self.bucket.seconds_until_token()
