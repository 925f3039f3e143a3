"""The event logs, one for each organisation and mode: appended to in the transaction, read in the order of commits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.changes.model import EventBatch, EventFilter, FeedPosition, LogBounds, View
from domain.events.model import Event, LoggedEvent, LogPosition
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.tenancy import Tenant


@dataclass(frozen=True, slots=True)
class Splice:
    """Events joined by commas for a JSON array, complete up to `position`."""

    count: int
    position: LogPosition
    body: bytes
    caught_up: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """Field groups that `holder` (`*` for everybody) may read of `owner`'s event at `position` of the network log."""

    position: int
    owner: str
    holder: str
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class Recent:
    """Events, newest first, with all matching ones from `position` on."""

    events: Sequence[LoggedEvent]
    position: int


class EventReader(Protocol):
    """Read access to event logs for feed, stream, webhooks and the network relay.

    Reads raise CursorExpired for a position that the log does not hold, because it went back in time (a restore, a
    failover) or deleted the events by age.
    """

    async def bounds(self, logs: Collection[Tenant]) -> Mapping[Tenant, LogBounds]:
        """Return the bounds of these logs; unreachable logs are omitted. Raises Unavailable if all are."""
        ...

    async def confirmed(self, log: Tenant) -> LogBounds:
        """Return a log's bounds, read as its own tenant, which finds logs that have moved.

        Raises Unavailable. Callers must use this before they conclude that events were lost.
        """
        ...

    async def begin_epoch(self, log: Tenant, after: LogPosition) -> None:
        """Begin a new epoch, once, because the log of that epoch lost events that were delivered."""
        ...

    async def licensed(self, tenants: Collection[Tenant]) -> frozenset[Tenant]:
        """Return the tenants that may read any other catalogue."""
        ...

    async def grants(self, log: Tenant, after: int, up_to: int, tenants: Collection[Tenant]) -> Sequence[Grant]:
        """Return the grants of these tenants for events of a network log between the positions."""
        ...

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
        """Return the first `limit` events after `after`, oldest first, as stored in the log.

        `end` is a position known to exist: a complete page reaches it or goes beyond. Of the network log only licensed
        events are returned, with their field groups and whole bodies. The page ends early with the event whose body
        reaches `most_bytes` in all, and, where few events match, after a bounded search up to `position`. Raises
        CursorExpired.
        """
        ...

    async def recent(self, view: View, before: int, limit: int, wanted: EventFilter) -> Recent:
        """Return the last `limit` events below `before`, newest first; it ends early as `page` does."""
        ...

    async def splice(
        self, tenant: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter
    ) -> Splice:
        """Return the joined bodies of `page`, of the tenant's own log. Raises CursorExpired."""
        ...

    async def at(self, view: View, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        """Return the events at those positions, oldest first; deleted and hidden ones are omitted."""
        ...

    async def later(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        """Return the newest `limit` events of the tenant's own log about the subject after that position."""
        ...

    async def of_products(
        self, tenant: Tenant, products: Collection[str], after: int, limit: int
    ) -> Sequence[LoggedEvent]:
        """Return the newest `limit` events of the tenant's own log about these products, their variants and offers.

        All events after the position are scanned, so callers must bound it.
        """
        ...

    async def counts(self, tenant: Tenant, after: int, since: datetime) -> Mapping[str, int]:
        """Return the number of events of each type in the tenant's own log after the position and since the moment."""
        ...


@dataclass(frozen=True, slots=True)
class Published:
    """A publisher's events for the network log, in order.

    `was` is the checkpoint before them, None for the first; `reached` the one after.
    """

    owner: Tenant
    was: LogPosition | None
    reached: LogPosition
    events: Sequence[LoggedEvent]


class NetworkLog(Protocol):
    """The network logs, one for each mode, as the relay fills them."""

    async def publishers(self, among: Collection[Tenant] | None = None) -> Mapping[Tenant, LogBounds]:
        """Return the bounds of the publishers' logs, of all or those among these."""
        ...

    async def checkpoints(self, livemode: bool) -> Mapping[Tenant, LogPosition]:
        """Return the position up to which each publisher's events are in the mode's network log. Raises Unavailable."""
        ...

    async def confirmed(self, owner: Tenant) -> LogBounds:
        """See EventReader.confirmed."""
        ...

    async def published(self, owner: Tenant, after: LogPosition, limit: int) -> Sequence[LoggedEvent]:
        """Return the publisher's first `limit` published events after the position, oldest first."""
        ...

    async def append(self, log: Tenant, published: Sequence[Published]) -> bool:
        """Append to a network log and advance the checkpoints in one transaction; then notify.

        Changes nothing and returns False if a checkpoint differs from its `was`.
        """
        ...


class EventRendering(Protocol):
    """JSON of events as all readers receive it."""

    def event(self, event: Event, tenant: Tenant, time: datetime) -> bytes:
        """Return the envelope with its data (docs/conventions.md#envelope)."""
        ...

    def redacted(self, event: LoggedEvent, groups: frozenset[str]) -> bytes | None:
        """Return the envelope with these field groups only (docs/conventions.md#licences); None if nothing remains."""
        ...


class FeedCursors(Protocol):
    """Opaque cursors of the change feed, bound to organisation and mode."""

    def sign(self, tenant: Tenant, position: FeedPosition) -> str:
        """Return the cursor that continues after the position."""
        ...
