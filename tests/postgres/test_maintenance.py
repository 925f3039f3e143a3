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
from tests.postgres.databases import database_alone
from tests.support import builders
from tests.support.memory.clock import SystemClock

pytestmark = pytest.mark.asyncio
TODAY = datetime.now(UTC).date()


@dataclass
class Store:
    """Separate database with one organisation."""

    pool: Pool
    uow: PostgresUnitOfWork
    maintenance: PostgresMaintenance
    owner: psycopg.AsyncConnection[Any]
    tenant: Tenant

    async def places(self, table: str) -> dict[str, int]:
        """Return the number of rows of each non-empty partition."""
        cursor = await self.owner.execute(f"SELECT tableoid::regclass::text, count(*) FROM {table} GROUP BY 1".encode())
        return dict(await cursor.fetchall())


@pytest_asyncio.fixture(name="store")
async def made_store() -> AsyncIterator[Store]:
    """Return a separate database, because partitions are shared by all tests."""
    async with database_alone("upkeep") as address:
        pool = Pool(address, size=2)
        uow = PostgresUnitOfWork(pool, SystemClock(), JsonCatalogueRendering(), JsonEventRendering())
        registry = PostgresOrgRegistry(pool)
        plan = await registry.find_plan("standard")
        assert plan is not None
        organisation = builders.organisation(plan=plan)
        await registry.create(organisation)
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
            yield Store(pool, uow, PostgresMaintenance(pool), owner, Tenant(organisation.id, True))
        await pool.close()


def _id_of(day: date, milliseconds: int = 0, bits: int = 0) -> str:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return f"dlv_{encode_base62(build_uuid7(int(midnight.timestamp() * 1000) + milliseconds, bits))}"


async def _deliver(store: Store, endpoint: str, *ids: str, status: str = "succeeded") -> None:
    async with store.uow.begin(store.tenant, builders.CALL) as tx:
        for id in ids:
            await tx[WebhookStore].add_delivery(builders.delivery(endpoint, id=id, status=status))


async def _endpoint(store: Store) -> str:
    endpoint = builders.endpoint()
    async with store.uow.begin(store.tenant, builders.CALL) as tx:
        await tx[WebhookStore].add(endpoint, EncryptedSecrets(b"x"), FeedPosition())
    return endpoint.id


async def test_a_day_begins_with_its_first_id() -> None:
    day = date(2026, 11, 20)
    assert _id_of(day, -1, (1 << 74) - 1) < compute_first_id("dlv", day) == _id_of(day)
    assert compute_first_id("dlv", TODAY) < new_id("dlv") < compute_first_id("dlv", TODAY + timedelta(days=2))


async def test_deliveries_are_stored_in_the_partition_of_their_ids_day(store: Store) -> None:
    await store.maintenance.maintain_partitions(TODAY)
    endpoint = await _endpoint(store)
    tomorrow = TODAY + timedelta(days=1)
    await _deliver(
        store, endpoint, _id_of(tomorrow), _id_of(tomorrow, 86_399_999, (1 << 74) - 1),
        _id_of(tomorrow + timedelta(days=1)), _id_of(TODAY, 1000), "dlv_unheard_of",
    )  # fmt: skip
    names = [f"webhook_deliveries_{TODAY + timedelta(days=ahead):%Y%m%d}" for ahead in (0, 1, 2)]
    assert await store.places("webhook_deliveries") == {
        names[0]: 1, names[1]: 2, names[2]: 1, "webhook_deliveries_default": 1,
    }  # fmt: skip
    async with store.uow.begin_reading(store.tenant) as tx:
        page = await tx[WebhookStore].list_deliveries(DeliveryFilter(endpoint=endpoint), PageRequest())
    assert len(page.items) == 5


async def test_old_days_of_deliveries_are_dropped(store: Store) -> None:
    begun = TODAY - timedelta(days=40)
    await store.maintenance.maintain_partitions(begun)
    endpoint = await _endpoint(store)
    days = [begun + timedelta(days=ahead) for ahead in range(1, DAYS_AHEAD + 1)]
    await _deliver(store, endpoint, *(_id_of(day, 5) for day in days), _id_of(begun - timedelta(days=9)))
    kept = PARTITIONED_TABLES["webhook_deliveries"].days_kept
    await store.maintenance.maintain_partitions(days[1] + timedelta(days=kept))
    assert await store.places("webhook_deliveries") == {
        f"webhook_deliveries_{days[1]:%Y%m%d}": 1, f"webhook_deliveries_{days[2]:%Y%m%d}": 1,
    }  # fmt: skip


