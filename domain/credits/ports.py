"""Ports of credit."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from domain.credits.model import CreditAction, CreditDay, CreditEntry, CreditLot, CreditOutcome, CreditRate
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant


class CreditStore(Protocol):
    """Credit of a tenant, and the rates of models."""

    async def apply(self, actions: Sequence[CreditAction]) -> CreditOutcome:
        """Apply the actions in order, after those of expired reservations and lots; lock the ledger until the commit."""
        ...

    async def get_totals(self) -> tuple[int, int]:
        """Return the available and the reserved credit."""
        ...

    async def list_lots(self) -> Sequence[CreditLot]:
        """Return the lots with remaining credit, the earliest expiry first."""
        ...

    async def announce_expiry(self, before: datetime) -> Sequence[CreditLot]:
        """Mark the lots with remaining credit that expire before this time as announced; return those newly marked."""
        ...

    async def page_entries(self, page_request: PageRequest) -> Page[CreditEntry]:
        """Return a page of entries, newest first."""
        ...

    async def list_days(self, since: datetime) -> Sequence[CreditDay]:
        """Return the days since the time that have entries, oldest first; only the newest 100,000 entries are read."""
        ...

    async def list_rates(self) -> Sequence[CreditRate]:
        """Return all rates, by model and time from which they apply."""
        ...


class CreditUpkeep(Protocol):
    """Credit of all tenants, for the scheduler."""

    async def list_due(self, now: datetime, announced_before: datetime, limit: int) -> Sequence[Tenant]:
        """Return tenants with expired reservations or lots, or lots whose expiry before this time is not announced."""
        ...

    async def delete_reservations(self, before: datetime) -> None:
        """Delete ended reservations that expired before this time."""
        ...


class CreditRateRegistry(Protocol):
    """Rates of models, for operators."""

    async def list_rates(self) -> Sequence[CreditRate]:
        """Return all rates, by model and time from which they apply."""
        ...

    async def add_rate(self, rate: CreditRate) -> None:
        """Store a rate; one of the same model and time is replaced."""
        ...
