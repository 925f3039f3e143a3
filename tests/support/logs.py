"""Event logs with configurable losses, delays and failures."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from adapters.api_json.events import JsonEventRendering
from domain.changes.model import ALL, EventBatch, EventFilter, FeedPosition, LogBounds, LogView, get_network_tenant
from domain.changes.usecases.log_tailer import LogTailer
from domain.changes.usecases.service import ChangesService
from domain.events.model import LogPosition
from domain.events.ports import EventLog
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.support import builders
from tests.support.memory.clock import SettableClock
from tests.support.memory.events import Grant, MemoryAppends, MemoryEventReader, MemoryLogs, MemoryNetworkLog
from tests.support.memory.messages import MemorySignals
from tests.support.network import relay_events

START = FeedPosition()


class CountedEvents(MemoryEventReader):
    """Event reader that counts requests; `down` makes all reads fail, `failing` the given number of pages.

    With `window`, a page reads at most this number of events, regardless of its limit.
    """

    def __init__(self, store: MemoryLogs) -> None:
        super().__init__(store, JsonEventRendering())
        self.down = False
        self.window: int | None = None
        self.failing = 0
        self.bounds_reads = self.read = self.read_of_network = 0

    async def query_bounds(self, logs: Collection[Tenant]) -> Mapping[Tenant, LogBounds]:
        self.bounds_reads += 1
        if self.down:
            raise ConnectionError("the database is down")
        return await super().query_bounds(logs)

    async def read_page(
        self,
        view: LogView,
        after: LogPosition,
        end: LogPosition,
        limit: int,
        wanted: EventFilter,
        *,
        max_bytes: int = CHANGES_BYTES,
    ) -> EventBatch:
        self.read += 1
        self.read_of_network += view.is_network
        await asyncio.sleep(0)
        if self.failing:
            self.failing -= 1
            raise ConnectionError("the connection broke")
        if self.down:
            raise ConnectionError("the database is down")
        if self.window is None:
            return await super().read_page(view, after, end, limit, wanted, max_bytes=max_bytes)
        looked = await super().read_page(view, after, end, self.window, ALL)
        events = [event for event in looked.events if wanted.matches(event)]
        return EventBatch(events, looked.position, looked.caught_up)


class TailedLog:
    """Log in memory with a running tailer."""

    def __init__(self, **tailer: Any) -> None:
        self.store, self.signals = MemoryLogs(), MemorySignals()
        self.store.listeners.append(self.signals.notify)
        self.clock = SettableClock()
        self.uow = MemoryAppends(self.store, self.clock)
        self.events = CountedEvents(self.store)
        self.network = MemoryNetworkLog(self.store, JsonEventRendering(), self.clock)
        self.tailer = LogTailer(self.events, JsonEventRendering(), self.signals, **tailer)
        self.service = ChangesService(self.events, self.tailer)
        self.tenant = Tenant(new_id("org"), True)

    async def write(self, count: int = 1, tenant: Tenant | None = None, **changes: Any) -> list[str]:
        """Append `count` events in one transaction; return their IDs."""
        events = [builders.event(**{"subject": new_id("src")} | changes) for _ in range(count)]
        async with self.uow.begin(tenant or self.tenant, builders.CALL) as tx:
            await tx[EventLog].append(events)
        return [event.id for event in events]

    async def relay_events(self) -> None:
        """Copy the published events to the network logs."""
        await relay_events(self.network, self.signals)

    async def end_positions(self, tenant: Tenant | None = None) -> FeedPosition:
        """Return the position of the last event of the tenant's log and of the network log."""
        own = tenant or self.tenant
        network = get_network_tenant(own.livemode)
        bounds = await MemoryEventReader.query_bounds(self.events, [own, network])
        return FeedPosition(bounds[own].end, bounds[network].end)

    async def position_at(self, position: int) -> FeedPosition:
        """Return the feed position after the tenant's event at `position`."""
        kept = self.store.events[self.tenant][position]
        return FeedPosition(LogPosition((await self.end_positions()).own.epoch, position, kept.at))

    def delete_events(self, first: int, tenant: Tenant | None = None) -> None:
        """Delete the events from `first` on, like the restore of an older backup."""
        kept = self.store.events[tenant or self.tenant]
        for position in range(first, max(kept, default=0) + 1):
            kept.pop(position, None)

    def grant_licence(self, owner: Tenant, catalogue: str, holder: str, *groups: str) -> None:
        """Grant a licence."""
        self.store.granted[owner][catalogue, holder] = Grant(catalogue, holder, frozenset(groups))

    def revoke_licence(self, owner: Tenant, catalogue: str, holder: str) -> None:
        """Revoke the licence."""
        self.store.granted[owner].pop((catalogue, holder), None)


@asynccontextmanager
async def run_log(**tailer: Any) -> AsyncIterator[TailedLog]:
    """Run a log with its tailer."""
    log = TailedLog(**tailer)
    task = asyncio.create_task(log.tailer.run())
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(60):
            yield log
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def build_unknown_position(position: LogPosition) -> LogPosition:
    """Return a position that the log does not contain."""
    return LogPosition(position.epoch, position.position + 1)
