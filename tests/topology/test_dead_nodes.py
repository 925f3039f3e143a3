"""A node that is away costs nobody else anything, and what spans tenants goes on without it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.nodes.router import Node
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant
from tests.topology.two_servers import Servers

pytestmark = pytest.mark.asyncio
NEAR, FAR = Tenant("org_near", True), Tenant("org_far", True)
ONE = "SELECT 1"


@asynccontextmanager
async def pooled(servers: Servers, size: int = 2) -> AsyncIterator[Pool]:
    """Connections to both servers; one organisation on each."""
    servers.place(NEAR.org, 0)
    servers.place(FAR.org, 1)
    pool = Pool(servers.all[0].conninfo, size=size, patience=0.5, placement=servers)
    try:
        yield pool
    finally:
        await pool.close()


async def test_it_is_left_out_told_once_and_taken_up_again(servers: Servers, caplog: pytest.LogCaptureFixture) -> None:
    async with pooled(servers) as pool:
        assert await pool.scatter_best_effort(reading(ONE)) == [[(1,)], [(1,)]]
        await servers.servers[1].kill()
        with caplog.at_level(logging.INFO, "joinery.nodes"):
            for _ in range(3):
                assert await pool.scatter_best_effort(reading(ONE)) == [[(1,)]]
            with pytest.raises(Unavailable):
                await pool.scatter_all(reading(ONE))
            assert await pool.rows(NEAR, ONE, {}) == [(1,)]
            with pytest.raises(Unavailable):
                await pool.rows(FAR, ONE, {})
            await servers.servers[1].start()
            assert await pool.rows(FAR, ONE, {}) == [(1,)]
            assert await pool.scatter_best_effort(reading(ONE)) == [[(1,)], [(1,)]]
        said = [record.message for record in caplog.records if record.name == "joinery.nodes"]
        assert [message.partition(" is ")[2].partition(":")[0] for message in said] == [
            "unreachable and skipped",
            "reachable again",
        ]


async def test_when_all_are_away_it_is_said(servers: Servers) -> None:
    async with pooled(servers) as pool:
        await pool.nodes()
        for server in servers.servers:
            await server.kill()
        with pytest.raises(Unavailable):
            await pool.scatter_best_effort(reading(ONE))
        with pytest.raises(Unavailable):
            async with pool.any_node():
                raise AssertionError("there is no such node")


async def test_what_lies_on_every_node_is_read_from_any(servers: Servers) -> None:
    async with pooled(servers) as pool:
        await pool.nodes()
        await servers.servers[0].kill()
        async with pool.any_node() as link:
            cursor = await link.connection.execute("SELECT count(*) FROM plans")
            assert await cursor.fetchone() == (4,)
        with pytest.raises(Unavailable):
            async with pool.coordinator():
                raise AssertionError("there is no other place")


async def test_a_node_that_does_not_answer_is_asked_by_one_at_a_time(servers: Servers) -> None:
    """It takes connections, and then says nothing: like a machine behind a broken switch."""
    asked = 0

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    servers.all[1] = Node("node 1", f"host=127.0.0.1 port={port} connect_timeout=2 sslmode=disable gssencmode=disable")
    try:
        async with pooled(servers, size=2) as pool:
            results = await asyncio.gather(*(pool.rows(FAR, ONE, {}) for _ in range(12)), return_exceptions=True)
            assert all(isinstance(result, Unavailable) for result in results)
            assert asked <= 4
            before = asked
            for _ in range(20):
                with pytest.raises(Unavailable):
                    await pool.rows(FAR, ONE, {})
            assert asked <= before + 1 and pool.waiting == 0
            assert await pool.rows(NEAR, ONE, {}) == [(1,)]
    finally:
        listening.close()
        servers.all = servers.all[:1]
