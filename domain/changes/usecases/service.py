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
    LogView,
    get_network_tenant,
)
from domain.changes.ports import EventReader, RecentEvents
from domain.changes.usecases.log_tailer import LogTailer
from domain.events.model import LoggedEvent, LogPosition, limit_events
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.errors import CursorExpired, Unavailable
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant

MAX_SEARCH_SECONDS = 1.0
"""Seconds after which the search of `ChangesService.read_page` with `search_longer` starts no further query."""
MAX_SEARCHED_EVENTS = 50_000
"""Maximum number of newest events that are searched for events about products; a log has no index of products (ADR 55)."""
MAX_HISTORY_EVENTS = 500
"""Maximum number of events in the history of products."""
Idle = Callable[[], AbstractContextManager[None]]
"""Context manager that is entered while a request only waits."""


@dataclass(frozen=True, slots=True)
class ProductHistory:
    """Events of some products, oldest first. `is_complete`: the log has no older events of them."""

    events: Sequence[LoggedEvent]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class PriceChangeCounts:
    """Number of changed prices of each source; if not `is_complete`, there may be more."""

    by_source: Mapping[str, int]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class _LogEnds:
    """Bounds of the logs that a tenant can read; `network` is None while the network log (events of published catalogues) is unreachable."""

    own: LogBounds
    network: LogBounds | None
    may_read_network: bool

    @property
    def start(self) -> FeedPosition:
        """The position before the oldest events in the logs."""
        return FeedPosition(self.own.start, self.network.start if self.network else BEGINNING)


