"""Reading logs as their reader may see them, a bounded look at a time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from domain.changes.model import ALL, NETWORK_GROUPS, OPEN_END, EventBatch, EventFilter, View
from domain.changes.ports import EventReader, EventRendering, Grant, Recent
from domain.events.model import LoggedEvent, LogPosition, weight_of
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.tenancy import Tenant


class LogReading:
    """What is read for one who may hold licences comes through here, so that nobody is shown more than they cover."""

    def __init__(self, events: EventReader, rendering: EventRendering) -> None:
        self._events, self._rendering = events, rendering

    async def licensed(self, tenants: Collection[Tenant]) -> frozenset[Tenant]:
        """Those of the tenants that may see anything of others' catalogues now."""
        return await self._events.licensed(tenants)

    async def read_batch(
        self,
        view: View,
        after: LogPosition,
        end: LogPosition,
        limit: int,
        wanted: EventFilter = ALL,
        most_bytes: int = CHANGES_BYTES,
    ) -> EventBatch:
        """The next `limit` events up to `end`, as the reader may see them; fewer of those that are rarely asked for.

        They are fewer, too, when they reach `most_bytes`. Raises CursorExpired.
        """
        if after.position >= end.position:
            return EventBatch((), after, caught_up=True)
        batch = await self._events.page(view, after, end, limit, wanted, most_bytes=most_bytes)
        return replace(batch, events=self._shown(batch.events)) if view.of_network else batch

    async def shared(
        self, log: Tenant, after: LogPosition, limit: int, most_bytes: int, tenants: Collection[Tenant]
    ) -> tuple[EventBatch, Mapping[Tenant, Sequence[LoggedEvent]]]:
        """What is new of a network's log, read once, and what of it each of these tenants is shown. Raises CursorExpired."""
        end = LogPosition(after.epoch, OPEN_END)
        batch = await self._events.page(View.own(log), after, end, limit, ALL, most_bytes=most_bytes)
        if not batch.events:
            return batch, {}
        granted = await self._events.grants(log, after.position, batch.position.position, tenants)
        by_holder: dict[str, list[Grant]] = {}
        for grant in granted:
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
        """Of each set of groups an event is cut once."""
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
                if (one := cut[key]) is not None:
                    shown.append(one)
        return shown

    async def back(self, view: View, before: int, low: int, most: int, wanted: EventFilter) -> Recent:
        """The newest `most` events below `before` that show anything, newest first, and the position looked back to.

        They are fewer when they reach CHANGES_BYTES, or where few are asked for.
        """
        if before - 1 <= low or most <= 0:
            return Recent((), before)
        found = await self._events.recent(view, before, most, wanted)
        shown = self._shown(found.events)
        while len(shown) < most and found.events and found.position - 1 > low and weight_of(shown) < CHANGES_BYTES:
            found = await self._events.recent(view, found.position, most - len(shown), wanted)
            shown += self._shown(found.events)
        return Recent(shown, found.position)

    async def at(self, view: View, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        """The events at those positions, of those that are still kept and shown, oldest first."""
        return self._shown(await self._events.at(view, positions))

    def _shown(self, events: Sequence[LoggedEvent]) -> list[LoggedEvent]:
        """Others' events cut to the groups, and what shows nothing left out."""
        if all(event.groups is None for event in events):
            return list(events)
        return [shown for event in events if (shown := self._cut(event)) is not None]

    def _cut(self, event: LoggedEvent) -> LoggedEvent | None:
        if event.groups is None:
            return event
        body = self._rendering.redacted(event, event.groups)
        return None if body is None else replace(event, body=body)
