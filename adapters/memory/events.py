"""The event log in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapters.memory.table import MemoryDatabase, Table, Transaction
from domain.changes.model import NETWORK_GROUPS, EventFilter, Licence, Reader
from domain.events.model import Event, LoggedEvent, within
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from ports.events import EventRendering, LogBounds, Splice
from ports.signals import Channel, Signal


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """An event at its position in the log of all tenants."""

    position: int
    tenant: Tenant
    event: Event
    at: datetime


@dataclass(frozen=True, slots=True)
class Grant:
    """What a catalogue's organisation lets a holder (`*` for everybody) see of it."""

    catalogue: str
    holder: str
    groups: frozenset[str]


def logged(kept: KeptEvent, body: bytes = b"", groups: frozenset[str] | None = None) -> LoggedEvent:
    """The event as readers get it."""
    event = kept.event
    return LoggedEvent(
        position=kept.position,
        id=event.id,
        type=event.type,
        subject=event.subject,
        product=event.product,
        source=event.source,
        catalogue=event.catalogue,
        version=event.version,
        time=kept.at,
        body=body,
        groups=groups,
    )


EVENTS: Final = Table[KeptEvent]("events", lambda kept: f"{kept.position:020d}", descending=False)
GRANTS: Final = Table[Grant]("licences", lambda grant: f"{grant.catalogue} {grant.holder}")


class MemoryEvents:
    """EventLog."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows = transaction.rows(EVENTS)

    async def append(self, events: Sequence[Event]) -> None:
        await self._transaction.lock()
        tenant = self._transaction.tenant
        for event in events:
            event.id = event.id or new_id("evt")
            position = self._transaction.store.next_number()
            await self._rows.put(KeptEvent(position, tenant, event, self._transaction.now))
            self._transaction.recorded.events.append(event)
        if events:
            self._transaction.channels.add((Channel.EVENTS, Signal(tenant).payload))

    async def high_watermark(self) -> int:
        return _last(self._transaction.store)


def _last(store: MemoryDatabase) -> int:
    return max((kept.position for _, kept in store.everyone(EVENTS)), default=0)


class MemoryEventReader:
    """EventReader. One transaction writes at a time, so everything committed is below the high watermark."""

    def __init__(self, store: MemoryDatabase, rendering: EventRendering) -> None:
        self._store = store
        self._render = rendering.event

    async def high_watermark(self) -> int:
        return _last(self._store)

    async def bounds(self) -> LogBounds:
        last = _last(self._store)
        return LogBounds(last, last, self._store.low_watermark)

    async def log(self) -> Sequence[KeptEvent]:
        """Everything that is committed, in order."""
        return sorted((kept for _, kept in self._store.everyone(EVENTS)), key=lambda kept: kept.position)

    async def licences(self, tenants: Sequence[Tenant]) -> Mapping[Tenant, Sequence[Licence]]:
        return {tenant: held for tenant in tenants if (held := self._held(tenant))}

    def _held(self, tenant: Tenant) -> Sequence[Licence]:
        found: dict[tuple[Tenant, str], frozenset[str]] = {}
        for owner, grant in self._store.everyone(GRANTS):
            if grant.holder in (tenant.org, "*") and owner.livemode == tenant.livemode and owner.org != tenant.org:
                key = (owner, grant.catalogue)
                found[key] = found.get(key, NETWORK_GROUPS) | grant.groups
        return [Licence(owner, catalogue, groups) for (owner, catalogue), groups in sorted(found.items(), key=repr)]

    async def tenants_with_new_events(
        self, positions: Mapping[Tenant, int], up_to: int, since: datetime | None
    ) -> frozenset[Tenant]:
        events = [kept for _, kept in self._store.everyone(EVENTS) if kept.tenant in positions]
        return frozenset(kept.tenant for kept in events if positions[kept.tenant] < kept.position <= up_to)

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
        found = [event for event in self._visible(reader, wanted) if after < event.position <= up_to]
        return within(found, limit, most_bytes)

    async def recent(
        self, reader: Reader, after: int, up_to: int, limit: int, wanted: EventFilter
    ) -> Sequence[LoggedEvent]:
        found = [event for event in self._visible(reader, wanted) if after < event.position <= up_to]
        return within(found[::-1], limit, CHANGES_BYTES)

    async def stride(self, reader: Reader, after: int, up_to: int, rows: int) -> int:
        found = await self.page(reader, after, up_to, rows, EventFilter(everything=True))
        return found[-1].position if len(found) == rows else up_to

    async def splice(self, tenant: Tenant, after: int, up_to: int, limit: int, wanted: EventFilter) -> Splice:
        found = await self.page(Reader(tenant), after, up_to, limit, wanted)
        return Splice(len(found), found[-1].position if found else after, b",".join(event.body for event in found))

    async def at(self, reader: Reader, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        everything = self._visible(reader, EventFilter(everything=True))
        return [event for event in everything if event.position in positions]

    async def later(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        everything = self._visible(Reader(tenant), EventFilter(everything=True))
        return [event for event in everything if event.subject == subject and event.position > after][::-1][:limit]

    def _visible(self, reader: Reader, wanted: EventFilter) -> list[LoggedEvent]:
        held = {(licence.owner, licence.catalogue): licence.groups for licence in reader.licences}
        found = []
        for owner, kept in self._store.everyone(EVENTS):
            groups = held.get((owner, kept.event.catalogue or ""))
            if owner == reader.tenant or (groups is not None and kept.event.network):
                body = self._render(kept.event, kept.tenant, kept.at)
                found.append(logged(kept, body, None if owner == reader.tenant else groups))
        return sorted((event for event in found if wanted.matches(event)), key=lambda event: event.position)
