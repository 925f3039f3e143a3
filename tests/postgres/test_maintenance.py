"""Retention: partitions of events and deliveries, low watermark of logs, and shorter retention of plans."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from adapters.api_json.catalogue import JsonCatalogueRendering
from adapters.api_json.events import JsonEventRendering
from adapters.postgres import maintenance, partitions
from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.maintenance import PostgresMaintenance, PostgresPurgeGuard
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.orgs import PostgresOrgRegistry
from adapters.postgres.partitions import DAYS_AHEAD, PARTITIONED_TABLES, compute_first_id
from adapters.postgres.request_logs import PostgresRequestLogSink
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from domain.changes.model import FeedPosition
from domain.events.ports import EventLog
from domain.kernel.ids import build_uuid7, encode_base62, new_id
from domain.kernel.paging import PageRequest
from domain.kernel.retention import INBOUND_MESSAGES
from domain.kernel.tenancy import Tenant
from domain.mail.model import InboundMessage, MessageStatus
from domain.webhooks.model import DeliveryFilter, EncryptedSecrets
from domain.webhooks.ports import WebhookStore
from tests.postgres.databases import create_temporary_database
from tests.support import builders
from tests.support.memory.clock import SystemClock

pytestmark = pytest.mark.asyncio
TODAY = datetime.now(UTC).date()


@dataclass
class MaintenanceHarness:
    """Separate database with one organisation."""

    pool: Pool
    uow: PostgresUnitOfWork
    maintenance: PostgresMaintenance
    owner: psycopg.AsyncConnection[Any]
    tenant: Tenant

    async def count_rows(self, table: str) -> dict[str, int]:
        """Return the number of rows of each non-empty partition."""
        cursor = await self.owner.execute(f"SELECT tableoid::regclass::text, count(*) FROM {table} GROUP BY 1".encode())
        return dict(await cursor.fetchall())


@pytest_asyncio.fixture(name="harness")
async def create_harness() -> AsyncIterator[MaintenanceHarness]:
    """Return a separate database, because partitions are shared by all tests."""
    async with create_temporary_database("upkeep") as address:
        pool = Pool(address, size=2)
        uow = PostgresUnitOfWork(pool, SystemClock(), JsonCatalogueRendering(), JsonEventRendering())
        registry = PostgresOrgRegistry(pool)
        plan = await registry.find_plan("standard")
        assert plan is not None
        organisation = builders.organisation(plan=plan)
        await registry.create(organisation)
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
            yield MaintenanceHarness(pool, uow, PostgresMaintenance(pool), owner, Tenant(organisation.id, True))
        await pool.close()


def _create_id(day: date, milliseconds: int = 0, bits: int = 0) -> str:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return f"dlv_{encode_base62(build_uuid7(int(midnight.timestamp() * 1000) + milliseconds, bits))}"


async def _add_deliveries(harness: MaintenanceHarness, endpoint: str, *ids: str, status: str = "succeeded") -> None:
    async with harness.uow.begin(harness.tenant, builders.CALL) as tx:
        for id in ids:
            await tx[WebhookStore].add_delivery(builders.delivery(endpoint, id=id, status=status))


async def _add_endpoint(harness: MaintenanceHarness) -> str:
    endpoint = builders.endpoint()
    async with harness.uow.begin(harness.tenant, builders.CALL) as tx:
        await tx[WebhookStore].add(endpoint, EncryptedSecrets(b"x"), FeedPosition())
    return endpoint.id


async def test_a_day_begins_with_its_first_id() -> None:
    day = date(2026, 11, 20)
    assert _create_id(day, -1, (1 << 74) - 1) < compute_first_id("dlv", day) == _create_id(day)
    assert compute_first_id("dlv", TODAY) < new_id("dlv") < compute_first_id("dlv", TODAY + timedelta(days=2))


async def test_deliveries_are_stored_in_the_partition_of_their_day(harness: MaintenanceHarness) -> None:
    await harness.maintenance.maintain_partitions(TODAY)
    endpoint = await _add_endpoint(harness)
    tomorrow = TODAY + timedelta(days=1)
    await _add_deliveries(
        harness, endpoint, _create_id(tomorrow), _create_id(tomorrow, 86_399_999, (1 << 74) - 1),
        _create_id(tomorrow + timedelta(days=1)), _create_id(TODAY, 1000), "dlv_unheard_of",
    )  # fmt: skip
    names = [f"webhook_deliveries_{TODAY + timedelta(days=ahead):%Y%m%d}" for ahead in (0, 1, 2)]
    assert await harness.count_rows("webhook_deliveries") == {
        names[0]: 1, names[1]: 2, names[2]: 1, "webhook_deliveries_default": 1,
    }  # fmt: skip
    async with harness.uow.begin_reading(harness.tenant) as tx:
        page = await tx[WebhookStore].list_deliveries(DeliveryFilter(endpoint=endpoint), PageRequest())
    assert len(page.items) == 5


async def test_old_days_of_deliveries_are_dropped(harness: MaintenanceHarness) -> None:
    begun = TODAY - timedelta(days=40)
    await harness.maintenance.maintain_partitions(begun)
    endpoint = await _add_endpoint(harness)
    days = [begun + timedelta(days=ahead) for ahead in range(1, DAYS_AHEAD + 1)]
    await _add_deliveries(
        harness, endpoint, *(_create_id(day, 5) for day in days), _create_id(begun - timedelta(days=9))
    )
    kept = PARTITIONED_TABLES["webhook_deliveries"].days_kept
    await harness.maintenance.maintain_partitions(days[1] + timedelta(days=kept))
    assert await harness.count_rows("webhook_deliveries") == {
        f"webhook_deliveries_{days[1]:%Y%m%d}": 1, f"webhook_deliveries_{days[2]:%Y%m%d}": 1,
    }  # fmt: skip


async def test_the_low_watermark_rises_with_dropped_events(harness: MaintenanceHarness) -> None:
    begun = TODAY - timedelta(days=50)
    await harness.maintenance.maintain_partitions(begun)
    reader = PostgresEventReader(harness.pool)
    days = [begun, *(begun + timedelta(days=ahead) for ahead in (1, 2, 3))]
    for day in days:
        async with harness.uow.begin(harness.tenant, builders.CALL) as tx:
            await tx[EventLog].append([builders.event("src_1"), builders.event("src_2")])
        noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        await harness.owner.execute("UPDATE events SET time = %s WHERE time > now() - interval '1 day'", (noon,))
    cursor = await harness.owner.execute("SELECT position FROM events ORDER BY position")
    positions = [row[0] for row in await cursor.fetchall()]
    assert (await reader.query_bounds([harness.tenant]))[harness.tenant].low == 0
    await harness.maintenance.maintain_partitions(days[1] + timedelta(days=PARTITIONED_TABLES["events"].days_kept))
    assert (await reader.query_bounds([harness.tenant]))[harness.tenant].low == positions[1], (
        "older rows of the default partition are deleted"
    )
    await harness.maintenance.maintain_partitions(days[3] + timedelta(days=PARTITIONED_TABLES["events"].days_kept))
    assert (await reader.query_bounds([harness.tenant]))[harness.tenant].low == positions[5]
    assert await harness.count_rows("events") == {f"events_{days[3]:%Y%m%d}": 2}
    await harness.maintenance.maintain_partitions(days[3] + timedelta(days=PARTITIONED_TABLES["events"].days_kept))
    assert (await reader.query_bounds([harness.tenant]))[harness.tenant].low == positions[5]


async def test_plans_can_shorten_the_retention_of_deliveries(harness: MaintenanceHarness) -> None:
    await harness.owner.execute("UPDATE plans SET delivery_days = 7 WHERE code = 'standard'")
    endpoint = await _add_endpoint(harness)
    old, young = _create_id(TODAY - timedelta(days=8)), _create_id(TODAY - timedelta(days=6))
    open_one = _create_id(TODAY - timedelta(days=9))
    await _add_deliveries(harness, endpoint, old, young)
    await _add_deliveries(harness, endpoint, open_one, status="pending")
    richer = await PostgresOrgRegistry(harness.pool).find_plan("max")
    assert richer is not None and richer.delivery_days == 30
    other = builders.organisation(plan=richer)
    await PostgresOrgRegistry(harness.pool).create(other)
    theirs = MaintenanceHarness(harness.pool, harness.uow, harness.maintenance, harness.owner, Tenant(other.id, False))
    theirs_endpoint = await _add_endpoint(theirs)
    await _add_deliveries(theirs, theirs_endpoint, old)
    assert await harness.maintenance.purge_deliveries(TODAY) == 1
    cursor = await harness.owner.execute("SELECT org, id FROM webhook_deliveries ORDER BY org, id")
    assert set(await cursor.fetchall()) == {
        (harness.tenant.org, young), (harness.tenant.org, open_one), (other.id, old),
    }  # fmt: skip


async def _append_events(harness: MaintenanceHarness, number: int = 1) -> None:
    async with harness.uow.begin(harness.tenant, builders.CALL) as tx:
        await tx[EventLog].append([builders.event(f"src_{n}") for n in range(number)])


async def _redate_events(harness: MaintenanceHarness, day: date, hour: int = 12) -> None:
    """Move the newest events to that day."""
    noon = datetime(day.year, day.month, day.day, hour, tzinfo=UTC)
    await harness.owner.execute("UPDATE events SET time = %s WHERE time > now() - interval '1 hour'", (noon,))


async def _list_positions(harness: MaintenanceHarness) -> list[int]:
    cursor = await harness.owner.execute("SELECT position FROM events ORDER BY position")
    return [row[0] for row in await cursor.fetchall()]


async def _list_partitions(harness: MaintenanceHarness, table: str) -> set[str]:
    cursor = await harness.owner.execute(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", (table,)
    )
    return {row[0] for row in await cursor.fetchall()}


def _build_partition_names(table: str, first: date, last: date) -> set[str]:
    return {f"{table}_{first + timedelta(days=n):%Y%m%d}" for n in range((last - first).days + 1)}


async def test_the_first_day_has_its_partition(harness: MaintenanceHarness) -> None:
    """Migrations create it, before the first write; midnight may have passed since this module was imported."""
    days = [TODAY, datetime.now(UTC).date()]
    for table in PARTITIONED_TABLES:
        assert await _list_partitions(harness, table) in [
            {f"{table}_default"} | _build_partition_names(table, day, day + timedelta(days=DAYS_AHEAD)) for day in days
        ]
    await _append_events(harness)
    days.append(datetime.now(UTC).date())
    assert await harness.count_rows("events") in [{f"events_{day:%Y%m%d}": 1} for day in days]


async def test_misplaced_rows_move_to_their_new_partition(harness: MaintenanceHarness) -> None:
    late = TODAY + timedelta(days=20)
    await _append_events(harness, 3)
    await _redate_events(harness, late + timedelta(days=1))
    endpoint = await _add_endpoint(harness)
    await _add_deliveries(harness, endpoint, _create_id(late, 5), _create_id(late + timedelta(days=2), 5))
    await _write_request_logs(harness, late, 4)
    assert (await harness.count_rows("events"), await harness.count_rows("request_logs")) == (
        {"events_default": 3}, {"request_logs_default": 4},
    )  # fmt: skip
    await harness.maintenance.maintain_partitions(late)
    assert await harness.count_rows("events") == {f"events_{late + timedelta(days=1):%Y%m%d}": 3}
    assert await harness.count_rows("request_logs") == {f"request_logs_{late:%Y%m%d}": 4}
    assert await harness.count_rows("webhook_deliveries") == {
        f"webhook_deliveries_{late + timedelta(days=n):%Y%m%d}": 1 for n in (0, 2)
    }


async def test_too_many_misplaced_rows_stay_and_block_nothing(
    harness: MaintenanceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "MAX_MOVED_ROWS", 3)
    late = TODAY + timedelta(days=20)
    await _write_request_logs(harness, late, 4)
    await harness.maintenance.maintain_partitions(late)
    assert await harness.count_rows("request_logs") == {"request_logs_default": 4}
    assert f"request_logs_{late:%Y%m%d}" not in await _list_partitions(harness, "request_logs")
    for table in PARTITIONED_TABLES:
        assert await _list_partitions(harness, table) >= _build_partition_names(
            table, late + timedelta(days=1), late + timedelta(days=3)
        )


async def test_a_failing_table_does_not_stop_the_others(
    harness: MaintenanceHarness, caplog: pytest.LogCaptureFixture
) -> None:
    day = TODAY + timedelta(days=20)
    await harness.owner.execute(f"CREATE TABLE events_{day:%Y%m%d} (somebody text)".encode())
    old = TODAY - timedelta(days=500)
    await harness.maintenance.maintain_partitions(old)
    await harness.maintenance.maintain_partitions(day)
    assert f"events_{day:%Y%m%d} not created" in caplog.text
    for table in PARTITIONED_TABLES:
        assert not await _list_partitions(harness, table) & _build_partition_names(
            table, old, old + timedelta(days=DAYS_AHEAD)
        )
        assert await _list_partitions(harness, table) >= _build_partition_names(
            table, day + timedelta(days=1), day + timedelta(days=DAYS_AHEAD)
        )


async def test_days_are_utc_days(harness: MaintenanceHarness) -> None:
    await harness.owner.execute(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''America/New_York''', current_database()); END $$"
    )
    late = TODAY + timedelta(days=20)
    await harness.maintenance.maintain_partitions(late)
    await _append_events(harness)
    await _redate_events(harness, late, 1)
    assert await harness.count_rows("events") == {f"events_{late:%Y%m%d}": 1}


async def test_an_event_of_a_slow_clock_does_not_expire_others(harness: MaintenanceHarness) -> None:
    """The clock of one process was 29 days behind: its events are not old, and no position in the log expires."""
    begun = TODAY - timedelta(days=60)
    for ahead in range(0, 40, DAYS_AHEAD + 1):
        await harness.maintenance.maintain_partitions(begun + timedelta(days=ahead))
    for ahead in range(40):
        await _append_events(harness, 5)
        await _redate_events(harness, begun + timedelta(days=ahead))
        if ahead in (20, 39):
            await _append_events(harness)
            await _redate_events(harness, begun + timedelta(days=3 if ahead == 39 else 25))  # behind, and ahead
    positions = await _list_positions(harness)
    reader = PostgresEventReader(harness.pool)
    kept = PARTITIONED_TABLES["events"].days_kept
    await harness.maintenance.maintain_partitions(begun + timedelta(days=5 + kept))
    assert await _list_positions(harness) == positions[25:]
    assert (await reader.query_bounds([harness.tenant]))[harness.tenant].low == positions[24]
    assert (await harness.count_rows("events"))["events_default"] == 1, "the partition is dropped, the row is kept"
    await harness.maintenance.maintain_partitions(begun + timedelta(days=5 + kept))
    assert await _list_positions(harness) == positions[25:]
    await harness.maintenance.maintain_partitions(begun + timedelta(days=41 + kept))
    assert await _list_positions(harness) == []
    assert (await reader.query_bounds([harness.tenant]))[harness.tenant].low == positions[-1]


@pytest.mark.parametrize("jump", [timedelta(days=-40), timedelta(days=40), timedelta(hours=25), timedelta(minutes=-2)])
async def test_nothing_is_dropped_when_the_clock_has_jumped(
    harness: MaintenanceHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, jump: timedelta
) -> None:
    """The server's clock cannot be changed here; moving the last purge has the same effect."""

    async def wrong(connection: object) -> date:
        return TODAY + timedelta(days=400)

    await _append_events(harness)
    guard = PostgresPurgeGuard(harness.pool)
    async with harness.pool.connect_as_owner() as link:
        await link.driver_connection.execute("UPDATE purges SET last_at = now() - %s", (jump,))
    try:
        monkeypatch.setattr(maintenance, "read_server_day", wrong)
        await harness.maintenance.maintain_partitions()
        assert len(await _list_positions(harness)) == 1
        assert "purges refused" in caplog.text
        assert (await guard.read_state()).is_refused and not await guard.begin_purge() and guard.is_refusing
    finally:
        await guard.confirm_clock()
    assert await guard.begin_purge() and not guard.is_refusing
    assert not (await guard.read_state()).is_refused


