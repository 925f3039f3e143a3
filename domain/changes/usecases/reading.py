"""Reading the log as a reader's licences show it, a bounded look at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from domain.changes.model import ALL, EventBatch, EventFilter, Licence, Reader
from domain.events.model import LoggedEvent, weight_of
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.tenancy import Tenant
from ports.events import EventReader, EventRendering

WINDOW: Final = 20_000
"""Events of the log that one look passes at most when only some of them are asked for."""


class LogReading:
    """What is read for one who may hold licences comes through here, so that nobody is shown more than they cover."""

    def __init__(self, events: EventReader, rendering: EventRendering) -> None:
        self._events, self._rendering = events, rendering

    async def licences(self, tenants: Sequence[Tenant]) -> Mapping[Tenant, Sequence[Licence]]:
        """What each of the tenants holds now; those without are left out."""
        return await self._events.licences(tenants)

    async def reader(self, tenant: Tenant) -> Reader:
        """The tenant with the licences that it holds now."""
        return Reader(tenant, tuple((await self.licences([tenant])).get(tenant, ())))

    async def read_batch(
        self,
        reader: Reader,
        after: int,
        up_to: int,
        limit: int,
        wanted: EventFilter = ALL,
        since: datetime | None = None,
        most_bytes: int = CHANGES_BYTES,
    ) -> EventBatch:
        """The next `limit` events up to `up_to`, as the reader may see them; fewer of those that are rarely asked for.

        They are fewer, too, when they reach `most_bytes`.
        """
        end = await self.window(reader, after, up_to, wanted)
        found = await self._events.page(reader, after, end, limit, wanted, since=since, most_bytes=most_bytes)
        whole = len(found) < limit and weight_of(found) < most_bytes
        position = end if whole else found[-1].position
        return EventBatch(self._shown(found), position, caught_up=whole and end == up_to)

    async def window(self, reader: Reader, after: int, up_to: int, wanted: EventFilter) -> int:
        """How far to look in one go: a filter that matches little must not have the whole log read at once."""
        if not wanted.narrow or up_to - after <= WINDOW:
            return up_to
        return await self._events.stride(reader, after, up_to, WINDOW)

    async def back(
        self, reader: Reader, after: int, up_to: int, most: int, wanted: EventFilter
    ) -> tuple[list[LoggedEvent], int]:
        """The newest `most` events in that range that show anything, newest first, and the position looked back to.

        They are fewer when they reach CHANGES_BYTES.
        """
        shown: list[LoggedEvent] = []
        while len(shown) < most and up_to > after and weight_of(shown) < CHANGES_BYTES:
            asked = most - len(shown)
            found = await self._events.recent(reader, after, up_to, asked, wanted)
            shown += self._shown(found)
            cut = len(found) == asked or weight_of(found) >= CHANGES_BYTES
            up_to = found[-1].position - 1 if cut else after
        return shown, up_to

    async def at(self, tenant: Tenant, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        """The events at those positions, of those that are still kept and shown, oldest first."""
        return self._shown(await self._events.at(await self.reader(tenant), positions))

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
