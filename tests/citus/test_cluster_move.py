"""`joinery cluster move` during writes, long polls, streams and deliveries of the organisation."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from adapters.postgres.cluster import (
    ClusterError,
    MoveResult,
    connect_to_coordinator,
    move_organisation,
    rebalance_shards,
)
from adapters.postgres.errors import StaleRoute
from adapters.postgres.nodes.pool import Pool
from benchmarks.receiver_client import ReceiverClient
from domain.events.ports import EventLog
from domain.kernel.errors import Unavailable
from domain.kernel.resource import with_changes as changed_row
from domain.kernel.tenancy import Tenant
from domain.sources.ports import SourceStore
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.settings import read_settings
from ports.unit_of_work import UnitOfWork
from tests.citus.followers import Follower
from tests.citus.placements import count_rows, find_node
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.support import builders
from tests.support.webhook_endpoints import create_endpoint, run_receiver

MOVES = 2
READERS = 2


class SourceWriters:
    """Writers that change sources and append events; a refused write is retried by the next one."""

    def __init__(self, container: Dependencies, tenant: Tenant, sources: list[str]) -> None:
        self._uow, self._tenant, self._sources = container[UnitOfWork], tenant, sources
        self.committed = self.refused = 0

    async def write(self, source: str, done: asyncio.Event) -> None:
        """Write until `done` is set."""
        while not done.is_set():
            try:
                await self._write_once(source)
            except Unavailable:
                self.refused += 1
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.005)

    async def _write_once(self, source: str) -> None:
        async with self._uow.begin(self._tenant, builders.CALL) as tx:
            found = await tx[SourceStore].get(source, lock=True)
            assert found is not None, "what was written is there, wherever"
            changed = changed_row(found, tx.now)
            await tx[SourceStore].save(changed)
            await tx[EventLog].append([builders.event(source, version=changed.version)])
        self.committed += 1


def test_a_move_loses_and_reorders_no_events(services: ServiceProcesses, tenants: dict[str, list[Tenancy]]) -> None:
    mover, *neighbours = [tenancy for there in tenants.values() for tenancy in there]
    found: dict[str, Any] = {}
    with run_receiver(services) as at:
        one = create_endpoint(mover.api, at, ("source.degraded",))

        async def work(container: Dependencies) -> None:
            found["seen"], found["writers"], found["moves"] = await _move_while_used(services, container, mover)

        _run(services, work)
        writers, seen, moves = found["writers"], found["seen"], found["moves"]
        stored = services.fetch_rows(
            "SELECT subject, version FROM events WHERE org = %(org)s AND NOT livemode ORDER BY position",
            org=mover.tenant.org,
        )
        assert len(moves) == MOVES and len({moved.target for moved in moves}) == 2
        assert len(stored) == writers.committed > 50
        for reader in seen:
            assert reader == stored, "each reader saw all of it, once and in order"
        _check_node(services, tenants, mover, len(stored))
        _check_deliveries(at, one, len(stored))
    for neighbour in neighbours:
        assert neighbour.api.call("GET", "/v1/sources").status == 200


def _run(services: ServiceProcesses, work: Callable[[Dependencies], Awaitable[None]]) -> None:
    """Run a coroutine with the service's dependencies; on a busy machine a move takes minutes."""

    async def main() -> None:
        async with open_dependencies(read_settings(services.env)) as container, asyncio.timeout(400):
            await work(container)

    asyncio.run(main())


