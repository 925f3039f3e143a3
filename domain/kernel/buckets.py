"""Token buckets, which limit rates: at most `burst` tokens, refilled with `rate` tokens per second."""

from dataclasses import dataclass


@dataclass(slots=True)
class TokenBucket:
    """Token bucket that had `tokens` tokens (possibly a fraction) at the time `at`, in seconds of a monotonic clock."""

    burst: int
    rate: float
    tokens: float
    at: float

    def refill(self, now: float) -> float:
        """Add the tokens for the time from `at` to `now`; return the current number of tokens."""
        if now > self.at:
            self.tokens = min(float(self.burst), self.tokens + (now - self.at) * self.rate)
            self.at = now
        return self.tokens

    def take_token(self, now: float) -> bool:
        """Remove one token from the bucket; return False if there is none."""
        if self.refill(now) < 1.0:
            return False
        self.tokens -= 1.0
        return True

    def seconds_until_full(self) -> float:
        """Return the seconds from `at` until the bucket is full."""
        return (self.burst - self.tokens) / self.rate

    def seconds_until_token(self) -> float:
        """Return the seconds from `at` until the bucket has a token; 0 if it has one."""
        return 0.0 if self.tokens >= 1.0 else (1.0 - self.tokens) / self.rate


def create_full_bucket(burst: int, rate: float, now: float) -> TokenBucket:
    """Return a token bucket that is full at the time `now`, in seconds of a monotonic clock."""
    return TokenBucket(burst, rate, float(burst), now)
