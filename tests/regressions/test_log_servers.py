"""Replacement of the log server, noticed by many processes at once."""

import asyncio
from typing import Any

import psycopg
import pytest

from adapters.api_json.catalogue import JsonCatalogueRendering
from adapters.api_json.events import JsonEventRendering
from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.schema_migrations import migrate
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from domain.events.ports import EventLog
from domain.kernel.tenancy import Tenant
from tests.postgres.databases import create_temporary_database
from tests.support import builders
from tests.support.citus import ON_CLUSTER
from tests.support.memory.clock import SystemClock
from tests.topology.servers import Server

pytestmark = pytest.mark.asyncio
TENANT = Tenant("org_1", True)


async def append_event(pool: Pool) -> None:
    uow = PostgresUnitOfWork(pool, SystemClock(), JsonCatalogueRendering(), JsonEventRendering())
    async with uow.begin(TENANT, builders.CALL) as tx:
        await tx[EventLog].append([builders.event("src_1")])


async def read_epoch(pool: Pool) -> Any:
    bounds = (await PostgresEventReader(pool).query_bounds([TENANT]))[TENANT]
    return bounds.epoch, bounds.last


@pytest.mark.skipif(ON_CLUSTER, reason="on a cluster the log lies on a node whose identity is its own")
async def test_many_processes_detect_a_new_server_concurrently() -> None:
    async with create_temporary_database("noticed") as address:
        first = Pool(address)
        await append_event(first)
        before = await read_epoch(first)
        await first.close()
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
            await owner.execute("UPDATE log_server SET identity = 'another'")
        pools = [Pool(address) for _ in range(8)]
        found = await asyncio.gather(*(read_epoch(pool) for pool in pools))
        assert len(set(found)) == 1 and found[0] != before
        await asyncio.gather(*(append_event(pool) for pool in pools))
        assert {one[0] for one in await asyncio.gather(*(read_epoch(pool) for pool in pools))} == {found[0][0]}
        for pool in pools:
            await pool.close()


async def test_restarts_and_crashes_do_not_begin_an_epoch() -> None:
    server = Server()
    await server.start()
    async with await psycopg.AsyncConnection.connect(server.build_url(), autocommit=True) as owner:
        await owner.execute("CREATE DATABASE joinery_crash")
    address = server.build_url("joinery_crash")
    await migrate(address)
    pool = Pool(address)
    await append_event(pool)
    before = await read_epoch(pool)
    await pool.close()
    for number in range(3):
        await server.kill()
        await server.start()
        pool = Pool(address)
        assert await read_epoch(pool) == (before[0], before[1] + number)
        await append_event(pool)
        await pool.close()
    await server.kill()