async def _write_request_logs(
    harness: MaintenanceHarness, day: date, number: int, tenant: Tenant | None = None
) -> None:
    moment = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    sink = PostgresRequestLogSink(harness.pool)
    await sink.write([builders.request_log(tenant or harness.tenant, created_at=moment) for _ in range(number)])


async def test_plans_can_shorten_the_retention_of_request_logs(
    harness: MaintenanceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are deleted in batches, of these organisations only, and in the default partition as well."""
    monkeypatch.setattr(partitions, "MAX_ROWS_PER_DELETION", 4)
    monkeypatch.setattr(maintenance, "MAX_ROWS_PER_DELETION", 4)
    registry = PostgresOrgRegistry(harness.pool)
    longest = await registry.find_plan("max")
    assert longest is not None and longest.request_log_days == 90
    other = builders.organisation(plan=longest)
    await registry.create(other)
    theirs = Tenant(other.id, True)
    await harness.maintenance.maintain_partitions(TODAY - timedelta(days=40))
    for back in (60, 39, 31, 30, 29, 0):  # the 39th day has a partition
        await _write_request_logs(harness, TODAY - timedelta(days=back), 9)
        await _write_request_logs(harness, TODAY - timedelta(days=back), 2, theirs)
    assert await harness.maintenance.purge_request_logs(TODAY) == 27
    cursor = await harness.owner.execute(
        "SELECT org, min(created_at)::date, count(*) FROM request_logs GROUP BY org ORDER BY count(*)"
    )
    assert await cursor.fetchall() == [
        (other.id, TODAY - timedelta(days=60), 12), (harness.tenant.org, TODAY - timedelta(days=30), 27),
    ]  # fmt: skip
    assert await harness.maintenance.purge_request_logs(TODAY) == 0


async def test_unexpired_rows_are_not_read(harness: MaintenanceHarness) -> None:
    """The search for expired rows costs index lookups, whatever the number of rows."""
    await harness.maintenance.maintain_partitions(TODAY - timedelta(days=50))
    day = TODAY - timedelta(days=50)
    registry = PostgresOrgRegistry(harness.pool)
    longest = await registry.find_plan("max")
    assert longest is not None
    other = builders.organisation(plan=longest)
    await registry.create(other)
    await _write_request_logs(harness, day, 1, Tenant(other.id, True))
    name = f"request_logs_{day:%Y%m%d}"
    await harness.owner.execute(f"ALTER TABLE {name} SET (autovacuum_enabled = false)".encode())
    await harness.owner.execute(
        f"INSERT INTO {name} SELECT r.org, r.livemode, n::text, r.id, method, path, route, query, status, error_code, "
        f"duration_ms, actor, via, api_version, idempotency_key, ip, user_agent, created_at "
        f"FROM {name} r, generate_series(1, 20000) n".encode()
    )
    await harness.owner.execute(f"VACUUM ANALYZE {name}".encode())
    before = await _count_blocks(harness, name)
    assert await harness.maintenance.purge_request_logs(TODAY) == 0
    assert await _count_blocks(harness, name) - before < 50


async def _count_blocks(harness: MaintenanceHarness, name: str) -> int:
    """Return the number of blocks of the partition and its indexes that were requested so far."""
    await asyncio.sleep(1.2)
    await harness.owner.execute("SELECT pg_stat_force_next_flush()")
    cursor = await harness.owner.execute(
        "SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit FROM pg_statio_all_tables WHERE relname = %s",
        (name,),
    )
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def test_inbound_messages_are_deleted_by_age(harness: MaintenanceHarness) -> None:
    now = datetime.now(UTC)
    ages = (timedelta(), INBOUND_MESSAGES - timedelta(hours=1), INBOUND_MESSAGES + timedelta(hours=1))
    made = [
        InboundMessage(new_id("inm"), "src_1", "a@b.example", "", now - age, MessageStatus.REFUSED, "f") for age in ages
    ]
    async with harness.uow.begin(harness.tenant, builders.CALL) as tx:
        for message in made:
            await tx.store(InboundMessage).add(message)
    assert await harness.maintenance.purge_inbound_messages() == 1
    async with harness.uow.begin_reading(harness.tenant) as tx:
        left = (await tx.store(InboundMessage).page(PageRequest())).items
    assert {message.id for message in left} == {message.id for message in made[:2]}
