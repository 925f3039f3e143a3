"""The log tailer and its subscriptions: each event is delivered exactly once, also under concurrency."""

import asyncio
import json
from collections.abc import Collection
from datetime import timedelta
from random import Random
from types import ModuleType
from typing import Any

import pytest

from domain.changes.model import EventFilter, get_network_tenant
from domain.changes.usecases import log_reader, log_tailer
from domain.changes.usecases.log_tailer import Subscription
from domain.events.ports import EventLog
from domain.kernel.errors import CursorExpired
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.support import builders
from tests.support.logs import START, TailedLog, build_unknown_position, run_log

pytestmark = pytest.mark.asyncio
BLOCKED = EventFilter(types=frozenset({"source.blocked"}))


async def take_events(subscription: Subscription, count: int, within: float = 30.0) -> list[str]:
    """Return the IDs of the next events."""
    seen: list[str] = []
    async with asyncio.timeout(within):
        while len(seen) < count:
            read_batch = await subscription.next_batch()
            reached = {False: read_batch.position.own, True: read_batch.position.network}
            assert all(event.position <= reached[event.is_from_network].position for event in read_batch.events)
            seen += [event.id for event in read_batch.events]
    return seen


async def assert_no_events(subscription: Subscription, seconds: float = 0.15) -> None:
    """Assert that no event arrives for a while."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while (left := until - loop.time()) > 0:
        assert not (await subscription.next_batch(timeout=left)).events


async def test_events_before_and_after_a_subscription_are_received() -> None:
    async with run_log() as log:
        written = await log.write(3)
        async with log.tailer.subscribe(log.tenant, START) as subscription:
            assert await take_events(subscription, 3) == written
            for _ in range(5):
                written = await log.write(2)
                assert await take_events(subscription, 2) == written
            assert subscription.position == await log.end_positions()


async def test_subscribing_while_events_are_written_misses_and_repeats_nothing() -> None:
    async with run_log() as log:
        written: list[str] = []
        dice = Random(3)

        async def write() -> None:
            for _ in range(150):
                written.extend(await log.write(dice.randrange(1, 9)))
                await asyncio.sleep(dice.random() * 0.003)

        async def follow(delay: float) -> list[str]:
            await asyncio.sleep(delay)
            seen: list[str] = []
            async with log.tailer.subscribe(log.tenant, START) as subscription:
                while not writing.done() or len(seen) < len(written):
                    read_batch = await subscription.next_batch(dice.randrange(1, 50), 0.05)
                    seen += [event.id for event in read_batch.events]
            return seen

        writing = asyncio.create_task(write())
        async with asyncio.timeout(30):
            found = await asyncio.gather(*(follow(number * 0.03) for number in range(12)))
        assert all(seen == written for seen in found)


async def test_the_first_subscriber_of_a_long_log_does_not_read_its_start() -> None:
    async with run_log() as log:
        await log.write(2_000)
        end = await log.service.find_end(log.tenant)
        log.events.read = 0
        async with log.tailer.subscribe(log.tenant, end) as subscription:
            written = await log.write()
            assert await take_events(subscription, 1) == written
        assert log.events.read <= 3


async def test_one_read_serves_all_followers_of_a_tenant() -> None:
    async with run_log() as log:
        end = await log.service.find_end(log.tenant)
        async with asyncio.timeout(20):
            followers = [log.tailer.subscribe(log.tenant, end) for _ in range(50)]
            subscriptions = [await tailer.__aenter__() for tailer in followers]
            for subscription in subscriptions:
                await subscription.next_batch(timeout=0.01)
            log.events.read = 0
            written = await log.write(3)
            assert all([await take_events(subscription, 3) == written for subscription in subscriptions])
            assert log.events.read == 1
            for tailer in followers:
                await tailer.__aexit__(None, None, None)
        assert log.tailer._channels == {}


async def test_a_tenant_with_many_writes_does_not_starve_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tailer, "MAX_PAGE_EVENTS", 20)
    async with run_log(idle_seconds=600) as log:
        end, other = await log.service.find_end(log.tenant), Tenant(new_id("org"), True)
        async with log.tailer.subscribe(log.tenant, end) as busy, log.tailer.subscribe(other, end) as calm:
            for subscription in (busy, calm):
                await subscription.next_batch(timeout=0.01)
            log.events.read = 0
            many, few = await log.write(2_000), await log.write(1, other)
            assert await take_events(calm, 1) == few
            assert log.events.read <= 3 * log_tailer.MAX_PAGES_PER_TURN
            assert await take_events(busy, 2_000) == many


async def test_appended_events_are_received_once_they_are_committed() -> None:
    async with run_log(idle_seconds=0.02) as log:
        before, other = await log.write(), builders.event(new_id("src"))
        async with log.tailer.subscribe(log.tenant, START) as subscription:
            async with log.uow.begin(log.tenant, builders.CALL) as tx:
                await tx[EventLog].append([other])
                assert await take_events(subscription, 1) == before
                await assert_no_events(subscription)
            after = await log.write(2)
            assert await take_events(subscription, 3) == [other.id, *after]


async def test_a_follower_ahead_of_the_tailer_receives_nothing_twice() -> None:
    async with run_log(idle_seconds=600) as log, log.tailer.subscribe(log.tenant, START) as early:
        assert not (await early.next_batch(timeout=0.1)).events
        notify = log.store.listeners.pop()
        first = await log.write(4)
        await log.tailer.bounds_cache.query_fresh(log.tenant)
        async with log.tailer.subscribe(log.tenant, await log.position_at(2)) as late:
            second = await log.write(2)
            notify("events", f"{log.tenant.org} t")
            assert await take_events(late, 4) == first[2:] + second
            third = await log.write(1)
            notify("events", f"{log.tenant.org} t")
            assert await take_events(late, 1) == third
            assert await take_events(early, 7) == first + second + third


async def test_a_filter_omits_events_and_advances_the_position() -> None:
    async with run_log() as log:
        await log.write(5)
        wanted = await log.write(1, type="source.blocked")
        async with log.tailer.subscribe(log.tenant, START, BLOCKED) as subscription:
            assert await take_events(subscription, 1) == wanted
            await log.write(5)
            await assert_no_events(subscription)
            assert subscription.position == await log.end_positions()
            wanted = await log.write(1, type="source.blocked")
            assert await take_events(subscription, 1) == wanted


async def test_a_rare_type_is_searched_in_windows() -> None:
    async with run_log() as log:
        await log.write(95)
        wanted = await log.write(1, type="source.blocked")
        log.events.window = 10
        async with log.tailer.subscribe(log.tenant, START, BLOCKED) as subscription:
            stretches = [await subscription.next_batch() for _ in range(10)]
            assert (await subscription.next_batch(timeout=0.01)).caught_up
        assert [batch.position.own.position for batch in stretches] == [*range(10, 100, 10), 96]
        assert [batch.caught_up for batch in stretches[:-1]] == [False] * 9
        assert [event.id for event in stretches[-1].events] == wanted


async def test_a_slow_follower_reads_the_log_itself_and_misses_nothing() -> None:
    async with run_log(max_waiting=20) as log, log.tailer.subscribe(log.tenant, START) as subscription:
        written = await log.write()
        seen = await take_events(subscription, 1)
        for _ in range(10):
            written += await log.write(10)
            await asyncio.sleep(0.02)
        assert subscription.overflow_count > 0 and len(subscription.own._waiting) <= 20
        assert seen + await take_events(subscription, 100) == written
        written = await log.write()
        assert await take_events(subscription, 1) == written


@pytest.mark.parametrize(
    ("module", "bound"),
    [(log_tailer, "SUBSCRIBER_BYTES"), (log_tailer, "TENANT_BYTES"), (log_tailer, "PROCESS_BYTES")],
)
async def test_buffered_bytes_are_bounded_and_nothing_is_missed(
    module: ModuleType, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, bound, 20_000)
    async with run_log() as log:
        async with log.tailer.subscribe(log.tenant, START) as slow, log.tailer.subscribe(log.tenant, START) as quick:
            written = await log.write()
            seen = [await take_events(slow, 1), await take_events(quick, 1)]
            for _ in range(10):
                written += await log.write(10)
                seen[1] += await take_events(quick, 10)
                assert sum(len(event.body) for event in slow.own._waiting) <= 20_000
            assert slow.overflow_count == quick.overflow_count == 0
            assert seen[1] == written
            assert seen[0] + await take_events(slow, 100) == written


async def test_an_unavailable_database_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tailer, "_RETRY", 0.05)
    async with run_log() as log, log.tailer.subscribe(log.tenant, START) as subscription:
        assert not (await subscription.next_batch(timeout=0.05)).events
        log.events.down = True
        written = await log.write(2)
        await assert_no_events(subscription)
        log.events.down = False
        assert await take_events(subscription, 2) == written


async def test_a_lost_signal_delays_but_loses_no_event() -> None:
    async with run_log(idle_seconds=0.2) as log, log.tailer.subscribe(log.tenant, START) as subscription:
        assert not (await subscription.next_batch(timeout=0.05)).events
        log.store.listeners.clear()
        written = await log.write(2)
        assert await take_events(subscription, 2) == written


async def test_signals_of_other_tenants_do_not_hide_a_lost_signal() -> None:
    async with run_log(idle_seconds=0.2) as log, log.tailer.subscribe(log.tenant, START) as subscription:
        assert not (await subscription.next_batch(timeout=0.05)).events
        log.store.listeners.clear()
        written = await log.write(2)

        async def send_signals() -> None:
            while True:
                log.signals.notify("events", "org_other t")
                await asyncio.sleep(0.01)

        sending = asyncio.create_task(send_signals())
        try:
            assert await take_events(subscription, 2) == written
        finally:
            sending.cancel()


async def test_concurrent_requests_share_one_query_that_starts_after_them() -> None:
    log = TailedLog()
    other = Tenant(new_id("org"), True)
    await log.write()
    requests = [log.tailer.bounds_cache.query_fresh(tenant) for _ in range(50) for tenant in (log.tenant, other)]
    assert [bounds.last for bounds in await asyncio.gather(*requests)] == [1, 0] * 50
    assert log.events.bounds_reads <= 2
    first = asyncio.create_task(log.tailer.bounds_cache.query_fresh(log.tenant))
    await asyncio.sleep(0)
    await log.write()
    assert (await log.tailer.bounds_cache.query_fresh(log.tenant)).last == 2
    await first


async def test_tenants_do_not_receive_each_others_events() -> None:
    async with run_log() as log:
        other, sandbox = Tenant(new_id("org"), True), Tenant(log.tenant.org, False)
        async with (
            log.tailer.subscribe(log.tenant, START) as subscription,
            log.tailer.subscribe(sandbox, START) as testing,
        ):
            await log.write(3, other)
            in_test = await log.write(1, sandbox)
            mine = await log.write()
            assert await take_events(subscription, 1) == mine
            assert await take_events(testing, 1) == in_test
            await assert_no_events(subscription, 0.05)


def _parse_data(stretch_events: Any) -> list[dict[str, Any]]:
    return [json.loads(event.body)["data"] for event in stretch_events]


async def _publish_offer(log: TailedLog, owner: Tenant, catalogue: str, *paths: str, **changes: Any) -> list[str]:
    """Write a published offer event and copy it to the network log."""
    subject = new_id("ofr")
    published = await log.write(
        1, owner, subject=subject, type="offer.changed", version=4, catalogue=catalogue, is_published=True,
        data={"id": subject}, facets=["price", "stock"], fields=[(path, 1, 2) for path in paths], **changes,
    )  # fmt: skip
    await log.relay_events()
    return published


async def test_a_licensee_receives_what_the_licence_covers_and_nothing_else() -> None:
    async with run_log() as log:
        owner, published, closed = Tenant(new_id("org"), True), new_id("cat"), new_id("cat")
        log.grant_licence(owner, published, "*")
        log.grant_licence(owner, closed, new_id("org"), "trade")
        async with log.tailer.subscribe(log.tenant, START) as subscription:
            assert not (await subscription.next_batch(timeout=0.05)).events
            await _publish_offer(log, owner, closed, "price")
            await _publish_offer(log, owner, published, "quantity", "cost")
            await log.write(1, owner, catalogue=published)
            await _publish_offer(log, Tenant(owner.org, False), published, "price")
            shown = await _publish_offer(log, owner, published, "price", "quantity", "cost", "availability")
            own = await _publish_offer(log, log.tenant, published, "cost", "quantity")
            events: dict[str, Any] = {}
            while len(events) < 2:
                events |= {event.id: event for event in (await subscription.next_batch()).events}
            assert events.keys() == {*shown, *own}
            data, whole = _parse_data([events[shown[0]], events[own[0]]])
            assert events[shown[0]].is_from_network and not events[own[0]].is_from_network
            assert [field["path"] for field in data["fields"]] == ["price", "availability"]
            assert "stock" not in data["facets"] and "previous_version" not in data
            assert [field["path"] for field in whole["fields"]] == ["cost", "quantity"]
            await assert_no_events(subscription, 0.05)


async def test_a_subscriber_during_a_licence_query_is_not_treated_as_unlicensed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with run_log(idle_seconds=0.05) as log:
        owner, catalogue, other = Tenant(new_id("org"), True), new_id("cat"), Tenant(new_id("org"), True)
        log.grant_licence(owner, catalogue, log.tenant.org)
        published = await _publish_offer(log, owner, catalogue, "price") + await _publish_offer(
            log, owner, catalogue, "price"
        )
        filter_licensed, started, answer = log.events.filter_licensed, asyncio.Event(), asyncio.Event()

        async def find_slowly(tenants: Collection[Tenant]) -> frozenset[Tenant]:
            if started.is_set() or log.tenant in tenants:
                return await filter_licensed(tenants)
            started.set()
            await answer.wait()
            return await filter_licensed(tenants)

        async with log.tailer.subscribe(other, START) as first:
            await assert_no_events(first, 0.02)
            monkeypatch.setattr(log.events, "filter_licensed", find_slowly)
            await started.wait()
            async with log.tailer.subscribe(log.tenant, START) as subscription:
                answer.set()
                await asyncio.sleep(0.02)
                assert await take_events(subscription, 2) == published


async def test_a_grant_by_name_adds_groups() -> None:
    async with run_log() as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        log.grant_licence(owner, catalogue, "*")
        log.grant_licence(owner, catalogue, log.tenant.org, "stock")
        await _publish_offer(log, owner, catalogue, "price", "quantity", "cost")
        async with log.tailer.subscribe(log.tenant, START) as subscription:
            [data] = _parse_data((await subscription.next_batch()).events)
        assert [field["path"] for field in data["fields"]] == ["price", "quantity"]
        assert b"cost" not in (await log.service.read_page(log.tenant, START, 10, EventFilter())).body


async def test_a_licence_granted_while_following_covers_simultaneous_events() -> None:
    """The first event of the catalogue may be written together with the grant."""
    async with run_log(idle_seconds=0.3) as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        async with log.tailer.subscribe(log.tenant, START) as subscription:
            own = await log.write()
            assert await take_events(subscription, 1) == own
            log.grant_licence(owner, catalogue, "*")
            first = await _publish_offer(log, owner, catalogue, "price")
            own = await log.write()
            second = await _publish_offer(log, owner, catalogue, "price")
            seen = await take_events(subscription, 3)
            assert [id for id in seen if id not in own] == [*first, *second] and set(own) < set(seen)
            log.revoke_licence(owner, catalogue, "*")
            await _publish_offer(log, owner, catalogue, "price")
            own = await log.write()
            assert await take_events(subscription, 1) == own
            await assert_no_events(subscription, 0.5)


async def test_a_late_follower_reads_with_the_current_licences() -> None:
    """Another follower of the tenant started without licences, and no signal is sent."""
    async with run_log(idle_seconds=0.3) as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        async with log.tailer.subscribe(log.tenant, START) as early:
            own = await log.write()
            assert await take_events(early, 1) == own
            log.grant_licence(owner, catalogue, "*")
            log.store.listeners.clear()
            first = await _publish_offer(log, owner, catalogue, "price")
            async with log.tailer.subscribe(log.tenant, START) as late:
                assert set(await take_events(late, 2)) == {*own, *first}
            assert await take_events(early, 1) == first


async def test_a_tenant_without_licences_does_not_read_the_networks_log() -> None:
    """The old position may be followed by millions of events of the network log."""
    async with run_log(idle_seconds=0.05) as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        for _ in range(3):
            await _publish_offer(log, owner, catalogue, "price")
        async with log.tailer.subscribe(log.tenant, START) as subscription:
            own = await log.write(2)
            assert await take_events(subscription, 2) == own
            await _publish_offer(log, owner, catalogue, "price")
            await assert_no_events(subscription, 0.2)
            end, reached = await log.end_positions(), subscription.position
            assert (reached.own.position, reached.network.position) == (2, end.network.position)
        assert log.events.read_of_network == 0


async def test_events_of_each_log_arrive_in_order_while_both_grow() -> None:
    async with run_log() as log:
        owner, catalogue, dice = Tenant(new_id("org"), True), new_id("cat"), Random(5)
        log.grant_licence(owner, catalogue, log.tenant.org)
        written: dict[bool, list[str]] = {False: [], True: []}

        async def write(of_network: bool) -> None:
            for _ in range(40):
                if of_network:
                    written[True] += await _publish_offer(log, owner, catalogue, "price")
                else:
                    written[False] += await log.write(dice.randrange(1, 4))
                await asyncio.sleep(dice.random() * 0.003)

        async def follow(delay: float) -> dict[bool, list[str]]:
            await asyncio.sleep(delay)
            seen: dict[bool, list[str]] = {False: [], True: []}
            async with log.tailer.subscribe(log.tenant, START) as subscription:
                while not writing.done() or sum(map(len, seen.values())) < sum(map(len, written.values())):
                    for event in (await subscription.next_batch(dice.randrange(1, 20), 0.05)).events:
                        seen[event.is_from_network].append(event.id)
            return seen

        async with asyncio.timeout(30):
            writing = asyncio.gather(write(False), write(True))
            for seen in await asyncio.gather(*(follow(number * 0.03) for number in range(6))):
                assert seen == written


async def test_a_follower_gets_an_error_if_the_log_was_rolled_back() -> None:
    """The log either lacks the events or has reached the position again with other events."""
    for again in (0, 3):
        async with run_log(idle_seconds=0.05) as log, log.tailer.subscribe(log.tenant, START) as subscription:
            written = await log.write(5)
            assert await take_events(subscription, 5) == written
            log.delete_events(3)
            log.clock.advance(timedelta(seconds=1))
            if again:
                await log.write(again)
            async with asyncio.timeout(10):
                with pytest.raises(CursorExpired):
                    while True:
                        assert not (await subscription.next_batch()).events
            async with log.tailer.subscribe(log.tenant, await log.end_positions()) as restarted:
                written = await log.write(2)
                assert await take_events(restarted, 2) == written


async def test_a_follower_gets_an_error_if_the_networks_log_was_rolled_back() -> None:
    async with run_log(idle_seconds=0.05) as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        log.grant_licence(owner, catalogue, "*")
        async with log.tailer.subscribe(log.tenant, START) as subscription:
            first = await _publish_offer(log, owner, catalogue, "price")
            assert await take_events(subscription, 1) == first
            log.delete_events(1, get_network_tenant(True))
            async with asyncio.timeout(10):
                with pytest.raises(CursorExpired):
                    while True:
                        assert not (await subscription.next_batch()).events


@pytest.mark.parametrize("of_network", [False, True])
@pytest.mark.parametrize("again", [0, 1, 2, 3])
@pytest.mark.parametrize("remembered", [True, False])
async def test_a_follower_gets_an_error_for_a_position_that_the_log_lost(
    remembered: bool, again: int, of_network: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error does not depend on how far the log has grown since; no new event may be skipped."""
    monkeypatch.setattr(log_reader, "MAX_BOUNDS_AGE", 60.0 if remembered else 0.0)
    async with run_log(idle_seconds=0.05) as log:
        owner, catalogue = Tenant(new_id("org"), True), new_id("cat")
        log.grant_licence(owner, catalogue, log.tenant.org)

        async def write(count: int) -> None:
            for _ in range(count):
                await (_publish_offer(log, owner, catalogue, "price") if of_network else log.write())

        await write(5)
        old = await log.service.find_end(log.tenant)
        log.delete_events(4, get_network_tenant(True) if of_network else log.tenant)
        log.clock.advance(timedelta(seconds=1))
        await write(again)
        async with asyncio.timeout(10):
            with pytest.raises(CursorExpired):
                after = await log.service.find_start(log.tenant, old)
                async with log.tailer.subscribe(log.tenant, after) as subscription:
                    await write(4)
                    while True:
                        assert not (await subscription.next_batch()).events


