"""Creation of an organisation that deadlocks with another transaction."""

import asyncio

import psycopg
import pytest

from adapters.postgres.nodes.pool import Pool
from adapters.postgres.orgs import PostgresOrgRegistry
from tests.postgres.databases import create_temporary_database
from tests.support import builders
from tests.support.citus import ON_CLUSTER

WAITING = "SELECT FROM pg_locks WHERE NOT granted"


@pytest.mark.asyncio
@pytest.mark.skipif(ON_CLUSTER, reason="a cluster locks its shards in another order")
async def test_the_creation_of_an_organisation_is_repeated_after_a_deadlock() -> None:
    async with (
        create_temporary_database("deadlock") as address,
        await psycopg.AsyncConnection.connect(address) as other,
    ):
        pool = Pool(address)
        registry = PostgresOrgRegistry(pool)
        organisation = builders.organisation(plan=await registry.find_plan("standard"))
        await other.execute("SELECT FROM plans WHERE code = 'standard' FOR UPDATE")
        creation = asyncio.create_task(registry.create(organisation))
        while not (await other.execute(WAITING)).rowcount:
            await asyncio.sleep(0.01)
        await other.execute("SET LOCAL deadlock_timeout = '60s'")  # the server ends the other transaction
        await other.execute("LOCK TABLE organisations IN SHARE MODE")
        await other.commit()
        await creation
        assert await registry.find(organisation.id)
        await pool.close()
