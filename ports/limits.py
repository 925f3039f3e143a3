"""Rate budgets: token buckets shared by all processes."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Budget:
    """Token bucket: `key` names organisation, mode and rate class; `rate` tokens a second refill it up to `burst`."""

    key: str
    burst: int
    rate: float


@dataclass(frozen=True, slots=True)
class Take:
    """Result of taking a token: `left` tokens remain; `full_in` and `next_in` are seconds until the bucket is full and until the next token."""

    allowed: bool
    left: int
    full_in: float
    next_in: float


class Limits(Protocol):
    """Shared rate limits; while the shared store is unavailable, each process limits by itself."""

    async def take(self, budget: Budget) -> Take:
        """Take one token if there is one."""
        ...
