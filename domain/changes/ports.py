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
    """Bodies of events, joined by commas for a JSON array; all matching events up to `position` are included."""

    count: int
    position: LogPosition
    body: bytes
    caught_up: bool


@dataclass(frozen=True, slots=True)
class EventPermission:
    """The permission of an organisation to read field groups of one event in the network log (copies of the events of published catalogues).

    Attributes:
        position: The position of the event.
        owner: The organisation that published the event.
        holder: The organisation that may read the event; `*` for every organisation.
        groups: The field groups that it may read.
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
        """Start a new epoch of the log, unless one has begun since `after`, because delivered events were lost."""
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
        """Return the first `limit` matching events after `after`, oldest first.

        A complete page reaches `end`, a position that exists, or goes beyond it. The page ends early with the event whose body
        reaches `max_bytes` in total, or, if few events match, where a bounded search ended. Raises CursorExpired.

        From the network log, only events are returned for which the tenant has a licence. Their `groups` are the field groups
        that the tenant may read, but their bodies still have all fields (see `EventRendering.redact`).
        """
        ...

    async def read_recent(self, view: LogView, before: int, limit: int, wanted: EventFilter) -> RecentEvents:
        """Return the last `limit` matching events before position `before`, newest first.

        There may be fewer, and from the network log only licensed ones, as in `read_page`.
        """
        ...

    async def read_joined(
        self, tenant: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter
    ) -> JoinedEvents:
        """Return a page of the tenant's own log as joined bodies. Raises CursorExpired."""
        ...

    async def get_at(self, view: LogView, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        """Return the events at the positions, oldest first; deleted events and events that the view hides are omitted."""
        ...

    async def get_about_subject(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        """Return the newest `limit` events about a subject after the position `after`, from the tenant's own log."""
        ...

    async def get_about_products(
        self, tenant: Tenant, products: Collection[str], after: int, limit: int
    ) -> Sequence[LoggedEvent]:
        """Return the newest `limit` events about these products, their variants and offers, from the tenant's own log.

        All events after the position are scanned, so callers must choose a recent position.
        """
        ...

    async def count_by_type(self, tenant: Tenant, after: int, since: datetime) -> Mapping[str, int]:
        """Return the number of events of each type after the position and since the time, in the tenant's own log."""
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
