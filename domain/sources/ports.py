"""Stores of sources and their sealed credentials."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.sources.model import Source
from ports.unit_of_work import Store


class SourceStore(Store[Source], Protocol):
    """Sources and their sealed credentials within a tenant's transaction."""

    async def seal(self, id: str, sealed: bytes | None) -> None:
        """Store sealed credentials, or delete them (None)."""
        ...

    async def count(self, *, lock: bool = False) -> int:
        """Return the number of sources that count against the plan: all except those that the service disabled.

        `lock` serialises callers of the tenant until the transaction ends, so that one of them can safely add a source.
        """
        ...

    async def sealed(self, id: str) -> bytes | None:
        """Return the sealed credentials."""
        ...


class SourceSchedule(Protocol):
    """Scheduled pulls of all tenants, for the scheduler."""

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str, str]]:
        """Return runnable sources whose next pull is due as (tenant, source, stream), the longest due first."""
        ...

    async def next_due(self) -> datetime | None:
        """Return the time of the earliest scheduled pull, or None."""
        ...
