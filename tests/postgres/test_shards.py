"""Distribution of endpoints among workers by session locks."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio

from adapters.postgres.locks import PostgresShards
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.webhook_deliveries import PostgresDeliveryStore
from domain.kernel.errors import LeaseLost
from domain.kernel.tenancy import Tenant
from domain.webhooks.ports import DeliveryProgress
from tests.postgres.databases import create_temporary_database
from tests.support import builders
from tests.support.memory.clock import SystemClock

pytestmark = pytest.mark.asyncio
MANY = 8


@pytest_asyncio.fixture
async def address() -> AsyncIterator[str]:
    """Return a separate database, because its locks are visible to all sessions."""
    async with create_temporary_database("shards") as made:
        yield made


async def test_fair_shares_and_take_over(address: str) -> None:
    pool = Pool(address)
    first, second = PostgresShards(pool, MANY), PostgresShards(pool, MANY)
    assert await first.count_workers() == 0
    assert await first.rebalance() == frozenset(range(MANY))
    assert await second.count_workers() == 1
    assert await second.rebalance() == frozenset()
    await first.rebalance()
    surplus = await first.find_surplus()
    assert len(surplus) == MANY // 2
    await first.release(surplus)
    assert await second.rebalance() == surplus
    assert await first.rebalance() == frozenset(range(MANY)) - surplus
    await first.close()
    await asyncio.sleep(0.2)
    assert await second.rebalance() == frozenset(range(MANY))
    await second.close()
    await pool.close()


async def test_a_worker_that_lost_its_locks_records_nothing(address: str) -> None:
    pool = Pool(address)
    shards, others = PostgresShards(pool, MANY), PostgresShards(pool, MANY)
    log = PostgresDeliveryStore(pool, shards, SystemClock())
    progress = DeliveryProgress(deliveries=[(Tenant("org_1", True), builders.delivery("whe_1"))])
    await shards.rebalance()
    await log.record_progress(progress)
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        await owner.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
        )
    with pytest.raises(LeaseLost):
        await log.record_progress(progress)
    assert await others.rebalance() == frozenset(range(MANY))
    with pytest.raises(LeaseLost):
        await log.record_progress(progress)
    await others.close()
    await shards.close()
    await pool.close()


async def test_a_failed_write_does_not_fail_the_next(address: str) -> None:
    """The rollback of the first attempt also removes its staging table."""
    pool = Pool(address)
    shards = PostgresShards(pool, MANY)
    log = PostgresDeliveryStore(pool, shards, SystemClock())
    await shards.rebalance()
    broken = builders.delivery("whe_1", subject="a\0b")
    with pytest.raises(psycopg.Error):
        await log.record_progress(DeliveryProgress(deliveries=[(Tenant("org_1", True), broken)]))
    await log.record_progress(DeliveryProgress(deliveries=[(Tenant("org_1", True), builders.delivery("whe_1"))]))
    await shards.close()
    await pool.close()


async def test_a_worker_that_lost_its_shards_is_notified_before_it_gets_them_again(address: str) -> None:
    pool = Pool(address)
    shards = PostgresShards(pool, MANY)
    log = PostgresDeliveryStore(pool, shards, SystemClock())
    await shards.rebalance()
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        await owner.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
        )
    with pytest.raises(LeaseLost):
        await log.record_progress(DeliveryProgress(deliveries=[(Tenant("org_1", True), builders.delivery("whe_1"))]))
    with pytest.raises(LeaseLost):
        await shards.rebalance()
    assert await shards.rebalance() == frozenset(range(MANY))
    await shards.close()
    await pool.close()
