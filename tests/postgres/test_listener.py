"""Log following over PostgreSQL: dropped connections are restored without missing events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg
import pytest

from adapters.api_json.catalogue import JsonCatalogueRendering
from adapters.api_json.events import JsonEventRendering
from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.signals import PostgresSignals
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from domain.changes.model import FeedPosition
from domain.changes.usecases.log_tailer import LogTailer
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.postgres.databases import create_temporary_database
from tests.support import builders
from tests.support.memory.clock import SystemClock

pytestmark = pytest.mark.asyncio


@dataclass
class FollowedLog:
    """Log of a separate database with a running follower."""

    address: str
    uow: PostgresUnitOfWork
    tailer: LogTailer
    tenant: Tenant

    async def append_events(self, count: int = 1) -> list[str]:
        """Append events in one transaction and return their IDs."""
        events = [builders.event(new_id("src")) for _ in range(count)]
        async with self.uow.begin(self.tenant, builders.CALL) as tx:
            await tx[EventLog].append(events)
        return [event.id for event in events]

    async def terminate_connections(self, name: str) -> int:
        """Terminate the connections with that name and return their number."""
        async with await psycopg.AsyncConnection.connect(self.address, autocommit=True) as connection:
            cursor = await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name = %s",
                (name,),
            )
            return len(await cursor.fetchall())


@asynccontextmanager
async def follow_log(idle: float) -> AsyncIterator[FollowedLog]:
    """Run a follower on a separate database."""
    async with create_temporary_database("listener") as address:
        pool = Pool(address, size=4)
        rendering = JsonEventRendering()
        tailer = LogTailer(PostgresEventReader(pool), rendering, PostgresSignals(pool), idle_seconds=idle)
        uow = PostgresUnitOfWork(pool, SystemClock(), JsonCatalogueRendering(), rendering)
        task = asyncio.create_task(tailer.run())
        try:
            async with asyncio.timeout(60):
                yield FollowedLog(address, uow, tailer, Tenant(new_id("org"), True))
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await pool.close()


async def test_a_disconnected_listener_reconnects_and_misses_nothing() -> None:
    async with follow_log(idle=600) as log, log.tailer.subscribe(log.tenant, FeedPosition()) as following:
        written, seen = [], []

        async def take() -> None:
            while len(seen) < len(written):
                seen.extend(event.id for event in (await following.next_batch()).events)

        for name in ("joinery signals", "joinery", "joinery signals"):
            written += await log.append_events(2)
            await take()
            assert await log.terminate_connections(name) >= 1
            for _ in range(20):
                try:
                    written += await log.append_events()
                    break
                except Exception:  # the pool detects that its connections are closed
                    await asyncio.sleep(0.05)
        await take()
        assert seen == written


async def test_an_open_writer_is_not_notified_and_delays_no_other() -> None:
    async with follow_log(idle=600) as log, log.tailer.subscribe(log.tenant, FeedPosition()) as following:
        first = await log.append_events()
        assert [event.id for event in (await following.next_batch()).events] == first
        event = builders.event(new_id("src"))
        async with log.uow.begin(log.tenant, builders.CALL) as slow:
            await slow[EventLog].append([event])
            second = await log.append_events(2)
            seen: list[str] = []
            while len(seen) < 2:
                seen += [event.id for event in (await following.next_batch()).events]
            assert seen == second
            assert not (await following.next_batch(timeout=0.3)).events
            assert following.position.own.position == 3
        assert [event.id for event in (await following.next_batch()).events] == [event.id]
        assert following.position.own.position == 4
