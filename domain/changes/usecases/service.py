"""Reading the event log: pages of the feed, the newest events, and waiting for what comes next."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from domain.changes.model import ChangePage, EventBatch, EventFilter
from domain.changes.usecases.tailing import LogTailer
from domain.events.model import LoggedEvent, weight_of
from domain.kernel.bounds import CHANGES_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from ports.events import EventReader

PATIENCE: Final = 1.0
"""Seconds for which a request that may wait goes on looking through events that it did not ask for."""
Idle = Callable[[], AbstractContextManager[None]]
"""While in it, a request only waits."""
_FIRST_LOOK_BACK: Final = 200_000
"""Positions; each further look goes over four times as many."""


class ChangesService:
    """The change feed and what the stream starts from. Positions are the log's; what they look like is the edge's."""

    def __init__(self, events: EventReader, tailer: LogTailer) -> None:
        self._events, self.tailer = events, tailer
        self._log, self._high_watermark = tailer.log, tailer.high_watermark

    async def start(self, after: int | None) -> int:
        """The position to read from: the one given, or that of the oldest event kept. Raises CursorExpired."""
        log = self._high_watermark
        if not log.known:
            await log.fresh()
        if after is None:
            return log.low_watermark
        if after < log.low_watermark:
            raise CursorExpired
        return after

    async def now(self) -> int:
        """The high watermark: what is committed from here on comes after it."""
        return await self._high_watermark.fresh()

    async def page(
        self, tenant: Tenant, after: int, limit: int, wanted: EventFilter, *, patient: bool = False
    ) -> ChangePage:
        """What follows the position. Reads its caller's own writes; not full before the log's end if little is asked for.

        `patient` has it look on for a second. Raises CursorExpired.
        """
        loop, page, fresh = asyncio.get_running_loop(), ChangePage(after), False
        until = loop.time() + (PATIENCE if patient else 0)
        while True:
            if not fresh and self._high_watermark.position - page.position < limit:
                await self._high_watermark.fresh()
                fresh = True
            up_to = self._high_watermark.position
            if page.position < up_to:
                await self._add(page, tenant, up_to, limit, wanted)
            page.caught_up = fresh and page.position >= self._high_watermark.position
            if page.caught_up or page.count >= limit or page.full or (page.position < up_to and loop.time() >= until):
                break
        if not fresh:
            await self._high_watermark.fresh()
        await self.start(after)  # what was dropped before or while it was read would be missing from the page
        return page

    async def _add(self, page: ChangePage, tenant: Tenant, up_to: int, limit: int, wanted: EventFilter) -> None:
        reader = await self._log.reader(tenant)
        if reader.licences:
            _extend(page, await self._log.read_batch(reader, page.position, up_to, limit - page.count, wanted))
            return
        end = await self._log.window(reader, page.position, up_to, wanted)
        found = await self._events.splice(tenant, page.position, end, limit - page.count, wanted)
        full = page.count + found.count >= limit or found.full
        page.count += found.count
        page.position = found.position if full else end
        if found.count:
            page.bodies.append(found.body)

    async def long_poll(
        self, tenant: Tenant, after: int, limit: int, wanted: EventFilter, seconds: float, idle: Idle = nullcontext
    ) -> ChangePage:
        """`page`, and `next` (inside `idle`) if it is empty; with nothing known beyond the position, that is listened for."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        if self._high_watermark.known and after >= self._high_watermark.position:
            with idle():
                page = await self.next(tenant, after, limit, wanted, seconds)
            if page.count or self._high_watermark.looked >= began:
                return page
        page = await self.page(tenant, after, limit, wanted, patient=True)
        left = began + seconds - loop.time()
        if page.count or not page.caught_up or left <= 0:
            return page
        with idle():
            return await self.next(tenant, page.position, limit, wanted, left)

    async def next(self, tenant: Tenant, after: int, limit: int, wanted: EventFilter, seconds: float) -> ChangePage:
        """What comes after the position, as soon as there is any; an empty page when the time is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        page = ChangePage(after, caught_up=True)
        async with self.tailer.follow(tenant, after, wanted) as subscription:
            while not page.count and not self.tailer.closing and (left := until - loop.time()) > 0:
                _extend(page, await subscription.next(limit, left))
        return page

    async def recent(self, tenant: Tenant, page_request: PageRequest, wanted: EventFilter) -> Page[LoggedEvent]:
        """The newest first, none above the high watermark; an item's key is its position.

        A page may be short although there is more, where events asked for lie far apart.
        """
        loop = asyncio.get_running_loop()
        high_watermark = await self._high_watermark.fresh()
        until, reader = loop.time() + PATIENCE / 2, await self._log.reader(tenant)
        before = min(high_watermark, int(page_request.key) - 1) if page_request.key else high_watermark
        found: list[LoggedEvent] = []
        width = _FIRST_LOOK_BACK if wanted.narrow else before
        while before > self._high_watermark.low_watermark and len(found) <= page_request.limit and loop.time() < until:
            after = max(0, before - width)
            most = page_request.limit + 1 - len(found)
            events, looked_to = await self._log.back(reader, after, before, most, wanted)
            found += events
            before, width = min(before, looked_to), width * 4
            if weight_of(found) >= CHANGES_BYTES:
                break
        return _page(found, page_request.limit, before, self._high_watermark.low_watermark)


def _extend(page: ChangePage, batch: EventBatch) -> None:
    page.bodies += [event.body for event in batch.events]
    page.count += len(batch.events)
    page.position, page.caught_up = batch.position, batch.caught_up


def _page(found: list[LoggedEvent], limit: int, looked_to: int, low_watermark: int) -> Page[LoggedEvent]:
    if len(found) > limit:
        return Page(tuple(found[:limit]), has_more=True, next_key=str(found[limit - 1].position))
    more = looked_to > low_watermark
    return Page(tuple(found), more, str(looked_to + 1) if more else None)
