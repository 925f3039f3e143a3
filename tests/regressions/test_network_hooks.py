"""Webhooks of a licensed endpoint after the network's node alone went back in time (a promoted, lagging replica)."""

import asyncio

import pytest
import pytest_asyncio

from domain.changes.model import get_network_tenant
from domain.kernel.tenancy import Tenant
from tests.contract.desk import Desk, settled, until
from tests.contract.test_event_reader import bounds_of
from tests.contract.test_network import published
from tests.support.backend import Backend
from tests.support.log_changes import delete_events, grant_licence

pytestmark = pytest.mark.asyncio
NETWORK = get_network_tenant(True)


@pytest_asyncio.fixture
async def desk(backend: Backend, tenant: Tenant) -> Desk:
    return Desk(backend, tenant)


async def goes_back(backend: Backend, first: int, *owners: Tenant) -> None:
    """Delete the network log's events from there on and the owners' checkpoints, and begin an epoch."""
    bounds = await bounds_of(backend, NETWORK)
    await delete_events(backend.pool, NETWORK, first)
    async with backend.pool.connect_as_owner() as link:
        orgs = [owner.org for owner in owners]
        await link.cursor.execute("DELETE FROM network_checkpoints WHERE owner = ANY(%s)", (orgs,))
    await backend.events.begin_epoch(NETWORK, bounds.end)


async def relay(backend: Backend, *owners: Tenant) -> None:
    for owner in owners:
        await backend.relay(owner)


async def test_a_new_event_where_another_one_was_delivered(desk: Desk) -> None:
    """Expected: every event arrives. Deliveries remember positions without the epoch: what is at the place of one that was
    delivered, before the log went back, is taken for delivered (`known`), and is never sent.
    """
    backend = desk.backend
    first, second = await backend.tenant(), await backend.tenant()
    for owner in (first, second):
        await grant_licence(backend.pool, owner, f"cat_{owner.org}", desk.tenant.org)
    await published(backend, first, f"cat_{first.org}")  # creates the log's epoch
    await relay(backend, first)
    endpoint = await desk.endpoint()
    start = (await bounds_of(backend, NETWORK)).last
    before = await published(backend, first, f"cat_{first.org}", 5) + await published(
        backend, second, f"cat_{second.org}", 5
    )
    await relay(backend, first, second)
    async with desk.delivering():
        await settled(desk, endpoint, 10)
    await goes_back(backend, start + 1, first, second)
    [new] = await published(backend, first, f"cat_{first.org}")
    async with desk.delivering():
        await relay(backend, first, second)
        await asyncio.sleep(3)
    arrived = [post.id for post in desk.receivers.at(endpoint.url)]
    assert set(before) <= set(arrived)
    assert new in arrived


async def test_what_waits_is_not_mistaken_for_what_is_there_now(desk: Desk) -> None:
    """Expected: under an event's id its own body is sent, or nothing. A delivery that was not tried yet (others of its subject go
    before it) is read from the log again by its position: after the log went back another event is there, perhaps another's.
    """
    backend = desk.backend
    owner, other = await backend.tenant(), await backend.tenant()
    for one in (owner, other):
        await grant_licence(backend.pool, one, f"cat_{one.org}", desk.tenant.org)
    await published(backend, owner, f"cat_{owner.org}")
    await relay(backend, owner)
    endpoint = await desk.endpoint()
    start = (await bounds_of(backend, NETWORK)).last
    desk.receivers.gates[endpoint.url] = asyncio.Event()
    await published(backend, owner, f"cat_{owner.org}", 3, subject="src_one")
    await relay(backend, owner)
    async with desk.delivering():
        await until(lambda: desk.receivers.at(endpoint.url))
        async with asyncio.timeout(10):
            while len(await desk.deliveries(endpoint)) < 3:
                await asyncio.sleep(0.05)
    await goes_back(backend, start + 1, owner)
    await published(backend, other, f"cat_{other.org}", 3, subject="src_other")
    await relay(backend, other)
    desk.receivers.posts.clear()
    desk.receivers.gates.clear()
    async with desk.delivering():
        async with asyncio.timeout(20):
            while any(one.is_open for one in await desk.deliveries(endpoint) if one.subject == "src_one"):
                await asyncio.sleep(0.05)
    wrong = [post for post in desk.receivers.at(endpoint.url) if post.id != post.event["id"]]
    assert not wrong, [(post.id, post.event["id"], post.event["subject"]) for post in wrong]


async def test_the_checkpoint_of_a_log_that_went_back(desk: Desk) -> None:
    """Expected: a cursor in Service-Feed-Cursor that the log contains. An open delivery of the former epoch counted among the
    positions of the new one: the cursor was (new epoch, a position beyond the end). A client that continued from there made
    the network's log begin an epoch for everybody, or missed the events up to it.
    """
    backend = desk.backend
    owner = await backend.tenant()
    await grant_licence(backend.pool, owner, f"cat_{owner.org}", desk.tenant.org)
    await published(backend, owner, f"cat_{owner.org}")
    await relay(backend, owner)
    endpoint = await desk.endpoint()
    start = (await bounds_of(backend, NETWORK)).last
    await published(backend, owner, f"cat_{owner.org}", 20, subject="src_gone")
    await relay(backend, owner)
    desk.receivers.gates["src_gone"] = asyncio.Event()
    async with desk.delivering() as deliverer:
        await until(lambda: desk.receivers.at(endpoint.url))
        await asyncio.sleep(1)
        await goes_back(backend, start + 1, owner)
        other = await backend.tenant()
        await published(backend, other, f"cat_{other.org}", 2)
        await relay(backend, other)
        await asyncio.sleep(3)
        queue = deliverer._queues[desk.tenant, endpoint.id]
        queue._progress[True].open_positions.discard(range(start + 1, start + 10))  # these attempts succeed
        end = (await bounds_of(backend, NETWORK)).last
        delivered = queue.delivered_up_to.network
        assert delivered.position <= end, (delivered, end)
