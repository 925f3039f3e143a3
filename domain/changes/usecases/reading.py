"""Bounded reads of event logs with the reader's licences, and the logs' bounds."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from domain.changes.model import ALL, NETWORK_GROUPS, OPEN_END, EventBatch, EventFilter, LogBounds, View
from domain.changes.ports import EventReader, EventRendering, Grant, Recent
from domain.events.model import LoggedEvent, LogPosition, weight_of
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant

LATELY = 5.0
"""Maximum age in seconds of bounds that need not be fresh."""
MOST_KNOWN = 20_000
"""Maximum number of logs whose bounds are cached."""


class HighWatermarks:
    """The process's cache of logs' bounds. Concurrent callers share one query."""

    def __init__(self, events: EventReader) -> None:
        self._events = events
        self._known: dict[Tenant, tuple[LogBounds, float]] = {}
        self._waiting: dict[Tenant, asyncio.Future[LogBounds]] = {}
        self._querying: asyncio.Task[None] | None = None

    def known(self, log: Tenant) -> LogBounds | None:
        """Return the bounds found by the last query, or None."""
        found = self._known.get(log)
        return found[0] if found else None

    def looked(self, log: Tenant) -> float:
        """Return when the log was last queried, by the loop's clock; commits before then are within its bounds."""
        found = self._known.get(log)
        return found[1] if found else float("-inf")

    async def fresh(self, log: Tenant) -> LogBounds:
        """Return bounds no older than this call; concurrent callers share one query. Raises Unavailable."""
        waiting = self._waiting.get(log)
        if waiting is None:
            waiting = self._waiting[log] = asyncio.get_running_loop().create_future()
        if self._querying is None:
            self._querying = asyncio.create_task(self._query())
        return await asyncio.shield(waiting)

    async def lately(self, log: Tenant) -> LogBounds | None:
        """Return bounds at most LATELY seconds old; older ones, or None, if the log is unreachable."""
        if asyncio.get_running_loop().time() - self.looked(log) >= LATELY:
            with contextlib.suppress(Unavailable):
                return await self.fresh(log)
        return self.known(log)

    async def _query(self) -> None:
        """Query for all waiting callers.

        Callers that arrive meanwhile get another query, because a pending result may be too old for them.
        """
        try:
            while self._waiting:
                pending, self._waiting = self._waiting, {}
                try:
                    found = await self.look(pending)
                except Exception as error:
                    _fail(pending.values(), error)
                else:
                    for log, future in pending.items():
                        if log not in found:
                            _fail((future,), Unavailable("The event log cannot be reached.", retry_after=2))
                        elif not future.done():
                            future.set_result(found[log])
        finally:
            self._querying = None

    async def confirmed(self, log: Tenant) -> LogBounds:
        """Return the bounds that the log itself has, wherever it is; required before events are declared lost.

        Raises Unavailable.
        """
        began = asyncio.get_running_loop().time()
        bounds = await self._events.confirmed(log)
        self._remember(log, bounds, began)
        return bounds

    async def look(self, logs: Collection[Tenant]) -> Mapping[Tenant, LogBounds]:
        """Query the bounds of these logs; unreachable ones are omitted. Raises Unavailable if all are."""
        began = asyncio.get_running_loop().time()
        found = await self._events.bounds(logs)
        for log, bounds in found.items():
            self._remember(log, bounds, began)
        return found

    def _remember(self, log: Tenant, bounds: LogBounds, began: float) -> None:
        self._known.pop(log, None)
        self._known[log] = bounds, began
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]


