"""Token buckets as plain arithmetic: `burst` tokens at most, refilled by `rate` a second."""

from dataclasses import dataclass


@dataclass(slots=True)
class Bucket:
    """`tokens` (a part of one included) as of the moment `at`, in seconds of any steady clock."""

    burst: int
    rate: float
    tokens: float
    at: float

    def refill(self, now: float) -> float:
        """Add what came in since `at`; answers the tokens there are now. Time does not run backwards."""
        if now > self.at:
            self.tokens = min(float(self.burst), self.tokens + (now - self.at) * self.rate)
            self.at = now
        return self.tokens

    def take(self, now: float) -> bool:
        """Take one token if there is one."""
        if self.refill(now) < 1.0:
            return False
        self.tokens -= 1.0
        return True

    def full_in(self) -> float:
        """Seconds from `at` until the bucket is full."""
        return (self.burst - self.tokens) / self.rate

    def next_in(self) -> float:
        """Seconds from `at` until there is a token; 0 when there is one."""
        return 0.0 if self.tokens >= 1.0 else (1.0 - self.tokens) / self.rate


def full(burst: int, rate: float, now: float) -> Bucket:
    """Return a full bucket."""
    return Bucket(burst, rate, float(burst), now)
