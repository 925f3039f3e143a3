"""The event logs in memory."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from adapters.memory.table import MemoryDatabase, Table, Transaction
from domain.changes.model import (
    ALL,
    NETWORK_GROUPS,
    OPEN_END,
    EventBatch,
    EventFilter,
    LogBounds,
    View,
    network_of,
)
from domain.changes.ports import EventRendering, Recent, Splice
from domain.changes.ports import Grant as LicenceShown
from domain.events.model import Event, LoggedEvent, LogPosition, weight_of, within
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import AuditContext, Tenant
from ports.signals import Channel, Signal


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """An event at its position in a log. In a network's log, `owner` is whose it is, `told` when that one had it."""

    position: int
    tenant: Tenant
    event: Event
    at: datetime
    owner: Tenant | None = None
    told: datetime | None = None


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
FIRST_EPOCH: Final = 1


class MemoryEvents:
    """EventLog."""

    def __init__(self, transaction: Transaction, context: AuditContext) -> None:
        self._transaction, self._context = transaction, context
        self._rows = transaction.rows(EVENTS)

    async def append(self, events: Sequence[Event]) -> None:
        await self._transaction.lock()
        tenant = self._transaction.tenant
        last = await self.high_watermark()
        for position, event in enumerate(events, start=last + 1):
            event.identify(self._context)
            await self._rows.put(KeptEvent(position, tenant, event, self._transaction.now))
            self._transaction.recorded.events.append(event)
        if events:
            self._transaction.channels.add((Channel.EVENTS, Signal(tenant).payload))

    async def high_watermark(self) -> int:
        low = self._transaction.store.low_watermarks.get(self._transaction.tenant, 0)
        return max(low, last_position(self._rows.where()))

    async def end(self) -> LogPosition:
        return bounds_of(self._transaction.store, self._transaction.tenant).end

    async def network_end(self) -> LogPosition:
        return bounds_of(self._transaction.store, network_of(self._transaction.tenant.livemode)).end


def bounds_of(store: MemoryDatabase, log: Tenant) -> LogBounds:
    """How far a log goes."""
    kept = store.committed(EVENTS, log).values()
    epoch, began = store.epochs.get(log, (FIRST_EPOCH, 0))
    low = store.low_watermarks.get(log, 0)
    if not kept and not began and not low:
        return LogBounds()
    newest = max(kept, key=lambda one: one.position, default=None)
    return LogBounds(epoch, newest.position if newest else low, newest.at if newest else None, began, low)


def last_position(kept: Collection[KeptEvent]) -> int:
    """The newest event's, 0 for none."""
    return max((one.position for one in kept), default=0)


