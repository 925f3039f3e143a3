"""The listener and those who follow: nothing missed, nothing twice, whatever comes at once."""

import asyncio
import json
from random import Random
from typing import Any

import pytest

from domain.changes.usecases import tailing as listening
from domain.changes.usecases import reading
from domain.changes.usecases.tailing import Subscription
from domain.changes.model import EventFilter
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.support.logs import Log, running

pytestmark = pytest.mark.asyncio
BLOCKED = EventFilter(types=frozenset({"source.blocked"}))


async def take(subscription: Subscription, count: int, within: float = 10.0) -> list[str]:
    """The ids of the next events."""
    seen: list[str] = []
    async with asyncio.timeout(within):
        while len(seen) < count:
            read_batch = await subscription.next()
            assert all(event.position <= read_batch.position for event in read_batch.events)
            seen += [event.id for event in read_batch.events]
    return seen


async def quiet(subscription: Subscription, seconds: float = 0.15) -> None:
    """Nothing comes for a while."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while (left := until - loop.time()) > 0:
        assert (await subscription.next(timeout=left)).events == []


async def test_what_was_written_before_and_after() -> None:
    async with running() as log:
        written = await log.write(3)
        async with log.tailer.follow(log.tenant, 0) as subscription:
            assert await take(subscription, 3) == written
            for _ in range(5):
                written = await log.write(2)
                assert await take(subscription, 2) == written
            assert subscription.position == await log.events.high_watermark()


async def test_joining_while_events_come_misses_and_repeats_nothing() -> None:
    async with running() as log:
        written: list[str] = []
        dice = Random(3)

        async def write() -> None:
            for _ in range(150):
                written.extend(await log.write(dice.randrange(1, 9)))
                await asyncio.sleep(dice.random() * 0.003)

        async def follow(delay: float) -> list[str]:
            await asyncio.sleep(delay)
            seen: list[str] = []
            async with log.tailer.follow(log.tenant, 0) as subscription:
                while not writing.done() or len(seen) < len(written):
                    read_batch = await subscription.next(dice.randrange(1, 50), 0.05)
                    seen += [event.id for event in read_batch.events]
            return seen

        writing = asyncio.create_task(write())
        async with asyncio.timeout(30):
            found = await asyncio.gather(*(follow(number * 0.03) for number in range(12)))
        assert all(seen == written for seen in found)


async def test_the_first_follower_of_a_long_log_has_nobody_read_it_from_its_beginning() -> None:
    async with running() as log:
        await log.write(2_000)
        end = await log.service.now()
        log.events.read = 0
        async with log.tailer.follow(log.tenant, end) as subscription:
            written = await log.write()
            assert await take(subscription, 1) == written
        assert log.events.read <= 3


async def test_one_reading_serves_all_followers_of_a_tenant() -> None:
    async with running() as log:
        end = await log.service.now()
        async with asyncio.timeout(20):
            followers = [log.tailer.follow(log.tenant, end) for _ in range(50)]
            subscriptions = [await tailer.__aenter__() for tailer in followers]
            for subscription in subscriptions:
                await subscription.next(timeout=0.01)
            log.events.read = 0
            written = await log.write(3)
            assert all([await take(subscription, 3) == written for subscription in subscriptions])
            assert log.events.read == 1
            for tailer in followers:
                await tailer.__aexit__(None, None, None)
        assert log.tailer._channels == {}


async def test_a_tenant_that_writes_a_lot_leaves_others_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "PAGE", 20)
    async with running(idle=600) as log:
        end, other = await log.service.now(), Tenant(new_id("org"), True)
        async with log.tailer.follow(log.tenant, end) as busy, log.tailer.follow(other, end) as calm:
            for subscription in (busy, calm):
                await subscription.next(timeout=0.01)
            log.events.read = 0
            many, few = await log.write(2_000), await log.write(1, other)
            assert await take(calm, 1) == few
            assert log.events.read <= 3 * listening.TURN
            assert await take(busy, 2_000) == many


async def test_a_writer_that_is_not_done_holds_back_what_came_after_it() -> None:
    async with running(idle=600) as log:
        before = await log.write()
        log.events.held = 2
        async with log.tailer.follow(log.tenant, 0) as subscription:
            after = await log.write(2)
            assert await take(subscription, 1) == before
            await quiet(subscription)
            log.events.held = None
            assert await take(subscription, 2) == after


async def test_one_who_is_ahead_of_the_listener_hears_nothing_twice() -> None:
    async with running(idle=600) as log, log.tailer.follow(log.tenant, 0) as early:
        assert (await early.next(timeout=0.1)).events == []
        notify = log.store.listeners.pop()
        first = await log.write(4)
        await log.tailer.high_watermark.fresh()
        async with log.tailer.follow(log.tenant, 2) as late:
            assert await take(late, 2) == first[2:]
            second = await log.write(2)
            notify("events", f"{log.tenant.org} t")
            assert await take(late, 2) == second
            assert await take(early, 6) == first + second


async def test_a_filter_leaves_events_out_and_the_position_moves_on() -> None:
    async with running() as log:
        await log.write(5)
        wanted = await log.write(1, type="source.blocked")
        async with log.tailer.follow(log.tenant, 0, BLOCKED) as subscription:
            assert await take(subscription, 1) == wanted
            await log.write(5)
            await quiet(subscription)
            assert subscription.position == await log.events.high_watermark()
            wanted = await log.write(1, type="source.blocked")
            assert await take(subscription, 1) == wanted


async def test_a_rare_type_is_looked_for_window_by_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "WINDOW", 10)
    async with running() as log:
        await log.write(95)
        wanted = await log.write(1, type="source.blocked")
        async with log.tailer.follow(log.tenant, 0, BLOCKED) as subscription:
            stretches = [await subscription.next() for _ in range(10)]
        assert [read_batch.position for read_batch in stretches] == [*range(10, 100, 10), 96]
        assert [read_batch.caught_up for read_batch in stretches] == [False] * 9 + [True]
        assert [event.id for event in stretches[-1].events] == wanted


async def test_who_is_too_slow_reads_the_log_itself_and_misses_nothing() -> None:
    async with running(most_waiting=20) as log:
        async with log.tailer.follow(log.tenant, 0) as subscription:
            written = await log.write()
            seen = await take(subscription, 1)
            for _ in range(10):
                written += await log.write(10)
                await asyncio.sleep(0.02)
            assert subscription.overflowed > 0 and len(subscription._waiting) <= 20
            assert seen + await take(subscription, 100) == written
            written = await log.write()
            assert await take(subscription, 1) == written


@pytest.mark.parametrize("bound", ["FOLLOWER_BYTES", "TENANT_BYTES", "PROCESS_BYTES"])
async def test_no_more_is_held_than_so_many_bytes_and_nothing_is_missed(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, bound, 20_000)
    async with running() as log:
        async with log.tailer.follow(log.tenant, 0) as slow, log.tailer.follow(log.tenant, 0) as quick:
            written = await log.write()
            seen = [await take(slow, 1), await take(quick, 1)]
            for _ in range(10):
                written += await log.write(10)
                seen[1] += await take(quick, 10)
                assert sum(len(event.body) for event in slow._waiting) <= 20_000
            assert slow.overflowed == quick.overflowed == 0
            assert seen[1] == written
            assert seen[0] + await take(slow, 100) == written


async def test_a_database_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_RETRY", 0.05)
    async with running() as log, log.tailer.follow(log.tenant, 0) as subscription:
        assert (await subscription.next(timeout=0.05)).events == []
        log.events.down = True
        written = await log.write(2)
        await quiet(subscription)
        log.events.down = False
        assert await take(subscription, 2) == written


async def test_a_lost_signal_costs_time_but_no_event() -> None:
    async with running(idle=0.2) as log, log.tailer.follow(log.tenant, 0) as subscription:
        assert (await subscription.next(timeout=0.05)).events == []
        log.store.listeners.clear()
        written = await log.write(2)
        assert await take(subscription, 2) == written


async def test_others_signals_do_not_keep_a_lost_one_from_being_noticed() -> None:
    async with running(idle=0.2) as log, log.tailer.follow(log.tenant, 0) as subscription:
        assert (await subscription.next(timeout=0.05)).events == []
        log.store.listeners.clear()
        written = await log.write(2)

        async def others() -> None:
            while True:
                log.signals.notify("events", "org_other t")
                await asyncio.sleep(0.01)

        talking = asyncio.create_task(others())
        try:
            assert await take(subscription, 2) == written
        finally:
            talking.cancel()


async def test_asking_together_asks_once_and_never_too_early() -> None:
    log = Log()
    await log.write()
    await asyncio.gather(*(log.tailer.high_watermark.fresh() for _ in range(100)))
    assert log.events.reached <= 2
    first = asyncio.create_task(log.tailer.high_watermark.fresh())
    await asyncio.sleep(0)
    await log.write()
    assert await log.tailer.high_watermark.fresh() == 2
    await first


async def test_tenants_do_not_hear_each_other() -> None:
    async with running() as log:
        other, sandbox = Tenant(new_id("org"), True), Tenant(log.tenant.org, False)
        async with log.tailer.follow(log.tenant, 0) as subscription, log.tailer.follow(sandbox, 0) as testing:
            await log.write(3, other)
            in_test = await log.write(1, sandbox)
            mine = await log.write()
            assert await take(subscription, 1) == mine
            assert await take(testing, 1) == in_test
            await quiet(subscription, 0.05)


def _data(stretch_events: Any) -> list[dict[str, Any]]:
    return [json.loads(event.body)["data"] for event in stretch_events]


async def _offer(log: Log, owner: Tenant, catalogue: str, *paths: str, **changes: Any) -> list[str]:
    subject = new_id("ofr")
    return await log.write(
        1, owner, subject=subject, type="offer.changed", version=4, catalogue=catalogue, network=True,
        data={"id": subject}, facets=["price", "stock"], fields=[(path, 1, 2) for path in paths], **changes,
    )  # fmt: skip


async def test_a_holder_hears_what_the_licence_covers_and_nothing_else() -> None:
    async with running() as log:
        owner, published, closed = Tenant(new_id("org"), True), new_id("cat"), new_id("cat")
        log.grant(owner, published, "*")
        log.grant(owner, closed, new_id("org"), "trade")
        async with log.tailer.follow(log.tenant, 0) as subscription:
            assert (await subscription.next(timeout=0.05)).events == []
            await _offer(log, owner, closed, "price")
            await _offer(log, owner, published, "quantity", "cost")
            await log.write(1, owner, catalogue=published)
            await _offer(log, Tenant(owner.org, False), published, "price")
            shown = await _offer(log, owner, published, "price", "quantity", "cost", "availability")
            own = await _offer(log, log.tenant, published, "cost", "quantity")
            events: list[Any] = []
            while len(events) < 2:
                events += (await subscription.next()).events
            assert [event.id for event in events] == [*shown, *own]
            told, whole = _data(events)
            assert [field["path"] for field in told["fields"]] == ["price", "availability"]
            assert "stock" not in told["facets"] and "previous_version" not in told
            assert [field["path"] for field in whole["fields"]] == ["cost", "quantity"]
            await quiet(subscription, 0.05)


async def test_a_grant_by_name_adds_groups() -> None:
    async with running() as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        log.grant(owner, catalogue, "*")
        log.grant(owner, catalogue, log.tenant.org, "stock")
        await _offer(log, owner, catalogue, "price", "quantity", "cost")
        async with log.tailer.follow(log.tenant, 0) as subscription:
            [told] = _data((await subscription.next()).events)
        assert [field["path"] for field in told["fields"]] == ["price", "quantity"]
        assert b"cost" not in (await log.service.page(log.tenant, 0, 10, EventFilter())).body


async def test_a_licence_granted_while_following_opens_what_comes_with_it() -> None:
    """Even when the very first event of the catalogue is written together with the grant."""
    async with running(idle=0.3) as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        async with log.tailer.follow(log.tenant, 0) as subscription:
            own = await log.write()
            assert await take(subscription, 1) == own
            log.grant(owner, catalogue, "*")
            first = await _offer(log, owner, catalogue, "price")
            own = await log.write()
            second = await _offer(log, owner, catalogue, "price")
            assert await take(subscription, 3) == [*first, *own, *second]
            log.revoke(owner, catalogue, "*")
            await _offer(log, owner, catalogue, "price")
            own = await log.write()
            assert await take(subscription, 1) == own


async def test_one_who_joins_late_reads_with_the_licences_of_the_high_watermark() -> None:
    """Another reader moved the high watermark on; the channel's own licences are older than that."""
    async with running() as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        async with log.tailer.follow(log.tenant, 0) as early:
            own = await log.write()
            assert await take(early, 1) == own
            log.grant(owner, catalogue, "*")
            log.store.listeners.clear()
            first = await _offer(log, owner, catalogue, "price")
            await log.tailer.high_watermark.fresh()
            async with log.tailer.follow(log.tenant, 0) as late:
                assert await take(late, 2) == [*own, *first]


