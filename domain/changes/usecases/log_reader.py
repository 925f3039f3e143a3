"""Reading of event logs according to the reader's licences, and a cache of the logs' bounds."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from domain.catalogue.licences import NETWORK_GROUPS
from domain.changes.model import ALL, OPEN_END, EventBatch, EventFilter, LogBounds, LogView
from domain.changes.ports import EventPermission, EventReader, EventRendering, RecentEvents
from domain.events.model import LoggedEvent, LogPosition, sum_body_bytes
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant

MAX_BOUNDS_AGE = 5.0
"""Maximum age in seconds of bounds that need not be fresh."""
MAX_CACHED_LOGS = 20_000
"""Maximum number of logs whose bounds are cached."""


class LogBoundsCache:
    """Cache of the bounds of logs, one per process."""

    def __init__(self, events: EventReader) -> None:
        self._events = events
        self._known: dict[Tenant, tuple[LogBounds, float]] = {}
        self._waiting: dict[Tenant, asyncio.Future[LogBounds]] = {}
        self._querying: asyncio.Task[None] | None = None

    def get_cached(self, log: Tenant) -> LogBounds | None:
        """Return the bounds found by the last query, or None if the log was not queried."""
        found = self._known.get(log)
        return found[0] if found else None

    def get_query_time(self, log: Tenant) -> float:
        """Return when the log was last queried, in seconds of the event loop's clock.

        All commits before that time are within the cached bounds.
        """
        found = self._known.get(log)
        return found[1] if found else float("-inf")

    async def query_fresh(self, log: Tenant) -> LogBounds:
        """Return bounds queried after this call started; concurrent callers share one query. Raises Unavailable."""
        waiting = self._waiting.get(log)
        if waiting is None:
            waiting = self._waiting[log] = asyncio.get_running_loop().create_future()
        if self._querying is None:
            self._querying = asyncio.create_task(self._query_waiting())
        return await asyncio.shield(waiting)

    async def get_recent(self, log: Tenant) -> LogBounds | None:
        """Return bounds at most MAX_BOUNDS_AGE seconds old; older ones, or None, if the log is unreachable."""
        if asyncio.get_running_loop().time() - self.get_query_time(log) >= MAX_BOUNDS_AGE:
            with contextlib.suppress(Unavailable):
                return await self.query_fresh(log)
        return self.get_cached(log)

    async def _query_waiting(self) -> None:
        """Query the bounds for all waiting callers.

        Callers that arrive during a query get another one, because the result of this query may be too old for them.
        """
        try:
            while self._waiting:
                pending, self._waiting = self._waiting, {}
                try:
                    found = await self.query(pending)
                except Exception as error:
                    _reject(pending.values(), error)
                else:
                    for log, future in pending.items():
                        if log not in found:
                            _reject(
                                (future,), Unavailable("The event log is unavailable. Try again later.", retry_after=2)
                            )
                        elif not future.done():
                            future.set_result(found[log])
        finally:
            self._querying = None

    async def query_confirmed(self, log: Tenant) -> LogBounds:
        """Return the bounds of a log from the node that stores the log now, and cache them.

        Callers must call this before they conclude that events were lost (see `EventReader.confirm_bounds`). Raises
        Unavailable.
        """
        began = asyncio.get_running_loop().time()
        bounds = await self._events.confirm_bounds(log)
        self._store(log, bounds, began)
        return bounds

    async def query(self, logs: Collection[Tenant]) -> Mapping[Tenant, LogBounds]:
        """Query the bounds of these logs and cache them.

        Unreachable logs are omitted from the result. Raises Unavailable if all are unreachable.
        """
        began = asyncio.get_running_loop().time()
        found = await self._events.query_bounds(logs)
        for log, bounds in found.items():
            self._store(log, bounds, began)
        return found

    def _store(self, log: Tenant, bounds: LogBounds, began: float) -> None:
        self._known.pop(log, None)
        self._known[log] = bounds, began
        while len(self._known) > MAX_CACHED_LOGS:
            del self._known[next(iter(self._known))]


def _reject(futures: Collection["asyncio.Future[LogBounds]"], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
            future.exception()  # the waiting caller may have been cancelled


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reader of event logs that returns only what the reading tenant's licences permit."""

    events: EventReader
    rendering: EventRendering

    async def filter_licensed(self, tenants: Collection[Tenant]) -> frozenset[Tenant]:
        """Return the subset of the tenants that may now read a catalogue of another organisation."""
        return await self.events.filter_licensed(tenants)

    async def read_batch(
        self,
        view: LogView,
        after: LogPosition,
        end: LogPosition,
        limit: int,
        wanted: EventFilter = ALL,
        max_bytes: int = CHANGES_BYTES,
    ) -> EventBatch:
        """Return at most `limit` matching events after `after` that the tenant may read. Raises CursorExpired.

        The batch ends where a page of `EventReader.read_page` ends.
        """
        if after.position >= end.position:
            return EventBatch((), after, caught_up=True)
        batch = await self.events.read_page(view, after, end, limit, wanted, max_bytes=max_bytes)
        return replace(batch, events=self._redact_all(batch.events)) if view.is_network else batch

    async def read_for_tenants(
        self, log: Tenant, after: LogPosition, limit: int, max_bytes: int, tenants: Collection[Tenant]
    ) -> tuple[EventBatch, Mapping[Tenant, Sequence[LoggedEvent]]]:
        """Read new events of a network log (events of published catalogues) once for several tenants.

        Returns:
            The batch of events, and the events that each tenant may read, without the fields that the tenant may not read.

        Raises:
            CursorExpired: The log no longer has the events after the position.
        """
        end = LogPosition(after.epoch, OPEN_END)
        batch = await self.events.read_page(LogView.own(log), after, end, limit, ALL, max_bytes=max_bytes)
        if not batch.events:
            return batch, {}
        permissions = await self.events.list_permissions(log, after.position, batch.position.position, tenants)
        permissions_by_holder: dict[str, list[EventPermission]] = {}
        for permission in permissions:
            permissions_by_holder.setdefault(permission.holder, []).append(permission)
        redacted_cache: dict[tuple[int, frozenset[str]], LoggedEvent | None] = {}
        return batch, {
            tenant: self._select_permitted(batch, tenant, permissions_by_holder, redacted_cache) for tenant in tenants
        }

    def _select_permitted(
        self,
        batch: EventBatch,
        tenant: Tenant,
        permissions_by_holder: Mapping[str, Sequence[EventPermission]],
        redacted_cache: dict[tuple[int, frozenset[str]], LoggedEvent | None],
    ) -> Sequence[LoggedEvent]:
        """Return the events that a tenant may read, without the fields that the tenant may not read.

        Args:
            batch: The events of the network log.
            tenant: The reader.
            permissions_by_holder: The permissions for these events by the organisation that has them; `*` is every
                organisation.
            redacted_cache: Redacted events by position and field groups, None if no field remains; shared by all
                tenants.
        """
        groups: dict[int, frozenset[str]] = {}
        for permission in (*permissions_by_holder.get("*", ()), *permissions_by_holder.get(tenant.org, ())):
            if permission.owner != tenant.org:
                groups[permission.position] = groups.get(permission.position, NETWORK_GROUPS) | permission.groups
        shown = []
        for event in batch.events if groups else ():
            if (seen := groups.get(event.position)) is not None:
                key = event.position, seen
                if key not in redacted_cache:
                    redacted_cache[key] = self._redact(replace(event, groups=seen))
                if (redacted := redacted_cache[key]) is not None:
                    shown.append(redacted)
        return shown

    async def read_backwards(
        self, view: LogView, before: int, low_watermark: int, limit: int, wanted: EventFilter
    ) -> RecentEvents:
        """Return at most `limit` of the newest matching events before position `before`, newest first.

        The search stops at `low_watermark`, the position up to which events were deleted. The search stops earlier if
        the events reach CHANGES_BYTES or if a bounded query finds no event.
        """
        if before - 1 <= low_watermark or limit <= 0:
            return RecentEvents((), before)
        found = await self.events.read_recent(view, before, limit, wanted)
        shown = self._redact_all(found.events)
        while (
            len(shown) < limit
            and found.events
            and found.position - 1 > low_watermark
            and sum_body_bytes(shown) < CHANGES_BYTES
        ):
            found = await self.events.read_recent(view, found.position, limit - len(shown), wanted)
            shown += self._redact_all(found.events)
        return RecentEvents(shown, found.position)

    async def get_at(self, view: LogView, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        """Return the events at the positions, oldest first; deleted events and events without a licence are omitted."""
        return self._redact_all(await self.events.get_at(view, positions))

    def _redact_all(self, events: Sequence[LoggedEvent]) -> list[LoggedEvent]:
        """Return the events with only the field groups that the tenant may read; events without such fields are omitted."""
        if all(event.groups is None for event in events):
            return list(events)
        return [shown for event in events if (shown := self._redact(event)) is not None]

    def _redact(self, event: LoggedEvent) -> LoggedEvent | None:
        if event.groups is None:
            return event
        body = self.rendering.redact(event, event.groups)
        return None if body is None else replace(event, body=body)
