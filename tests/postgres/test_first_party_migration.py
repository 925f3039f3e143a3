"""Sources of retailers are no longer first-party after migration 0044; a job shows their merged products anew."""

import psycopg
import pytest

from adapters.postgres import migrate
from domain.sources.queueing import ranking
from domain.kernel.tenancy import Tenant
from tests.postgres.databases import database_alone
from tests.support import builders
from tests.support.citus import ON_CLUSTER, spread

pytestmark = pytest.mark.asyncio
_SOURCE = """
INSERT INTO sources (org, livemode, id, catalogue, name, kind, connector, config, schedule, status, licence_basis, first_party,
    failures, interval_factor, version, created_at, updated_at)
VALUES (%s, true, %s, 'cat_1', 'x', 'url', 'csv', '{}', '{}', 'active', 'vendor_agreement', %s, 0, '{}', 3, now(), now() - interval '1 day')
"""


async def test_retailers_lose_first_party_and_vendors_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with database_alone("first_party", migrated=False) as address:
        with monkeypatch.context() as patched:
            before = [entry for entry in migrate.available() if entry[0] < "0044"]
            patched.setattr(migrate, "available", lambda: before)
            await migrate.migrate(address)
            if ON_CLUSTER:
                await spread(address)
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
            for org, kind in (("org_r", "retailer"), ("org_v", "vendor")):
                await owner.execute(
                    "INSERT INTO organisations VALUES (%s, 'A', %s, 'free', NULL, %s, %s, now())",
                    (org, kind, f"cat_{org}_1", f"cat_{org}_2"),
                )
                for first_party in (True, False):
                    await owner.execute(_SOURCE, (org, f"src_{org}_{first_party}", first_party))
            await migrate.migrate(address)
            sources = await (
                await owner.execute(
                    "SELECT id, first_party, version, updated_at > now() - interval '1 hour' FROM sources ORDER BY id"
                )
            ).fetchall()
            jobs = await (await owner.execute("SELECT org, id, kind, lane, args, attempt FROM jobs")).fetchall()
    assert sources == [
        ("src_org_r_False", False, 3, False),
        ("src_org_r_True", False, 4, True),
        ("src_org_v_False", False, 3, False),
        ("src_org_v_True", True, 3, False),
    ]
    source = builders.source(id="src_org_r_True", first_party=True, licence_basis="vendor_agreement")
    expected = ranking(Tenant("org_r", True), source)
    assert jobs == [("org_r", "job_org_r_True", expected.kind, expected.lane, expected.args, 0)]
