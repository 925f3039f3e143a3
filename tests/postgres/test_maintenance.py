"""What is kept and what is dropped: days of events and deliveries, the log's floor, and what plans keep for less long."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from adapters.memory.clock import SystemClock
from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.orgs import PostgresOrgRegistry
from adapters.postgres.pool import Pool
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from adapters.postgres.maintenance import AHEAD, PARTITIONED, PostgresMaintenance, first_id
from adapters.wire.catalogue import WireRendering
from adapters.wire.events import WireEventRendering
from domain.kernel.ids import encode, new_id, uuid7
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import DeliveryFilter, SealedSecrets
from tests.postgres.databases import database_alone
from tests.support import builders

pytestmark = pytest.mark.asyncio
TODAY = datetime.now(UTC).date()


@dataclass
class Store:
    """A database alone, with one organisation."""

    pool: Pool
    uow: PostgresUnitOfWork
    maintenance: PostgresMaintenance
    owner: psycopg.AsyncConnection[Any]
    tenant: Tenant

    async def places(self, table: str) -> dict[str, int]:
        """How many rows lie in each partition that has any."""
        cursor = await self.owner.execute(f"SELECT tableoid::regclass::text, count(*) FROM {table} GROUP BY 1".encode())
        return dict(await cursor.fetchall())


@pytest_asyncio.fixture(name="store")
async def made_store() -> AsyncIterator[Store]:
    """On a database of its own: partitions are everybody's."""
    async with database_alone("upkeep") as address:
        pool = Pool(address, size=2)
        uow = PostgresUnitOfWork(pool, SystemClock(), WireRendering(), WireEventRendering())
        registry = PostgresOrgRegistry(pool)
        plan = await registry.plan("standard")
        assert plan is not None
        organisation = builders.organisation(plan=plan)
        await registry.create(organisation)
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
            yield Store(pool, uow, PostgresMaintenance(pool), owner, Tenant(organisation.id, True))
        await pool.close()


def _id_of(day: date, milliseconds: int = 0, bits: int = 0) -> str:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return f"dlv_{encode(uuid7(int(midnight.timestamp() * 1000) + milliseconds, bits))}"


async def _deliver(store: Store, endpoint: str, *ids: str, status: str = "succeeded") -> None:
    async with store.uow.begin(store.tenant, builders.CALL) as tx:
        for id in ids:
            await tx.webhooks.add_delivery(builders.delivery(endpoint, id=id, status=status))


async def _endpoint(store: Store) -> str:
    endpoint = builders.endpoint()
    async with store.uow.begin(store.tenant, builders.CALL) as tx:
        await tx.webhooks.add(endpoint, SealedSecrets(b"x"), 0)
    return endpoint.id


async def test_a_day_begins_with_its_first_id() -> None:
    day = date(2026, 11, 20)
    assert _id_of(day, -1, (1 << 74) - 1) < first_id("dlv", day) == _id_of(day)
    assert first_id("dlv", TODAY) < new_id("dlv") < first_id("dlv", TODAY + timedelta(days=2))


async def test_deliveries_lie_in_the_day_of_their_ids(store: Store) -> None:
    await store.maintenance.partitions(TODAY)
    endpoint = await _endpoint(store)
    tomorrow = TODAY + timedelta(days=1)
    await _deliver(
        store, endpoint, _id_of(tomorrow), _id_of(tomorrow, 86_399_999, (1 << 74) - 1),
        _id_of(tomorrow + timedelta(days=1)), _id_of(TODAY, 1000), "dlv_unheard_of",
    )  # fmt: skip
    names = [f"webhook_deliveries_{TODAY + timedelta(days=ahead):%Y%m%d}" for ahead in (1, 2)]
    assert await store.places("webhook_deliveries") == {names[0]: 2, names[1]: 1, "webhook_deliveries_default": 2}
    async with store.uow.read(store.tenant) as tx:
        page = await tx.webhooks.deliveries(DeliveryFilter(endpoint=endpoint), PageRequest())
    assert len(page.items) == 5


async def test_old_days_of_deliveries_are_dropped(store: Store) -> None:
    begun = TODAY - timedelta(days=40)
    await store.maintenance.partitions(begun)
    endpoint = await _endpoint(store)
    days = [begun + timedelta(days=ahead) for ahead in range(1, AHEAD + 1)]
    await _deliver(store, endpoint, *(_id_of(day, 5) for day in days), _id_of(begun - timedelta(days=9)))
    kept = PARTITIONED["webhook_deliveries"].kept
    await store.maintenance.partitions(days[1] + timedelta(days=kept))
    assert await store.places("webhook_deliveries") == {
        f"webhook_deliveries_{days[1]:%Y%m%d}": 1, f"webhook_deliveries_{days[2]:%Y%m%d}": 1,
    }  # fmt: skip


async def test_the_floor_rises_with_the_events_that_are_dropped(store: Store) -> None:
    begun = TODAY - timedelta(days=50)
    await store.maintenance.partitions(begun)
    reader = PostgresEventReader(store.pool)
    days = [begun, *(begun + timedelta(days=ahead) for ahead in (1, 2, 3))]
    for day in days:
        async with store.uow.begin(store.tenant, builders.CALL) as tx:
            await tx.events.append([builders.event("src_1"), builders.event("src_2")])
        noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        await store.owner.execute("UPDATE events SET time = %s WHERE time > now() - interval '1 day'", (noon,))
    cursor = await store.owner.execute("SELECT position FROM events ORDER BY position")
    positions = [row[0] for row in await cursor.fetchall()]
    assert (await reader.bounds()).low_watermark == 0
    await store.maintenance.partitions(days[1] + timedelta(days=PARTITIONED["events"].kept))
    assert (await reader.bounds()).low_watermark == positions[1], "what the default partition had of older days is gone"
    await store.maintenance.partitions(days[3] + timedelta(days=PARTITIONED["events"].kept))
    assert (await reader.bounds()).low_watermark == positions[5]
    assert await store.places("events") == {f"events_{days[3]:%Y%m%d}": 2}
    await store.maintenance.partitions(days[3] + timedelta(days=PARTITIONED["events"].kept))
    assert (await reader.bounds()).low_watermark == positions[5]


async def test_plans_keep_deliveries_for_less_long(store: Store) -> None:
    await store.owner.execute("UPDATE plans SET delivery_days = 7 WHERE code = 'standard'")
    endpoint = await _endpoint(store)
    old, young = _id_of(TODAY - timedelta(days=8)), _id_of(TODAY - timedelta(days=6))
    open_one = _id_of(TODAY - timedelta(days=9))
    await _deliver(store, endpoint, old, young)
    await _deliver(store, endpoint, open_one, status="pending")
    richer = await PostgresOrgRegistry(store.pool).plan("max")
    assert richer is not None and richer.delivery_days == 30
    other = builders.organisation(plan=richer)
    await PostgresOrgRegistry(store.pool).create(other)
    theirs = Store(store.pool, store.uow, store.maintenance, store.owner, Tenant(other.id, False))
    theirs_endpoint = await _endpoint(theirs)
    await _deliver(theirs, theirs_endpoint, old)
    assert await store.maintenance.purge_deliveries(TODAY) == 1
    cursor = await store.owner.execute("SELECT org, id FROM webhook_deliveries ORDER BY org, id")
    assert set(await cursor.fetchall()) == {
        (store.tenant.org, young), (store.tenant.org, open_one), (other.id, old),
    }  # fmt: skip
