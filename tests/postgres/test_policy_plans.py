"""Plans under row-level security: estimates of the statement alone, and no computation for each row."""

import json
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from adapters.postgres.nodes.pool import Pool
from domain.kernel.tenancy import Tenant
from tests.postgres.databases import create_temporary_database

pytestmark = pytest.mark.asyncio
OWN, OTHERS = 4000, 2000
_FILL = """
INSERT INTO offers (org, livemode, id, variant, product, source, location, availability, version, stated, observed_at, updated_at)
SELECT CASE WHEN n <= %s THEN 'org_1' ELSE 'org_' || (2 + n %% 20) END, true, 'off_' || lpad(n::text, 9, '0'), 'v' || n, 'p' || n,
    's', 'main', 'in_stock', 1, 1, now(), now()
FROM generate_series(1, %s) n
"""
_PAGE = "SELECT id FROM offers WHERE org = %s AND livemode = %s ORDER BY id DESC LIMIT 21"


@pytest_asyncio.fixture
async def address() -> AsyncIterator[str]:
    """Return a database with many offers of one organisation among those of others, analysed."""
    async with create_temporary_database("policy_plans") as made:
        async with await psycopg.AsyncConnection.connect(made, autocommit=True) as owner:
            await owner.execute(_FILL, (OWN, OWN + OTHERS))
            await owner.execute("ANALYZE offers")
        yield made


def _list_nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for part in plan.get("Plans", ()) for node in _list_nodes(part))]


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
async def test_a_page_scans_the_index(address: str, mode: str) -> None:
    pool = Pool(address, size=1)
    try:
        async with pool.connect_to_tenant(Tenant("org_1", True)) as link:
            await link.driver_connection.execute(f"SET plan_cache_mode = {mode}".encode())
            await link.driver_connection.execute(
                f"PREPARE page AS {_PAGE.replace('%s', '$1', 1).replace('%s', '$2')}".encode()
            )
            cursor = await link.driver_connection.execute("EXPLAIN (FORMAT json) EXECUTE page ('org_1', true)")
            row = await cursor.fetchone()
    finally:
        await pool.close()
    assert row is not None
    [explained] = json.loads(row[0]) if isinstance(row[0], str) else row[0]
    nodes = _list_nodes(explained["Plan"])
    assert not [node for node in nodes if node.get("Parent Relationship") in ("InitPlan", "SubPlan")]
    [scan] = [node for node in nodes if "Scan" in node["Node Type"]]
    assert scan["Node Type"].startswith("Index") and "org" in scan["Index Cond"]
    assert OWN / 2 < scan["Plan Rows"] < OWN * 2  # generic plans are made for the largest organisation (ADR 24)