async def _move_while_used(
    services: ServiceProcesses, container: Dependencies, mover: Tenancy
) -> tuple[Any, SourceWriters, list[MoveResult]]:
    sources = [builders.source() for _ in range(3)]
    async with container[UnitOfWork].begin(mover.tenant, builders.CALL) as tx:
        for source in sources:
            await tx[SourceStore].add(source)
    writers = SourceWriters(container, mover.tenant, [source.id for source in sources])
    moved, done = asyncio.Event(), asyncio.Event()
    headers = {"Authorization": f"Bearer {mover.api.secret}"}
    timeout = aiohttp.ClientTimeout(total=200)
    moves: list[MoveResult] = []

    async def moving() -> None:
        await asyncio.sleep(1)
        for _ in range(MOVES):
            async with connect_to_coordinator(services.database_url) as cluster:
                moves.append(await move_organisation(cluster, mover.tenant.org, None, print))
            await asyncio.sleep(1)
        moved.set()

    async with aiohttp.ClientSession(f"http://127.0.0.1:{services.port}", headers=headers, timeout=timeout) as http:
        writing = [writers.write(source.id, moved) for source in sources]

        async def finish() -> None:
            await asyncio.gather(moving(), *writing)
            done.set()  # after the last commit: followers stop at the final number of commits

        followers = [Follower(http, done, lambda: writers.committed) for _ in range(2 * READERS)]
        polls, streams = followers[:READERS], followers[READERS:]
        await asyncio.gather(
            finish(), *(one.follow_pages() for one in polls), *(one.follow_stream() for one in streams)
        )
    return [follower.seen for follower in followers], writers, moves


def _check_node(services: ServiceProcesses, tenants: dict[str, list[Tenancy]], mover: Tenancy, count: int) -> None:
    """Check that only the new node stores rows; the old node deletes its rows later."""
    home = find_node(services, mover.tenant.org)
    assert count_rows(services, home, "events", mover.tenant.org) == count
    for name in tenants.keys() - {home}:
        assert count_rows(services, name, "events", mover.tenant.org) == 0


def _check_deliveries(at: ReceiverClient, one: Any, count: int) -> None:
    got = one.wait_for_received(count, within=60)
    ids = Counter(each.event["id"] for each in got)
    assert len(ids) == count, "every event is delivered at least once"


@pytest.mark.asyncio
async def test_a_stale_route_raises_and_the_retry_succeeds(services: ServiceProcesses) -> None:
    tenancy = await asyncio.to_thread(services.create_organisation)
    pool, tenant = Pool(services.database_url, size=2), tenancy.tenant
    counting = "SELECT count(*) FROM jobs WHERE org = %(org)s AND livemode = %(livemode)s"
    adding = (
        "INSERT INTO jobs (org, livemode, id, kind, lane, args, run_at, created_at) "
        "VALUES (%(org)s, %(livemode)s, 'j', 'k', 'l', '{}', now() + interval '1 day', now())"
    )
    values = {"org": tenant.org, "livemode": tenant.livemode}
    async with pool.connect_to_tenant(tenant) as link:
        await link.cursor.execute(counting, values)
    for statement in (counting, adding):
        async with connect_to_coordinator(services.database_url) as cluster:
            await move_organisation(cluster, tenant.org, None, lambda line: None)
        with pytest.raises(StaleRoute):
            async with pool.connect_to_tenant(tenant) as link:
                await link.cursor.execute(statement, values)
        async with pool.connect_to_tenant(tenant) as link:
            assert await (await link.cursor.execute(counting, values)).fetchone() == (0,)
    async with connect_to_coordinator(services.database_url) as cluster:
        await move_organisation(cluster, tenant.org, None, lambda line: None)
    assert await pool.fetch_rows(tenant, counting, values) == [(0,)], "a read is done again by itself"
    await pool.close()


@pytest.mark.asyncio
async def test_invalid_targets_are_refused(services: ServiceProcesses) -> None:
    tenancy = await asyncio.to_thread(services.create_organisation)
    home = await asyncio.to_thread(find_node, services, tenancy.tenant.org)
    async with connect_to_coordinator(services.database_url) as cluster:
        for where, words in ((home, "already"), ("nowhere:1", "not a node")):
            with pytest.raises(ClusterError, match=words):
                await move_organisation(cluster, tenancy.tenant.org, where, lambda line: None)


@pytest.mark.asyncio
async def test_rebalancing_ends(services: ServiceProcesses) -> None:
    async with connect_to_coordinator(services.database_url) as cluster:
        await rebalance_shards(cluster, lambda line: None)
        assert await rebalance_shards(cluster, lambda line: None) == 0
