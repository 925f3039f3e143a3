"""Queries across tenants after a tenant was moved while its cached route is outdated."""

import pytest

from adapters.api_json.catalogue import JsonCatalogueRendering
from adapters.api_json.events import JsonEventRendering
from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from domain.changes.model import FeedPosition
from domain.changes.usecases.log_tailer import LogTailer
from domain.changes.usecases.service import ChangesService
from domain.events.model import LogPosition
from domain.events.ports import EventLog
from domain.kernel.tenancy import Tenant
from tests.support import builders
from tests.support.memory.clock import SystemClock
from tests.support.memory.messages import MemorySignals
from tests.topology.servers import Servers

pytestmark = pytest.mark.asyncio
HERE = Tenant("org_here", True)


async def append_events(pool: Pool, count: int) -> None:
    uow = PostgresUnitOfWork(pool, SystemClock(), JsonCatalogueRendering(), JsonEventRendering())
    async with uow.begin(HERE, builders.CALL) as tx:
        await tx[EventLog].append([builders.event("src_1") for _ in range(count)])


async def test_bounds_of_a_moved_log_are_read_on_its_new_node(servers: Servers) -> None:
    """Expected: its bounds at its new node, or Unavailable; never those of a log without events. A process that had only read
    bounds of the tenant (polls, streams, sweeps) queried its former node, which has no rows: epoch 0, last 0.
    """
    servers.place_organisation(HERE.org, 0)
    pool = Pool(servers.nodes[0].conninfo, size=3, placement=servers)
    try:
        await append_events(pool, 5)
        reader = PostgresEventReader(pool)
        before = (await reader.query_bounds([HERE]))[HERE]
        await servers.move_organisation(HERE.org, 1)
        assert (await reader.query_bounds([HERE]))[HERE] == before
    finally:
        await pool.close()


async def test_a_reader_of_a_moved_tenant_continues(servers: Servers) -> None:
    """Expected: the reader continues, or gets 503 and retries. It got 410 although no event was missing. Webhooks continued from
    `nearest` of an empty log, which is 0, and received all retained events again.
    """
    servers.place_organisation(HERE.org, 0)
    pool = Pool(servers.nodes[0].conninfo, size=3, placement=servers)
    try:
        await append_events(pool, 5)
        reader = PostgresEventReader(pool)
        tailer = LogTailer(reader, JsonEventRendering(), MemorySignals())
        service = ChangesService(reader, tailer)
        at = await service.find_end(HERE)
        other = Pool(servers.nodes[0].conninfo, size=3, placement=servers)  # the writer is another process
        await servers.move_organisation(HERE.org, 1)
        await append_events(other, 1)
        await other.close()
        own = await tailer.bounds_cache.query_fresh(HERE)
        again = own.find_resume_position(LogPosition(own.epoch, 5)).position
        from domain.changes.model import EventFilter

        try:
            page = await service.read_page(HERE, FeedPosition(at.own, at.network), 100, EventFilter())
        except Exception as error:
            pytest.fail(f"{error!r}; webhooks go on from {again} instead of 5")
        assert page.count == 1
    finally:
        await pool.close()


async def test_a_move_does_not_begin_an_epoch(servers: Servers) -> None:
    """Expected: the epoch stays. Citus drops a moved shard about 15 s later. Until then a process that has cached the former node
    read the old bounds there by the shard's name, treated a newer cursor as beyond the end, and began an epoch of the log on its
    new node: every reader got 410 although no event was lost.
    """
    servers.place_organisation(HERE.org, 0)
    pool, other = (Pool(servers.nodes[0].conninfo, size=3, placement=servers) for _ in range(2))
    try:
        await append_events(pool, 5)
        reader = PostgresEventReader(pool)
        service = ChangesService(reader, LogTailer(reader, JsonEventRendering(), MemorySignals()))
        await service.find_end(HERE)
        await servers.move_organisation(HERE.org, 1)
        async with pool.connect_as_owner(
            servers.nodes[0]
        ) as link:  # the shard still exists, and here.<table> is its name
            cursor = await link.cursor.execute(
                "SELECT tablename, policyname FROM pg_policies WHERE policyname LIKE 'hidden_%%'", {}
            )
            for table, policy in await cursor.fetchall():
                await link.cursor.execute(f'DROP POLICY "{policy}" ON {table}')
        await append_events(other, 1)
        fresh = PostgresEventReader(other)
        before = (await fresh.query_bounds([HERE]))[HERE]
        from domain.changes.model import EventFilter
        from domain.kernel.errors import DomainError

        try:
            await service.read_page(HERE, FeedPosition(before.end, LogPosition()), 100, EventFilter())
        except DomainError as error:
            outcome = repr(error)
        else:
            outcome = "a page"
        assert (await fresh.query_bounds([HERE]))[HERE].epoch == before.epoch, outcome
    finally:
        await pool.close()
        await other.close()
