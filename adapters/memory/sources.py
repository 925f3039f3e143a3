"""Sources, their sealed credentials and their schedule in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from adapters.memory.table import MemoryDatabase, Table, TableStore, Transaction
from domain.kernel.paging import Filter, Page, PageRequest
from domain.kernel.tenancy import Tenant
from domain.sources.model import Source, SourceStatus


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


class MemorySources(TableStore[Source]):
    """SourceStore."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(transaction, SOURCES)
        self._sealed = transaction.rows(SEALED)

    async def get(self, id: str, *, lock: bool = False) -> Source | None:
        source = await super().get(id, lock=lock)
        return self._described(source) if source else None

    async def page(self, request: PageRequest, filter: Filter | None = None) -> Page[Source]:
        page = await super().page(request, filter)
        return replace(page, items=tuple(map(self._described, page.items)))

    def _described(self, source: Source) -> Source:
        return replace(source, has_credentials=self._sealed.get(source.id) is not None)

    async def seal(self, id: str, sealed: bytes | None) -> None:
        if sealed is None:
            await self._sealed.remove(id)
        else:
            await self._sealed.put(Sealed(id, sealed))

    async def count(self, *, lock: bool = False) -> int:
        if lock:
            await self.transaction.lock()
        return len(self.rows.where(lambda source: source.status != SourceStatus.DISABLED))

    async def sealed(self, id: str) -> bytes | None:
        found = self._sealed.get(id)
        return found.sealed if found else None


class MemorySourceSchedule:
    """SourceSchedule."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store

    def _pulls(self) -> Iterator[tuple[datetime, Tenant, str, str]]:
        for tenant, source in self._store.everyone(SOURCES):
            if source.runnable and source.next_pull:
                yield source.next_pull, tenant, source.id, "catalogue"
            if source.runnable and source.next_stock_pull:
                yield source.next_stock_pull, tenant, source.id, "stock"

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str, str]]:
        due = sorted((pull for pull in self._pulls() if pull[0] <= now), key=lambda pull: (pull[0], pull[2], pull[3]))
        return [(tenant, source, stream) for _, tenant, source, stream in due[:limit]]

    async def next_due(self) -> datetime | None:
        return min((moment for moment, *_ in self._pulls()), default=None)
