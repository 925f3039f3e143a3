"""Pages of the feed (domain/changes/usecases/service.py)."""

import asyncio
import json

import pytest

from domain.changes.usecases import reading as module
from domain.changes.model import EventFilter
from domain.kernel.errors import CursorExpired
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from tests.support.logs import Log, running

pytestmark = pytest.mark.asyncio
FEED = EventFilter()
BLOCKED = EventFilter(types=frozenset({"source.blocked"}))


def ids(body: bytes) -> list[str]:
    return [event["id"] for event in json.loads(b"[" + body + b"]")]


async def test_a_client_reads_its_own_writes() -> None:
    async with running() as log:
        position = 0
        for count in (1, 3, 2):
            written = await log.write(count)
            page = await log.service.page(log.tenant, position, 10, FEED)
            assert (ids(page.body), page.caught_up) == (written, True)
            position = page.position


async def test_full_pages_of_a_long_log_ask_for_its_reach_once() -> None:
    log = Log()
    written = await log.write(95)
    await log.service.now()
    log.events.reached = 0
    page = await log.service.page(log.tenant, 0, 40, FEED)
    assert log.events.reached == 1 and page.count == 40 and not page.caught_up
    long_poll = await log.service.page(log.tenant, page.position, 60, FEED)
    assert ids(page.body) + ids(long_poll.body) == written and long_poll.caught_up and log.events.reached == 2


async def test_no_page_goes_beyond_the_high_watermark() -> None:
    async with running() as log:
        await log.write(5)
        log.events.held = 4
        page = await log.service.page(log.tenant, 0, 10, FEED)
        assert (page.count, page.position, page.caught_up) == (3, 3, True)
        assert [event.position for event in (await log.service.recent(log.tenant, PageRequest(10), FEED)).items] == [
            3,
            2,
            1,
        ]


async def test_a_rare_type_moves_the_cursor_and_is_not_caught_up_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW", 10)
    async with running() as log:
        await log.write(25)
        wanted = await log.write(1, type="source.blocked")
        pages = [await log.service.page(log.tenant, position, 5, BLOCKED) for position in (0, 10, 20)]
        assert [(page.position, page.count, page.caught_up) for page in pages] == [
            (10, 0, False),
            (20, 0, False),
            (26, 1, True),
        ]
        patient = await log.service.page(log.tenant, 0, 5, BLOCKED, patient=True)
        assert (ids(patient.body), patient.position, patient.caught_up) == (wanted, 26, True)


async def test_recent_looks_further_and_further_back() -> None:
    async with running() as log:
        wanted = await log.write(3, type="source.blocked")
        await log.write(50)
        page = await log.service.recent(log.tenant, PageRequest(2), BLOCKED)
        assert [event.id for event in page.items] == wanted[:0:-1] and page.has_more
        long_poll = await log.service.recent(log.tenant, PageRequest(2, page.next_key), BLOCKED)
        assert (
            [event.id for event in long_poll.items] == wanted[:1]
            and not long_poll.has_more
            and long_poll.next_key is None
        )


async def test_what_is_dropped_while_it_is_read_is_told() -> None:
    async with running() as log:
        await log.write(5)
        assert await log.service.start(None) == 0
        log.store.low_watermark = 3
        with pytest.raises(CursorExpired):
            await log.service.page(log.tenant, 0, 10, FEED)
        with pytest.raises(CursorExpired):
            await log.service.start(2)
        assert (await log.service.start(3), await log.service.start(None)) == (3, 3)


async def test_a_cursor_beyond_the_high_watermark_waits_for_it() -> None:
    """Another process has seen more of the log than this one."""
    async with running() as log:
        await log.write(3)
        page = await log.service.page(log.tenant, 50, 10, FEED)
        assert (page.count, page.position, page.caught_up) == (0, 50, True)


async def test_licensed_events_stand_among_ones_own_on_pages() -> None:
    async with running() as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        log.grant(owner, catalogue, "*")
        offer = {"type": "offer.changed", "catalogue": catalogue, "network": True, "fields": [("cost", 1, 2)]}
        written = await log.write(2)
        await log.write(30, owner, **offer)
        written += await log.write(2, owner, catalogue=catalogue, network=True, type="product.updated")
        written += await log.write(1)
        seen, position, caught_up = [], 0, False
        while not caught_up:
            page = await log.service.page(log.tenant, position, 3, FEED)
            seen += ids(page.body)
            position, caught_up = page.position, page.caught_up
        assert seen == written
        recent = await log.service.recent(log.tenant, PageRequest(10), FEED)
        assert [event.id for event in recent.items] == written[::-1] and not recent.has_more


async def test_waiting_ends_in_time() -> None:
    async with running() as log:
        page = await asyncio.wait_for(log.service.next(log.tenant, 0, 10, FEED, 0.1), 5)
        assert (page.count, page.caught_up) == (0, True)
