"""Application on two servers: placement makes no difference, and a dead server affects its own tenants only."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.topology.cluster import Cluster, serve_cluster
from tests.topology.servers import Servers

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def cluster(servers: Servers, tmp_path: Path) -> AsyncIterator[Cluster]:
    async with serve_cluster(servers, tmp_path) as made:
        yield made


async def test_tenants_on_both_nodes_are_served(cluster: Cluster) -> None:
    shops = [await cluster.create_tenant(number) for number in (0, 1)]
    for shop in shops:
        assert (await shop.push("first")).status == 202
    assert await cluster.run_due_jobs() == 2
    for number, shop in enumerate(shops):
        assert len(await shop.list_products()) == 1
        there = await cluster.servers.read_rows(number, shop.tenant.org)
        elsewhere = await cluster.servers.read_rows(1 - number, shop.tenant.org)
        assert len(there["products"]) == 1 and not any(elsewhere.values())


async def test_a_dead_node_stops_its_own_tenants_only(cluster: Cluster) -> None:
    near, far = await cluster.create_tenant(0), await cluster.create_tenant(1)
    await cluster.servers.servers[1].kill()
    for number in range(3):
        refused = await far.push(f"refused-{number}")
        assert (refused.status, refused.json()["code"]) == (503, "unavailable"), refused.body
        assert refused.headers["retry-after"].isdigit()
        assert (await far.client.get("/v1/products")).status == 503
        assert (await near.push(f"taken-{number}")).status == 202
        assert await near.list_products() == []
    assert await cluster.run_due_jobs() == 1
    assert len(await near.list_products()) == 1
    await cluster.servers.servers[1].start()
    assert (await far.push("refused-0")).status == 202
    assert await cluster.run_due_jobs() == 1
    assert len(await far.list_products()) == 1


async def test_tenants_of_other_nodes_are_served_without_the_coordinator(cluster: Cluster) -> None:
    near, far = await cluster.create_tenant(0), await cluster.create_tenant(1)
    await cluster.servers.servers[0].kill()
    assert (await far.push("taken")).status == 202
    assert await cluster.run_due_jobs() == 1
    assert len(await far.list_products()) == 1
    assert (await near.client.get("/v1/products")).status == 503
    await cluster.servers.servers[0].start()
    assert (await near.push("taken")).status == 202
    assert await cluster.run_due_jobs() == 1


async def test_a_moved_tenant_is_still_served(cluster: Cluster) -> None:
    shop = await cluster.create_tenant(0)
    assert (await shop.push("first")).status == 202
    await cluster.servers.move_organisation(shop.tenant.org, 1)
    left = await cluster.servers.read_rows(0, shop.tenant.org)
    assert await cluster.run_due_jobs() == 1
    assert len(await shop.list_products()) == 1
    again = await shop.push("first")
    assert (again.status, again.headers.get("idempotent-replayed")) == (202, "true")
    assert await cluster.servers.read_rows(0, shop.tenant.org) == left


async def test_tenants_on_both_nodes_get_streams_and_deliveries(cluster: Cluster) -> None:
    """One worker delivers from both nodes; while one node is down, the other's endpoints receive their events."""
    shops = [await cluster.create_tenant(number) for number in (0, 1)]
    async with cluster.deliver_events() as got:
        for shop in shops:
            made = await shop.client.post(
                "/v1/webhook-endpoints",
                {"url": f"https://receiver.example/{shop.tenant.org}", "event_types": ["*"]},
                idempotency_key="hook",
            )
            assert made.status == 201, made.body
            assert (await shop.push("first")).status == 202
        assert await cluster.run_due_jobs() == 2
        for shop in shops:
            feed = (await shop.client.get("/v1/changes")).json()
            events = [event["id"] for event in feed["data"]]
            assert events and feed["caught_up"]
            await got.wait_for_events(shop.tenant.org, set(events))
        await cluster.servers.servers[1].kill()
        near = shops[0]
        assert (await near.push("second", "P2")).status == 202
        assert await cluster.run_due_jobs() == 1
        feed = (await near.client.get("/v1/changes")).json()
        await got.wait_for_events(near.tenant.org, {event["id"] for event in feed["data"]})
        await cluster.servers.servers[1].start()
        far = shops[1]
        assert (await far.push("second", "P2")).status == 202
        assert await cluster.run_due_jobs() == 1
        feed = (await far.client.get("/v1/changes")).json()
        await got.wait_for_events(far.tenant.org, {event["id"] for event in feed["data"]})


async def test_deliveries_continue_after_a_tenant_is_moved(cluster: Cluster) -> None:
    shop = await cluster.create_tenant(0)
    async with cluster.deliver_events() as got:
        body = {"url": f"https://receiver.example/{shop.tenant.org}", "event_types": ["*"]}
        assert (await shop.client.post("/v1/webhook-endpoints", body, idempotency_key="hook")).status == 201
        for number in range(4):
            assert (await shop.push(f"push-{number}", f"P{number}")).status == 202
            if number % 2:
                await cluster.servers.move_organisation(shop.tenant.org, number // 2 ^ 1)
                left = await cluster.servers.read_rows(number // 2, shop.tenant.org)
            assert await cluster.run_due_jobs() == 1
            feed = (await shop.client.get("/v1/changes")).json()
            await got.wait_for_events(shop.tenant.org, {event["id"] for event in feed["data"]})
        assert await cluster.servers.read_rows(1, shop.tenant.org) == left
