"""The event log's guarantee: what is visible stays, nothing appears before it, and no committed event is missed."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.events import SQL
from adapters.postgres.pool import Pool
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork
from tests.postgres.databases import database_alone
from tests.support import builders
from tests.support.backend import Backend
from tests.support.postgres import database, postgres_backend

pytestmark = pytest.mark.asyncio
SECONDS = 5.0
WRITERS = 8
ROLLED_BACK = 0.05


class RolledBack(Exception):
    """Ends a writer's transaction."""


class Writers:
    """Tasks that change sources and tell so, as everything that appends events does: the subject locked first."""

    def __init__(self, uow: UnitOfWork, tenant: Tenant, sources: list[str]) -> None:
        self._uow, self._tenant, self._sources = uow, tenant, sources
        self.committed = 0
        self.undone = 0

    async def write(self, seed: int, until: float) -> None:
        """Until that time of the loop's clock."""
        dice, clock = random.Random(seed), asyncio.get_running_loop().time
        while clock() < until:
            try:
                told = await self._once(dice)
            except RolledBack:
                self.undone += 1
            else:
                self.committed += told

    async def _once(self, dice: random.Random) -> int:
        count = dice.choice((1, 1, 1, 3, 60))
        async with self._uow.begin(self._tenant, builders.CALL) as tx:
            source = await tx.sources.get(dice.choice(self._sources), lock=True)
            assert source is not None
            events = []
            for _ in range(count):
                source = source.changed(tx.now)
                events.append(builders.event(source.id, version=source.version))
            await tx.sources.save(source)
            await tx.events.append(events)
            await asyncio.sleep(dice.random() * 0.004)
            if dice.random() < ROLLED_BACK:
                raise RolledBack
        return count


class LogTailer:
    """Reads on from where it was, never beyond the horizon."""

    def __init__(self, address: str, events: Any, org: str) -> None:
        self._address, self._events, self._org = address, events, org
        self.seen: list[tuple[int, str, int]] = []

    async def follow(self, writing: "asyncio.Future[Any]") -> None:
        """Until the writers are done, and once more."""
        reached = 0
        async with await psycopg.AsyncConnection.connect(self._address, autocommit=True) as connection:
            while True:
                last = writing.done()
                high_watermark = await self._events.high_watermark()
                assert high_watermark >= reached
                cursor = await connection.execute(
                    "SELECT position, subject, version FROM events WHERE org = %s AND position > %s AND position <= %s "
                    "ORDER BY position",
                    (self._org, reached, high_watermark),
                )
                self.seen += [(row[0], row[1], row[2]) for row in await cursor.fetchall()]
                reached = high_watermark
                if last:
                    return


async def test_followers_miss_nothing_and_see_each_subject_in_order() -> None:
    async with postgres_backend() as backend:
        tenant = await backend.tenant()
        writers = Writers(backend.uow, tenant, await _sources(backend, tenant, 5))
        address = await database()
        followers = [LogTailer(address, backend.events, tenant.org) for _ in range(2)]
        until = asyncio.get_running_loop().time() + SECONDS
        writing = asyncio.gather(*(writers.write(seed, until) for seed in range(WRITERS)))
        async with asyncio.timeout(SECONDS * 6):
            await asyncio.gather(writing, *(tailer.follow(writing) for tailer in followers))
        stored = await _stored(address, tenant.org)
    assert writers.committed > 200 and writers.undone > 0
    assert len(stored) == writers.committed
    for tailer in followers:
        assert tailer.seen == stored
    versions: dict[str, int] = {}
    for _, subject, version in stored:
        assert version == versions.get(subject, 1) + 1
        versions[subject] = version


async def _sources(backend: Backend, tenant: Tenant, count: int) -> list[str]:
    made = [builders.source() for _ in range(count)]
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        for source in made:
            await tx.sources.add(source)
    return [source.id for source in made]


async def _stored(address: str, org: str) -> list[tuple[int, str, int]]:
    async with await psycopg.AsyncConnection.connect(address) as connection:
        cursor = await connection.execute(
            "SELECT position, subject, version FROM events WHERE org = %s ORDER BY position", (org,)
        )
        return [(row[0], row[1], row[2]) for row in await cursor.fetchall()]


class Meddling:
    """A pool in whose system connections something happens after each statement."""

    def __init__(self, pool: Pool, then: Callable[[], Awaitable[None]]) -> None:
        self._pool, self._then = pool, then

    @asynccontextmanager
    async def system(self) -> AsyncIterator[Any]:
        """A link with a cursor that lets others in."""
        async with self._pool.system() as link:
            yield _Meddled(_Cursor(link.cursor, self._then))


@dataclass(frozen=True)
class _Cursor:
    inner: Any
    then: Callable[[], Awaitable[None]]

    async def execute(self, *given: Any) -> Any:
        rows = await (await self.inner.execute(*given)).fetchall()
        await self.then()
        return _Fetched(rows)


@dataclass(frozen=True)
class _Meddled:
    cursor: _Cursor


class _Fetched:
    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    async def fetchone(self) -> Any:
        return self._rows[0] if self._rows else None


async def test_a_writer_between_the_two_looks_is_not_overtaken() -> None:
    """Last position first, then the locks: the other way round, a writer that begins in between is passed over."""
    async with postgres_backend() as backend:
        tenant = await backend.tenant()
        looks = 0
        async with backend.uow.begin(tenant, builders.CALL) as tx:

            async def append() -> None:
                nonlocal looks
                looks += 1
                if looks == 1:
                    await tx.events.append([builders.event("src_1")])

            pool = Pool(await database(), size=2)
            try:
                meddling: Any = Meddling(pool, append)
                high_watermark = await PostgresEventReader(meddling).high_watermark()
            finally:
                await pool.close()
        assert looks == 2
        taken = await _stored(await database(), tenant.org)
        assert [position > high_watermark for position, _, _ in taken] == [True]


async def test_a_savepoint_that_is_undone_does_not_let_the_log_pass() -> None:
    """It gives back the lock that was taken within; what is appended after it holds the high watermark back as well."""
    async with postgres_backend() as backend:
        tenant, pool = await backend.tenant(), Pool(await database(), size=2)
        try:
            async with backend.uow.begin(tenant, builders.CALL) as tx:
                with pytest.raises(RolledBack):
                    async with tx.savepoint():
                        await tx.events.append([builders.event("src_1")])
                        raise RolledBack
                await tx.events.append([builders.event("src_2")])
                async with backend.uow.begin(tenant, builders.CALL) as later:
                    await later.events.append([builders.event("src_3")])
                high_watermark = await PostgresEventReader(pool).high_watermark()
        finally:
            await pool.close()
        assert [position > high_watermark for position, _, _ in await _stored(await database(), tenant.org)] == [
            True
        ] * 2


async def test_the_first_event_of_all_is_not_visible_before_it_is_there() -> None:
    """A sequence that gave nothing yet says 1, like one that gave 1."""
    async with database_alone("first") as address:
        pool = Pool(address, size=2)
        try:
            assert await PostgresEventReader(pool).high_watermark() == 0
            async with await psycopg.AsyncConnection.connect(address) as writer:
                await _lock_and_take(writer)
                assert await PostgresEventReader(pool).high_watermark() == 0
                await writer.commit()
            assert await PostgresEventReader(pool).high_watermark() == 1
        finally:
            await pool.close()


async def _lock_and_take(writer: psycopg.AsyncConnection[Any]) -> None:
    await writer.execute(SQL["lock"])
    cursor = await writer.execute("SELECT nextval('event_position')")
    assert await cursor.fetchone() == (1,)