def _fail(futures: Collection["asyncio.Future[LogBounds]"], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
            future.exception()  # the waiting caller may have been cancelled


@dataclass(frozen=True, slots=True)
class LogReading:
    """Reads of event logs that apply the reader's licences."""

    events: EventReader
    rendering: EventRendering

    async def licensed(self, tenants: Collection[Tenant]) -> frozenset[Tenant]:
        """Return the tenants that may read any other catalogue now."""
        return await self.events.licensed(tenants)

    async def read_batch(
        self,
        view: View,
        after: LogPosition,
        end: LogPosition,
        limit: int,
        wanted: EventFilter = ALL,
        most_bytes: int = CHANGES_BYTES,
    ) -> EventBatch:
        """Return the next `limit` events up to `end` that the reader may see; fewer where few match.

        A batch also ends when it reaches `most_bytes`. Raises CursorExpired.
        """
        if after.position >= end.position:
            return EventBatch((), after, caught_up=True)
        batch = await self.events.page(view, after, end, limit, wanted, most_bytes=most_bytes)
        return replace(batch, events=self._shown(batch.events)) if view.of_network else batch

    async def shared(
        self, log: Tenant, after: LogPosition, limit: int, most_bytes: int, tenants: Collection[Tenant]
    ) -> tuple[EventBatch, Mapping[Tenant, Sequence[LoggedEvent]]]:
        """Read new events of a network log once; return them and what each tenant may see. Raises CursorExpired."""
        end = LogPosition(after.epoch, OPEN_END)
        batch = await self.events.page(View.own(log), after, end, limit, ALL, most_bytes=most_bytes)
        if not batch.events:
            return batch, {}
        grants = await self.events.grants(log, after.position, batch.position.position, tenants)
        by_holder: dict[str, list[Grant]] = {}
        for grant in grants:
            by_holder.setdefault(grant.holder, []).append(grant)
        cut: dict[tuple[int, frozenset[str]], LoggedEvent | None] = {}
        return batch, {tenant: self._granted(batch, tenant, by_holder, cut) for tenant in tenants}

    def _granted(
        self,
        batch: EventBatch,
        tenant: Tenant,
        by_holder: Mapping[str, Sequence[Grant]],
        cut: dict[tuple[int, frozenset[str]], LoggedEvent | None],
    ) -> Sequence[LoggedEvent]:
        """Return the events that a tenant may see; `cut` caches the redacted events by position and groups."""
        groups: dict[int, frozenset[str]] = {}
        for grant in (*by_holder.get("*", ()), *by_holder.get(tenant.org, ())):
            if grant.owner != tenant.org:
                groups[grant.position] = groups.get(grant.position, NETWORK_GROUPS) | grant.groups
        shown = []
        for event in batch.events if groups else ():
            if (seen := groups.get(event.position)) is not None:
                key = event.position, seen
                if key not in cut:
                    cut[key] = self._cut(replace(event, groups=seen))
                if (redacted := cut[key]) is not None:
                    shown.append(redacted)
        return shown

    async def back(self, view: View, before: int, low: int, most: int, wanted: EventFilter) -> Recent:
        """Return the newest `most` visible events below `before`, newest first, and the position searched back to.

        They are fewer when they reach CHANGES_BYTES, or where few match.
        """
        if before - 1 <= low or most <= 0:
            return Recent((), before)
        found = await self.events.recent(view, before, most, wanted)
        shown = self._shown(found.events)
        while len(shown) < most and found.events and found.position - 1 > low and weight_of(shown) < CHANGES_BYTES:
            found = await self.events.recent(view, found.position, most - len(shown), wanted)
            shown += self._shown(found.events)
        return Recent(shown, found.position)

    async def at(self, view: View, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        """Return the events at those positions that are still kept and visible, oldest first."""
        return self._shown(await self.events.at(view, positions))

    def _shown(self, events: Sequence[LoggedEvent]) -> list[LoggedEvent]:
        """Return the events redacted to their field groups, without those of which nothing remains."""
        if all(event.groups is None for event in events):
            return list(events)
        return [shown for event in events if (shown := self._cut(event)) is not None]

    def _cut(self, event: LoggedEvent) -> LoggedEvent | None:
        if event.groups is None:
            return event
        body = self.rendering.redacted(event, event.groups)
        return None if body is None else replace(event, body=body)
