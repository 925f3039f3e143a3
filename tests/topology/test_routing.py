"""Routing of tenants to their nodes: a former node is neither read nor written."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from adapters.api_json.catalogue import JsonCatalogueRendering
from adapters.api_json.events import JsonEventRendering
from adapters.postgres.errors import StaleRoute
from adapters.postgres.nodes.pool import Pool, create_row_reader
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from domain.kernel.errors import Unavailable
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from ports.idempotency import IdempotencyStore
from tests.support import builders
from tests.support.memory.clock import SystemClock
from tests.topology.servers import Servers

pytestmark = pytest.mark.asyncio
HERE = Tenant("org_here", True)
COUNT = "SELECT count(*) FROM sources WHERE org = %(org)s AND livemode = %(livemode)s"


@dataclass
class RoutingHarness:
    """Units of work on two servers; `HERE` starts on the first."""

    servers: Servers
    pool: Pool
    uow: PostgresUnitOfWork

    async def add_source(self, tenant: Tenant = HERE) -> Source:
        """Add a source of the tenant."""
        source = builders.source()
        async with self.uow.begin(tenant, builders.CALL) as tx:
            await tx[SourceStore].add(source)
        return source

    async def count_sources(self, number: int, org: str = HERE.org) -> int:
        """Return the number of the organisation's sources on a node, including invisible ones."""
        return len((await self.servers.read_rows(number, org))["sources"])


@pytest_asyncio.fixture
async def harness(servers: Servers) -> AsyncIterator[RoutingHarness]:
    """Place the organisation on the first server, as the pool has cached."""
    servers.place_organisation(HERE.org, 0)
    pool = Pool(servers.nodes[0].conninfo, size=3, placement=servers)
    made = RoutingHarness(
        servers, pool, PostgresUnitOfWork(pool, SystemClock(), JsonCatalogueRendering(), JsonEventRendering())
    )
    await made.add_source()
    try:
        yield made
    finally:
        await pool.close()


async def test_each_tenant_is_stored_on_its_node_only(harness: RoutingHarness) -> None:
    other = Tenant("org_there", True)
    harness.servers.place_organisation(other.org, 1)
    await harness.add_source(other)
    assert [await harness.count_sources(number) for number in (0, 1)] == [1, 0]
    assert [await harness.count_sources(number, other.org) for number in (0, 1)] == [0, 1]
    assert await harness.pool.group_by_node([HERE, other]) == {
        harness.servers.nodes[0]: [HERE],
        harness.servers.nodes[1]: [other],
    }


async def test_the_node_of_a_tenant_is_looked_up_once(harness: RoutingHarness) -> None:
    lookups = harness.servers.lookups
    for _ in range(5):
        await harness.add_source()
    assert harness.servers.lookups == lookups


async def test_queries_across_tenants_run_on_each_node(harness: RoutingHarness) -> None:
    other = Tenant("org_there", True)
    harness.servers.place_organisation(other.org, 1)
    await harness.add_source(other)
    found = await harness.pool.scatter_best_effort(create_row_reader("SELECT s.org FROM here.sources AS s"))
    assert found == [[("org_here",)], [("org_there",)]]
    assert await harness.pool.scatter_all(create_row_reader("SELECT s.org FROM here.sources AS s")) == found


async def test_a_read_continues_on_the_current_node_of_the_tenant(harness: RoutingHarness) -> None:
    async with harness.uow.begin_reading(HERE) as tx:
        [source] = (await tx[SourceStore].page(PageRequest())).items
        await harness.servers.move_organisation(HERE.org, 1)
        assert await tx[SourceStore].get(source.id) == source
        later = await harness.add_source()
        assert await tx[SourceStore].get(later.id) == later
    assert [await harness.count_sources(number) for number in (0, 1)] == [1, 2]
    of = {"org": HERE.org, "livemode": True}
    await harness.servers.move_organisation(HERE.org, 0)
    assert await harness.pool.fetch_rows(HERE, COUNT, of) == [(2,)]


async def test_a_unit_of_work_restarts_on_the_current_node_of_the_tenant(harness: RoutingHarness) -> None:
    async with harness.uow.begin_reading(HERE) as tx:
        [source] = (await tx[SourceStore].page(PageRequest())).items
    await harness.servers.move_organisation(HERE.org, 1)
    left = await harness.servers.read_rows(0, HERE.org)
    async with harness.uow.begin(HERE, builders.CALL) as tx:
        found = await tx[SourceStore].get(source.id, lock=True)
        assert found == source
        await tx[SourceStore].add(builders.source())
    assert await harness.count_sources(1) == 2 and await harness.servers.read_rows(0, HERE.org) == left


