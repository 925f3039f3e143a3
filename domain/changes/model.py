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
"""Field groups of an offer's fields; other fields are in `base`."""
NETWORK_GROUPS = frozenset({"base", "retail"})
"""Field groups that everybody may read of a published catalogue."""


NETWORK = "network"
"""Pseudo-organisation whose logs hold the publishers' events for licence holders."""


def network_of(livemode: bool) -> Tenant:
    """Return the network log's tenant of a mode."""
    return Tenant(NETWORK, livemode)


@dataclass(frozen=True, slots=True)
class View:
    """A log as one tenant sees it: its own log completely, the network log as its licences permit."""

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
        """True if licences decide what is visible."""
        return self.log != self.tenant


BEGINNING = LogPosition()
OPEN_END = 1 << 62
"""A position beyond every log: reads to everything that is committed."""


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """A reader's position in its own log and in the network log."""

    own: LogPosition = BEGINNING
    network: LogPosition = BEGINNING

    @property
    def numbers(self) -> tuple[int, int, int]:
        """The numbers that change as a reader advances: own position, network epoch and position."""
        return self.own.position, self.network.epoch, self.network.position

    def behind(self, event: LoggedEvent) -> "FeedPosition":
        """Return the position after this event as well."""
        if event.of_network:
            return FeedPosition(self.own, self.network.behind(event))
        return FeedPosition(self.own.behind(event), self.network)


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Range of a log.

    `last` is the newest position (high watermark), dated `time`; events up to `low` were deleted. Positions follow the
    order of commits, so nothing can appear at or below `last` later. `began` is the lowest position at which the
    present epoch or one since began; what earlier epochs delivered beyond it may be lost.
    """

    epoch: int = 0
    last: int = 0
    time: datetime | None = None
    began: int = 0
    low: int = 0

    @property
    def end(self) -> LogPosition:
        """The position after the newest event."""
        return LogPosition(self.epoch, self.last, self.time)

    @property
    def start(self) -> LogPosition:
        """The position before the oldest event that is kept."""
        return LogPosition(self.epoch, self.low)

    def nearest(self, position: LogPosition) -> LogPosition:
        """Return the position to continue from after that one; events that the log lost and regained are repeated."""
        kept = self.last if position.epoch in (0, self.epoch) else min(self.began, self.last)
        return LogPosition(self.epoch, max(self.low, min(position.position, kept)))

    def named(self, position: LogPosition) -> LogPosition:
        """Return the position with this epoch if it has none."""
        return position if position.epoch else LogPosition(self.epoch, position.position, position.time)

    def holds(self, position: LogPosition) -> bool:
        """Return whether a reader can continue from the position without missing events."""
        if not self.low <= position.position <= self.last:
            return False
        if position.position == 0:
            return True
        if position.epoch != self.epoch and (position.epoch or self.began):
            return False
        return not position.differs(self.end)

    def beyond(self, position: LogPosition) -> bool:
        """Return whether a position of this epoch is beyond the end, so that the log must have lost events."""
        return position.epoch == self.epoch and position.position > self.last


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Filter of events; None means all. `everything` includes the types that only webhooks carry."""

    types: frozenset[str] | None = None
    catalogues: frozenset[str] | None = None
    everything: bool = False

    @property
    def narrow(self) -> bool:
        """True if the filter may exclude so much that a search takes long."""
        return self.types is not None or self.catalogues is not None

    def matches(self, event: LoggedEvent) -> bool:
        """Return whether the event passes the filter."""
        if not self.everything and event.type in OFF_THE_FEED:
            return False
        if self.types is not None and event.type not in self.types:
            return False
        return self.catalogues is None or event.catalogue in self.catalogues


ALL = EventFilter(everything=True)


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Matching events of one log up to `position`. `caught_up`: the requested end was reached."""

    events: Sequence[LoggedEvent]
    position: LogPosition
    caught_up: bool


@dataclass(frozen=True, slots=True)
class FeedBatch:
    """Matching events of all logs of a reader up to `position`."""

    events: Sequence[LoggedEvent]
    position: FeedPosition
    caught_up: bool


@dataclass(slots=True)
class ChangePage:
    """A page of the feed: the events' JSON, their number, and the position to continue from.

    `caught_up`: no events follow that position.
    """

    position: FeedPosition
    count: int = 0
    bodies: list[bytes] = field(default_factory=list)
    caught_up: bool = False

    def add(self, batch: FeedBatch) -> None:
        """Append a batch and advance the position."""
        self.bodies += [event.body for event in batch.events]
        self.count += len(batch.events)
        self.position, self.caught_up = batch.position, batch.caught_up

    @property
    def full(self) -> bool:
        """True if the page has reached its maximum size in bytes."""
        return sum([len(body) for body in self.bodies]) >= CHANGES_BYTES

    @property
    def body(self) -> bytes:
        """The events' JSON, separated by commas."""
        return b",".join(self.bodies)
