"""The PostgreSQL backend of the contract suites: one server and one database for each test process.

`JOINERY_TEST_DATABASE_URL` is a server to use, as a role that can create databases. By default, the embedded server is started
in a separate directory.
"""

import asyncio
import atexit
import os
import random
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg.types.json import Jsonb

from adapters.api_json.catalogue import JsonCatalogueRendering
from adapters.api_json.events import JsonEventRendering
from adapters.postgres.event_log import PostgresNetworkLog
from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.jobs import PostgresDispatch
from adapters.postgres.locks import PostgresShards
from adapters.postgres.maintenance import PostgresMaintenance
from adapters.postgres.matching import PostgresMatchBacklog
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.oauth import PostgresTokenStore
from adapters.postgres.orgs import PostgresCredentials, PostgresMemberships, PostgresOrgRegistry, PostgresSsoDirectory
from adapters.postgres.people import (
    PostgresFactors,
    PostgresOneTimeLinks,
    PostgresOutbox,
    PostgresPasskeys,
    PostgresPeople,
    PostgresSessions,
)
from adapters.postgres.platform import PostgresWorkload
from adapters.postgres.request_logs import PostgresRequestLogSink
from adapters.postgres.runs import PostgresExportMaintenance
from adapters.postgres.schema_migrations import migrate
from adapters.postgres.secrets import PostgresEncryptedValues
from adapters.postgres.signals import PostgresSignals
from adapters.postgres.sources import PostgresInboundAddresses, PostgresSourceSchedule
from adapters.postgres.storage import PostgresStorageMaintenance
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from adapters.postgres.usage import PostgresUsageMaintenance
from adapters.postgres.webhook_deliveries import PostgresDeliveryStore
from domain.kernel.json_values import to_json_value
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Plan
from domain.webhooks.model import SHARD_COUNT
from entrypoints.up.servers import Postgres
from ports.clock import Clock
from tests.support.backend import Backend
from tests.support.citus import ON_CLUSTER, create_cluster_database, drop_database
from tests.support.memory.clock import SystemClock
from tests.support.memory.tracing import MemoryTracing

_QUICK = {"fsync": "off", "synchronous_commit": "off", "shared_buffers": "64MB", "max_connections": "150"}
OFFER = """
INSERT INTO plans VALUES (%(code)s, %(name)s, %(tier)s, %(currency)s, %(monthly)s, %(features)s, %(meters)s,
    %(delivery_days)s, %(request_log_days)s, 9)
ON CONFLICT (code) DO UPDATE SET name = excluded.name, tier = excluded.tier, monthly = excluded.monthly,
    features = excluded.features, meters = excluded.meters, delivery_days = excluded.delivery_days,
    request_log_days = excluded.request_log_days
"""
_made: dict[str, str] = {}
"""The addresses of the migrated databases, by where they are (`embedded`, `server`, `citus`), and of the embedded server."""
MACHINES_OWN = os.environ.get("JOINERY_TEST_SERVER", "postgresql://127.0.0.1/postgres")
"""An available server; the suites also run on it if they can create databases there."""


async def is_available() -> bool:
    """Return whether this machine has a server on which the tests can create databases."""
    try:
        async with await psycopg.AsyncConnection.connect(
            MACHINES_OWN, autocommit=True, connect_timeout=2
        ) as connection:
            cursor = await connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
            return bool((await cursor.fetchone() or [False])[0])
    except psycopg.OperationalError:
        return False


async def _drop(server: str, name: str) -> None:
    async with await psycopg.AsyncConnection.connect(server, autocommit=True) as connection:
        await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


