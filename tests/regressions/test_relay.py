"""Defects of the relay and the followers of the network log: each test states what is expected."""

import asyncio
from typing import Any

import pytest

from domain.changes.model import FeedPosition, LogView, get_network_tenant
from domain.changes.usecases.network import NetworkRelay
from domain.events.model import LogPosition
from domain.kernel.errors import CursorExpired
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.contract.test_event_reader import query_bounds
from tests.contract.test_network_log import publish_events, read_network
from tests.support.backend import Backend
from tests.support.log_changes import grant_licence
from tests.support.logs import START, TailedLog, run_log

pytestmark = pytest.mark.asyncio


async def test_the_relay_continues_after_a_lost_checkpoint() -> None:
    """Expected: after the network's node lost an owner's first checkpoint, the relay continues from the stored state. It read
    the checkpoints again but kept the lost one (`|=`), raised `_CheckpointConflict` again, and looped forever for all owners.
    """
    log = TailedLog()
    relay = NetworkRelay(log.network, log.signals)
    await log.write(tenant=log.tenant, catalogue="cat_1", is_published=True)
    await relay.copy_new_events(await log.network.list_publishers())
    del log.store.checkpoints[get_network_tenant(True)][log.tenant]
    log.delete_events(1, get_network_tenant(True))
    await log.write(tenant=log.tenant, catalogue="cat_1", is_published=True)
    attempts = 0
    append = log.network.append

    async def counted(*given: Any) -> bool:
        nonlocal attempts
        attempts += 1
        if attempts > 50:
            raise RuntimeError("50 attempts, none of which can succeed")
        await asyncio.sleep(0)
        return await append(*given)

    log.network.append = counted  # type: ignore[method-assign]
    await relay.copy_new_events(await log.network.list_publishers())


async def test_a_publisher_of_many_events_delays_no_other(backend: Backend, tenant: Tenant) -> None:
    """Expected: each transaction of the relay contains events of every waiting owner. The first owner used all of the space
    until it had no events left: an owner that published 300,000 products at once delayed all others for minutes (≤ 50 ms is
    required).
    """
    big, small, catalogues = await backend.tenant(), await backend.tenant(), (new_id("cat"), new_id("cat"))
    await grant_licence(backend.pool, big, catalogues[0], tenant.org)
    await grant_licence(backend.pool, small, catalogues[1], tenant.org)
    start = (await query_bounds(backend, get_network_tenant(True))).end
    await publish_events(backend, big, catalogues[0], 3_000)
    [one] = await publish_events(backend, small, catalogues[1])
    relay = NetworkRelay(backend.network, backend.signals)
    await relay._load_checkpoints()
    found = await backend.network.list_publishers()
    await relay.copy_new_events({big: found[big], small: found[small]})
    order = [event.id for event in await read_network(backend, tenant, start)]
    assert order.index(one) <= 1_000, order.index(one)


async def test_a_cursor_of_an_earlier_epoch_without_a_time_expires() -> None:
    """Expected: 410. The network log went back from 6 to 3 and grew again. A cursor after a bounded scan has no time; a long poll
    at the cached end of the tenant's own log never compared the epoch and missed 4 to 6.
    """
    async with run_log() as log:
        owner = Tenant(new_id("org"), True)
        log.grant_licence(owner, "cat_1", log.tenant.org)
        await log.write()
        await log.write(6, owner, catalogue="cat_1", is_published=True)
        await log.relay_events()
        end = await log.end_positions()
        log.delete_events(4, get_network_tenant(True))
        await log.events.begin_epoch(get_network_tenant(True), end.network)
        await log.write(6, owner, catalogue="cat_1", is_published=True)
        await log.relay_events()
        lost = FeedPosition(end.own, LogPosition(end.network.epoch, 6))
        await log.service.find_end(log.tenant)  # a request that caches the end of the tenant's log
        from domain.changes.model import EventFilter

        with pytest.raises(CursorExpired):
            after = await log.service.find_start(log.tenant, lost)
            found = await log.service.long_poll(log.tenant, after, 100, EventFilter(), 1.0)
            pytest.fail(f"{found.count} events, of the 9 or so that are new; position {found.position.network}")


async def test_a_client_that_disconnects_during_a_query_is_unsubscribed() -> None:
    """Expected: no log is followed afterwards. A client that disconnected during the query of the network's bounds (5 s with an
    unavailable node) left its subscription of the tenant's own log: the channel was polled as long as the process ran.
    """
    async with run_log() as log:
        bounds, started = log.events.query_bounds, asyncio.Event()

        async def slow(logs: Any) -> Any:
            if get_network_tenant(True) in logs:
                started.set()
                await asyncio.sleep(30)
            return await bounds(logs)

        log.events.query_bounds = slow  # type: ignore[method-assign]

        async def follow() -> None:
            async with log.tailer.subscribe(log.tenant, START):
                await asyncio.sleep(30)

        task = asyncio.create_task(follow())
        await started.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not log.tailer._channels, log.tailer._channels[LogView.own(log.tenant)].subscriptions


async def test_an_owner_whose_log_cannot_be_read_delays_no_other() -> None:
    """Expected: events of other owners are copied. A log that could not be read (a node that times out, a damaged page) failed
    each round in the same order, so that no owner's events were copied.
    """
    log = TailedLog()
    bad, good = Tenant(new_id("org"), True), Tenant(new_id("org"), True)
    await log.write(tenant=bad, catalogue="cat_1", is_published=True)
    await log.write(tenant=good, catalogue="cat_2", is_published=True)
    published = log.network.read_published

    async def failing(owner: Tenant, after: int, limit: int) -> Any:
        if owner == bad:
            raise ConnectionError("it cannot be read")
        return await published(owner, after, limit)

    log.network.read_published = failing  # type: ignore[method-assign]
    task = asyncio.create_task(NetworkRelay(log.network, log.signals, sweep_seconds=0.2).run())
    try:
        await asyncio.sleep(4)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert (await log.end_positions()).network.position == 1
