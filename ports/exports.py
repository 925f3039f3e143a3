"""Exports in store."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from domain.exports.model import Export
from domain.kernel.tenancy import Tenant
from ports.store import Store


class ExportStore(Store[Export], Protocol):
    """In a tenant's transaction."""

    async def take_turns(self) -> None:
        """Whoever asks for exports of this tenant waits from here on until the transaction ends."""
        ...

    async def open(self) -> int:
        """How many wait or run."""
        ...

    async def kept(self) -> Sequence[Export]:
        """Those whose files are there, newest first."""
        ...


class ExportUpkeep(Protocol):
    """Across tenants, for the scheduler."""

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Exports whose files are to go, the longest due first: (tenant, id)."""
        ...

    async def waiting_since(self) -> datetime | None:
        """When the one was asked for that waits the longest; None when none does. Raises Unavailable."""
        ...
