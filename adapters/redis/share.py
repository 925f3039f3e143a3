"""What one process knows of one shared bucket: the tokens it holds on lease, and its picture of the whole."""

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
    """`leased` tokens may be handed out until `until`; `whole` is the bucket as far as this process can see it.

    `wanted` tokens are asked for next; `size` and `generation` are those of the last lease, `since` its moment.
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
        """Whether the budget is still of the size that this was made for."""
        return self.whole.burst == budget.burst and self.whole.rate == budget.rate

    def answer(self, now: float) -> Take | None:
        """The answer from what is known here; None when the shared store has to be asked."""
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
        """The answer while the shared store is lost: this process limits by its own picture."""
        allowed = self.whole.take(now)
        return Take(allowed, int(self.whole.tokens), self.whole.full_in(), self.whole.next_in())

    def want(self, now: float) -> int:
        """How many tokens to ask for: more and more while they go fast, one when they do not."""
        if now - self.since < HOT:
            self.wanted = min(max(1, self.whole.burst // PART), self.wanted * 2)
        elif now >= self.until:
            self.wanted = 1
        self.since = now
        return self.wanted

    def lease(self, asked: float, lasts: float, granted: int, remaining: float, generation: int) -> None:
        """Take in what the store answered to a question asked at `asked`."""
        self.leased, self.until = granted, asked + lasts
        self.size, self.generation = (granted if granted > 1 else 0), generation
        self.whole.tokens, self.whole.at = granted + remaining, asked
        self.refused_until = 0.0 if granted else asked + self.whole.next_in()
