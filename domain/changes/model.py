"""Positions, bounds and batches of event logs, and the views of their readers (docs/conventions.md#licences)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from domain.events.model import OFF_THE_FEED, LoggedEvent, LogPosition
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.tenancy import Tenant

NETWORK = "network"
"""Pseudo-organisation of the network logs, which have copies of the events that all published catalogues create."""


def get_network_tenant(livemode: bool) -> Tenant:
    """Return the pseudo-tenant whose log is the network log of the mode."""
    return Tenant(NETWORK, livemode)


@dataclass(frozen=True, slots=True)
class LogView:
    """Event log that one tenant may read: the tenant's own log completely, or the network log according to licences.

    `tenant` is the reader; `log` is the tenant, or the pseudo-tenant of the network log, whose events are read.
    """

    tenant: Tenant
    log: Tenant

    @classmethod
    def own(cls, tenant: Tenant) -> "LogView":
        """Return the view in which a tenant reads the tenant's own log."""
        return cls(tenant, tenant)

    @classmethod
    def network(cls, tenant: Tenant) -> "LogView":
        """Return a tenant's view of the network log of its mode."""
        return cls(tenant, get_network_tenant(tenant.livemode))

    @property
    def is_network(self) -> bool:
        """True if this is the network log, so that licences decide what is visible."""
        return self.log != self.tenant


BEGINNING = LogPosition()
OPEN_END = 1 << 62
"""A position beyond the end of every log; reading up to it returns everything that is committed."""


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """Reading positions of a tenant in the tenant's own log and in the network log."""

    own: LogPosition = BEGINNING
    network: LogPosition = BEGINNING

    @property
    def increasing_numbers(self) -> tuple[int, int, int]:
        """The position in the tenant's log, and epoch and position in the network log; all increase while reading."""
        return self.own.position, self.network.epoch, self.network.position

    def after(self, event: LoggedEvent) -> "FeedPosition":
        """Return the positions after reading this event of either log."""
        if event.is_from_network:
            return FeedPosition(self.own, self.network.after(event))
        return FeedPosition(self.own.after(event), self.network)


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Bounds of a log.

    Positions follow the order of commits, so no event can appear at or below `last` later. Each time a log is restored to an
    earlier state, a new epoch begins.

    Attributes:
        epoch: The current epoch.
        last: The position of the newest event (high watermark).
        time: The time of the newest event.
        epoch_start: The lowest position from which the log continued after a restore; 0 if there was no restore. Events
            at higher positions that readers received in earlier epochs may be lost.
        low: The position up to which events were deleted by age (low watermark).
    """

    epoch: int = 0
    last: int = 0
    time: datetime | None = None
    epoch_start: int = 0
    low: int = 0

    @property
    def end(self) -> LogPosition:
        """The position after the newest event."""
        return LogPosition(self.epoch, self.last, self.time)

    @property
    def start(self) -> LogPosition:
        """The position before the oldest event in the log."""
        return LogPosition(self.epoch, self.low)

    def find_resume_position(self, position: LogPosition) -> LogPosition:
        """Return the position of the current epoch from which a reader at a position continues.

        A position beyond the end is moved back to the end. A position of an earlier epoch is moved back to
        `epoch_start` if it is higher, so events may be repeated. A position below `low` is moved forward to `low`.
        """
        kept = self.last if position.epoch in (0, self.epoch) else min(self.epoch_start, self.last)
        return LogPosition(self.epoch, max(self.low, min(position.position, kept)))

    def with_epoch(self, position: LogPosition) -> LogPosition:
        """Return the position, with the current epoch if the position has none."""
        return position if position.epoch else LogPosition(self.epoch, position.position, position.time)

    def can_continue_after(self, position: LogPosition) -> bool:
        """Return whether a reader can continue after the position without missing events."""
        if not self.low <= position.position <= self.last:
            return False
        if position.position == 0:
            return True
        if position.epoch != self.epoch and (position.epoch or self.epoch_start):
            return False
        return not position.contradicts(self.end)

    def is_beyond_end(self, position: LogPosition) -> bool:
        """Return whether a position of this epoch is beyond the end; if so, the log has lost events."""
        return position.epoch == self.epoch and position.position > self.last


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Filter of events by types and catalogues; None means all.

    `includes_webhook_types`: whether types that the change feed does not contain can match as well.
    """

    types: frozenset[str] | None = None
    catalogues: frozenset[str] | None = None
    includes_webhook_types: bool = False

    @property
    def is_selective(self) -> bool:
        """True if the filter may exclude so many events that a search takes long."""
        return self.types is not None or self.catalogues is not None

    def matches(self, event: LoggedEvent) -> bool:
        """Return whether the event passes the filter."""
        if not self.includes_webhook_types and event.type in OFF_THE_FEED:
            return False
        if self.types is not None and event.type not in self.types:
            return False
        return self.catalogues is None or event.catalogue in self.catalogues


ALL = EventFilter(includes_webhook_types=True)


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Matching events of one log up to `position`. `caught_up`: the requested end was reached."""

    events: Sequence[LoggedEvent]
    position: LogPosition
    caught_up: bool


@dataclass(frozen=True, slots=True)
class FeedBatch:
    """Matching events of a tenant's own log and of the network log, up to `position`.

    `caught_up`: the ends of both logs were reached.
    """

    events: Sequence[LoggedEvent]
    position: FeedPosition
    caught_up: bool


@dataclass(slots=True)
class ChangePage:
    """Page of the change feed: the events as JSON, their number, and the position after them.

    `caught_up`: no events follow.
    """

    position: FeedPosition
    count: int = 0
    bodies: list[bytes] = field(default_factory=list)
    caught_up: bool = False

    def add_batch(self, batch: FeedBatch) -> None:
        """Append a batch and advance the position."""
        self.bodies += [event.body for event in batch.events]
        self.count += len(batch.events)
        self.position, self.caught_up = batch.position, batch.caught_up

    @property
    def is_full(self) -> bool:
        """True if the page has reached its maximum size in bytes."""
        return sum([len(body) for body in self.bodies]) >= CHANGES_BYTES

    @property
    def body(self) -> bytes:
        """The events as JSON, separated by commas."""
        return b",".join(self.bodies)
