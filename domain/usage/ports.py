"""Usage in store: counted with what it counts, folded by day."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.usage.meters import DayUsage, Threshold


class UsageMeters(Protocol):
    """In a tenant's transaction. Counting waits for nobody; reserving takes turns with others of the tenant that reserve."""

    async def count(self, meter: str, amount: int, of: str) -> None:
        """So much was used by `of` (a run, a batch of deliveries), beside what is counted of it, today; of what keeps room, on the day it did so."""
        ...

    async def reserve(self, meter: str, amount: int, of: str, included: int) -> bool:
        """Keep room this month for all that `of` may come to; answers whether it fits into `included` with all others."""
        ...

    async def release(self, meter: str, of: str) -> None:
        """`of` has come to its end: what is counted of it is all."""
        ...

    async def used(self, month: date) -> Mapping[str, int]:
        """Return the counts of the month by meter; zeros may be left out."""
        ...

    async def days(self, meters: Sequence[str], since: date, until: date) -> Sequence[DayUsage]:
        """Each meter's days of that range (both included) that have something, oldest first."""
        ...

    async def level(self, meter: str, before: date) -> DayUsage | None:
        """Return the last recorded value of a level before the day."""
        ...

    async def fold(self) -> None:
        """Add the entries of what has ended to their days; those that were reserved days ago have ended, too."""
        ...

    async def note(self, meter: str, amount: int) -> None:
        """Today's amount of a level."""
        ...

    async def thresholds(self, month: date) -> Sequence[Threshold]:
        """Return the thresholds that were reached in the month."""
        ...

    async def reach(self, threshold: Threshold, *, hold_back: bool) -> bool:
        """Put down that it was reached, and whether something is held back by it; False when it was before."""
        ...

    async def resume(self) -> None:
        """Nothing is held back any more."""
        ...


class UsageUpkeep(Protocol):
    """Across tenants, for the scheduler."""

    async def unfolded(self, limit: int) -> Sequence[Tenant]:
        """Tenants with entries that can be folded."""
        ...

    async def to_resume(self, month: date) -> Sequence[Tenant]:
        """Tenants of whom something is held back though another month, or a larger plan, has begun."""
        ...
