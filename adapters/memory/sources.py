"""Sources, their sealed credentials and their schedule in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from adapters.memory.table import MemoryStore, Table, Transaction
from domain.kernel.errors import NotFound, PreconditionFailed
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from domain.sources.model import Source


@dataclass(frozen=True, slots=True)
class Sealed:
    """A source's sealed credentials."""

    source: str
    sealed: bytes


SOURCES: Final = Table[Source](
    "sources",
    lambda source: source.id,
    unique=lambda source: source.inbound_address,
    conflict="Another source has this inbound address.",
)
SEALED: Final = Table[Sealed]("sealed_credentials", lambda sealed: sealed.source)


class MemorySources:
    """SourceStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows = transaction.rows(SOURCES)
        self._sealed = transaction.rows(SEALED)

    async def get(self, id: str, *, lock: bool = False) -> Source | None:
        """One source."""
        if lock:
            await self._transaction.lock()
        source = self._rows.get(id)
        return self._told(source) if source else None

    def _told(self, source: Source) -> Source:
        return replace(source, has_credentials=self._sealed.get(source.id) is not None)

    async def add(self, source: Source) -> None:
        """Keep a new source."""
        await self._rows.add(source)

    async def save(self, source: Source, *, expected_version: int | None = None) -> None:
        """Keep the new state."""
        await self._transaction.lock()
        stored = self._rows.get(source.id)
        if stored is None:
            raise NotFound
        if expected_version is not None and stored.version != expected_version:
            raise PreconditionFailed(f"The source is at version {stored.version} by now.")
        await self._rows.put(source)

    async def page(self, page_request: PageRequest) -> Page[Source]:
        """The tenant's sources, newest first."""
        page = self._rows.page(page_request)
        return Page(tuple(self._told(source) for source in page.items), page.has_more, page.next_key)

    async def seal(self, id: str, sealed: bytes | None) -> None:
        """Keep or forget sealed credentials."""
        if sealed is None:
            await self._sealed.remove(id)
        else:
            await self._sealed.put(Sealed(id, sealed))

    async def sealed(self, id: str) -> bytes | None:
        """The sealed credentials."""
        found = self._sealed.get(id)
        return found.sealed if found else None


class MemorySourceSchedule:
    """SourceSchedule."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def _pulls(self) -> Iterator[tuple[datetime, Tenant, str, str]]:
        for tenant, source in self._store.everyone(SOURCES):
            if source.runnable and source.next_pull:
                yield source.next_pull, tenant, source.id, "catalogue"
            if source.runnable and source.next_stock_pull:
                yield source.next_stock_pull, tenant, source.id, "stock"

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str, str]]:
        """Due pulls, the longest due first."""
        due = sorted((pull for pull in self._pulls() if pull[0] <= now), key=lambda pull: (pull[0], pull[2], pull[3]))
        return [(tenant, source, stream) for _, tenant, source, stream in due[:limit]]

    async def next_due(self) -> datetime | None:
        """When the earliest pull falls due."""
        return min((moment for moment, *_ in self._pulls()), default=None)
