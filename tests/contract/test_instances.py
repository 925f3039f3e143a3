"""Storage of heartbeats and workload metrics (domain/platform/ports.py), and the status that follows."""

from collections.abc import AsyncIterator
from datetime import timedelta

import psycopg
import pytest
import pytest_asyncio

from adapters.postgres.dump import record_backup
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.platform import PostgresInstances, PostgresWorkloadMetrics
from domain.platform.instances import Instance, RequestTotals
from domain.platform.model import ComponentState, WorkloadMetrics
from domain.platform.usecases import Heartbeat
from entrypoints.areas.platform import PublicApiHealthCheck
from tests.postgres.databases import create_temporary_database

pytestmark = pytest.mark.asyncio
UNREACHABLE_URL = "http://127.0.0.1:9"


@pytest_asyncio.fixture
async def address() -> AsyncIterator[str]:
    async with create_temporary_database("instances") as made:
        yield made


@pytest_asyncio.fixture
async def pool(address: str) -> AsyncIterator[Pool]:
    made = Pool(address, size=2)
    yield made
    await made.close()


async def test_live_instances_are_listed(address: str, pool: Pool) -> None:
    instances = PostgresInstances(pool)
    first, second = Instance("prc_1", "api", 7, 1), Instance("prc_2", "runs")
    await instances.record_heartbeat(Instance("prc_1", "api"))
    for one in (first, second):
        await instances.record_heartbeat(one)
    assert sorted(await instances.list_alive(), key=lambda one: one.instance) == [first, second]
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        await owner.execute("UPDATE platform_instances SET seen_at = now() - interval '2 minutes' WHERE role = 'api'")
    assert await instances.list_alive() == [second]
    await instances.remove("prc_2")
    assert await instances.list_alive() == []


async def test_a_heartbeat_reports_responses_since_the_last(pool: Pool) -> None:
    instances, totals = PostgresInstances(pool), iter([RequestTotals(5, 1), RequestTotals(9, 1)])
    heartbeat = Heartbeat(instances, ["api"], lambda: next(totals))
    for expected in ((5, 1), (4, 0)):
        await heartbeat._record_heartbeat()
        [seen] = await instances.list_alive()
        assert (seen.role, seen.answered, seen.failed) == ("api", *expected)
    await heartbeat.remove()
    assert await instances.list_alive() == []


async def test_an_unreachable_address_is_down_only_if_no_request_is_served(pool: Pool) -> None:
    instances = PostgresInstances(pool)
    look = PublicApiHealthCheck(UNREACHABLE_URL, instances)
    await instances.record_heartbeat(Instance("prc_1", "api", 30, 0))
    assert [await look() for _ in range(4)] == [ComponentState.OPERATIONAL] * 4
    for leave in (False, True):
        await instances.record_heartbeat(Instance("prc_1", "api", 0, 1))
        if leave:
            await instances.remove("prc_1")
        states = [await look() for _ in range(4)]
        assert states == [ComponentState.DEGRADED] * 2 + [ComponentState.DOWN] * 2
        await instances.record_heartbeat(Instance("prc_1", "api", 1, 0))
        assert await look() is ComponentState.OPERATIONAL


async def test_an_unreachable_address_without_requests_has_no_status(pool: Pool) -> None:
    instances = PostgresInstances(pool)
    look = PublicApiHealthCheck(UNREACHABLE_URL, instances)
    await instances.record_heartbeat(Instance("prc_1", "api", 0, 0))
    assert [await look() for _ in range(4)] == [None] * 4


async def test_failing_requests_degrade_the_status(pool: Pool) -> None:
    instances = PostgresInstances(pool)
    await instances.record_heartbeat(Instance("prc_1", "api", 1, 20))
    assert await PublicApiHealthCheck(UNREACHABLE_URL, instances)() is ComponentState.DEGRADED


async def test_workload_metrics_are_counted(address: str, pool: Pool) -> None:
    figures = PostgresWorkloadMetrics(pool)
    before = await figures.read()
    assert before == WorkloadMetrics(0, 0, None, 0, 0, 0, 0, 0, None, 0)
    ages = {"fresh": 1, "late": 2, "stale": 4}
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        for name, hours in ages.items():
            for status in ("active", "paused"):
                await owner.execute(
                    "INSERT INTO sources (org, livemode, id, catalogue, name, kind, connector, config, schedule, status, "
                    "licence_basis, first_party, failures, interval_factor, version, created_at, updated_at, catalogue_at) "
                    "VALUES ('org_1', true, %s, 'cat_1', 'x', 'url', 'csv', '{}', '{\"interval_minutes\": 60}', %s, 'own_data', "
                    "false, 0, '{}', 1, now(), now(), now() - %s)",
                    (f"src_{name}_{status}", status, timedelta(hours=hours)),
                )
        await owner.execute(
            "INSERT INTO model_uses VALUES ('org_1', true, 'mdl_1', 'judge', 's', 'm', 1, 1, 2500000, now()), "
            "('org_1', true, 'mdl_2', 'judge', 's', 'm', 1, 1, 9, now() - interval '2 days')"
        )
    await record_backup(address)
    await record_backup(address)
    found = await figures.read()
    assert (found.streams_scheduled, found.streams_stale) == (3, 1)
    assert found.last_success_age is not None and found.last_success_age >= 3600
    assert found.model_cost_dollars == 2.5
    assert found.backup_age is not None and 0 <= found.backup_age < 120
