"""Use of partial indexes by prepared statements for open and failed deliveries."""

import json
from typing import Any

import psycopg
import pytest

from adapters.postgres.stores import load_statements
from tests.postgres.databases import create_temporary_database

pytestmark = pytest.mark.asyncio
_FILL = """
INSERT INTO webhook_deliveries (org, livemode, id, endpoint, event, type, subject, positions, status, attempts, tries, created_at)
SELECT 'org_1', true, 'dlv_' || n, 'whe_1', 'evt_1', 'offer.changed', 'ofr_1', ARRAY[n],
    CASE WHEN n % 1000 = 0 THEN 'failed' WHEN n % 1000 = 1 THEN 'pending' ELSE 'succeeded' END, '[]', 0, now()
FROM generate_series(1, 5000) n
"""
_VALUES = {
    "org": "'org_1'", "livemode": "true", "endpoint": "'whe_1'", "at": "now()", "since": "now() - interval '1 day'",
    "until": "now()", "max_open": "9", "pending": "'pending'", "failed": "'failed'",
}  # fmt: skip


def _list_index_scans(plan: Any) -> list[str]:
    found = [plan["Index Name"]] if "Index Name" in plan else []
    return found + [name for inner in plan.get("Plans", ()) for name in _list_index_scans(inner)]


@pytest.mark.parametrize(
    ("area", "name", "count"),
    [
        ("webhook_deliveries", "list_open", 1),
        ("webhooks", "recover", 2),
        ("webhooks", "has_failed_deliveries", 1),
        ("webhooks", "fail_open_deliveries", 1),
    ],
)
async def test_partial_indexes_serve_prepared_statements(area: str, name: str, count: int) -> None:
    statement, names = load_statements(area)[name], []
    for key in _VALUES:
        if f"%({key})s" in statement:
            names.append(key)
            statement = statement.replace(f"%({key})s", f"${len(names)}")
    async with create_temporary_database("webhook_plans") as address:
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
            await connection.execute(_FILL)
            await connection.execute("ANALYZE webhook_deliveries")
            await connection.execute("SET plan_cache_mode = force_generic_plan")
            await connection.execute(f"PREPARE looked_at AS {statement}")
            values = ", ".join(_VALUES[key] for key in names)
            cursor = await connection.execute(f"EXPLAIN (FORMAT json) EXECUTE looked_at({values})")
            [(plan,)] = await cursor.fetchall()
            cursor = await connection.execute(
                "SELECT indexrelid::regclass::text FROM pg_index WHERE indpred IS NOT NULL"
            )
            partial = {row[0] for row in await cursor.fetchall() if row[0].startswith("webhook_deliveries_default")}
    used = [
        index
        for index in _list_index_scans((plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"])
        if index in partial
    ]
    assert len(used) == count, plan
