"""The change feed: pages, the newest events, and long polls."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import merge

from domain.changes.model import (
    BEGINNING,
    ChangePage,
    EventFilter,
    FeedBatch,
    FeedPosition,
    LogBounds,
    View,
    network_of,
)
from domain.changes.ports import EventReader, Recent
from domain.changes.usecases.tailing import LogTailer
from domain.events.model import LoggedEvent, LogPosition, within
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.errors import CursorExpired, Unavailable
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant

PATIENCE = 1.0
"""Seconds for which a patient request continues to scan events that do not match."""
LOOKED = 50_000
"""Number of newest events that are searched for products, because a log has no index of them (ADR 55)."""
COUNTED = 20_000
"""Number of newest events that are counted by type."""
HISTORY = 500
"""Maximum number of events in a history."""
Idle = Callable[[], AbstractContextManager[None]]
"""Context manager that is entered while a request only waits."""


@dataclass(frozen=True, slots=True)
class History:
    """Events of some products, oldest first. `whole`: the log holds no others."""

    events: Sequence[LoggedEvent]
    whole: bool


@dataclass(frozen=True, slots=True)
class EventCounts:
    """Number of events of each type; a lower bound unless `whole`."""

    by_type: Mapping[str, int]
    whole: bool


@dataclass(frozen=True, slots=True)
class _Ends:
    """Bounds of the logs that a tenant can read. The network's are None while it is unreachable."""

    own: LogBounds
    network: LogBounds | None
    licensed: bool

    @property
    def start(self) -> FeedPosition:
        """The position before the oldest events that are kept."""
        return FeedPosition(self.own.start, self.network.start if self.network else BEGINNING)


