"""Token buckets: at most `burst` tokens, refilled by `rate` a second."""

from dataclasses import dataclass


@dataclass(slots=True)
class Bucket:
    """A token bucket with `tokens` (fractions included) at the time `at`, in seconds of a monotonic clock."""

    burst: int
    rate: float
    tokens: float
    at: float

    def refill(self, now: float) -> float:
        """Add the tokens since `at`; return the present number. Earlier times are ignored."""
        if now > self.at:
            self.tokens = min(float(self.burst), self.tokens + (now - self.at) * self.rate)
            self.at = now
        return self.tokens

    def take(self, now: float) -> bool:
        """Take one token if there is one; return whether there was."""
        if self.refill(now) < 1.0:
            return False
        self.tokens -= 1.0
        return True

    def full_in(self) -> float:
        """Return the seconds from `at` until the bucket is full."""
        return (self.burst - self.tokens) / self.rate

    def next_in(self) -> float:
        """Return the seconds from `at` until there is a token; 0 if there is one."""
        return 0.0 if self.tokens >= 1.0 else (1.0 - self.tokens) / self.rate


def full(burst: int, rate: float, now: float) -> Bucket:
    """Return a full bucket."""
    return Bucket(burst, rate, float(burst), now)