async def test_closing_wakes_everyone() -> None:
    async with running() as log, log.tailer.follow(log.tenant, 0) as subscription:
        assert (await subscription.next(timeout=0.05)).events == []
        waiting = asyncio.create_task(subscription.next())
        await asyncio.sleep(0.05)
        log.tailer.close()
        assert (await asyncio.wait_for(waiting, 5)).events == [] and log.tailer.closing


async def test_who_rests_at_the_end_of_the_log_is_told_without_asking_it() -> None:
    async with running(idle=0.05) as log:
        end = await log.service.now()
        log.events.read = 0
        page = await log.service.long_poll(log.tenant, end, 10, EventFilter(), 0.5)
        assert (page.count, page.caught_up, log.events.read) == (0, True, 0)
        resting = asyncio.create_task(log.service.long_poll(log.tenant, page.position, 10, EventFilter(), 20))
        await asyncio.sleep(0.05)
        await log.write(2)
        assert (await resting).count == 2


async def test_who_rests_is_not_told_of_an_end_that_nobody_has_looked_at() -> None:
    async with running(idle=600) as log:
        end = await log.service.now()
        notify = log.store.listeners.pop()
        written = asyncio.create_task(log.write(2))
        page = await log.service.long_poll(log.tenant, end, 10, EventFilter(), 0.1)
        assert (page.count, len(await written)) == (2, 2)
        log.events.down = True
        with pytest.raises(ConnectionError):
            await log.service.long_poll(log.tenant, page.position, 10, EventFilter(), 0.1)
        log.store.listeners.append(notify)
