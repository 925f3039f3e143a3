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
    """Events joined by commas, ready to stand in a JSON array; `position` is up to where they are all there is."""

    count: int
    position: LogPosition
    body: bytes
    caught_up: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """What `holder` (`*` for everybody) may see of the network's event at `position`, which is `owner`'s."""

    position: int
    owner: str
    holder: str
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class Recent:
    """Events, newest first. Everything asked for from `position` on is among them."""

    events: Sequence[LoggedEvent]
    position: int


class EventReader(Protocol):
    """What feed, stream and webhooks read, and the relay that fills the network logs.

    Whoever reads on from a position that the log does not hold, because it went back in time (a restore, a failover) or
    has dropped what stood there by age, is told so by CursorExpired.
    """

    async def bounds(self, logs: Collection[Tenant]) -> Mapping[Tenant, LogBounds]:
        """Return how far these logs go now; those that cannot be asked now are left out. Raises Unavailable if that is all."""
        ...

    async def confirmed(self, log: Tenant) -> LogBounds:
        """Return how far one log goes, asked as its own tenant: of a log that has moved, where it is by now. Raises Unavailable.

        Whoever concludes from bounds that something was lost must have asked so.
        """
        ...

    async def begin_epoch(self, log: Tenant, after: LogPosition) -> None:
        """Start a new epoch of a log that has lost the position, once."""
        ...

    async def licensed(self, tenants: Collection[Tenant]) -> frozenset[Tenant]:
        """Those of the tenants that may see anything of others' catalogues."""
        ...

    async def grants(self, log: Tenant, after: int, up_to: int, tenants: Collection[Tenant]) -> Sequence[Grant]:
        """Return what licences show these tenants of the events of a network's log between the positions."""
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
        """Return the first `limit` events after `after`, oldest first.

        `end` is a position that is known to be there: a page that has found everything comes to it, or beyond.

        Of the network log those that licences cover, with the groups to be shown and their whole body. It ends early with
        the event whose body reaches `most_bytes` in all, and where few are asked for after a bounded look: `position`
        tells up to where nothing else is to be had. Raises CursorExpired.
        """
        ...

    async def recent(self, view: View, before: int, limit: int, wanted: EventFilter) -> Recent:
        """Return the last `limit` events before a position, newest first; it may end early like `page`."""
        ...

    async def splice(
        self, tenant: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter
    ) -> Splice:
        """Return the joined bodies of a `page` of the tenant's own log. Raises CursorExpired."""
        ...

    async def at(self, view: View, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        """Return the events at the positions, oldest first, except deleted and hidden ones."""
        ...

    async def later(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        """Return the tenant's newest `limit` events about the subject after a position."""
        ...

    async def of_products(
        self, tenant: Tenant, products: Collection[str], after: int, limit: int
    ) -> Sequence[LoggedEvent]:
        """Return the tenant's newest `limit` events about the products, their variants and offers, after a position.

        Everything behind the position is looked at, so whoever asks bounds it.
        """
        ...

    async def counts(self, tenant: Tenant, after: int, since: datetime) -> Mapping[str, int]:
        """Return how many of the tenant's own events behind the position, told since the moment, there are of each type."""
        ...


@dataclass(frozen=True, slots=True)
class Published:
    """Some of a publisher's events, in its order, for the network's log: those between two positions of its own.

    `was` is the checkpoint that they follow, None for the first; `reached` the one that they lead to.
    """

    owner: Tenant
    was: LogPosition | None
    reached: LogPosition
    events: Sequence[LoggedEvent]


class NetworkLog(Protocol):
    """The network's logs, one for each mode, as the relay fills them."""

    async def publishers(self, among: Collection[Tenant] | None = None) -> Mapping[Tenant, LogBounds]:
        """Return the bounds of all or some of the logs with published events."""
        ...

    async def checkpoints(self, livemode: bool) -> Mapping[Tenant, LogPosition]:
        """Up to where each publisher's events stand in the network's log of the mode. Raises Unavailable."""
        ...

    async def confirmed(self, owner: Tenant) -> LogBounds:
        """EventReader.confirmed."""
        ...

    async def published(self, owner: Tenant, after: LogPosition, limit: int) -> Sequence[LoggedEvent]:
        """Return the publisher's first `limit` published events after a position, oldest first."""
        ...

    async def append(self, log: Tenant, published: Sequence[Published]) -> bool:
        """Append to a network's log, and move the checkpoints, in one transaction; then notify.

        Nothing is done, and False answered, when any of the checkpoints is not where it `was`: somebody else was faster.
        """
        ...


class EventRendering(Protocol):
    """JSON of events, the bytes that every reader gets."""

    def event(self, event: Event, tenant: Tenant, time: datetime) -> bytes:
        """Return the encoded envelope with its data (docs/conventions.md#envelope)."""
        ...

    def redacted(self, event: LoggedEvent, groups: frozenset[str]) -> bytes | None:
        """Return the envelope limited to the field groups (docs/conventions.md#licences), or None if no change is visible."""
        ...


class FeedCursors(Protocol):
    """Opaque cursors of the change feed, bound to organisation and mode."""

    def sign(self, tenant: Tenant, position: FeedPosition) -> str:
        """Return the cursor for the position."""
        ...
