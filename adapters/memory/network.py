"""The network's logs in memory, as the relay fills them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.memory.events import EVENTS, KeptEvent, MemoryEventReader, last_position, logged
from adapters.memory.table import MemoryDatabase, Table
from domain.changes.model import LogBounds, network_of
from domain.changes.ports import EventRendering, Published
from domain.events.model import LoggedEvent, LogPosition
from domain.kernel.tenancy import Tenant
from ports.clock import Clock
from ports.signals import Channel, Signal


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Up to where a publisher's events have been copied."""

    owner: Tenant
    reached: LogPosition


CHECKPOINTS: Final = Table[Checkpoint]("network_checkpoints", lambda one: one.owner.org)


class MemoryNetworkLog:
    """NetworkLog."""

    def __init__(self, store: MemoryDatabase, rendering: EventRendering, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._reader = MemoryEventReader(store, rendering)

    async def publishers(self, among: Collection[Tenant] | None = None) -> Mapping[Tenant, LogBounds]:
        found = {owner for owner, kept in self._store.everyone(EVENTS) if kept.event.network and kept.owner is None}
        return await self._reader.bounds([owner for owner in found if among is None or owner in among])

    async def checkpoints(self, livemode: bool) -> Mapping[Tenant, LogPosition]:
        kept = self._store.committed(CHECKPOINTS, network_of(livemode)).values()
        return {one.owner: one.reached for one in kept}

    async def confirmed(self, owner: Tenant) -> LogBounds:
        return await self._reader.confirmed(owner)

    async def published(self, owner: Tenant, after: LogPosition, limit: int) -> Sequence[LoggedEvent]:
        kept = sorted(self._store.committed(EVENTS, owner).values(), key=_position)
        return [logged(one) for one in kept if one.event.network and one.position > after.position][:limit]

    async def append(self, log: Tenant, published: Sequence[Published]) -> bool:
        checkpoints = self._store.committed(CHECKPOINTS, log)
        kept = self._store.committed(EVENTS, log)
        for one in published:
            stored = checkpoints.get(one.owner.org)
            if (stored.reached if stored else None) != (_undated(one.was) if one.was else None):
                return False
        for one in published:
            by_position = {source.position: source for source in self._store.committed(EVENTS, one.owner).values()}
            for event in one.events:
                source = by_position[event.position]
                at = last_position(kept.values()) + 1
                copy = KeptEvent(at, log, source.event, self._clock.now(), one.owner, source.at)
                self._store.write(EVENTS, log, copy)
            self._store.write(CHECKPOINTS, log, Checkpoint(one.owner, _undated(one.reached)))
        self._store.notify(Channel.EVENTS, Signal(log).payload)
        return True


def _undated(position: LogPosition) -> LogPosition:
    """As it is kept."""
    return LogPosition(position.epoch, position.position)


def _position(kept: KeptEvent) -> int:
    return kept.position
