"""Leader election: standbys hold no transaction and take over immediately when notified, otherwise soon."""

import asyncio
import time
from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio

from adapters.postgres.locks import hold_leadership
from tests.postgres.databases import create_temporary_database
from tests.postgres.vacuum_horizon import count_unremovable_rows

pytestmark = pytest.mark.asyncio
_LEADERS = "FROM pg_stat_activity WHERE application_name = 'joinery leadership' AND datname = current_database()"


@pytest_asyncio.fixture
async def address() -> AsyncIterator[str]:
    """Return a separate database, because each has one leader."""
    async with create_temporary_database("leaders") as made:
        yield made


class Candidate:
    """Process that applies for the lead until it is cancelled or told to resign."""

    def __init__(self, address: str, look: float) -> None:
        self.leads, self.leave, self.lost = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.since = 0.0
        self.task = asyncio.create_task(self._run(address, look))

    async def _run(self, address: str, look: float) -> None:
        async with hold_leadership(address, retry_seconds=look) as led:
            self.since = time.monotonic()
            self.leads.set()
            leaving = asyncio.create_task(self.leave.wait())
            losing = asyncio.create_task(led())
            await asyncio.wait((leaving, losing), return_when=asyncio.FIRST_COMPLETED)
            if losing.done() and isinstance(losing.exception(), psycopg.OperationalError):
                self.lost.set()
            leaving.cancel()
            losing.cancel()
            await asyncio.gather(leaving, losing, return_exceptions=True)


async def test_a_clean_resignation_is_notified(address: str) -> None:
    async with asyncio.timeout(20):
        first = Candidate(address, 600)
        await first.leads.wait()
        second = Candidate(address, 600)
        await asyncio.sleep(0.5)
        assert not second.leads.is_set()
        first.leave.set()
        await second.leads.wait()
        second.leave.set()
        await asyncio.gather(first.task, second.task)


async def test_a_crashed_leader_is_replaced_and_detects_it(address: str) -> None:
    async with asyncio.timeout(20):
        first = Candidate(address, 0.1)
        await first.leads.wait()
        second = Candidate(address, 0.1)
        await asyncio.sleep(0.3)
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
            await owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        await first.lost.wait()
        await second.leads.wait()
        second.leave.set()
        await asyncio.gather(first.task, second.task)


async def test_a_standby_does_not_hold_back_vacuum(address: str) -> None:
    first = Candidate(address, 600)
    second = Candidate(address, 600)
    try:
        async with asyncio.timeout(20), await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
            while (await (await owner.execute(f"SELECT count(*) {_LEADERS}".encode())).fetchone()) != (2,):
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.3)
            cursor = await owner.execute(f"SELECT state, backend_xmin {_LEADERS}".encode())
            assert await cursor.fetchall() == [("idle", None)] * 2
            assert await count_unremovable_rows(owner) == 0
    finally:
        first.task.cancel()
        second.task.cancel()
        await asyncio.gather(first.task, second.task, return_exceptions=True)


async def test_a_wait_inside_a_statement_holds_back_vacuum(address: str) -> None:
    """Checks that the vacuum test would detect it."""
    async with asyncio.timeout(20), await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        await owner.execute("SELECT pg_advisory_lock(1)")
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as waiting:
            task = asyncio.create_task(waiting.execute("SELECT pg_advisory_lock(1)"))
            await asyncio.sleep(0.3)
            assert await count_unremovable_rows(owner) == 500
            await owner.execute("SELECT pg_advisory_unlock(1)")
            await task
