"""Terms of a log that a connection caches, which are valid only for its database."""

import asyncio

import psycopg
import pytest

from adapters.api_json.catalogue import JsonCatalogueRendering
from adapters.api_json.events import JsonEventRendering
from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from domain.changes.model import BEGINNING, EventFilter, LogView
from domain.events.ports import EventLog
from domain.kernel.tenancy import Tenant
from tests.postgres.databases import create_temporary_database
from tests.support import builders
from tests.support.memory.clock import SystemClock

pytestmark = pytest.mark.asyncio
TENANT = Tenant("org_1", True)
WANTED = EventFilter(types=frozenset({"source.blocked"}))
_GONE = """
DELETE FROM event_log_terms; DELETE FROM events; UPDATE event_logs SET last = 0;
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


async def _append_event(uow: PostgresUnitOfWork) -> str:
    event = builders.event("src_1", type="source.blocked")
    async with uow.begin(TENANT, builders.CALL) as tx:
        await tx[EventLog].append([event])
    return event.id


async def test_terms_are_recorded_again_after_a_restore() -> None:
    """The restore closes connections and with them their caches, so new events are recorded again."""
    async with create_temporary_database("noted") as address:
        pool = Pool(address, size=1)
        uow = PostgresUnitOfWork(pool, SystemClock(), JsonCatalogueRendering(), JsonEventRendering())
        reader = PostgresEventReader(pool)
        try:
            for _ in range(2):
                await _append_event(uow)
            async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
                await owner.execute(_GONE)
            made: list[str] = []
            async with asyncio.timeout(30):
                while len(made) < 2:
                    try:
                        made.append(await _append_event(uow))
                    except Exception:  # the pool detects that its connections are closed
                        await asyncio.sleep(0.05)
            bounds = (await reader.query_bounds([TENANT]))[TENANT]
            page = await reader.read_page(LogView.own(TENANT), BEGINNING, bounds.end, 10, WANTED)
            assert [event.id for event in page.events] == made
        finally:
            await pool.close()


async def test_a_connection_records_a_type_once_per_block() -> None:
    """Hundreds of events need one row; the others need no statement."""
    async with create_temporary_database("noting") as address:
        pool = Pool(address, size=1)
        uow = PostgresUnitOfWork(pool, SystemClock(), JsonCatalogueRendering(), JsonEventRendering())
        try:
            for _ in range(600):
                await _append_event(uow)
            async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
                cursor = await owner.execute("SELECT org, livemode, term, block FROM event_log_terms ORDER BY block")
                assert await cursor.fetchall() == [
                    ("org_1", True, "source.blocked", 0), ("org_1", True, "source.blocked", 1),
                ]  # fmt: skip
        finally:
            await pool.close()
