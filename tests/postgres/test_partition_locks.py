"""Creation and deletion of partitions during a long read such as a dump: no other session waits."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

import psycopg
import pytest
import pytest_asyncio

from adapters.api_json.catalogue import JsonCatalogueRendering
from adapters.api_json.events import JsonEventRendering
from adapters.postgres import partitions
from adapters.postgres.maintenance import PostgresMaintenance
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.orgs import PostgresOrgRegistry
from adapters.postgres.partitions import DAYS_AHEAD, PARTITIONED_TABLES, build_partition_name
from adapters.postgres.request_logs import PostgresRequestLogSink
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from domain.events.ports import EventLog
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.request_logs.model import RequestLogFilter
from domain.request_logs.ports import RequestLogStore
from domain.webhooks.model import DeliveryFilter
from domain.webhooks.ports import WebhookStore
from tests.postgres.databases import create_temporary_database
from tests.support import builders
from tests.support.memory.clock import SystemClock
from tests.support.postgres import database, is_available

pytestmark = pytest.mark.asyncio
TODAY = datetime.now(UTC).date()


@dataclass
class PartitionHarness:
    """Separate database with a tenant that reads and writes."""

    address: str
    pool: Pool
    uow: PostgresUnitOfWork
    tenant: Tenant
    longest: float = 0.0
    rounds: int = 0
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def maintain_partitions(self, day: date) -> None:
        """Maintain the partitions as the scheduler does."""
        await PostgresMaintenance(self.pool).maintain_partitions(day)

    async def use_tables(self) -> None:
        """Write to and read from the partitioned tables until `stop` is set, and record the longest round."""
        endpoint = builders.endpoint()
        while not self.stop.is_set():
            begun = time.monotonic()
            async with self.uow.begin(self.tenant, builders.CALL) as tx:
                await tx[EventLog].append([builders.event("src_1")])
                await tx[WebhookStore].add_delivery(builders.delivery(endpoint.id))
            await PostgresRequestLogSink(self.pool).write([builders.request_log(self.tenant)])
            async with self.uow.begin_reading(self.tenant) as tx:
                await tx[WebhookStore].list_deliveries(DeliveryFilter(endpoint=endpoint.id), PageRequest())
                await tx[RequestLogStore].page(PageRequest(), RequestLogFilter())
            async with self.pool.connect_to_tenant(self.tenant) as link:
                await link.cursor.execute("SELECT max(position) FROM events WHERE org = %s", (self.tenant.org,))
            self.longest = max(self.longest, time.monotonic() - begun)
            self.rounds += 1
            await asyncio.sleep(0.005)

    async def list_partitions(self, table: str) -> set[str]:
        """Return the partitions of the table."""
        async with self.pool.connect_as_owner() as link:
            return set((await partitions.list_partitions(link.driver_connection, table)).values())

    @asynccontextmanager
    async def hold_dump(self) -> AsyncIterator[None]:
        """Hold a transaction that has read every table, as a dump does."""
        async with await psycopg.AsyncConnection.connect(self.address) as reader:
            await reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor = await reader.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
            )
            names = ", ".join(f'"{name}"' for (name,) in await cursor.fetchall())
            await reader.execute(f"LOCK TABLE {names} IN ACCESS SHARE MODE".encode())
            yield
            await reader.rollback()


@pytest_asyncio.fixture(params=["embedded", pytest.param("server", marks=pytest.mark.soak)])
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[PartitionHarness]:
    if request.param == "server" and not await is_available():
        pytest.skip("there is no server at hand")
    async with create_temporary_database("days", await database(request.param)) as address:
        pool = Pool(address, size=4)
        plan = await PostgresOrgRegistry(pool).find_plan("standard")
        assert plan is not None
        organisation = builders.organisation(plan=plan)
        await PostgresOrgRegistry(pool).create(organisation)
        uow = PostgresUnitOfWork(pool, SystemClock(), JsonCatalogueRendering(), JsonEventRendering())
        yield PartitionHarness(address, pool, uow, Tenant(organisation.id, True))
        await pool.close()


@pytest.mark.soak
async def test_nothing_waits_while_a_dump_runs(harness: PartitionHarness, caplog: pytest.LogCaptureFixture) -> None:
    old, new = TODAY - timedelta(days=200), TODAY + timedelta(days=1)
    await harness.maintain_partitions(old)
    using = asyncio.create_task(harness.use_tables())
    async with asyncio.timeout(120):
        async with harness.hold_dump():
            await harness.maintain_partitions(new)
            before = harness.rounds
            while harness.rounds < before + 5:
                await asyncio.sleep(0.01)
        for table in PARTITIONED_TABLES:
            held = await harness.list_partitions(table)
            assert (
                build_partition_name(table, new + timedelta(days=DAYS_AHEAD)) not in held
                and build_partition_name(table, old) in held
            )
            assert f"{build_partition_name(table, old)} in use, deferred to the next run" in caplog.text
        await harness.maintain_partitions(new)
        for table in PARTITIONED_TABLES:
            held = await harness.list_partitions(table)
            assert (
                build_partition_name(table, new + timedelta(days=DAYS_AHEAD)) in held
                and build_partition_name(table, old) not in held
            )
    harness.stop.set()
    await using
    assert harness.longest < 1, "a session was blocked by the maintenance"


async def test_a_short_lock_only_delays_maintenance(harness: PartitionHarness) -> None:
    new = TODAY + timedelta(days=1)
    async with asyncio.timeout(60):
        async with harness.hold_dump():
            ticking = asyncio.create_task(harness.maintain_partitions(new))
            await asyncio.sleep(0.5)
        await ticking
    for table in PARTITIONED_TABLES:
        assert build_partition_name(table, new + timedelta(days=DAYS_AHEAD)) in await harness.list_partitions(table)


async def test_concurrent_maintenance_creates_each_partition_once(
    harness: PartitionHarness, caplog: pytest.LogCaptureFixture
) -> None:
    days = [TODAY + timedelta(days=n) for n in range(10, 14)]
    await asyncio.gather(*(harness.maintain_partitions(day) for day in [*days, *days]))
    await harness.maintain_partitions(days[-1])
    for table in PARTITIONED_TABLES:
        made = {build_partition_name(table, day + timedelta(days=DAYS_AHEAD)) for day in days}
        assert made <= await harness.list_partitions(table)
    assert "not created" not in caplog.text


@pytest.mark.soak
async def test_partitions_stay_bounded_over_many_days(
    harness: PartitionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ticks are missed or blocked by dumps, and rows are misdated; the number of partitions stays bounded."""
    monkeypatch.setattr(partitions, "LOCK_PAUSE_SECONDS", 0.0)
    dice = random.Random(7)
    sink = PostgresRequestLogSink(harness.pool)
    day, last = TODAY, TODAY + timedelta(days=110)
    while day < last:
        day += timedelta(days=dice.choice((1, 1, 1, 1, 2, 6)))
        written = [
            day,
            day,
            day + timedelta(days=dice.choice((0, 0, 0, 1, 9))),
            day - timedelta(days=dice.randrange(200)),
        ]
        moments = [datetime(when.year, when.month, when.day, 12, tzinfo=UTC) for when in written]
        await sink.write([builders.request_log(harness.tenant, created_at=moment) for moment in moments])
        async with harness.uow.begin(harness.tenant, builders.CALL) as tx:
            await tx[EventLog].append([builders.event(f"src_{n}") for n in range(4)])
        async with await psycopg.AsyncConnection.connect(harness.address, autocommit=True) as owner:
            await _redate_events(owner, moments)
        if dice.random() < 0.06:
            async with harness.hold_dump():
                await harness.maintain_partitions(day)
        else:
            await harness.maintain_partitions(day)
    await harness.maintain_partitions(day)
    for table, days in PARTITIONED_TABLES.items():
        held = await harness.list_partitions(table)
        assert len(held) <= days.days_kept + DAYS_AHEAD + 12
        assert {build_partition_name(table, day + timedelta(days=n)) for n in range(DAYS_AHEAD + 1)} <= held
        async with harness.pool.connect_as_owner() as link:
            rows = await (await link.driver_connection.execute(f"SELECT count(*) FROM {table}".encode())).fetchone()
            left = await (
                await link.driver_connection.execute(f"SELECT count(*) FROM {table}_default".encode())
            ).fetchone()
        assert rows and left and rows[0] <= 4 * (days.days_kept + 10) and left[0] <= days.days_kept + 10


async def _redate_events(owner: psycopg.AsyncConnection[tuple[object, ...]], moments: list[datetime]) -> None:
    cursor = await owner.execute("SELECT position FROM events ORDER BY position DESC LIMIT 4")
    for (position,), moment in zip(reversed(await cursor.fetchall()), moments, strict=True):
        await owner.execute("UPDATE events SET time = %s WHERE position = %s", (moment, position))