async def server() -> str:
    """Return the address of the maintenance database of a server, which is started if necessary."""
    if given := os.environ.get("JOINERY_TEST_DATABASE_URL"):
        return given
    if "" not in _made:
        home = Path(tempfile.mkdtemp(prefix="jt", dir="/tmp"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)
        embedded = Postgres(home, _QUICK)
        process = await embedded.start()
        atexit.register(process.kill)
        _made[""] = embedded.build_url("postgres", "postgres")
    return _made[""]


async def create_database(server: str, name: str, **settings: str) -> str:
    """Create an empty database, replace an existing one of the name, and return its address."""
    async with await psycopg.AsyncConnection.connect(server, autocommit=True) as connection:
        await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
        await connection.execute(f'CREATE DATABASE "{name}"'.encode())
        for setting, value in settings.items():
            await connection.execute(f'ALTER DATABASE "{name}" SET {setting} = {value}'.encode())
    return urlunsplit(urlsplit(server)._replace(path=f"/{name}"))


async def database(where: str = "embedded") -> str:
    """Return the address of a migrated database that only this process uses."""
    if ON_CLUSTER and where == "embedded":
        where = "citus"
    if where == "citus" and where not in _made:
        _made[where] = address = await create_cluster_database("test")
        atexit.register(lambda: asyncio.run(drop_database(address)))
    if where not in _made:
        at, name = MACHINES_OWN if where == "server" else await server(), f"joinery_test_{os.getpid()}"
        _made[where] = await create_database(at, name)
        await migrate(_made[where])
        if where == "server":
            atexit.register(lambda: asyncio.run(_drop(at, name)))
    return _made[where]


def is_shared(address: str) -> bool:
    """Return whether other processes use the server on which this process created the database."""
    return address in _made.values()


def build_plan_values(plan: Plan) -> dict[str, Any]:
    """Return the values of OFFER."""
    return {**to_json_value(plan), "meters": Jsonb(to_json_value(plan.meters)), "features": sorted(plan.features)}


def assemble_backend(pool: Pool, shards: PostgresShards, *addresses: str, clock: Clock = SystemClock()) -> Backend:
    """Return a backend on PostgreSQL, by default with the machine's clock; a plan is created at every address."""
    tracing = MemoryTracing()

    async def pass_time(by: timedelta) -> None:
        await asyncio.sleep(by.total_seconds())

    async def offer(plan: Plan) -> None:
        for address in addresses:
            async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
                await owner.execute(OFFER, build_plan_values(plan))

    return Backend(
        name="postgres",
        pool=pool,
        uow=PostgresUnitOfWork(pool, clock, JsonCatalogueRendering(), JsonEventRendering(), tracing),
        registry=PostgresOrgRegistry(pool),
        memberships=PostgresMemberships(pool),
        credentials=PostgresCredentials(pool),
        people=PostgresPeople(pool),
        sso=PostgresSsoDirectory(pool),
        sessions=PostgresSessions(pool),
        token_store=PostgresTokenStore(pool),
        token_proofs=PostgresTokenStore(pool),
        links=PostgresOneTimeLinks(pool),
        outbox=PostgresOutbox(pool),
        factors=PostgresFactors(pool),
        passkeys=PostgresPasskeys(pool),
        dispatch=PostgresDispatch(pool),
        schedule=PostgresSourceSchedule(pool),
        addresses=PostgresInboundAddresses(pool),
        sink=PostgresRequestLogSink(pool),
        maintenance=PostgresMaintenance(pool),
        storage=PostgresStorageMaintenance(pool),
        usage=PostgresUsageMaintenance(pool, clock),
        workload=PostgresWorkload(pool),
        backlog=PostgresMatchBacklog(pool),
        exports=PostgresExportMaintenance(pool),
        events=PostgresEventReader(pool),
        network=PostgresNetworkLog(pool, clock),
        signals=PostgresSignals(pool),
        delivery_log=PostgresDeliveryStore(pool, shards, clock),
        sealed_values=PostgresEncryptedValues(pool),
        shards=lambda: shards,
        now=clock.now,
        pass_time=pass_time,
        offer=offer,
        tracing=tracing,
    )


@asynccontextmanager
async def postgres_backend(where: str = "embedded") -> AsyncIterator[Backend]:
    """Return a backend with one database."""
    address = await database(where)
    pool = Pool(address, size=10)
    node = random.choice(await pool.list_tenant_nodes())
    shards = PostgresShards(pool, SHARD_COUNT, node)

    async def served(org: str) -> bool:
        return list(await pool.group_by_node([Tenant(org, True)])) == [node]

    try:
        yield replace(assemble_backend(pool, shards, address), served=served)
    finally:
        await shards.close()
        await pool.close()
