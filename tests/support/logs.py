"""An event log that answers as a test wants it to: writers that are not done, losses, slow reads."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from adapters.memory.events import GRANTS, Grant, MemoryEventReader
from adapters.memory.signals import MemorySignals
from adapters.memory.table import MemoryDatabase
from adapters.memory.unit_of_work import MemoryUnitOfWork
from adapters.memory.clock import SettableClock
from adapters.wire.events import WireEventRendering
from domain.changes.usecases.tailing import LogTailer
from domain.changes.model import EventFilter, Reader
from domain.changes.usecases.service import ChangesService
from domain.events.model import LoggedEvent
from domain.kernel.ids import new_id
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.tenancy import Tenant
from ports.events import LogBounds
from tests.support import builders


class HeldEvents(MemoryEventReader):
    """`held` is a position that some writer has not committed yet; `down` makes reading fail; reads are counted."""

    def __init__(self, store: MemoryDatabase) -> None:
        super().__init__(store, WireEventRendering())
        self.held: int | None = None
        self.down = False
        self.reached = self.read = self.furthest = 0

    async def bounds(self) -> LogBounds:
        self.reached += 1
        if self.down:
            raise ConnectionError("the database is down")
        bounds = await super().bounds()
        return (
            bounds
            if self.held is None
            else LogBounds(min(self.held - 1, bounds.last), bounds.last, bounds.low_watermark)
        )

    async def page(
        self,
        reader: Reader,
        after: int,
        up_to: int,
        limit: int,
        wanted: EventFilter,
        *,
        since: datetime | None = None,
        most_bytes: int = CHANGES_BYTES,
    ) -> Sequence[LoggedEvent]:
        self.read += 1
        self.furthest = max(self.furthest, up_to)
        await asyncio.sleep(0)
        return await super().page(reader, after, up_to, limit, wanted, since=since, most_bytes=most_bytes)


class Log:
    """A log in memory with its follower running."""

    def __init__(self, **tailer: Any) -> None:
        self.store, self.signals = MemoryDatabase(), MemorySignals()
        self.store.listeners.append(self.signals.notify)
        self.uow = MemoryUnitOfWork(self.store, SettableClock())
        self.events = HeldEvents(self.store)
        self.tailer = LogTailer(self.events, WireEventRendering(), self.signals, **tailer)
        self.service = ChangesService(self.events, self.tailer)
        self.tenant = Tenant(new_id("org"), True)

    async def write(self, count: int = 1, tenant: Tenant | None = None, **changes: Any) -> list[str]:
        """That many events in one transaction; answers their ids."""
        events = [builders.event(**{"subject": new_id("src")} | changes) for _ in range(count)]
        async with self.uow.begin(tenant or self.tenant, builders.CALL) as tx:
            await tx.events.append(events)
        return [event.id for event in events]

    def grant(self, owner: Tenant, catalogue: str, holder: str, *groups: str) -> None:
        """A licence."""
        self.store.write(GRANTS, owner, Grant(catalogue, holder, frozenset(groups)))

    def revoke(self, owner: Tenant, catalogue: str, holder: str) -> None:
        """Take it back."""
        self.store.erase(GRANTS, owner, f"{catalogue} {holder}")


@asynccontextmanager
async def running(**tailer: Any) -> AsyncIterator[Log]:
    """A log whose follower runs."""
    log = Log(**tailer)
    task = asyncio.create_task(log.tailer.run())
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(60):
            yield log
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