@pytest.mark.parametrize("first", ["add", "hold"])
async def test_any_first_operation_of_a_unit_of_work_is_routed(harness: RoutingHarness, first: str) -> None:
    await harness.servers.move_organisation(HERE.org, 1)
    left = await harness.servers.read_rows(0, HERE.org)
    async with harness.uow.begin(HERE, builders.CALL) as tx:
        if first == "hold":
            assert await tx[IdempotencyStore].lock("once") is None
        await tx[SourceStore].add(builders.source())
    assert await harness.count_sources(1) == 2 and await harness.servers.read_rows(0, HERE.org) == left


async def test_writes_on_the_former_node_of_a_tenant_are_rolled_back(harness: RoutingHarness) -> None:
    """The write cannot continue on the other node: the client gets a retry time, and the retry has effect once."""
    with pytest.raises(StaleRoute) as caught:
        async with harness.uow.begin(HERE, builders.CALL) as tx:
            await tx.session.run("SELECT 1")  # type: ignore[attr-defined]
            await harness.servers.move_organisation(HERE.org, 1)
            left = await harness.servers.read_rows(0, HERE.org)
            await tx[SourceStore].add(builders.source())
    assert isinstance(caught.value, Unavailable) and caught.value.retry_after == 1
    assert await harness.servers.read_rows(0, HERE.org) == left and await harness.count_sources(1) == 1
    await harness.add_source()
    assert await harness.servers.read_rows(0, HERE.org) == left and await harness.count_sources(1) == 2


async def test_an_unknown_location_of_a_tenant_fails_without_effect(
    harness: RoutingHarness, caplog: pytest.LogCaptureFixture
) -> None:
    await harness.servers.move_organisation(HERE.org, 1)
    harness.servers.place_organisation(HERE.org, 0)  # like a placement that has not seen the move yet
    left = await harness.servers.read_rows(0, HERE.org)
    for attempt in (harness.add_source(), harness.pool.fetch_rows(HERE, COUNT, {"org": HERE.org, "livemode": True})):
        with pytest.raises(StaleRoute):
            await attempt
    lines = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(lines) == 2 and all("may have forwarded it" in line and "joinery." in line for line in lines), (
        "the cause is logged"
    )
    harness.servers.place_organisation(HERE.org, 1)
    await harness.add_source()
    assert await harness.servers.read_rows(0, HERE.org) == left and await harness.count_sources(1) == 2


async def test_a_move_during_writes_loses_and_duplicates_nothing(harness: RoutingHarness) -> None:
    done: list[str] = []
    stopped = asyncio.Event()

    async def write() -> None:
        while not stopped.is_set():
            try:
                done.append((await harness.add_source()).id)
            except StaleRoute:
                await asyncio.sleep(0)

    writers = [asyncio.create_task(write()) for _ in range(3)]
    for number in (1, 0, 1):
        count = len(done)
        while len(done) < count + 5:
            await asyncio.sleep(0.01)
        await harness.servers.move_organisation(HERE.org, number)
    left = await harness.servers.read_rows(0, HERE.org)
    count = len(done)
    while len(done) < count + 5:
        await asyncio.sleep(0.01)
    stopped.set()
    await asyncio.gather(*writers)
    async with harness.uow.begin_reading(HERE) as tx:
        found = {id for id in done if await tx[SourceStore].get(id)}
    assert found == set(done) and await harness.count_sources(1) == len(done) + 1
    assert await harness.servers.read_rows(0, HERE.org) == left


async def test_added_and_removed_nodes_are_detected(harness: RoutingHarness) -> None:
    other = Tenant("org_there", True)
    first, second = harness.servers.nodes
    harness.servers.nodes = [first]
    await harness.pool.router.refresh()
    assert await harness.pool.list_nodes() == (first,)
    harness.servers.nodes = [first, second]
    harness.servers.place_organisation(other.org, 1)
    await harness.pool.router.refresh()
    await harness.add_source(other)
    assert await harness.count_sources(1, other.org) == 1
    assert len(await harness.pool.scatter_best_effort(create_row_reader("SELECT 1"))) == 2