async def test_the_floor_rises_with_the_events_that_are_dropped(store: Store) -> None:
    begun = TODAY - timedelta(days=50)
    await store.maintenance.maintain_partitions(begun)
    reader = PostgresEventReader(store.pool)
    days = [begun, *(begun + timedelta(days=ahead) for ahead in (1, 2, 3))]
    for day in days:
        async with store.uow.begin(store.tenant, builders.CALL) as tx:
            await tx[EventLog].append([builders.event("src_1"), builders.event("src_2")])
        noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        await store.owner.execute("UPDATE events SET time = %s WHERE time > now() - interval '1 day'", (noon,))
    cursor = await store.owner.execute("SELECT position FROM events ORDER BY position")
    positions = [row[0] for row in await cursor.fetchall()]
    assert (await reader.query_bounds([store.tenant]))[store.tenant].low == 0
    await store.maintenance.maintain_partitions(days[1] + timedelta(days=PARTITIONED_TABLES["events"].days_kept))
    assert (await reader.query_bounds([store.tenant]))[store.tenant].low == positions[1], (
        "what the default partition had of older days is gone"
    )
    await store.maintenance.maintain_partitions(days[3] + timedelta(days=PARTITIONED_TABLES["events"].days_kept))
    assert (await reader.query_bounds([store.tenant]))[store.tenant].low == positions[5]
    assert await store.places("events") == {f"events_{days[3]:%Y%m%d}": 2}
    await store.maintenance.maintain_partitions(days[3] + timedelta(days=PARTITIONED_TABLES["events"].days_kept))
    assert (await reader.query_bounds([store.tenant]))[store.tenant].low == positions[5]


async def test_plans_keep_deliveries_for_less_long(store: Store) -> None:
    await store.owner.execute("UPDATE plans SET delivery_days = 7 WHERE code = 'standard'")
    endpoint = await _endpoint(store)
    old, young = _id_of(TODAY - timedelta(days=8)), _id_of(TODAY - timedelta(days=6))
    open_one = _id_of(TODAY - timedelta(days=9))
    await _deliver(store, endpoint, old, young)
    await _deliver(store, endpoint, open_one, status="pending")
    richer = await PostgresOrgRegistry(store.pool).find_plan("max")
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


async def _append_events(store: Store, number: int = 1) -> None:
    async with store.uow.begin(store.tenant, builders.CALL) as tx:
        await tx[EventLog].append([builders.event(f"src_{n}") for n in range(number)])


async def _redate(store: Store, day: date, hour: int = 12) -> None:
    """Move the newest events to that day."""
    noon = datetime(day.year, day.month, day.day, hour, tzinfo=UTC)
    await store.owner.execute("UPDATE events SET time = %s WHERE time > now() - interval '1 hour'", (noon,))


async def _positions(store: Store) -> list[int]:
    cursor = await store.owner.execute("SELECT position FROM events ORDER BY position")
    return [row[0] for row in await cursor.fetchall()]


async def _partitions(store: Store, table: str) -> set[str]:
    cursor = await store.owner.execute(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", (table,)
    )
    return {row[0] for row in await cursor.fetchall()}


def _named(table: str, first: date, last: date) -> set[str]:
    return {f"{table}_{first + timedelta(days=n):%Y%m%d}" for n in range((last - first).days + 1)}


async def test_the_first_day_has_its_partition(store: Store) -> None:
    """Migrations create it, before the first write."""
    for table in PARTITIONED_TABLES:
        assert await _partitions(store, table) == {f"{table}_default"} | _named(
            table, TODAY, TODAY + timedelta(days=DAYS_AHEAD)
        )
    await _append_events(store)
    assert await store.places("events") == {f"events_{TODAY:%Y%m%d}": 1}


async def test_rows_of_a_day_without_a_partition_move_there(store: Store) -> None:
    late = TODAY + timedelta(days=20)
    await _append_events(store, 3)
    await _redate(store, late + timedelta(days=1))
    endpoint = await _endpoint(store)
    await _deliver(store, endpoint, _id_of(late, 5), _id_of(late + timedelta(days=2), 5))
    await _logs(store, late, 4)
    assert (await store.places("events"), await store.places("request_logs")) == (
        {"events_default": 3}, {"request_logs_default": 4},
    )  # fmt: skip
    await store.maintenance.maintain_partitions(late)
    assert await store.places("events") == {f"events_{late + timedelta(days=1):%Y%m%d}": 3}
    assert await store.places("request_logs") == {f"request_logs_{late:%Y%m%d}": 4}
    assert await store.places("webhook_deliveries") == {
        f"webhook_deliveries_{late + timedelta(days=n):%Y%m%d}": 1 for n in (0, 2)
    }


