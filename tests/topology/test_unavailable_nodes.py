"""Unavailable node: other nodes are unaffected, and queries across tenants continue without it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapters.postgres.nodes.pool import Pool, create_row_reader
from adapters.postgres.nodes.router import Node
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant
from tests.topology.servers import Servers

pytestmark = pytest.mark.asyncio
NEAR, FAR = Tenant("org_near", True), Tenant("org_far", True)
ONE = "SELECT 1"


@asynccontextmanager
async def open_pool(servers: Servers, size: int = 2) -> AsyncIterator[Pool]:
    """Open a pool of both servers, with one organisation on each."""
    servers.place_organisation(NEAR.org, 0)
    servers.place_organisation(FAR.org, 1)
    pool = Pool(servers.nodes[0].conninfo, size=size, max_wait_seconds=0.5, placement=servers)
    try:
        yield pool
    finally:
        await pool.close()


async def test_a_dead_node_is_skipped_logged_once_and_used_again(
    servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_pool(servers) as pool:
        assert await pool.scatter_best_effort(create_row_reader(ONE)) == [[(1,)], [(1,)]]
        await servers.servers[1].kill()
        with caplog.at_level(logging.INFO, "joinery.nodes"):
            for _ in range(3):
                assert await pool.scatter_best_effort(create_row_reader(ONE)) == [[(1,)]]
            with pytest.raises(Unavailable):
                await pool.scatter_all(create_row_reader(ONE))
            assert await pool.fetch_rows(NEAR, ONE, {}) == [(1,)]
            with pytest.raises(Unavailable):
                await pool.fetch_rows(FAR, ONE, {})
            await servers.servers[1].start()
            assert await pool.fetch_rows(FAR, ONE, {}) == [(1,)]
            assert await pool.scatter_best_effort(create_row_reader(ONE)) == [[(1,)], [(1,)]]
        messages = [record.message for record in caplog.records if record.name == "joinery.nodes"]
        assert [message.split(" ", 2)[2].partition(":")[0] for message in messages] == [
            "1 unreachable, skipped",
            "1 reachable again",
        ]


async def test_an_outage_of_all_nodes_is_reported(servers: Servers) -> None:
    async with open_pool(servers) as pool:
        await pool.list_nodes()
        for server in servers.servers:
            await server.kill()
        with pytest.raises(Unavailable):
            await pool.scatter_best_effort(create_row_reader(ONE))
        with pytest.raises(Unavailable):
            async with pool.connect_to_any():
                raise AssertionError("there is no such node")


async def test_tables_of_every_node_are_read_from_any(servers: Servers) -> None:
    async with open_pool(servers) as pool:
        await pool.list_nodes()
        await servers.servers[0].kill()
        async with pool.connect_to_any() as link:
            cursor = await link.driver_connection.execute("SELECT count(*) FROM plans")
            assert await cursor.fetchone() == (4,)
        with pytest.raises(Unavailable):
            async with pool.connect_to_coordinator():
                raise AssertionError("there is no other place")


async def test_an_unresponsive_node_gets_one_connection_at_a_time(servers: Servers) -> None:
    """It accepts connections and then sends nothing, like a server behind a failed switch."""
    connections = 0

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    servers.nodes[1] = Node(
        "node 1", f"host=127.0.0.1 port={port} connect_timeout=2 sslmode=disable gssencmode=disable"
    )
    try:
        async with open_pool(servers, size=2) as pool:
            results = await asyncio.gather(*(pool.fetch_rows(FAR, ONE, {}) for _ in range(12)), return_exceptions=True)
            assert all(isinstance(result, Unavailable) for result in results)
            assert connections <= 4
            before = connections
            for _ in range(20):
                with pytest.raises(Unavailable):
                    await pool.fetch_rows(FAR, ONE, {})
            assert connections <= before + 1 and pool.waiting_count == 0
            assert await pool.fetch_rows(NEAR, ONE, {}) == [(1,)]
    finally:
        listening.close()
        servers.nodes = servers.nodes[:1]
