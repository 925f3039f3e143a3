"""Rows that an earlier release wrote, read after this release's migrations."""

from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio
from psycopg.types.json import Jsonb

from adapters.memory.clock import SystemClock
from adapters.postgres import migrate
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from adapters.wire.catalogue import WireRendering
from adapters.wire.events import WireEventRendering
from domain.kernel.tenancy import Tenant
from domain.runs.model import Checkpoint, Fetched, PushInput, Run, UploadInput
from tests.postgres.databases import database_alone
from domain.runs.ports import PushStore
from domain.runs.ports import RunStore

pytestmark = pytest.mark.asyncio
TENANT = Tenant("org_1", True)
_ADD = """
INSERT INTO runs (org, livemode, id, source, trigger, stream, status, stage, stats, problems, input, accept_shrink,
    created_at)
VALUES ('org_1', true, %s, 'src_1', %s, 'catalogue', %s, 'store', '{}', '[]', %s, false, now())
"""


async def _migrated(address: str, up_to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        known = [entry for entry in migrate.available() if entry[0] <= up_to]
        patched.setattr(migrate, "available", lambda: known)
        await migrate.migrate(address)


@pytest_asyncio.fixture
async def runs(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dict[str, Run]]:
    """Runs as release 0.1 wrote them, by id, read after migrating as an owner whom row-level security binds."""
    async with database_alone("migrations", migrated=False) as address:
        await _migrated(address, "0004_names", monkeypatch)
        stored = {
            "run_pull": ("manual", "succeeded", {"settings": "5e77", "whole": True, "etag": '"1"',
                                                 "last_modified": None, "stored": [4, "4 of 9 by 3000"]}),
            "run_wait": ("manual", "waiting", {"waits": 3}),
            "run_up": ("upload", "failed", {"upload": "upl_1", "settings": "5e77", "whole": True, "etag": None,
                                            "last_modified": None, "stored": None}),
            "run_push": ("push", "queued", {"push": True, "parts": 2, "records": 7, "open": True, "complete": False,
                                            "batch": "monday"}),
            "run_new": ("push", "queued", {"push": True, "parts": 1, "records": 1, "open": False, "complete": True}),
        }  # fmt: skip
        async with await psycopg.AsyncConnection.connect(address) as owner:
            for id, (trigger, status, input) in stored.items():
                await owner.execute(_ADD, (id, trigger, status, Jsonb(input)))
            await owner.execute(
                "INSERT INTO uploads (org, livemode, id, source, filename, content_type, bytes, status, key, expires_at, "
                "created_at) VALUES ('org_1', true, 'upl_1', 'src_1', 'a.csv', 'text/csv', 1, 'completed', "
                "'uploads/upl_1', now(), now())"
            )
            await owner.execute("CREATE ROLE migrations_owner")
            await owner.execute("GRANT ALL ON SCHEMA public TO migrations_owner")
            tables = await owner.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            for (table,) in await tables.fetchall():
                await owner.execute(f"ALTER TABLE {table} OWNER TO migrations_owner".encode())
            await owner.execute("ALTER SEQUENCE event_position OWNER TO migrations_owner")
            await owner.execute("ALTER FUNCTION protect_tenant_table(regclass) OWNER TO migrations_owner")
            await owner.execute("SET ROLE migrations_owner")
            for name, script in migrate.available():
                if name > "0004_names":
                    await owner.execute(script.encode())
            await owner.execute("RESET ROLE")
            await owner.execute("REASSIGN OWNED BY migrations_owner TO CURRENT_USER")
            await owner.execute("DROP OWNED BY migrations_owner")
            await owner.execute("DROP ROLE migrations_owner")
        pool = Pool(address, size=1)
        try:
            uow = PostgresUnitOfWork(pool, SystemClock(), WireRendering(), WireEventRendering())
            async with uow.read(TENANT) as tx:
                found = {id: await tx[RunStore].get(id) for id in stored}
                assert await tx[PushStore].collecting("src_1", "monday") == found["run_push"]
                assert await tx[RunStore].last_good("src_1", "catalogue") is None, "it kept no snapshot"
                assert await tx[RunStore].last_ended("src_1", "catalogue") == found["run_up"]
            yield {id: run for id, run in found.items() if run is not None}
        finally:
            await pool.close()


async def test_inputs_of_runs(runs: dict[str, Run]) -> None:
    pull, wait, up, push, new = (runs[f"run_{name}"] for name in ("pull", "wait", "up", "push", "new"))
    assert (pull.input, pull.fetched) == (None, Fetched("5e77", etag='"1"'))
    assert pull.checkpoint == Checkpoint(4, "4 of 9 by 3000")
    assert (wait.waits, wait.input, wait.fetched, wait.checkpoint) == (3, None, None, None)
    assert (up.input, up.fetched, up.checkpoint) == (UploadInput("upl_1", "uploads/upl_1"), Fetched("5e77"), None)
    assert push.input == PushInput("monday", parts=2, records=7, open=True)
    assert new.input == PushInput(parts=1, records=1, open=False, complete=True)
    assert [run.complete for run in (pull, up, push, new)] == [True, True, False, True]


async def test_members_of_one_address_become_one_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their keys with them; letters beyond A to Z make two people again whom an earlier release took for one address."""
    async with database_alone("people", migrated=False) as address:
        await _migrated(address, "0032_traced_runs", monkeypatch)
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
            for org in ("org_1", "org_2"):
                await owner.execute(
                    "INSERT INTO organisations SELECT %s, %s, 'retailer', 'free', NULL, 'l' || %s, 't' || %s, now()",
                    (org, org, org, org),
                )
            members = [
                ("org_1", "usr_1", "Ada@fjord.example", "ada@fjord.example"),
                ("org_2", "usr_2", "ada@fjord.example", "ada@fjord.example"),
                ("org_2", "usr_3", "eva@fußball.example", "eva@fussball.example"),
            ]
            for at, member in enumerate(members):
                await owner.execute(
                    'INSERT INTO members (org, "user", email, email_key, role, created_at) '
                    "VALUES (%s, %s, %s, %s, 'admin', now() + %s * interval '1 day')",
                    (*member, at),
                )
            await owner.execute(
                "INSERT INTO api_keys (org, livemode, id, name, digest, last4, restricted, scopes, member, networks, "
                "created_at) VALUES ('org_2', true, 'key_1', 'sync', 'x', 'abcd', false, '{}', 'usr_2', '{}', now())"
            )
            await migrate.migrate(address)
            users = await (await owner.execute("SELECT id, email_key FROM users ORDER BY id")).fetchall()
            assert users == [("usr_1", "ada@fjord.example"), ("usr_3", "eva@fußball.example")]
            kept = await (await owner.execute('SELECT org, "user", email_key FROM members ORDER BY 1, 2')).fetchall()
            assert kept == [
                ("org_1", "usr_1", "ada@fjord.example"),
                ("org_2", "usr_1", "ada@fjord.example"),
                ("org_2", "usr_3", "eva@fußball.example"),
            ]
            assert await (await owner.execute("SELECT member FROM api_keys")).fetchall() == [("usr_1",)]
