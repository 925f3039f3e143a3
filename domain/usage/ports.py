"""Storage of usage: counted with the change that causes it, folded by day."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.usage.meters import DayUsage, Threshold


class UsageMeters(Protocol):
    """Usage in a tenant's transaction. Counting never waits; reservations of one tenant are serialised."""

    async def count(self, meter: str, amount: int, of: str) -> None:
        """Add to today's usage by `of` (a run, a batch of deliveries). A reservation is counted on its own day."""
        ...

    async def reserve(self, meter: str, amount: int, of: str, included: int) -> bool:
        """Reserve this month's maximum of `of`; return whether it fits into `included` with all others."""
        ...

    async def release(self, meter: str, of: str) -> None:
        """Release the remaining reservation of `of`."""
        ...

    async def used(self, month: date) -> Mapping[str, int]:
        """Return the month's usage by meter; unused meters may be omitted."""
        ...

    async def days(self, meters: Sequence[str], since: date, until: date) -> Sequence[DayUsage]:
        """Return the days in that range (both included) with usage of these meters, oldest first."""
        ...

    async def level(self, meter: str, before: date) -> DayUsage | None:
        """Return the last recorded amount of a level before that day, or None."""
        ...

    async def fold(self) -> None:
        """Add ended entries to their days; reservations of earlier days count as ended."""
        ...

    async def note(self, meter: str, amount: int) -> None:
        """Record today's amount of a level."""
        ...

    async def thresholds(self, month: date) -> Sequence[Threshold]:
        """Return the thresholds reached in that month."""
        ...

    async def reach(self, threshold: Threshold, *, hold_back: bool) -> bool:
        """Record that the threshold was reached, and whether it holds deliveries back.

        Returns False if it was recorded before.
        """
        ...

    async def resume(self) -> None:
        """Stop holding deliveries back."""
        ...


class UsageUpkeep(Protocol):
    """Usage across tenants, for the scheduler."""

    async def unfolded(self, limit: int) -> Sequence[Tenant]:
        """Return tenants with entries to fold."""
        ...

    async def to_resume(self, month: date) -> Sequence[Tenant]:
        """Return tenants that are held back although a new month or a larger plan has begun."""
        ...
