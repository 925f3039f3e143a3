"""Pages of the change feed (domain/changes/usecases/service.py)."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.changes.model import EventFilter, FeedPosition, get_network_tenant
from domain.events.model import LoggedEvent, LogPosition
from domain.events.ports import EventLog
from domain.kernel.errors import CursorExpired
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from tests.support import builders
from tests.support.logs import START, TailedLog, build_unknown_position, run_log

pytestmark = pytest.mark.asyncio
FEED = EventFilter()
BLOCKED = EventFilter(types=frozenset({"source.blocked"}))
SECOND = timedelta(seconds=1)


def parse_ids(body: bytes) -> list[str]:
    return [event["id"] for event in json.loads(b"[" + body + b"]")]


def list_ids(events: Sequence[LoggedEvent]) -> list[str]:
    return [event.id for event in events]


async def publish_events(log: TailedLog, owner: Tenant, catalogue: str, count: int = 1) -> list[str]:
    """Write published events, one second after the previous ones, and copy them to the network log."""
    log.clock.advance(SECOND)
    published = await log.write(count, owner, catalogue=catalogue, is_published=True, type="product.updated")
    await log.relay_events()
    return published


async def test_a_client_reads_its_own_writes() -> None:
    async with run_log() as log:
        position = START
        for count in (1, 3, 2):
            written = await log.write(count)
            page = await log.service.read_page(log.tenant, position, 10, FEED)
            assert (parse_ids(page.body), page.caught_up) == (written, True)
            position = page.position
            assert position == await log.end_positions()


async def test_full_pages_of_a_long_log_query_its_bounds_once() -> None:
    """The bounds are also queried at the start, where no event proves that earlier events still exist."""
    log = TailedLog()
    written = await log.write(95)
    await log.service.find_end(log.tenant)
    log.events.bounds_reads = 0
    page = await log.service.read_page(log.tenant, START, 40, FEED)
    assert log.events.bounds_reads == 2 and page.count == 40 and not page.caught_up
    rest = await log.service.read_page(log.tenant, page.position, 60, FEED)
    assert parse_ids(page.body) + parse_ids(rest.body) == written and rest.caught_up and log.events.bounds_reads == 3


async def test_pages_do_not_contain_uncommitted_events() -> None:
    async with run_log() as log:
        written = await log.write(3)
        async with log.uow.begin(log.tenant, builders.CALL) as tx:
            await tx[EventLog].append([builders.event("src_1")])
            page = await log.service.read_page(log.tenant, START, 10, FEED)
            recent = await log.service.list_recent(log.tenant, PageRequest(10), FEED)
            assert (parse_ids(page.body), page.position.own.position, page.caught_up) == (written, 3, True)
            assert list_ids(recent.items) == written[::-1]
        assert (await log.service.read_page(log.tenant, page.position, 10, FEED)).count == 1


async def test_a_rare_type_moves_the_cursor_and_is_not_caught_up_until_the_end() -> None:
    """The network log is also read in windows."""
    async with run_log() as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        log.grant_licence(owner, catalogue, "*")
        await log.write(25)
        wanted = await log.write(1, type="source.blocked")
        log.clock.advance(SECOND)
        await log.write(25, owner, catalogue=catalogue, is_published=True)
        wanted += await log.write(1, owner, catalogue=catalogue, is_published=True, type="source.blocked")
        await log.relay_events()
        log.events.window = 10
        seen, position, pages = list[str](), START, 0
        while pages < 20:
            page = await log.service.read_page(log.tenant, position, 5, BLOCKED)
            assert page.position != position
            seen, position, pages = seen + parse_ids(page.body), page.position, pages + 1
            if page.caught_up:
                break
        assert (seen, pages, position) == (wanted, 3, await log.end_positions())
        patient = await log.service.read_page(log.tenant, START, 5, BLOCKED, search_longer=True)
        assert (parse_ids(patient.body), patient.position, patient.caught_up) == (wanted, position, True)


async def test_recent_events_are_searched_backwards() -> None:
    async with run_log() as log:
        wanted = await log.write(3, type="source.blocked")
        await log.write(50)
        page = await log.service.list_recent(log.tenant, PageRequest(2), BLOCKED)
        assert list_ids(page.items) == wanted[:0:-1] and page.has_more
        rest = await log.service.list_recent(log.tenant, PageRequest(2, page.next_key), BLOCKED)
        assert list_ids(rest.items) == wanted[:1] and not rest.has_more and rest.next_key is None


async def test_recent_pages_of_both_logs_contain_every_event_once() -> None:
    async with run_log() as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        log.grant_licence(owner, catalogue, "*")
        written: list[str] = []
        for _ in range(6):
            log.clock.advance(SECOND)
            written += await log.write(3)
            written += await publish_events(log, owner, catalogue, 2)
        seen, request = list[str](), PageRequest(4)
        for _ in range(20):
            page = await log.service.list_recent(log.tenant, request, FEED)
            assert len(page.items) <= 4
            seen += list_ids(page.items)
            if not page.has_more:
                break
            request = PageRequest(4, page.next_key)
            await log.write()
        assert seen == written[::-1]


async def test_events_dropped_during_a_read_are_reported() -> None:
    async with run_log() as log:
        await log.write(5)
        assert await log.service.find_start(log.tenant, None) == FeedPosition(LogPosition(1, 0))
        second, third = await log.position_at(2), await log.position_at(3)
        log.store.low_watermarks[log.tenant] = 3
        with pytest.raises(CursorExpired):
            await log.service.read_page(log.tenant, START, 10, FEED)
        with pytest.raises(CursorExpired):
            await log.service.find_start(log.tenant, second)
        assert await log.service.find_start(log.tenant, third) == third
        assert (await log.service.find_start(log.tenant, None)).own.position == 3


async def test_reading_starts_at_any_position_of_the_log() -> None:
    async with run_log() as log:
        await log.write(5)
        for position in (await log.position_at(1), await log.position_at(5), await log.end_positions()):
            assert await log.service.find_start(log.tenant, position) == position
        assert await log.service.find_start(log.tenant, START) == FeedPosition(LogPosition(1, 0)), (
            "the position contains the epoch"
        )


async def test_a_position_without_an_epoch_is_valid_in_the_first_epoch() -> None:
    """The first cursors contained only the position."""
    async with run_log() as log:
        written = await log.write(5)
        for number in range(6):
            alone = FeedPosition(LogPosition(position=number))
            assert await log.service.find_start(log.tenant, alone) == FeedPosition(LogPosition(1, number))
            assert parse_ids((await log.service.read_page(log.tenant, alone, 10, FEED)).body) == written[number:]
        await log.events.begin_epoch(log.tenant, build_unknown_position((await log.end_positions()).own))
        with pytest.raises(CursorExpired):
            await log.service.find_start(log.tenant, alone)


async def test_a_cursor_of_another_epoch_is_refused() -> None:
    async with run_log() as log:
        await log.write(5)
        old = await log.end_positions()
        await log.events.begin_epoch(log.tenant, build_unknown_position(old.own))
        with pytest.raises(CursorExpired):
            await log.service.find_start(log.tenant, old)
        new = await log.end_positions()
        beginning = FeedPosition(LogPosition(new.own.epoch, 0))
        assert await log.service.find_start(log.tenant, START) == beginning, "the start belongs to every epoch"
        assert await log.service.find_start(log.tenant, new) == new


async def test_a_cursor_beyond_the_end_is_refused_and_begins_an_epoch() -> None:
    """The log lost events that were delivered: other readers of these events also get an error."""
    async with run_log() as log:
        await log.write(5)
        fourth, fifth = await log.position_at(4), await log.end_positions()
        log.delete_events(4)
        with pytest.raises(CursorExpired):
            await log.service.find_start(log.tenant, fifth)
        bounds = (await log.events.query_bounds([log.tenant]))[log.tenant]
        assert bounds.epoch != fifth.own.epoch and (bounds.epoch_start, bounds.last) == (3, 3)
        log.clock.advance(SECOND)
        await log.write(4)
        for old in (fourth, fifth):
            with pytest.raises(CursorExpired):
                await log.service.find_start(log.tenant, old)
        assert (await log.events.query_bounds([log.tenant]))[log.tenant].epoch == bounds.epoch, "once"


async def test_a_cursor_of_a_log_with_another_history_is_refused() -> None:
    """The log reached the position again before any read, with another time at the position."""
    async with run_log() as log:
        await log.write(5)
        fourth, fifth = await log.position_at(4), await log.end_positions()
        log.delete_events(4)
        log.clock.advance(SECOND)
        await log.write(2)
        with pytest.raises(CursorExpired):
            await log.service.find_start(log.tenant, fifth)
        await log.write(3)
        for old in (fourth, fifth):
            with pytest.raises(CursorExpired):
                after = await log.service.find_start(log.tenant, old)
                await log.service.read_page(log.tenant, after, 10, FEED)


async def test_a_licensed_reader_gets_an_error_if_the_networks_log_lost_events() -> None:
    async with run_log() as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        await publish_events(log, owner, catalogue, 3)
        old = await log.service.find_end(log.tenant)
        log.delete_events(2, get_network_tenant(True))
        await log.tailer.bounds_cache.query_fresh(get_network_tenant(True))
        assert (await log.service.read_page(log.tenant, old, 10, FEED)).position == await log.end_positions(), (
            "the reader missed no event"
        )
        log.grant_licence(owner, catalogue, "*")
        with pytest.raises(CursorExpired):
            after = await log.service.find_start(log.tenant, old)
            await log.service.read_page(log.tenant, after, 10, FEED)


async def test_licensed_and_own_events_share_pages() -> None:
    async with run_log() as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        log.grant_licence(owner, catalogue, "*")
        offer = {"type": "offer.changed", "catalogue": catalogue, "is_published": True, "fields": [("cost", 1, 2)]}
        written = await log.write(2)
        log.clock.advance(SECOND)
        await log.write(30, owner, **offer)
        written += await publish_events(log, owner, catalogue, 2)
        log.clock.advance(SECOND)
        written += await log.write(1)
        own = {*written[:2], written[4]}
        seen, position, caught_up = list[str](), START, False
        while not caught_up:
            page = await log.service.read_page(log.tenant, position, 3, FEED)
            assert parse_ids(page.body) == [id for id in written if id in parse_ids(page.body)]
            seen += parse_ids(page.body)
            position, caught_up = page.position, page.caught_up
        for of_log in (own, set(written) - own):
            assert [id for id in seen if id in of_log] == [id for id in written if id in of_log]
        assert sorted(seen) == sorted(written)
        recent = await log.service.list_recent(log.tenant, PageRequest(10), FEED)
        assert list_ids(recent.items) == written[::-1] and not recent.has_more


async def test_pages_of_both_logs_are_ordered_by_time_for_any_page_size() -> None:
    async with run_log() as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        log.grant_licence(owner, catalogue, "*")
        written: list[str] = []
        for number in range(12):
            log.clock.advance(SECOND)
            written += await (publish_events(log, owner, catalogue, 2) if number % 3 else log.write(3))
        for limit in (1, 2, 5, 7, 100):
            seen, position, caught_up = list[str](), START, False
            while not caught_up:
                page = await log.service.read_page(log.tenant, position, limit, FEED)
                assert page.count <= limit
                seen += parse_ids(page.body)
                position, caught_up = page.position, page.caught_up
            assert seen == written
            assert position == await log.end_positions()


async def test_a_reader_without_a_licence_skips_the_network_log() -> None:
    """A later licence therefore covers only events that are committed after it."""
    async with run_log() as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        await publish_events(log, owner, catalogue, 3)
        page = await log.service.read_page(log.tenant, START, 10, FEED)
        assert (page.count, page.position, page.caught_up) == (
            0,
            replace(await log.end_positions(), own=START.own),
            True,
        )
        log.grant_licence(owner, catalogue, "*")
        shown = await publish_events(log, owner, catalogue, 2)
        assert parse_ids((await log.service.read_page(log.tenant, page.position, 10, FEED)).body) == shown


async def test_waiting_ends_at_the_timeout() -> None:
    async with run_log() as log, asyncio.timeout(5):
        page = await log.service.wait_for_events(log.tenant, START, 10, FEED, 0.1)
        assert (page.count, page.caught_up) == (0, True)
