"""Guarantee of event logs: gapless positions in commit order; no event appears before a visible one."""

import asyncio
import random
from typing import Any

import psycopg
import pytest

from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.nodes.pool import Pool
from domain.changes.model import ALL, OPEN_END, LogView
from domain.changes.ports import EventReader
from domain.events.model import LogPosition
from domain.events.ports import EventLog
from domain.kernel.resource import with_changes
from domain.kernel.tenancy import Tenant
from domain.sources.ports import SourceStore
from ports.unit_of_work import UnitOfWork
from tests.postgres.databases import create_temporary_database
from tests.support import builders
from tests.support.backend import Backend
from tests.support.postgres import database, postgres_backend

pytestmark = pytest.mark.asyncio
SECONDS = 5.0
WRITERS = 8
ROLLED_BACK = 0.05


class Rollback(Exception):
    """Exception that rolls a transaction back."""


class EventWriters:
    """Tasks that change sources and append events, with the subject locked first."""

    def __init__(self, uow: UnitOfWork, tenant: Tenant, sources: list[str]) -> None:
        self._uow, self._tenant, self._sources = uow, tenant, sources
        self.committed_count = 0
        self.rolled_back_count = 0

    async def write(self, seed: int, until: float) -> None:
        """Write until that time of the loop's clock."""
        dice, clock = random.Random(seed), asyncio.get_running_loop().time
        while clock() < until:
            try:
                count = await self._write_once(dice)
            except Rollback:
                self.rolled_back_count += 1
            else:
                self.committed_count += count

    async def _write_once(self, dice: random.Random) -> int:
        count = dice.choice((1, 1, 1, 3, 60))
        async with self._uow.begin(self._tenant, builders.CALL) as tx:
            source = await tx[SourceStore].get(dice.choice(self._sources), lock=True)
            assert source is not None
            events = []
            for _ in range(count):
                source = with_changes(source, tx.now)
                events.append(builders.event(source.id, version=source.version))
            await tx[SourceStore].save(source)
            await tx[EventLog].append(events)
            await asyncio.sleep(dice.random() * 0.004)
            if dice.random() < ROLLED_BACK:
                raise Rollback
        return count


class LogFollower:
    """Reader that follows the log up to its current end."""

    def __init__(self, address: str, events: EventReader, log: Tenant) -> None:
        self._address, self._events, self._log = address, events, log
        self.seen: list[tuple[int, str, int]] = []

    async def follow(self, writing: "asyncio.Future[Any]") -> None:
        """Read until the writers are done, and once more."""
        reached, epochs = 0, set[int]()
        async with await psycopg.AsyncConnection.connect(self._address, autocommit=True) as connection:
            while True:
                last = writing.done()
                bounds = (await self._events.query_bounds([self._log]))[self._log]
                assert bounds.last >= reached
                epochs |= {bounds.epoch} if bounds.epoch else set()
                cursor = await connection.execute(
                    "SELECT position, subject, version FROM events WHERE org = %s AND position > %s AND position <= %s "
                    "ORDER BY position",
                    (self._log.org, reached, bounds.last),
                )
                found = await cursor.fetchall()
                assert [row[0] for row in found] == list(range(reached + 1, bounds.last + 1)), "positions have no gaps"
                self.seen += [(row[0], row[1], row[2]) for row in found]
                reached = bounds.last
                if last:
                    assert len(epochs) == 1
                    return


async def test_followers_miss_nothing_and_see_each_subject_in_order() -> None:
    async with postgres_backend() as backend:
        tenant = await backend.tenant()
        writers = EventWriters(backend.uow, tenant, await _add_sources(backend, tenant, 5))
        address = await database()
        followers = [LogFollower(address, backend.events, tenant) for _ in range(2)]
        until = asyncio.get_running_loop().time() + SECONDS
        writing = asyncio.gather(*(writers.write(seed, until) for seed in range(WRITERS)))
        async with asyncio.timeout(SECONDS * 6):
            await asyncio.gather(writing, *(tailer.follow(writing) for tailer in followers))
        stored = await _read_events(address, tenant.org)
    assert writers.committed_count > 200 and writers.rolled_back_count > 0
    assert len(stored) == writers.committed_count
    for tailer in followers:
        assert tailer.seen == stored
    versions: dict[str, int] = {}
    for _, subject, version in stored:
        assert version == versions.get(subject, 1) + 1
        versions[subject] = version


async def _add_sources(backend: Backend, tenant: Tenant, count: int) -> list[str]:
    made = [builders.source() for _ in range(count)]
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        for source in made:
            await tx[SourceStore].add(source)
    return [source.id for source in made]


async def _read_events(address: str, org: str, *, live_only: bool = False) -> list[tuple[int, str, int]]:
    async with await psycopg.AsyncConnection.connect(address) as connection:
        cursor = await connection.execute(
            "SELECT position, subject, version FROM events WHERE org = %s AND (livemode OR NOT %s) ORDER BY position",
            (org, live_only),
        )
        return [(row[0], row[1], row[2]) for row in await cursor.fetchall()]


