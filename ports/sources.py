"""Sources and their sealed credentials in store."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from domain.sources.model import Source


class SourceStore(Protocol):
    """In a tenant's transaction. Lists are newest first."""

    async def get(self, id: str, *, lock: bool = False) -> Source | None:
        """One source; `lock` keeps others from changing it until the transaction ends."""
        ...

    async def add(self, source: Source) -> None:
        """Keep a new source."""
        ...

    async def save(self, source: Source, *, expected_version: int | None = None) -> None:
        """Keep the new state. Raises PreconditionFailed when another version than expected is stored."""
        ...

    async def page(self, page_request: PageRequest) -> Page[Source]:
        """The tenant's sources."""
        ...

    async def seal(self, id: str, sealed: bytes | None) -> None:
        """Keep sealed credentials, or forget them (None)."""
        ...

    async def sealed(self, id: str) -> bytes | None:
        """The sealed credentials."""
        ...


class SourceSchedule(Protocol):
    """Across tenants, for the scheduler."""

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str, str]]:
        """Runnable sources whose next pull is due: (tenant, source, stream), the longest due first."""
        ...

    async def next_due(self) -> datetime | None:
        """When the earliest pull falls due, or None."""
        ...
