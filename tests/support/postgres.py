"""The PostgreSQL backend of the contract suites: one server and one database for each test process.

`JOINERY_TEST_DATABASE_URL` names a server to use (as a role that may create databases); without it the embedded one is
started in a directory of its own.
"""

import asyncio
import atexit
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from adapters.memory.clock import SystemClock
from adapters.postgres.access import PostgresCredentials
from adapters.postgres.events import PostgresEventReader
from adapters.postgres.idempotency import PostgresIdempotencyUpkeep
from adapters.postgres.jobs import PostgresDispatch
from adapters.postgres.migrate import migrate
from adapters.postgres.orgs import PostgresOrgRegistry
from adapters.postgres.pool import Pool
from adapters.postgres.request_logs import PostgresRequestLogSink
from adapters.postgres.sources import PostgresSourceSchedule
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from adapters.wire.catalogue import WireRendering
from adapters.wire.events import WireEventRendering
from entrypoints.up.postgres import Postgres
from tests.support.backend import Backend

_QUICK = {"fsync": "off", "synchronous_commit": "off", "shared_buffers": "64MB", "max_connections": "60"}
_made: list[str] = []
"""The migrated database's address, once there is one."""


async def _server() -> str:
    """The address of a server's maintenance database."""
    given = os.environ.get("JOINERY_TEST_DATABASE_URL")
    if given:
        return given
    home = Path(tempfile.mkdtemp(prefix="jt", dir="/tmp"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    server = Postgres(home, _QUICK)
    process = await server.start()
    atexit.register(process.kill)
    return server.url("postgres", "postgres")


async def database() -> str:
    """The address of a migrated database that this process has for itself."""
    if not _made:
        server = await _server()
        name = f"joinery_test_{os.getpid()}"
        async with await psycopg.AsyncConnection.connect(server, autocommit=True) as connection:
            await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
            await connection.execute(f'CREATE DATABASE "{name}"'.encode())
        address = urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        await migrate(address)
        _made.append(address)
    return _made[0]


@asynccontextmanager
async def postgres_backend() -> AsyncIterator[Backend]:
    """Everything in PostgreSQL, on the machine's clock."""
    pool, clock = Pool(await database(), size=10), SystemClock()

    async def pass_time(by: timedelta) -> None:
        await asyncio.sleep(by.total_seconds())

    try:
        yield Backend(
            name="postgres",
            uow=PostgresUnitOfWork(pool, clock, WireRendering(), WireEventRendering()),
            registry=PostgresOrgRegistry(pool),
            credentials=PostgresCredentials(pool),
            dispatch=PostgresDispatch(pool),
            schedule=PostgresSourceSchedule(pool),
            sink=PostgresRequestLogSink(pool),
            upkeep=PostgresIdempotencyUpkeep(pool),
            events=PostgresEventReader(pool),
            now=lambda: datetime.now(UTC),
            pass_time=pass_time,
        )
    finally:
        await pool.close()
