"""The event logs, one for each organisation and mode. Transactions append to them; they are read in the order of commits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.changes.model import EventBatch, EventFilter, FeedPosition, LogBounds, LogView
from domain.events.model import Event, LoggedEvent, LogPosition
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.tenancy import Tenant


@dataclass(frozen=True, slots=True)
class JoinedEvents:
    """Bodies of all matching events up to `position`, joined by commas for a JSON array.

    `caught_up`: the requested end was reached.
    """

    count: int
    position: LogPosition
    body: bytes
    caught_up: bool


@dataclass(frozen=True, slots=True)
class EventPermission:
    """Permission of an organisation to read field groups of one event in the network log (copies of the events of published catalogues).

    Attributes:
        position: The position of the event.
        owner: The organisation that published the event.
        holder: The organisation that may read the event; `*` for every organisation.
        groups: The field groups that the holder may read.
    """

    position: int
    owner: str
    holder: str
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class RecentEvents:
    """Events, newest first; all matching events from `position` on are included."""

    events: Sequence[LoggedEvent]
    position: int


class EventReader(Protocol):
    """Read access to event logs, for the change feed, streams, webhooks and the network relay.

    Methods raise CursorExpired for a position that the log no longer has, because it was restored to an earlier state (a
    restore, a failover) or the events were deleted by age.
    """

    async def query_bounds(self, logs: Collection[Tenant]) -> Mapping[Tenant, LogBounds]:
        """Return the bounds of these logs; unreachable logs are omitted. Raises Unavailable if all are unreachable."""
        ...

    async def confirm_bounds(self, log: Tenant) -> LogBounds:
        """Return the bounds of a log from the node that stores the log now, even if the log has recently moved.

        The result of `query_bounds` may be from the log's previous node. Callers must therefore call this method before they
        conclude that events were lost. Raises Unavailable.
        """
        ...

    async def begin_epoch(self, log: Tenant, after: LogPosition) -> None:
        """Start a new epoch of the log if the log ends before `after`, because delivered events were then lost.

        If the epoch of `after` is not the log's current one, nothing changes.
        """
        ...

    async def filter_licensed(self, tenants: Collection[Tenant]) -> frozenset[Tenant]:
        """Return the subset of the tenants that may read a catalogue of another organisation."""
        ...

    async def list_permissions(
        self, log: Tenant, after: int, up_to: int, tenants: Collection[Tenant]
    ) -> Sequence[EventPermission]:
        """Return these tenants' permissions for the events of a network log after position `after`, up to `up_to`."""
        ...

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
        """Return a page of at most `limit` matching events after `after`, oldest first. Raises CursorExpired.

        The page ends early with the event with which the bodies reach `max_bytes`. If few events match, the page ends
        where the bounded search stopped. A page without these limits ends at `end`, or with newer events beyond `end`;
        `caught_up` is then True. `end` is a position that the log has reached, or has the number OPEN_END.

        From the network log, only events are returned for which the tenant has a licence. Their `groups` are the field groups
        that the tenant may read, but their bodies still have all fields (see `EventRendering.redact`).
        """
        ...

    async def read_recent(self, view: LogView, before: int, limit: int, wanted: EventFilter) -> RecentEvents:
        """Return at most `limit` of the newest matching events before position `before`, newest first.

        There are fewer events if their bodies reach CHANGES_BYTES, or if few match and the bounded search stops first.
        From the network log, only licensed events are returned, as in `read_page`.
        """
        ...

    async def read_joined(
        self, tenant: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter
    ) -> JoinedEvents:
        """Return a page of the tenant's own log with the events' JSON joined to one text, limited as in `read_page`.

        Raises CursorExpired.
        """
        ...

    async def get_at(self, view: LogView, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        """Return the events at the positions, oldest first; deleted events and events that the view hides are omitted."""
        ...

    async def get_about_subject(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        """Return the newest `limit` events about a subject after `after` in the tenant's own log, newest first."""
        ...

    async def get_about_products(
        self, tenant: Tenant, products: Collection[str], after: int, limit: int
    ) -> Sequence[LoggedEvent]:
        """Return the newest `limit` events about these products, their variants and offers, newest first.

        All events after position `after` in the tenant's own log are scanned, so callers must choose a recent position.
        """
        ...

    async def count_price_changes(self, tenant: Tenant, after: int, since: datetime) -> Mapping[str, int]:
        """Return the number of changes of offers' prices by source, after the position and since the time, in the tenant's own log."""
        ...


@dataclass(frozen=True, slots=True)
class PublishedEvents:
    """Events of one publisher (organisation with a published catalogue) to append to the network log, in order.

    `checkpoint_before` is the stored checkpoint, None for the first events; `checkpoint_after` replaces it.
    """

    owner: Tenant
    checkpoint_before: LogPosition | None
    checkpoint_after: LogPosition
    events: Sequence[LoggedEvent]


class NetworkLog(Protocol):
    """Storage of the network logs: one log for each mode, with copies of the events of all published catalogues."""

    async def list_publishers(self, tenants: Collection[Tenant] | None = None) -> Mapping[Tenant, LogBounds]:
        """Return the bounds of the publishers' logs: of all publishers, or only of the publishers in `tenants`."""
        ...

    async def load_checkpoints(self, livemode: bool) -> Mapping[Tenant, LogPosition]:
        """Return the position in each publisher's log up to which events are in the network log. Raises Unavailable."""
        ...

    async def confirm_bounds(self, owner: Tenant) -> LogBounds:
        """Return the bounds of a publisher's log from the node that stores the log now (see `EventReader.confirm_bounds`)."""
        ...

    async def read_published(self, owner: Tenant, after: LogPosition, limit: int) -> Sequence[LoggedEvent]:
        """Return the first `limit` published events after the position in the publisher's log, oldest first."""
        ...

    async def append(self, log: Tenant, published: Sequence[PublishedEvents]) -> bool:
        """Append events to a network log and advance the checkpoints in one transaction, then notify the log's readers.

        Returns False, and changes nothing, if a stored checkpoint differs from `checkpoint_before`.
        """
        ...


class EventRendering(Protocol):
    """Rendering of events as JSON, the same for all readers."""

    def encode_event(self, event: Event, tenant: Tenant, time: datetime) -> bytes:
        """Return the event as JSON: the envelope with the data (docs/conventions.md#envelope)."""
        ...

    def redact(self, event: LoggedEvent, groups: frozenset[str]) -> bytes | None:
        """Return the event as JSON with only these field groups (docs/conventions.md#licences); None if no field remains."""
        ...


class FeedCursors(Protocol):
    """Opaque cursors of the change feed, valid only for one organisation and mode."""

    def sign(self, tenant: Tenant, position: FeedPosition) -> str:
        """Return the cursor that continues after the position."""
        ...
