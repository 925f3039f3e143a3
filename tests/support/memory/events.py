"""Event logs of all tenants and the network in memory, for tests of readers.

Transactions only append; other stores have no in-memory fake (docs/architecture.md#tests).
"""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from domain.catalogue.licences import NETWORK_GROUPS
from domain.changes.model import ALL, OPEN_END, EventBatch, EventFilter, LogBounds, LogView, get_network_tenant
from domain.changes.ports import EventPermission as LicenceShown
from domain.changes.ports import EventRendering, JoinedEvents, PublishedEvents, RecentEvents
from domain.events.model import Event, LoggedEvent, LogPosition, limit_events, sum_body_bytes
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import AuditContext, Tenant
from ports.clock import Clock
from ports.signals import Channel, Signal

FIRST_EPOCH = 1


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event at its position in a log. In a network log, `owner` published it, and `announced_at` is its time in the owner's log."""

    position: int
    tenant: Tenant
    event: Event
    at: datetime
    owner: Tenant | None = None
    announced_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """Licence of a holder (`*` for all) for a catalogue."""

    catalogue: str
    holder: str
    groups: frozenset[str]


def render_event(kept: StoredEvent, body: bytes = b"", groups: frozenset[str] | None = None) -> LoggedEvent:
    """Render the event for readers."""
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


@dataclass(slots=True)
class MemoryLogs:
    """Committed events.

    Attributes:
        events: Events of each log by position, oldest first.
        granted: Licences that each owner granted.
        checkpoints: Position of each owner's log up to which the network logs have its events.
        low_watermarks: Position up to which events have been deleted.
        epochs: Epoch of logs that lost events, and the position after which it began.
        listeners: Called with channel and payload (ports/signals.py) after each commit.
    """

    events: defaultdict[Tenant, dict[int, StoredEvent]] = field(default_factory=lambda: defaultdict(dict))
    granted: defaultdict[Tenant, dict[tuple[str, str], Grant]] = field(default_factory=lambda: defaultdict(dict))
    checkpoints: defaultdict[Tenant, dict[Tenant, LogPosition]] = field(default_factory=lambda: defaultdict(dict))
    low_watermarks: dict[Tenant, int] = field(default_factory=dict)
    epochs: dict[Tenant, tuple[int, int]] = field(default_factory=dict)
    listeners: list[Callable[[Channel, str], None]] = field(default_factory=list)

    def grants(self) -> Iterator[tuple[Tenant, Grant]]:
        """Yield every grant with its owner."""
        return ((owner, grant) for owner, grants in self.granted.items() for grant in grants.values())

    def append(
        self, log: Tenant, event: Event, at: datetime, owner: Tenant | None = None, announced_at: datetime | None = None
    ) -> None:
        """Append an event at the log's next position."""
        position = max(self.low_watermarks.get(log, 0), *self.events[log], 0) + 1
        self.events[log][position] = StoredEvent(position, log, event, at, owner, announced_at)

    def notify(self, log: Tenant) -> None:
        """Signal that something was appended to the log."""
        for listener in list(self.listeners):
            listener(Channel.EVENTS, Signal(log).payload)

    def bounds(self, log: Tenant) -> LogBounds:
        """Return the bounds of a log."""
        epoch, began = self.epochs.get(log, (FIRST_EPOCH, 0))
        low, newest = self.low_watermarks.get(log, 0), max(self.events[log], default=None)
        if newest is None:
            return LogBounds(epoch, low, None, began, low) if began or low else LogBounds()
        return LogBounds(epoch, newest, self.events[log][newest].at, began, low)


class MemoryAppends:
    """Unit of work with one store, an EventLog that only supports `append`."""

    def __init__(self, logs: MemoryLogs, clock: Clock) -> None:
        self._logs, self._clock = logs, clock

    @asynccontextmanager
    async def begin(self, tenant: Tenant, context: AuditContext) -> AsyncIterator[Any]:
        """Begin a transaction; its events get positions on commit."""
        appended: list[Event] = []

        class Appending:
            """The event log of the transaction."""

            async def append(self, events: Sequence[Event]) -> None:
                for event in events:
                    event.assign_ids(context)
                appended.extend(events)

        now = self._clock.now()
        yield defaultdict(Appending)
        for event in appended:
            self._logs.append(tenant, event, now)
        if appended:
            self._logs.notify(tenant)