async def test_positions_are_assigned_at_the_end_of_the_transaction() -> None:
    """A transaction that has appended and continues does not block others of the same log."""
    async with postgres_backend() as backend:
        tenant = await backend.tenant()
        async with asyncio.timeout(20):
            async with backend.uow.begin(tenant, builders.CALL) as slow:
                await slow[EventLog].append([builders.event("src_1")])
                await slow[SourceStore].add(builders.source())
                for _ in range(3):
                    async with backend.uow.begin(tenant, builders.CALL) as quick:
                        await quick[EventLog].append([builders.event("src_2"), builders.event("src_3")])
                await slow[EventLog].append([builders.event("src_4")])
        found = await _read_events(await database(), tenant.org)
    assert [(position, subject) for position, subject, _ in found] == [
        (1, "src_2"), (2, "src_3"), (3, "src_2"), (4, "src_3"), (5, "src_2"), (6, "src_3"), (7, "src_1"), (8, "src_4"),
    ]  # fmt: skip


async def test_a_committing_writer_blocks_its_own_log_only() -> None:
    """From here on its row of the log is locked; other logs, including its test mode's, are not."""
    async with postgres_backend() as backend:
        tenant, other = await backend.tenant(), await backend.tenant()
        for log in (tenant, other, Tenant(tenant.org, False)):
            await _append_event(backend, log)
        async with await psycopg.AsyncConnection.connect(await database()) as committing:
            await committing.execute("UPDATE event_logs SET last = last + 1 WHERE org = %s AND livemode", (tenant.org,))
            async with asyncio.timeout(20):
                for log in (other, Tenant(tenant.org, False)):
                    await _append_event(backend, log)
                assert (await backend.events.query_bounds([tenant]))[tenant].last == 1, "reads are not blocked"
            waiting = asyncio.create_task(_append_event(backend, tenant))
            await asyncio.sleep(0.3)
            assert not waiting.done()
            await committing.rollback()
        async with asyncio.timeout(20):
            await waiting
        assert [position for position, _, _ in await _read_events(await database(), tenant.org, live_only=True)] == [
            1,
            2,
        ]


async def test_a_writer_killed_before_its_commit_leaves_no_gap() -> None:
    async with postgres_backend() as backend:
        tenant = await backend.tenant()
        await _append_event(backend, tenant)
        with pytest.raises(Rollback):
            async with backend.uow.begin(tenant, builders.CALL) as tx:
                await tx[EventLog].append([builders.event("src_1")])
                await tx.flush()  # type: ignore[attr-defined]
                raise Rollback
        await _append_event(backend, tenant)
        assert [position for position, _, _ in await _read_events(await database(), tenant.org)] == [1, 2]


async def test_a_rolled_back_savepoint_removes_its_events() -> None:
    async with postgres_backend() as backend:
        tenant = await backend.tenant()
        async with backend.uow.begin(tenant, builders.CALL) as tx:
            with pytest.raises(Rollback):
                async with tx.savepoint():
                    await tx[EventLog].append([builders.event("src_1")])
                    raise Rollback
            await tx[EventLog].append([builders.event("src_2")])
            await _append_event(backend, tenant)
        found = [(position, subject) for position, subject, _ in await _read_events(await database(), tenant.org)]
        assert found == [(1, "src_3"), (2, "src_2")]


async def test_the_first_event_of_a_log_is_not_visible_before_its_commit() -> None:
    async with create_temporary_database("first") as address:
        pool, log = Pool(address, size=2), Tenant("org_1", True)
        reader = PostgresEventReader(pool)
        try:
            async with await psycopg.AsyncConnection.connect(address) as writer:
                await writer.execute("INSERT INTO event_logs (org, livemode, epoch, last) VALUES ('org_1', true, 7, 1)")
                assert (await reader.query_bounds([log]))[log].last == 0
                await writer.commit()
            assert (await reader.query_bounds([log]))[log].last == 1
        finally:
            await pool.close()


async def _append_event(backend: Backend, log: Tenant) -> None:
    async with backend.uow.begin(log, builders.CALL) as tx:
        await tx[EventLog].append([builders.event("src_3")])


async def test_a_reader_after_an_event_of_a_wrong_clock_gets_later_events() -> None:
    """The partitions after a position are found by its time, also after the server's clock was ahead."""
    async with postgres_backend() as backend:
        log = await backend.tenant()
        await _append_event(backend, log)
        async with await psycopg.AsyncConnection.connect(await database()) as owner:
            for table in ("events", "event_logs"):
                await owner.execute(
                    f"UPDATE {table} SET time = time + interval '3 days' WHERE org = %s".encode(), (log.org,)
                )
        ahead = (await backend.events.query_bounds([log]))[log].end
        await _append_event(backend, log)
        page = await backend.events.read_page(LogView.own(log), ahead, LogPosition(position=OPEN_END), 10, ALL)
        assert [event.position for event in page.events] == [2]
        assert ahead.time is not None and page.events[0].time >= ahead.time
