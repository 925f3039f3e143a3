"""State of one shared bucket in one process: its leased tokens, and its estimate of the whole."""

import asyncio
from dataclasses import dataclass, field

from domain.kernel.buckets import Bucket
from ports.limits import Budget, Take

HOT = 0.25
"""Seconds: a lease used up faster than this is followed by one twice as large."""
PART = 8
"""A lease is at most this part of the burst."""


@dataclass(slots=True)
class Share:
    """Leased tokens, valid until `until`, and `whole`, this process's estimate of the bucket.

    `wanted` tokens are requested next; `size` and `generation` are those of the last lease, `since` its time.
    """

    whole: Bucket
    leased: int = 0
    until: float = 0.0
    refused_until: float = 0.0
    wanted: int = 1
    size: int = 0
    generation: int = 0
    since: float = field(default=float("-inf"))
    asking: "asyncio.Task[None] | None" = None

    def fits(self, budget: Budget) -> bool:
        """Return whether the budget still has the size of this share."""
        return self.whole.burst == budget.burst and self.whole.rate == budget.rate

    def answer(self, now: float) -> Take | None:
        """Return the decision from local state, or None if the shared store must be queried."""
        whole = self.whole
        if self.leased and now < self.until:
            self.leased -= 1
            whole.refill(now)
            whole.tokens = left = max(float(self.leased), whole.tokens - 1.0)
            return Take(True, int(left), (whole.burst - left) / whole.rate, 0.0 if left >= 1.0 else whole.next_in())
        if now < self.refused_until:
            whole.refill(now)
            return Take(False, 0, whole.full_in(), max(whole.next_in(), self.refused_until - now))
        return None

    def alone(self, now: float) -> Take:
        """Return the decision without the shared store, by this process's estimate."""
        allowed = self.whole.take(now)
        return Take(allowed, int(self.whole.tokens), self.whole.full_in(), self.whole.next_in())

    def want(self, now: float) -> int:
        """Return how many tokens to request: doubled while they are used fast, one otherwise."""
        if now - self.since < HOT:
            self.wanted = min(max(1, self.whole.burst // PART), self.wanted * 2)
        elif now >= self.until:
            self.wanted = 1
        self.since = now
        return self.wanted

    def lease(self, asked: float, lasts: float, granted: int, remaining: float, generation: int) -> None:
        """Apply the store's response to a request sent at `asked`."""
        self.leased, self.until = granted, asked + lasts
        self.size, self.generation = (granted if granted > 1 else 0), generation
        self.whole.tokens, self.whole.at = granted + remaining, asked
        self.refused_until = 0.0 if granted else asked + self.whole.next_in()