class MemoryEventReader:
    """In-memory EventReader."""

    def __init__(self, logs: MemoryLogs, rendering: EventRendering) -> None:
        self._logs = logs
        self._render = rendering.encode_event

    async def query_bounds(self, logs: Collection[Tenant]) -> Mapping[Tenant, LogBounds]:
        return {log: self._logs.bounds(log) for log in logs}

    async def confirm_bounds(self, log: Tenant) -> LogBounds:
        return self._logs.bounds(log)

    async def begin_epoch(self, log: Tenant, after: LogPosition) -> None:
        bounds = self._logs.bounds(log)
        if bounds.is_beyond_end(after):
            began = min(bounds.epoch_start, bounds.last) if bounds.epoch_start else bounds.last
            self._logs.epochs[log] = (after.epoch + 1, began)

    async def filter_licensed(self, tenants: Collection[Tenant]) -> frozenset[Tenant]:
        grants = list(self._logs.grants())
        return frozenset(
            tenant
            for tenant in tenants
            if any(_opens(grant, owner, tenant) and owner.org != tenant.org for owner, grant in grants)
        )

    async def list_permissions(
        self, log: Tenant, after: int, up_to: int, tenants: Collection[Tenant]
    ) -> Sequence[LicenceShown]:
        holders = {"*", *(tenant.org for tenant in tenants)}
        return [
            LicenceShown(kept.position, owner.org, grant.holder, grant.groups)
            for kept in self._logs.events[log].values()
            if after < kept.position <= up_to
            for owner, grant in self._logs.grants()
            if owner == kept.owner and grant.catalogue == kept.event.catalogue and grant.holder in holders
        ]

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
        self._refuse_lost(view.log, after)
        found = [event for event in self._visible(view, wanted) if event.position > after.position]
        events = limit_events(found, limit, max_bytes)
        whole = len(events) < limit and sum_body_bytes(events) < max_bytes
        position = after.after(events[-1]) if events else after
        newest = self._logs.bounds(view.log).end
        if whole and newest.position > position.position:
            position = replace(newest, epoch=after.epoch)
        if whole and position.position <= end.position < OPEN_END:
            position = end
        return EventBatch(events, position, caught_up=whole)

    def _refuse_lost(self, log: Tenant, after: LogPosition) -> None:
        kept = self._logs.events[log].get(after.position)
        lost = kept is None or kept.at != after.time
        if after.time is not None and lost and self._logs.bounds(log).low != after.position:
            raise CursorExpired

    async def read_recent(self, view: LogView, before: int, limit: int, wanted: EventFilter) -> RecentEvents:
        found = [event for event in self._visible(view, wanted) if event.position < before][::-1]
        events = limit_events(found, limit, CHANGES_BYTES)
        whole = len(events) == len(found)
        return RecentEvents(events, 1 if whole else events[-1].position)

    async def read_joined(
        self, tenant: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter
    ) -> JoinedEvents:
        page = await self.read_page(LogView.own(tenant), after, end, limit, wanted)
        return JoinedEvents(
            len(page.events), page.position, b",".join(event.body for event in page.events), page.caught_up
        )

    async def get_at(self, view: LogView, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        return [event for event in self._visible(view, ALL) if event.position in positions]

    async def get_about_subject(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        everything = self._visible(LogView.own(tenant), ALL)
        return [event for event in everything if event.subject == subject and event.position > after][::-1][:limit]

    async def get_about_products(
        self, tenant: Tenant, products: Collection[str], after: int, limit: int
    ) -> Sequence[LoggedEvent]:
        everything = self._visible(LogView.own(tenant), ALL)
        return [event for event in everything if event.product in products and event.position > after][::-1][:limit]

    async def count_price_changes(self, tenant: Tenant, after: int, since: datetime) -> Mapping[str, int]:
        prices = {b'"path":"price"', b'"path":"cost"', b'"path":"msrp"', b'"path":"map"'}
        return Counter(
            event.source
            for event in self._visible(LogView.own(tenant), ALL)
            if event.position > after and event.time >= since and event.type == "offer.changed" and event.source
            if any(price in event.body for price in prices)
        )

    def _visible(self, view: LogView, wanted: EventFilter) -> list[LoggedEvent]:
        found = []
        for kept in self._logs.events[view.log].values():
            groups = self._groups(view.tenant, kept) if view.is_network else None
            if groups is not None or not view.is_network:
                owner = kept.owner or kept.tenant
                found.append(render_event(kept, self._render(kept.event, owner, kept.announced_at or kept.at), groups))
        return sorted((event for event in found if wanted.matches(event)), key=lambda event: event.position)

    def _groups(self, reader: Tenant, kept: StoredEvent) -> frozenset[str] | None:
        if kept.owner is None or kept.owner.org == reader.org:
            return None
        granted = [
            grant.groups
            for owner, grant in self._logs.grants()
            if owner == kept.owner and grant.catalogue == kept.event.catalogue and _opens(grant, owner, reader)
        ]
        return NETWORK_GROUPS.union(*granted) if granted else None


def _opens(grant: Grant, owner: Tenant, reader: Tenant) -> bool:
    return grant.holder in (reader.org, "*") and owner.livemode == reader.livemode


class MemoryNetworkLog:
    """In-memory NetworkLog."""

    def __init__(self, logs: MemoryLogs, rendering: EventRendering, clock: Clock) -> None:
        self._logs, self._clock = logs, clock
        self._reader = MemoryEventReader(logs, rendering)

    async def list_publishers(self, tenants: Collection[Tenant] | None = None) -> Mapping[Tenant, LogBounds]:
        found = [
            owner
            for owner, kept in self._logs.events.items()
            if any(one.event.is_published and one.owner is None for one in kept.values())
        ]
        return await self._reader.query_bounds([owner for owner in found if tenants is None or owner in tenants])

    async def load_checkpoints(self, livemode: bool) -> Mapping[Tenant, LogPosition]:
        return dict(self._logs.checkpoints[get_network_tenant(livemode)])

    async def confirm_bounds(self, owner: Tenant) -> LogBounds:
        return await self._reader.confirm_bounds(owner)

    async def read_published(self, owner: Tenant, after: LogPosition, limit: int) -> Sequence[LoggedEvent]:
        kept = self._logs.events[owner].values()
        return [render_event(one) for one in kept if one.event.is_published and one.position > after.position][:limit]

    async def append(self, log: Tenant, published: Sequence[PublishedEvents]) -> bool:
        checkpoints = self._logs.checkpoints[log]
        if any(
            checkpoints.get(one.owner) != (_undated(one.checkpoint_before) if one.checkpoint_before else None)
            for one in published
        ):
            return False
        for one in published:
            for event in one.events:
                source = self._logs.events[one.owner][event.position]
                self._logs.append(log, source.event, self._clock.now(), one.owner, source.at)
            checkpoints[one.owner] = _undated(one.checkpoint_after)
        self._logs.notify(log)
        return True


def _undated(position: LogPosition) -> LogPosition:
    """Return the position as it is stored."""
    return LogPosition(position.epoch, position.position)