async def test_too_many_of_them_stay_and_stop_nobody(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "MAX_MOVED_ROWS", 3)
    late = TODAY + timedelta(days=20)
    await _logs(store, late, 4)
    await store.maintenance.maintain_partitions(late)
    assert await store.places("request_logs") == {"request_logs_default": 4}
    assert f"request_logs_{late:%Y%m%d}" not in await _partitions(store, "request_logs")
    for table in PARTITIONED_TABLES:
        assert await _partitions(store, table) >= _named(table, late + timedelta(days=1), late + timedelta(days=3))


async def test_one_tables_trouble_does_not_stop_the_others(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    day = TODAY + timedelta(days=20)
    await store.owner.execute(f"CREATE TABLE events_{day:%Y%m%d} (somebody text)".encode())
    old = TODAY - timedelta(days=500)
    await store.maintenance.maintain_partitions(old)
    await store.maintenance.maintain_partitions(day)
    assert f"events_{day:%Y%m%d} not created" in caplog.text
    for table in PARTITIONED_TABLES:
        assert not await _partitions(store, table) & _named(table, old, old + timedelta(days=DAYS_AHEAD))
        assert await _partitions(store, table) >= _named(
            table, day + timedelta(days=1), day + timedelta(days=DAYS_AHEAD)
        )


async def test_days_are_those_of_utc(store: Store) -> None:
    await store.owner.execute(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''America/New_York''', current_database()); END $$"
    )
    late = TODAY + timedelta(days=20)
    await store.maintenance.maintain_partitions(late)
    await _append_events(store)
    await _redate(store, late, 1)
    assert await store.places("events") == {f"events_{late:%Y%m%d}": 1}


async def test_an_event_of_a_slow_clock_takes_nothing_along(store: Store) -> None:
    """The clock of one process was 29 days behind: its events are not old, and no position in the log expires."""
    begun = TODAY - timedelta(days=60)
    for ahead in range(0, 40, DAYS_AHEAD + 1):
        await store.maintenance.maintain_partitions(begun + timedelta(days=ahead))
    for ahead in range(40):
        await _append_events(store, 5)
        await _redate(store, begun + timedelta(days=ahead))
        if ahead in (20, 39):
            await _append_events(store)
            await _redate(store, begun + timedelta(days=3 if ahead == 39 else 25))  # behind, and ahead
    positions = await _positions(store)
    reader = PostgresEventReader(store.pool)
    kept = PARTITIONED_TABLES["events"].days_kept
    await store.maintenance.maintain_partitions(begun + timedelta(days=5 + kept))
    assert await _positions(store) == positions[25:]
    assert (await reader.query_bounds([store.tenant]))[store.tenant].low == positions[24]
    assert (await store.places("events"))["events_default"] == 1, "its day is gone, it is not"
    await store.maintenance.maintain_partitions(begun + timedelta(days=5 + kept))
    assert await _positions(store) == positions[25:]
    await store.maintenance.maintain_partitions(begun + timedelta(days=41 + kept))
    assert await _positions(store) == []
    assert (await reader.query_bounds([store.tenant]))[store.tenant].low == positions[-1]


@pytest.mark.parametrize("jump", [timedelta(days=-40), timedelta(days=40), timedelta(hours=25), timedelta(minutes=-2)])
async def test_nothing_is_dropped_when_the_clock_has_jumped(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, jump: timedelta
) -> None:
    """The server's clock cannot be changed here; moving the last purge has the same effect."""

    async def wrong(connection: object) -> date:
        return TODAY + timedelta(days=400)

    await _append_events(store)
    guard = PostgresPurgeGuard(store.pool)
    async with store.pool.connect_as_owner() as link:
        await link.driver_connection.execute("UPDATE purges SET last_at = now() - %s", (jump,))
    try:
        monkeypatch.setattr(maintenance, "read_server_day", wrong)
        await store.maintenance.maintain_partitions()
        assert len(await _positions(store)) == 1
        assert "purges refused" in caplog.text
        assert (await guard.read_state()).is_refused and not await guard.begin_purge() and guard.is_refusing
    finally:
        await guard.confirm_clock()
    assert await guard.begin_purge() and not guard.is_refusing
    assert not (await guard.read_state()).is_refused


async def _logs(store: Store, day: date, number: int, tenant: Tenant | None = None) -> None:
    moment = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    sink = PostgresRequestLogSink(store.pool)
    await sink.write([builders.request_log(tenant or store.tenant, created_at=moment) for _ in range(number)])


async def test_plans_keep_request_logs_for_less_long(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are deleted in batches, of these organisations only, and in the default partition as well."""
    monkeypatch.setattr(partitions, "MAX_ROWS_PER_DELETION", 4)
    monkeypatch.setattr(maintenance, "MAX_ROWS_PER_DELETION", 4)
    registry = PostgresOrgRegistry(store.pool)
    longest = await registry.find_plan("max")
    assert longest is not None and longest.request_log_days == 90
    other = builders.organisation(plan=longest)
    await registry.create(other)
    theirs = Tenant(other.id, True)
    await store.maintenance.maintain_partitions(TODAY - timedelta(days=40))
    for back in (60, 39, 31, 30, 29, 0):  # the 39th day has a partition
        await _logs(store, TODAY - timedelta(days=back), 9)
        await _logs(store, TODAY - timedelta(days=back), 2, theirs)
    assert await store.maintenance.purge_request_logs(TODAY) == 27
    cursor = await store.owner.execute(
        "SELECT org, min(created_at)::date, count(*) FROM request_logs GROUP BY org ORDER BY count(*)"
    )
    assert await cursor.fetchall() == [
        (other.id, TODAY - timedelta(days=60), 12), (store.tenant.org, TODAY - timedelta(days=30), 27),
    ]  # fmt: skip
    assert await store.maintenance.purge_request_logs(TODAY) == 0


async def test_what_is_not_to_go_is_not_read(store: Store) -> None:
    """The search for expired rows costs index lookups, whatever the number of rows."""
    await store.maintenance.maintain_partitions(TODAY - timedelta(days=50))
    day = TODAY - timedelta(days=50)
    registry = PostgresOrgRegistry(store.pool)
    longest = await registry.find_plan("max")
    assert longest is not None
    other = builders.organisation(plan=longest)
    await registry.create(other)
    await _logs(store, day, 1, Tenant(other.id, True))
    name = f"request_logs_{day:%Y%m%d}"
    await store.owner.execute(f"ALTER TABLE {name} SET (autovacuum_enabled = false)".encode())
    await store.owner.execute(
        f"INSERT INTO {name} SELECT r.org, r.livemode, n::text, r.id, method, path, route, query, status, error_code, "
        f"duration_ms, actor, via, api_version, idempotency_key, ip, user_agent, created_at "
        f"FROM {name} r, generate_series(1, 20000) n".encode()
    )
    await store.owner.execute(f"VACUUM ANALYZE {name}".encode())
    before = await _blocks(store, name)
    assert await store.maintenance.purge_request_logs(TODAY) == 0
    assert await _blocks(store, name) - before < 50


async def _blocks(store: Store, name: str) -> int:
    """Return the number of blocks of the partition and its indexes that were requested so far."""
    await asyncio.sleep(1.2)
    await store.owner.execute("SELECT pg_stat_force_next_flush()")
    cursor = await store.owner.execute(
        "SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit FROM pg_statio_all_tables WHERE relname = %s",
        (name,),
    )
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def test_inbound_messages_go_by_their_age(store: Store) -> None:
    now = datetime.now(UTC)
    ages = (timedelta(), INBOUND_MESSAGES - timedelta(hours=1), INBOUND_MESSAGES + timedelta(hours=1))
    made = [
        InboundMessage(new_id("inm"), "src_1", "a@b.example", "", now - age, MessageStatus.REFUSED, "f") for age in ages
    ]
    async with store.uow.begin(store.tenant, builders.CALL) as tx:
        for message in made:
            await tx.store(InboundMessage).add(message)
    assert await store.maintenance.purge_inbound_messages() == 1
    async with store.uow.begin_reading(store.tenant) as tx:
        left = (await tx.store(InboundMessage).page(PageRequest())).items
    assert {message.id for message in left} == {message.id for message in made[:2]}
