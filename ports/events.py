"""The event log: appended in the transaction, visible up to the high watermark (architecture §5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.changes.model import EventFilter, Licence, Reader
from domain.events.model import Event, LoggedEvent
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.tenancy import Tenant


@dataclass(frozen=True, slots=True)
class LogBounds:
    """How far the log goes: `last` is the highest position taken; up to `high_watermark` nothing can appear any more.

    `low_watermark` is the position up to which events have been dropped by age. What appears above the high watermark
    from now on carries no time before `since` (see `page`).
    """

    high_watermark: int
    last: int
    low_watermark: int
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Splice:
    """Events joined by commas, ready to stand in a JSON array; `position` is the last one's."""

    count: int
    position: int
    body: bytes

    @property
    def full(self) -> bool:
        """Whether its bytes ended it, so that there may be more."""
        return len(self.body) >= CHANGES_BYTES


class EventLog(Protocol):
    """In a tenant's transaction."""

    async def append(self, events: Sequence[Event]) -> None:
        """Append in this order; events without an id are given one. Subject rows must be locked before."""
        ...

    async def high_watermark(self) -> int:
        """The high watermark now: what is appended from here on stands above it."""
        ...


class EventReader(Protocol):
    """Across tenants: what feed, stream and webhooks read. Positions are those after `after`, up to `up_to`."""

    async def high_watermark(self) -> int:
        """The position below which no further event can appear; it never goes back."""
        ...

    async def bounds(self) -> LogBounds:
        """How far the log goes now."""
        ...

    async def licences(self, tenants: Sequence[Tenant]) -> Mapping[Tenant, Sequence[Licence]]:
        """What each of the tenants may read of others' catalogues; those without are left out."""
        ...

    async def tenants_with_new_events(
        self, positions: Mapping[Tenant, int], up_to: int, since: datetime | None
    ) -> frozenset[Tenant]:
        """Those of the tenants that have own events after their position, up to `up_to`; `since` as in `page`."""
        ...

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
        """The first `limit` events, oldest first. Others' events carry the groups to be shown, and their whole body.

        It ends early with the event whose body reaches `most_bytes` in all (`weight_of` tells): none beyond are fetched.
        `since` spares looking into older days: none of the events asked for may be older (LogBounds has it).
        """
        ...

    async def recent(
        self, reader: Reader, after: int, up_to: int, limit: int, wanted: EventFilter
    ) -> Sequence[LoggedEvent]:
        """The last `limit` events, newest first; it ends early as `page` does, at CHANGES_BYTES."""
        ...

    async def stride(self, reader: Reader, after: int, up_to: int, rows: int) -> int:
        """The furthest position, `up_to` at most, before which no source of the reader's events has more than `rows`."""
        ...

    async def splice(self, tenant: Tenant, after: int, up_to: int, limit: int, wanted: EventFilter) -> Splice:
        """The bodies of the tenant's own first `limit` events, joined; it ends early as `page` does, at CHANGES_BYTES."""
        ...

    async def at(self, reader: Reader, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        """The events at those positions, oldest first; what was dropped, or is hidden by now, is left out."""
        ...

    async def later(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        """The tenant's own newest `limit` events about the subject after that position, also above the high watermark."""
        ...


class EventRendering(Protocol):
    """JSON of events, the bytes that every reader gets."""

    def event(self, event: Event, tenant: Tenant, time: datetime) -> bytes:
        """The envelope with its data (docs/conventions.md#envelope)."""
        ...

    def redacted(self, event: LoggedEvent, groups: frozenset[str]) -> bytes | None:
        """The envelope with the field groups alone (docs/conventions.md#licences); None when nothing of the change may be shown."""
        ...


class FeedCursors(Protocol):
    """Opaque cursors of the change feed, bound to organisation and mode."""

    def sign(self, tenant: Tenant, position: int) -> str:
        """The cursor of everything after that position."""
        ...