async def test_a_follower_gets_an_error_when_another_epoch_begins() -> None:
    """Another process found that the log lost events, so events after the position are no longer certain."""
    async with run_log(idle_seconds=0.05) as log:
        written = await log.write(3)
        async with log.tailer.subscribe(log.tenant, START) as subscription:
            assert await take_events(subscription, 3) == written
            await log.events.begin_epoch(log.tenant, build_unknown_position((await log.end_positions()).own))
            async with asyncio.timeout(10):
                with pytest.raises(CursorExpired):
                    while True:
                        assert not (await subscription.next_batch()).events
        async with log.tailer.subscribe(log.tenant, await log.end_positions()) as restarted:
            written = await log.write(2)
            assert await take_events(restarted, 2) == written


async def test_a_log_that_begins_while_it_is_followed_is_the_same_log() -> None:
    """A log has no epoch before its first event."""
    async with run_log(idle_seconds=0.05) as log, log.tailer.subscribe(log.tenant, START) as subscription:
        assert not (await subscription.next_batch(timeout=0.2)).events
        for _ in range(3):
            written = await log.write(2)
            assert await take_events(subscription, 2) == written
            await assert_no_events(subscription, 0.1)


async def test_closing_wakes_waiting_subscribers() -> None:
    async with run_log() as log, log.tailer.subscribe(log.tenant, START) as subscription:
        assert not (await subscription.next_batch(timeout=0.05)).events
        waiting = asyncio.create_task(subscription.next_batch())
        await asyncio.sleep(0.05)
        log.tailer.close()
        assert not (await asyncio.wait_for(waiting, 5)).events and log.tailer.is_closing


