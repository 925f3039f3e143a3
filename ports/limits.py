"""Rate limits: token buckets that all processes share."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RateLimitBucket:
    """Rate limit: the token bucket `key`, with at most `burst` tokens, refilled with `rate` tokens per second."""

    key: str
    burst: int
    rate: float


@dataclass(frozen=True, slots=True)
class TakeResult:
    """Result of taking a token from a token bucket.

    Attributes:
        allowed: Whether the bucket had a token.
        tokens_left: Number of tokens that are left.
        seconds_to_full: Seconds until the bucket is full.
        seconds_to_next: Seconds until the bucket has a token.
    """

    allowed: bool
    tokens_left: int
    seconds_to_full: float
    seconds_to_next: float


class RateLimits(Protocol):
    """Token buckets that all processes share; while the shared store is unavailable, each process uses separate buckets."""

    async def take_token(self, limit: RateLimitBucket) -> TakeResult:
        """Remove one token from the bucket, if the bucket has one."""
        ...