class ChangesService:
    """Use cases of the change feed, and the start of streams. Other layers encode positions as cursors."""

    def __init__(self, events: EventReader, tailer: LogTailer) -> None:
        self._events, self.tailer = events, tailer
        self._log, self._high_watermarks = tailer.log_reader, tailer.bounds_cache

    async def find_start(self, tenant: Tenant, after: FeedPosition | None) -> FeedPosition:
        """Return the position from which to read: `after` or, if None, before the oldest events. Raises CursorExpired."""
        if after is not None and self._is_at_known_end(tenant, after):
            return after
        ends = await self._query_ends(tenant)
        return ends.start if after is None else await self._with_current_epochs(tenant, after, ends)

    async def check_resume_position(self, tenant: Tenant, after: FeedPosition) -> FeedPosition:
        """Check that the logs still have all events after `after`; return the position in the current epochs of the logs.

        A stream must be refused before it starts, or its client would reconnect with the same cursor. `read_page` performs
        this check itself. Raises CursorExpired.
        """
        ends = await self._query_ends(tenant)
        position = await self._with_current_epochs(tenant, after, ends)
        await self._log.read_batch(LogView.own(tenant), position.own, ends.own.end, 1)
        if ends.network and ends.may_read_network:
            await self._log.read_batch(LogView.network(tenant), position.network, ends.network.end, 1)
        return position

    async def _with_current_epochs(self, tenant: Tenant, after: FeedPosition, ends: _LogEnds) -> FeedPosition:
        """Return the position in the current epochs of the tenant's log and the network log.

        Raises CursorExpired if a log no longer has all events after the position.
        """
        await self._refuse_lost_events(tenant, after.own, ends.own)
        after = replace(after, own=ends.own.with_epoch(after.own))
        if ends.network is None:
            return after
        if not ends.may_read_network:  # a reader without access to it has missed nothing
            return replace(after, network=ends.network.end)
        await self._refuse_lost_events(get_network_tenant(tenant.livemode), after.network, ends.network)
        return replace(after, network=ends.network.with_epoch(after.network))

    async def _refuse_lost_events(self, log: Tenant, after: LogPosition, bounds: LogBounds) -> None:
        if bounds.can_continue_after(after):
            return
        confirmed = await self._high_watermarks.query_confirmed(log)
        if confirmed.is_beyond_end(after):
            await self._events.begin_epoch(log, after)
        if not confirmed.can_continue_after(after):
            raise CursorExpired

    async def find_end(self, tenant: Tenant) -> FeedPosition:
        """Return the ends of both logs; events that are committed later come after this position."""
        ends = await self._query_ends(tenant)
        return FeedPosition(ends.own.end, ends.network.end if ends.network else BEGINNING)

    async def _query_ends(self, tenant: Tenant) -> _LogEnds:
        """Return the bounds of the logs that the tenant can read.

        The bounds of the tenant's own log are queried now. The bounds of the network log are queried now only if the tenant has a
        licence.
        """
        network = get_network_tenant(tenant.livemode)
        own = await self._high_watermarks.query_fresh(tenant)
        licensed = bool(await self._log.filter_licensed([tenant]))
        if licensed:
            with contextlib.suppress(Unavailable):
                return _LogEnds(own, await self._high_watermarks.query_fresh(network), may_read_network=True)
        return _LogEnds(own, await self._high_watermarks.get_recent(network), may_read_network=licensed)

    def _is_at_known_end(self, tenant: Tenant, after: FeedPosition) -> bool:
        """Return whether the position is the end of the tenant's own log, according to the cached bounds.

        The network log is not checked, because a subscription delivers new events of both logs.
        """
        own = self._high_watermarks.get_cached(tenant)
        return own is not None and after.own == own.end

    def _is_confirmed_end(self, tenant: Tenant, position: FeedPosition, queried_after: float) -> bool:
        """Return whether a query at or after `queried_after` has found that the tenant's own log ends at the position.

        `queried_after` is in seconds of the event loop's clock.
        """
        bounds = self._high_watermarks.get_cached(tenant)
        is_fresh = self._high_watermarks.get_query_time(tenant) >= queried_after
        return is_fresh and bounds is not None and bounds.last <= position.own.position

    async def read_page(
        self,
        tenant: Tenant,
        after: FeedPosition | None,
        limit: int,
        wanted: EventFilter,
        *,
        search_longer: bool = False,
    ) -> ChangePage:
        """Return a page of the events after the position (None: from the oldest on), up to the ends of the logs now.

        If few events match, a page may have fewer than `limit` events although more follow. With `search_longer`, the
        search continues with further queries for MAX_SEARCH_SECONDS. Raises CursorExpired.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + (MAX_SEARCH_SECONDS if search_longer else 0)
        ends = await self._query_ends(tenant)
        after = after or ends.start
        page = ChangePage(await self._with_current_epochs(tenant, after, ends))
        while True:
            if ends.network and ends.may_read_network:
                end = FeedPosition(ends.own.end, ends.network.end)
                page.add_batch(await self._read_both_logs(tenant, page.position, end, limit - page.count, wanted))
            else:
                await self._add_own_events(page, tenant, ends.own.end, limit - page.count, wanted)
            if page.caught_up or page.count >= limit or page.is_full or loop.time() >= until:
                break
        await self._refuse_deleted(tenant, after.own)
        if ends.may_read_network:
            await self._refuse_deleted(get_network_tenant(tenant.livemode), after.network)
        return page

    async def _refuse_deleted(self, log: Tenant, after: LogPosition) -> None:
        """Raise CursorExpired if events after a position without a time were deleted while the page was read."""
        # a position has a time only if the event before it was read, so later events existed as well
        if after.time is None and (await self._high_watermarks.query_fresh(log)).low > after.position:
            raise CursorExpired

    async def _add_own_events(
        self, page: ChangePage, tenant: Tenant, end: LogPosition, limit: int, wanted: EventFilter
    ) -> None:
        events_found = await self._events.read_joined(tenant, page.position.own, end, limit, wanted)
        page.count += events_found.count
        page.position, page.caught_up = replace(page.position, own=events_found.position), events_found.caught_up
        if events_found.count:
            page.bodies.append(events_found.body)

    async def _read_both_logs(
        self, tenant: Tenant, after: FeedPosition, end: FeedPosition, limit: int, wanted: EventFilter
    ) -> FeedBatch:
        """Return a page of events of the tenant's own log and of the network log, merged by time."""
        own, network = LogView.own(tenant), LogView.network(tenant)
        ours = await self._log.read_batch(own, after.own, end.own, limit, wanted)
        theirs = await self._log.read_batch(network, after.network, end.network, limit, wanted)
        merged = merge(ours.events, theirs.events, key=_get_timestamp)
        events = limit_events(list(merged), limit, CHANGES_BYTES)
        position = after
        for event in events:
            position = position.after(event)
        network_count = sum(event.is_from_network for event in events)
        if len(events) - network_count == len(ours.events):
            position = replace(position, own=ours.position)
        if network_count == len(theirs.events):
            position = replace(position, network=theirs.position)
        has_all = len(events) == len(ours.events) + len(theirs.events)
        return FeedBatch(events, position, caught_up=has_all and ours.caught_up and theirs.caught_up)

    async def long_poll(
        self,
        tenant: Tenant,
        after: FeedPosition,
        limit: int,
        wanted: EventFilter,
        seconds: float,
        idle: Idle = nullcontext,
    ) -> ChangePage:
        """Return the events after the position; if there are none, wait for new events for up to `seconds`.

        Args:
            tenant: The reader.
            after: Position in both logs.
            limit: Maximum number of events.
            wanted: Filter of events.
            seconds: Maximum duration of the request.
            idle: Context manager that is entered while the request only waits.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        if self._is_at_known_end(tenant, after):  # wait first; a query would probably find nothing
            with idle():
                page = await self.wait_for_events(tenant, after, limit, wanted, seconds)
            confirmed = self._is_confirmed_end(tenant, page.position, began)
            if page.count or confirmed:  # otherwise an empty page may be due to an error
                page.caught_up = page.caught_up and confirmed
                return page
        page = await self.read_page(tenant, after, limit, wanted, search_longer=True)
        remaining = began + seconds - loop.time()
        if page.count or not page.caught_up or remaining <= 0:
            return page
        with idle():
            return await self.wait_for_events(tenant, page.position, limit, wanted, remaining)

    async def wait_for_events(
        self, tenant: Tenant, after: FeedPosition, limit: int, wanted: EventFilter, seconds: float
    ) -> ChangePage:
        """Return the first events that a subscription delivers after the position, or an empty page after `seconds`.

        The page is also empty if the process stops while the subscription waits. Raises CursorExpired.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        page = ChangePage(after, caught_up=True)
        async with self.tailer.subscribe(tenant, after, wanted) as subscription:
            while not page.count and not self.tailer.is_closing and (remaining := until - loop.time()) > 0:
                page.add_batch(await subscription.next_batch(limit, remaining))
        return page

    async def find_product_history(
        self, tenant: Tenant, products: Collection[str], limit: int = MAX_HISTORY_EVENTS
    ) -> ProductHistory:
        """Return the newest `limit` events of products, variants and offers in the tenant's own log, oldest first."""
        ends = await self._high_watermarks.query_fresh(tenant)
        after = max(ends.low, ends.last - MAX_SEARCHED_EVENTS)
        events = await self._events.get_about_products(tenant, products, after, limit)
        return ProductHistory(events[::-1], is_complete=after == ends.low and len(events) < limit)

    async def count_price_changes(self, tenant: Tenant, since: datetime) -> PriceChangeCounts:
        """Return the number of changed prices of each source since the time, among the newest events of the tenant's own log."""
        ends = await self._high_watermarks.query_fresh(tenant)
        after = max(ends.low, ends.last - MAX_SEARCHED_EVENTS)
        counts = await self._events.count_price_changes(tenant, after, since)
        return PriceChangeCounts(counts, is_complete=after == ends.low)

    async def list_recent(self, tenant: Tenant, page_request: PageRequest, wanted: EventFilter) -> Page[LoggedEvent]:
        """Return a page of events, newest first.

        The key of the next page encodes positions in both logs. If few events match, a page may be shorter than the limit
        although more events follow.
        """
        ends, limit = await self._query_ends(tenant), page_request.limit + 1
        own, network = ends.own, ends.network or LogBounds()
        before = _parse_page_key(page_request.key, own, network)
        ours = await self._log.read_backwards(LogView.own(tenant), before[0], own.low, limit, wanted)
        theirs = RecentEvents((), network.low + 1)
        if ends.may_read_network:
            theirs = await self._log.read_backwards(LogView.network(tenant), before[1], network.low, limit, wanted)
        return _build_recent_page(ours, theirs, page_request.limit, before, (own.low, network.low))


def _get_timestamp(event: LoggedEvent) -> float:
    return event.time.timestamp()


def _parse_page_key(key: str | None, own: LogBounds, network: LogBounds) -> tuple[int, int]:
    """Parse the key of a page; return the positions in the own and the network log before which the page begins."""
    if key is None:
        return own.last + 1, network.last + 1
    first, _, second = key.partition(".")
    return min(own.last + 1, int(first)), min(network.last + 1, int(second or 0))


def _build_recent_page(
    ours: RecentEvents, theirs: RecentEvents, limit: int, before: tuple[int, int], low: tuple[int, int]
) -> Page[LoggedEvent]:
    events_found = list(merge(ours.events, theirs.events, key=_get_timestamp, reverse=True))
    events = limit_events(events_found[:limit], limit, CHANGES_BYTES)
    reached = [before[0], before[1]]
    for event in events:
        reached[event.is_from_network] = event.position
    if len(events) == len(events_found):
        reached = [ours.position, theirs.position]
    more = len(events) < len(events_found) or reached[0] - 1 > low[0] or reached[1] - 1 > low[1]
    return Page(tuple(events), more, f"{reached[0]}.{reached[1]}" if more else None)