class ChangesService:
    """The change feed, and the start of streams. Positions are those of the logs; the edge encodes them as cursors."""

    def __init__(self, events: EventReader, tailer: LogTailer) -> None:
        self._events, self.tailer = events, tailer
        self._log, self._high_watermarks = tailer.log, tailer.high_watermarks

    async def start(self, tenant: Tenant, after: FeedPosition | None) -> FeedPosition:
        """Return the position to read from: the given one, or that before the oldest events. Raises CursorExpired."""
        if after is not None and self._at_known_end(tenant, after):
            return after
        ends = await self._ends(tenant)
        return ends.start if after is None else await self._resolve(tenant, after, ends)

    async def resume(self, tenant: Tenant, after: FeedPosition) -> FeedPosition:
        """Return the position to resume from, after checking that the log still holds the event at it.

        A page finds that out by itself. A stream must be refused before it begins, or its client would reconnect with
        the same cursor. Raises CursorExpired.
        """
        ends = await self._ends(tenant)
        position = await self._resolve(tenant, after, ends)
        await self._log.read_batch(View.own(tenant), position.own, ends.own.end, 1)
        if ends.network and ends.licensed:
            await self._log.read_batch(View.network(tenant), position.network, ends.network.end, 1)
        return position

    async def _resolve(self, tenant: Tenant, after: FeedPosition, ends: _Ends) -> FeedPosition:
        """Return the position with the logs' epochs. Raises CursorExpired if a log lost what follows it."""
        await self._refuse_lost(tenant, after.own, ends.own)
        after = replace(after, own=ends.own.named(after.own))
        if ends.network is None:
            return after
        if not ends.licensed:  # a reader who sees nothing of it has missed nothing
            return replace(after, network=ends.network.end)
        await self._refuse_lost(network_of(tenant.livemode), after.network, ends.network)
        return replace(after, network=ends.network.named(after.network))

    async def _refuse_lost(self, log: Tenant, after: LogPosition, bounds: LogBounds) -> None:
        if bounds.holds(after):
            return
        confirmed = await self._high_watermarks.confirmed(log)
        if confirmed.beyond(after):
            await self._events.begin_epoch(log, after)
        if not confirmed.holds(after):
            raise CursorExpired

    async def now(self, tenant: Tenant) -> FeedPosition:
        """Return both logs' ends; later commits come after them."""
        ends = await self._ends(tenant)
        return FeedPosition(ends.own.end, ends.network.end if ends.network else BEGINNING)

    async def _ends(self, tenant: Tenant) -> _Ends:
        """Return the bounds of the tenant's own log, no older than this call, and of the network log if it matters."""
        network = network_of(tenant.livemode)
        own = await self._high_watermarks.fresh(tenant)
        licensed = bool(await self._log.licensed([tenant]))
        if licensed:
            with contextlib.suppress(Unavailable):
                return _Ends(own, await self._high_watermarks.fresh(network), licensed=True)
        return _Ends(own, await self._high_watermarks.lately(network), licensed=licensed)

    def _at_known_end(self, tenant: Tenant, after: FeedPosition) -> bool:
        """Return whether no known event of the own log follows the position.

        Following discovers events of the network log.
        """
        own = self._high_watermarks.known(tenant)
        return own is not None and after.own == own.end

    def _proved_end(self, tenant: Tenant, position: FeedPosition, since: float) -> bool:
        """Return whether the own log was queried since then and ends at the position.

        Otherwise an empty page may be due to an error.
        """
        known = self._high_watermarks.known(tenant)
        asked = self._high_watermarks.looked(tenant) >= since
        return asked and known is not None and known.last <= position.own.position

    async def page(
        self, tenant: Tenant, after: FeedPosition | None, limit: int, wanted: EventFilter, *, patient: bool = False
    ) -> ChangePage:
        """Return the events after the position, or from the oldest on, including the caller's own writes.

        A page may be short before the end if few events match; `patient` makes it continue for PATIENCE. Raises
        CursorExpired.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + (PATIENCE if patient else 0)
        ends = await self._ends(tenant)
        after = after or ends.start
        page = ChangePage(await self._resolve(tenant, after, ends))
        while True:
            if ends.network and ends.licensed:
                end = FeedPosition(ends.own.end, ends.network.end)
                page.add(await self._read_both(tenant, page.position, end, limit - page.count, wanted))
            else:
                await self._add_own(page, tenant, ends.own.end, limit - page.count, wanted)
            if page.caught_up or page.count >= limit or page.full or loop.time() >= until:
                break
        await self._refuse_deleted(tenant, after.own)
        if ends.licensed:
            await self._refuse_deleted(network_of(tenant.livemode), after.network)
        return page

    async def _refuse_deleted(self, log: Tenant, after: LogPosition) -> None:
        """Raise CursorExpired if events after the position were deleted while they were read.

        A position with a time needs no check: reading after a known event proves that it was still there.
        """
        if after.time is None and (await self._high_watermarks.fresh(log)).low > after.position:
            raise CursorExpired

    async def _add_own(
        self, page: ChangePage, tenant: Tenant, end: LogPosition, limit: int, wanted: EventFilter
    ) -> None:
        events_found = await self._events.splice(tenant, page.position.own, end, limit, wanted)
        page.count += events_found.count
        page.position, page.caught_up = replace(page.position, own=events_found.position), events_found.caught_up
        if events_found.count:
            page.bodies.append(events_found.body)

    async def _read_both(
        self, tenant: Tenant, after: FeedPosition, end: FeedPosition, limit: int, wanted: EventFilter
    ) -> FeedBatch:
        """Return a page of the tenant's own log merged by time with one of the network log."""
        own, network = View.own(tenant), View.network(tenant)
        ours = await self._log.read_batch(own, after.own, end.own, limit, wanted)
        theirs = await self._log.read_batch(network, after.network, end.network, limit, wanted)
        merged = merge(ours.events, theirs.events, key=_time)
        events = within(list(merged), limit, CHANGES_BYTES)
        position = after
        for event in events:
            position = position.behind(event)
        counts = sum(event.of_network for event in events)
        if len(events) - counts == len(ours.events):
            position = replace(position, own=ours.position)
        if counts == len(theirs.events):
            position = replace(position, network=theirs.position)
        whole = len(events) == len(ours.events) + len(theirs.events)
        return FeedBatch(events, position, caught_up=whole and ours.caught_up and theirs.caught_up)

    async def long_poll(
        self,
        tenant: Tenant,
        after: FeedPosition,
        limit: int,
        wanted: EventFilter,
        seconds: float,
        idle: Idle = nullcontext,
    ) -> ChangePage:
        """Return `page`, or `next` (inside `idle`) if it is empty.

        If no event after the position is known, `next` comes first.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        if self._at_known_end(tenant, after):
            with idle():
                page = await self.next(tenant, after, limit, wanted, seconds)
            proved = self._proved_end(tenant, page.position, began)
            if page.count or proved:
                page.caught_up = page.caught_up and proved
                return page
        page = await self.page(tenant, after, limit, wanted, patient=True)
        remaining = began + seconds - loop.time()
        if page.count or not page.caught_up or remaining <= 0:
            return page
        with idle():
            return await self.next(tenant, page.position, limit, wanted, remaining)

    async def next(
        self, tenant: Tenant, after: FeedPosition, limit: int, wanted: EventFilter, seconds: float
    ) -> ChangePage:
        """Return the events after the position as soon as there are any; an empty page after `seconds`.

        Raises CursorExpired.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        page = ChangePage(after, caught_up=True)
        async with self.tailer.follow(tenant, after, wanted) as subscription:
            while not page.count and not self.tailer.closing and (remaining := until - loop.time()) > 0:
                page.add(await subscription.next(limit, remaining))
        return page

    async def history(self, tenant: Tenant, products: Collection[str], limit: int = HISTORY) -> History:
        """Return the newest `limit` events of products, variants and offers in the tenant's own log, oldest first."""
        ends = await self._high_watermarks.fresh(tenant)
        after = max(ends.low, ends.last - LOOKED)
        events = await self._events.of_products(tenant, products, after, limit)
        return History(events[::-1], whole=after == ends.low and len(events) < limit)

    async def counts(self, tenant: Tenant, since: datetime) -> EventCounts:
        """Return the number of events of each type in the tenant's own log since the moment, among the newest."""
        ends = await self._high_watermarks.fresh(tenant)
        after = max(ends.low, ends.last - COUNTED)
        events_found = await self._events.counts(tenant, after, since)
        return EventCounts(events_found, whole=after == ends.low or sum(events_found.values()) < ends.last - after)

    async def recent(self, tenant: Tenant, page_request: PageRequest, wanted: EventFilter) -> Page[LoggedEvent]:
        """Return the newest events first.

        The key of a page is its position in both logs. A page may be short although there is more, where few events
        match.
        """
        ends, most = await self._ends(tenant), page_request.limit + 1
        own, network = ends.own, ends.network or LogBounds()
        before = _before(page_request.key, own, network)
        ours = await self._log.back(View.own(tenant), before[0], own.low, most, wanted)
        theirs = Recent((), network.low + 1)
        if ends.licensed:
            theirs = await self._log.back(View.network(tenant), before[1], network.low, most, wanted)
        return _newest(ours, theirs, page_request.limit, before, (own.low, network.low))


def _time(event: LoggedEvent) -> float:
    return event.time.timestamp()


def _before(key: str | None, own: LogBounds, network: LogBounds) -> tuple[int, int]:
    """Return the positions, in own and network log, below which the page starts."""
    if key is None:
        return own.last + 1, network.last + 1
    first, _, second = key.partition(".")
    return min(own.last + 1, int(first)), min(network.last + 1, int(second or 0))


def _newest(
    ours: Recent, theirs: Recent, limit: int, before: tuple[int, int], low: tuple[int, int]
) -> Page[LoggedEvent]:
    events_found = list(merge(ours.events, theirs.events, key=_time, reverse=True))
    events = within(events_found[:limit], limit, CHANGES_BYTES)
    reached = [before[0], before[1]]
    for event in events:
        reached[event.of_network] = event.position
    if len(events) == len(events_found):
        reached = [ours.position, theirs.position]
    more = len(events) < len(events_found) or reached[0] - 1 > low[0] or reached[1] - 1 > low[1]
    return Page(tuple(events), more, f"{reached[0]}.{reached[1]}" if more else None)
