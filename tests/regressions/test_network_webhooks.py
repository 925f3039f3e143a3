"""Webhooks of a licensed endpoint after the network's node alone went back in time (a promoted, lagging replica)."""

import asyncio

import pytest
import pytest_asyncio

from domain.changes.model import get_network_tenant
from domain.kernel.tenancy import Tenant
from tests.contract.delivery_harness import DeliveryHarness, wait_for_deliveries, wait_until
from tests.contract.test_event_reader import query_bounds
from tests.contract.test_network_log import publish_events
from tests.support.backend import Backend
from tests.support.log_changes import delete_events, grant_licence

pytestmark = pytest.mark.asyncio
NETWORK = get_network_tenant(True)


@pytest_asyncio.fixture
async def harness(backend: Backend, tenant: Tenant) -> DeliveryHarness:
    return DeliveryHarness(backend, tenant)


async def rewind_network(backend: Backend, first: int, *owners: Tenant) -> None:
    """Delete the network log's events from there on and the owners' checkpoints, and begin an epoch."""
    bounds = await query_bounds(backend, NETWORK)
    await delete_events(backend.pool, NETWORK, first)
    async with backend.pool.connect_as_owner() as link:
        orgs = [owner.org for owner in owners]
        await link.cursor.execute("DELETE FROM network_checkpoints WHERE owner = ANY(%s)", (orgs,))
    await backend.events.begin_epoch(NETWORK, bounds.end)


async def relay_events(backend: Backend, *owners: Tenant) -> None:
    for owner in owners:
        await backend.relay(owner)


async def test_a_new_event_at_a_delivered_position_is_sent(harness: DeliveryHarness) -> None:
    """Expected: every event arrives. Deliveries store positions without the epoch: after the log went back, a new event at a
    delivered position was treated as delivered (`known`) and never sent.
    """
    backend = harness.backend
    first, second = await backend.tenant(), await backend.tenant()
    for owner in (first, second):
        await grant_licence(backend.pool, owner, f"cat_{owner.org}", harness.tenant.org)
    await publish_events(backend, first, f"cat_{first.org}")  # creates the log's epoch
    await relay_events(backend, first)
    endpoint = await harness.create_endpoint()
    start = (await query_bounds(backend, NETWORK)).last
    before = await publish_events(backend, first, f"cat_{first.org}", 5) + await publish_events(
        backend, second, f"cat_{second.org}", 5
    )
    await relay_events(backend, first, second)
    async with harness.run_deliverer():
        await wait_for_deliveries(harness, endpoint, 10)
    await rewind_network(backend, start + 1, first, second)
    [new] = await publish_events(backend, first, f"cat_{first.org}")
    async with harness.run_deliverer():
        await relay_events(backend, first, second)
        await asyncio.sleep(3)
    arrived = [post.id for post in harness.receivers.list_posts(endpoint.url)]
    assert set(before) <= set(arrived)
    assert new in arrived


async def test_a_waiting_delivery_is_not_sent_with_the_body_of_another_event(harness: DeliveryHarness) -> None:
    """Expected: an event's ID is sent with its own body, or not at all. A delivery without an attempt (others of its subject are
    first) is read again by its position: after the log went back, that is another event, possibly of another tenant.
    """
    backend = harness.backend
    owner, other = await backend.tenant(), await backend.tenant()
    for one in (owner, other):
        await grant_licence(backend.pool, one, f"cat_{one.org}", harness.tenant.org)
    await publish_events(backend, owner, f"cat_{owner.org}")
    await relay_events(backend, owner)
    endpoint = await harness.create_endpoint()
    start = (await query_bounds(backend, NETWORK)).last
    harness.receivers.gates[endpoint.url] = asyncio.Event()
    await publish_events(backend, owner, f"cat_{owner.org}", 3, subject="src_one")
    await relay_events(backend, owner)
    async with harness.run_deliverer():
        await wait_until(lambda: harness.receivers.list_posts(endpoint.url))
        async with asyncio.timeout(10):
            while len(await harness.list_deliveries(endpoint)) < 3:
                await asyncio.sleep(0.05)
    await rewind_network(backend, start + 1, owner)
    await publish_events(backend, other, f"cat_{other.org}", 3, subject="src_other")
    await relay_events(backend, other)
    harness.receivers.posts.clear()
    harness.receivers.gates.clear()
    async with harness.run_deliverer():
        async with asyncio.timeout(20):
            while any(one.is_open for one in await harness.list_deliveries(endpoint) if one.subject == "src_one"):
                await asyncio.sleep(0.05)
    wrong = [post for post in harness.receivers.list_posts(endpoint.url) if post.id != post.event["id"]]
    assert not wrong, [(post.id, post.event["id"], post.event["subject"]) for post in wrong]


async def test_the_feed_cursor_of_a_restored_log_is_valid(harness: DeliveryHarness) -> None:
    """Expected: a cursor in Service-Feed-Cursor that the log contains. An open delivery of the former epoch counted among the
    positions of the new one: the cursor was (new epoch, a position beyond the end). A client that continued from there began
    an epoch of the network log for all readers, or missed the events up to it.
    """
    backend = harness.backend
    owner = await backend.tenant()
    await grant_licence(backend.pool, owner, f"cat_{owner.org}", harness.tenant.org)
    await publish_events(backend, owner, f"cat_{owner.org}")
    await relay_events(backend, owner)
    endpoint = await harness.create_endpoint()
    start = (await query_bounds(backend, NETWORK)).last
    await publish_events(backend, owner, f"cat_{owner.org}", 20, subject="src_gone")
    await relay_events(backend, owner)
    harness.receivers.gates["src_gone"] = asyncio.Event()
    async with harness.run_deliverer() as deliverer:
        await wait_until(lambda: harness.receivers.list_posts(endpoint.url))
        await asyncio.sleep(1)
        await rewind_network(backend, start + 1, owner)
        other = await backend.tenant()
        await publish_events(backend, other, f"cat_{other.org}", 2)
        await relay_events(backend, other)
        await asyncio.sleep(3)
        queue = deliverer._queues[harness.tenant, endpoint.id]
        queue._progress[True].open_positions.discard(range(start + 1, start + 10))  # these attempts succeed
        end = (await query_bounds(backend, NETWORK)).last
        delivered = queue.delivered_up_to.network
        assert delivered.position <= end, (delivered, end)
