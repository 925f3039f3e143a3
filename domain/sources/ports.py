"""Sources and their sealed credentials in store."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.sources.model import Source
from ports.unit_of_work import Store


class SourceStore(Store[Source], Protocol):
    """In a tenant's transaction, with the sealed credentials beside them."""

    async def seal(self, id: str, sealed: bytes | None) -> None:
        """Keep sealed credentials, or forget them (None)."""
        ...

    async def count(self, *, lock: bool = False) -> int:
        """How many sources count against the plan: all but those that the service disabled.

        With `lock`, whoever counts takes turns with others of the tenant until the transaction ends, so that it may add one.
        """
        ...

    async def sealed(self, id: str) -> bytes | None:
        """Return the sealed credentials."""
        ...


class SourceSchedule(Protocol):
    """Across tenants, for the scheduler."""

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str, str]]:
        """Runnable sources whose next pull is due: (tenant, source, stream), the longest due first."""
        ...

    async def next_due(self) -> datetime | None:
        """When the earliest pull falls due, or None."""
        ...
