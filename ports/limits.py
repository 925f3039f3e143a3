"""Rate budgets: token buckets shared by all processes."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Budget:
    """One bucket: `key` names organisation, mode and class; `rate` tokens a second refill it up to `burst`."""

    key: str
    burst: int
    rate: float


@dataclass(frozen=True, slots=True)
class Take:
    """What taking a token answered: whether one was there, how many are left, and seconds to full and to the next."""

    allowed: bool
    left: int
    full_in: float
    next_in: float


class Limits(Protocol):
    """Never an obstacle: when the shared store is lost, each process limits by itself until it is back."""

    async def take(self, budget: Budget) -> Take:
        """Take one token, or say when there will be one."""
        ...