class MemoryEventReader:
    """EventReader. One transaction writes at a time, so positions stand in the order of commits."""

    def __init__(self, store: MemoryDatabase, rendering: EventRendering) -> None:
        self._store = store
        self._render = rendering.event

    async def bounds(self, logs: Collection[Tenant]) -> Mapping[Tenant, LogBounds]:
        return {log: bounds_of(self._store, log) for log in logs}

    async def confirmed(self, log: Tenant) -> LogBounds:
        return bounds_of(self._store, log)

    async def begin_epoch(self, log: Tenant, after: LogPosition) -> None:
        bounds = bounds_of(self._store, log)
        if bounds.beyond(after):
            began = min(bounds.began, bounds.last) if bounds.began else bounds.last
            self._store.epochs[log] = (after.epoch + 1, began)

    async def licensed(self, tenants: Collection[Tenant]) -> frozenset[Tenant]:
        grants = list(self._store.everyone(GRANTS))
        return frozenset(
            tenant
            for tenant in tenants
            if any(_opens(grant, owner, tenant) and owner.org != tenant.org for owner, grant in grants)
        )

    async def grants(self, log: Tenant, after: int, up_to: int, tenants: Collection[Tenant]) -> Sequence[LicenceShown]:
        holders = {"*", *(tenant.org for tenant in tenants)}
        return [
            LicenceShown(kept.position, owner.org, grant.holder, grant.groups)
            for kept in self._store.committed(EVENTS, log).values()
            if after < kept.position <= up_to
            for owner, grant in self._store.everyone(GRANTS)
            if owner == kept.owner and grant.catalogue == kept.event.catalogue and grant.holder in holders
        ]

    async def page(
        self,
        view: View,
        after: LogPosition,
        end: LogPosition,
        limit: int,
        wanted: EventFilter,
        *,
        most_bytes: int = CHANGES_BYTES,
    ) -> EventBatch:
        self._refuse_lost(view.log, after)
        found = [event for event in self._visible(view, wanted) if event.position > after.position]
        events = within(found, limit, most_bytes)
        whole = len(events) < limit and weight_of(events) < most_bytes
        position = after.behind(events[-1]) if events else after
        newest = bounds_of(self._store, view.log).end
        if whole and newest.position > position.position:
            position = replace(newest, epoch=after.epoch)
        if whole and position.position <= end.position < OPEN_END:
            position = end
        return EventBatch(events, position, caught_up=whole)

    def _refuse_lost(self, log: Tenant, after: LogPosition) -> None:
        kept = self._store.committed(EVENTS, log).get(f"{after.position:020d}")
        lost = kept is None or kept.at != after.time
        if after.time is not None and lost and bounds_of(self._store, log).low != after.position:
            raise CursorExpired

    async def recent(self, view: View, before: int, limit: int, wanted: EventFilter) -> Recent:
        found = [event for event in self._visible(view, wanted) if event.position < before][::-1]
        events = within(found, limit, CHANGES_BYTES)
        whole = len(events) == len(found)
        return Recent(events, 1 if whole else events[-1].position)

    async def splice(
        self, tenant: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter
    ) -> Splice:
        page = await self.page(View.own(tenant), after, end, limit, wanted)
        return Splice(len(page.events), page.position, b",".join(event.body for event in page.events), page.caught_up)

    async def at(self, view: View, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        return [event for event in self._visible(view, ALL) if event.position in positions]

    async def later(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        everything = self._visible(View.own(tenant), ALL)
        return [event for event in everything if event.subject == subject and event.position > after][::-1][:limit]

    async def of_products(
        self, tenant: Tenant, products: Collection[str], after: int, limit: int
    ) -> Sequence[LoggedEvent]:
        everything = self._visible(View.own(tenant), ALL)
        return [event for event in everything if event.product in products and event.position > after][::-1][:limit]

    async def counts(self, tenant: Tenant, after: int, since: datetime) -> Mapping[str, int]:
        everything = self._visible(View.own(tenant), ALL)
        return Counter(event.type for event in everything if event.position > after and event.time >= since)

    def _visible(self, view: View, wanted: EventFilter) -> list[LoggedEvent]:
        found = []
        for kept in self._store.committed(EVENTS, view.log).values():
            groups = self._groups(view.tenant, kept) if view.of_network else None
            if groups is not None or not view.of_network:
                owner = kept.owner or kept.tenant
                found.append(logged(kept, self._render(kept.event, owner, kept.told or kept.at), groups))
        return sorted((event for event in found if wanted.matches(event)), key=lambda event: event.position)

    def _groups(self, reader: Tenant, kept: KeptEvent) -> frozenset[str] | None:
        if kept.owner is None or kept.owner.org == reader.org:
            return None
        granted = [
            grant.groups
            for owner, grant in self._store.everyone(GRANTS)
            if owner == kept.owner and grant.catalogue == kept.event.catalogue and _opens(grant, owner, reader)
        ]
        return NETWORK_GROUPS.union(*granted) if granted else None


def _opens(grant: Grant, owner: Tenant, reader: Tenant) -> bool:
    return grant.holder in (reader.org, "*") and owner.livemode == reader.livemode