async def test_a_waiting_reader_at_the_end_of_the_log_is_answered_without_a_query() -> None:
    async with run_log(idle_seconds=0.05) as log:
        end = await log.service.find_end(log.tenant)
        log.events.read = 0
        page = await log.service.long_poll(log.tenant, end, 10, EventFilter(), 0.5)
        assert (page.count, page.caught_up, log.events.read_of_network) == (0, True, 0)
        assert log.events.read <= 1, "one query for events before the subscription"
        resting = asyncio.create_task(log.service.long_poll(log.tenant, page.position, 10, EventFilter(), 20))
        await asyncio.sleep(0.05)
        await log.write(2)
        assert (await resting).count == 2


async def test_a_waiting_reader_does_not_receive_an_unverified_end() -> None:
    async with run_log(idle_seconds=600) as log:
        end = await log.service.find_end(log.tenant)
        notify = log.store.listeners.pop()
        written = asyncio.create_task(log.write(2))
        page = await log.service.long_poll(log.tenant, end, 10, EventFilter(), 0.1)
        assert (page.count, len(await written)) == (2, 2)
        log.events.down = True
        with pytest.raises(ConnectionError):
            await log.service.long_poll(log.tenant, page.position, 10, EventFilter(), 0.1)
        log.store.listeners.append(notify)


async def test_a_waiting_reader_does_not_receive_an_end_after_a_failed_read() -> None:
    """The log has new events, but the tailer failed to read them: the poll reads the log at its end."""
    async with run_log(idle_seconds=0.0) as log:
        written = await log.write(1)
        after = (await log.service.read_page(log.tenant, START, 10, EventFilter())).position
        poll = asyncio.create_task(log.service.long_poll(log.tenant, after, 10, EventFilter(), 0.5))
        await asyncio.sleep(0.05)
        log.events.failing = 1
        written += await log.write(1)
        page = await poll
        assert log.events.failing == 0, "the failed query was that of the tailer"
        assert json.loads(b"[" + page.body + b"]")[0]["id"] == written[1] and page.caught_up
