"""What lay there before there was a ledger is counted in by the migration, so that no sweep takes it for an orphan."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg.types.json import Jsonb

from adapters.memory.clock import SystemClock
from adapters.postgres import migrate
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.storage import PostgresStorageUpkeep
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from adapters.wire.catalogue import WireRendering
from adapters.wire.events import WireEventRendering
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Plan
from domain.storage.model import StoredKind
from tests.postgres.databases import database_alone
from tests.support import builders
from domain.orgs.ports import OrgStore
from domain.storage.ports import StorageLedger

pytestmark = pytest.mark.asyncio
TENANT = Tenant("org_1", True)
LEDGER = "0007_storage"
_RUN = """
INSERT INTO runs (org, livemode, id, source, trigger, stream, status, stage, stats, problems, snapshot, input,
    accept_shrink, created_at)
VALUES ('org_1', true, %s, 'src_1', 'manual', 'catalogue', %s, 'done', %s, '[]', %s, %s, false, %s)
"""
_UPLOAD = """
INSERT INTO uploads (org, livemode, id, source, filename, content_type, bytes, status, key, run, expires_at, created_at)
VALUES ('org_1', true, %s, 'src_1', 'a.csv', 'text/csv', %s, %s, %s, %s, %s, %s)
"""


async def _as_before(address: str) -> None:
    """Two runs of one content and one of another, a used and an abandoned file, and an open batch."""
    now = datetime.now(UTC)
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        await owner.execute(
            "INSERT INTO organisations VALUES ('org_1', 'A', 'retailer', 'free', NULL, 'cat_1', 'cat_2', now())"
        )
        for id, key, bytes, status, days in (
            ("run_1", "aa", 700, "succeeded", 30),
            ("run_2", "bb", 500, "succeeded", 20),
            ("run_3", "bb", 0, "succeeded", 19),
        ):
            at = now - timedelta(days=days)
            stats = Jsonb({"bytes": bytes})
            await owner.execute(_RUN, (id, status, stats, f"snapshots/org_1/live/{key}", None, at))
        await owner.execute(_RUN, ("run_4", "queued", Jsonb({}), None, Jsonb({"batch": "b", "open": True}), now))
        await owner.execute(
            "INSERT INTO push_parts VALUES ('org_1', true, 'run_4', 0, '[1]'), ('org_1', true, 'run_4', 1, '[]')"
        )
        for id, bytes, run, status in (("upl_1", 500, "run_2", "completed"), ("upl_2", 40, None, "pending")):
            at = now - timedelta(days=20)
            await owner.execute(_UPLOAD, (id, bytes, status, f"uploads/org_1/live/{id}", run, at, at))


async def test_what_lay_there_before(monkeypatch: pytest.MonkeyPatch) -> None:
    async with database_alone("ledger", migrated=False) as address:
        with monkeypatch.context() as patched:
            known = [entry for entry in migrate.available() if entry[0] < LEDGER]
            patched.setattr(migrate, "available", lambda: known)
            await migrate.migrate(address)
        await _as_before(address)
        await migrate.migrate(address)
        pool = Pool(address, size=2)
        uow = PostgresUnitOfWork(pool, SystemClock(), WireRendering(), WireEventRendering())
        upkeep = PostgresStorageUpkeep(pool)
        try:
            held = {one.kind: (one.count, one.bytes) for one in await upkeep.holdings(datetime.now(UTC))}
            assert held == {StoredKind.SNAPSHOT: (2, 1200), StoredKind.UPLOAD: (2, 540), StoredKind.PUSH: (1, 7)}
            keys = [f"snapshots/org_1/live/{key}" for key in ("aa", "bb")] + ["uploads/org_1/live/upl_1"]
            assert not await upkeep.orphans({TENANT: keys})
            async with uow.begin(TENANT, builders.CALL) as tx:
                assert await tx[StorageLedger].used() == 1747
                due = [key for _, key in await upkeep.due(set(StoredKind), tx.now, 10)]
                assert len(due) == 4, "the open batch has its time yet"
                await tx[StorageLedger].free_due(due, tx.now + timedelta(days=1))
                assert await tx[StorageLedger].used() == 500 + 7, "the last good snapshot, and the open batch"
            async with uow.begin(TENANT, builders.CALL) as tx:
                org = await tx[OrgStore].own()
            assert org.plan.included("stored_bytes") == 10 << 30
            included = [plan.included("stored_bytes") or 0 for plan in await _plans(uow)]
            assert included == sorted(set(included)) and included[0] > 0
        finally:
            await pool.close()


async def _plans(uow: PostgresUnitOfWork) -> list[Plan]:
    async with uow.read(TENANT) as tx:
        return list(await tx[OrgStore].plans())
