"""Positions, bounds and batches of event logs, and the views of their readers (docs/conventions.md#licences)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from domain.events.model import OFF_THE_FEED, LoggedEvent, LogPosition
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.tenancy import Tenant

GROUP_OF = {
    "quantity": "stock",
    "incoming": "stock",
    "lead_time_days": "stock",
    "msrp": "retail",
    "map": "retail",
    "price": "retail",
    "compare_at": "retail",
    "cost": "trade",
}
"""An offer's fields by group; all others are `base`."""
NETWORK_GROUPS = frozenset({"base", "retail"})
"""What a published catalogue grants to everybody."""


NETWORK = "network"
"""The organisation, in name alone, whose logs hold what publishers' catalogues tell the holders of licences."""


def network_of(livemode: bool) -> Tenant:
    """Return the tenant that owns the network log of a mode."""
    return Tenant(NETWORK, livemode)


@dataclass(frozen=True, slots=True)
class View:
    """A log as one tenant sees it: its own whole, the network's as its licences show it."""

    tenant: Tenant
    log: Tenant

    @classmethod
    def own(cls, tenant: Tenant) -> "View":
        """Return a tenant's view of its own log."""
        return cls(tenant, tenant)

    @classmethod
    def network(cls, tenant: Tenant) -> "View":
        """Return a tenant's view of the network log of its mode."""
        return cls(tenant, network_of(tenant.livemode))

    @property
    def of_network(self) -> bool:
        """Return whether licences decide what is seen."""
        return self.log != self.tenant


BEGINNING = LogPosition()
OPEN_END = 1 << 62
"""No log goes so far: everything that is committed when it is read."""


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """How far a reader has come: in its own log, and in the network's."""

    own: LogPosition = BEGINNING
    network: LogPosition = BEGINNING

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Return what of it changes as a reader goes on: position, and the network's epoch and position."""
        return self.own.position, self.network.epoch, self.network.position

    def behind(self, event: LoggedEvent) -> "FeedPosition":
        """With that event read, too."""
        if event.of_network:
            return FeedPosition(self.own, self.network.behind(event))
        return FeedPosition(self.own.behind(event), self.network)


@dataclass(frozen=True, slots=True)
class LogBounds:
    """How far a log goes: its newest event is at `last`, the high watermark, dated `time`; none up to `low` is kept.

    Positions stand in the order of commits: nothing can appear at or below `last` any more. The present epoch began
    behind the position `began`, or one before did, if that is lower: what was told of earlier epochs beyond it may be lost.
    """

    epoch: int = 0
    last: int = 0
    time: datetime | None = None
    began: int = 0
    low: int = 0

    @property
    def end(self) -> LogPosition:
        """Behind the newest event."""
        return LogPosition(self.epoch, self.last, self.time)

    @property
    def start(self) -> LogPosition:
        """Before the oldest event that is kept."""
        return LogPosition(self.epoch, self.low)

    def nearest(self, position: LogPosition) -> LogPosition:
        """Return where one goes on who was at that position, and may hear again of what the log has lost and learnt anew."""
        kept = self.last if position.epoch in (0, self.epoch) else min(self.began, self.last)
        return LogPosition(self.epoch, max(self.low, min(position.position, kept)))

    def named(self, position: LogPosition) -> LogPosition:
        """Return the position with this epoch if it has none, as before the first epoch."""
        return position if position.epoch else LogPosition(self.epoch, position.position, position.time)

    def holds(self, position: LogPosition) -> bool:
        """Return whether one can go on from there without missing anything."""
        if not self.low <= position.position <= self.last:
            return False
        if position.position == 0:
            return True
        if position.epoch != self.epoch and (position.epoch or self.began):
            return False
        return not position.differs(self.end)

    def beyond(self, position: LogPosition) -> bool:
        """Return whether a position of this very epoch lies beyond the end, so that the log must have lost something."""
        return position.epoch == self.epoch and position.position > self.last


@dataclass(frozen=True, slots=True)
class EventFilter:
    """What a reader asks for; None means everything. `everything` adds the types that only webhooks carry."""

    types: frozenset[str] | None = None
    catalogues: frozenset[str] | None = None
    everything: bool = False

    @property
    def narrow(self) -> bool:
        """Return whether it may leave out so much that finding anything takes a long look."""
        return self.types is not None or self.catalogues is not None

    def matches(self, event: LoggedEvent) -> bool:
        """Return whether the event is asked for."""
        if not self.everything and event.type in OFF_THE_FEED:
            return False
        if self.types is not None and event.type not in self.types:
            return False
        return self.catalogues is None or event.catalogue in self.catalogues


ALL = EventFilter(everything=True)


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Every event asked for up to `position`, of one log. `caught_up`: the end that was asked for is reached."""

    events: Sequence[LoggedEvent]
    position: LogPosition
    caught_up: bool


@dataclass(frozen=True, slots=True)
class FeedBatch:
    """The same of everything that a reader sees."""

    events: Sequence[LoggedEvent]
    position: FeedPosition
    caught_up: bool


@dataclass(slots=True)
class ChangePage:
    """A page of the feed: the events' JSON, how many they are, and the position from which to go on.

    `caught_up`: at that position nothing more was to be had.
    """

    position: FeedPosition
    count: int = 0
    bodies: list[bytes] = field(default_factory=list)
    caught_up: bool = False

    def add(self, batch: FeedBatch) -> None:
        """Go on with these."""
        self.bodies += [event.body for event in batch.events]
        self.count += len(batch.events)
        self.position, self.caught_up = batch.position, batch.caught_up

    @property
    def full(self) -> bool:
        """Return whether it has come to as many bytes as a page may have."""
        return sum([len(body) for body in self.bodies]) >= CHANGES_BYTES

    @property
    def body(self) -> bytes:
        """The events, separated by commas."""
        return b",".join(self.bodies)
