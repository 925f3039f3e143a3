"""Index use of the queries for unneeded snapshots: a full scan would cost each sweep all runs."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.postgres.nodes.pool import Pool
from adapters.postgres.storage import SQL
from domain.kernel.tenancy import Tenant
from tests.support.postgres import database

pytestmark = pytest.mark.asyncio
NOW = datetime.now(UTC)
GIVEN = {
    "org": "org_1", "livemode": True, "open": ["queued"], "replayable": ["succeeded"], "keys": ["a", "b"], "now": NOW,
    "recheck_at": NOW, "unused": NOW, "bytes": 1, "limit": 200,
}  # fmt: skip


def _list_scanned_tables(plan: Any) -> set[str]:
    """Return the tables that the plan scans sequentially."""
    found = {plan["Relation Name"]} if plan["Node Type"] == "Seq Scan" else set()
    return found.union(*(_list_scanned_tables(part) for part in plan.get("Plans", ())))


@pytest.mark.parametrize("name", ["postpone", "free_unneeded", "select_orphans"])
async def test_no_table_is_scanned_sequentially(name: str) -> None:
    pool = Pool(await database(), size=1)
    try:
        async with pool.connect_to_tenant(Tenant("org_1", True)) as link:
            await link.driver_connection.execute("SET enable_seqscan = off")
            cursor = await link.driver_connection.execute("EXPLAIN (FORMAT JSON) " + SQL[name], GIVEN)
            row = await cursor.fetchone()
    finally:
        await pool.close()
    assert row is not None
    plan = row[0][0] if isinstance(row[0], list) else json.loads(row[0])[0]
    text = json.dumps(plan)
    assert _list_scanned_tables(plan["Plan"]) == set() and "runs_snapshot" in text, text
