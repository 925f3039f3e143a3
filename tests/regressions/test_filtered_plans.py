"""Rows that a filtered read scans in a log over all retained days."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from adapters.postgres import partitions
from adapters.postgres.event_log import SQL
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.stores import render_statement
from domain.kernel.tenancy import Tenant
from tests.postgres.databases import create_temporary_database
from tests.postgres.plans import explain_plan, list_nodes
from tests.support.citus import ON_CLUSTER

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(ON_CLUSTER, reason="a plan of one PostgreSQL is looked at"),
]
BIG = Tenant("org_big", True)
ROWS = 300_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[Pool]:
    """Yield a log of 300,000 events of 700 bytes over 30 days, analysed."""
    async with create_temporary_database("filtered_plans") as address:
        pool = Pool(address, size=2)
        try:
            async with pool.connect_as_owner() as link:
                today = datetime.now(UTC).date()
                for ago in range(31, 0, -1):
                    await partitions._create_partition(link.driver_connection, "events", today - timedelta(days=ago))
                await link.cursor.execute(
                    "INSERT INTO events (position, org, livemode, id, type, subject, catalogue, version, time, body)"
                    " SELECT n, 'org_big', true, 'evt_' || n, CASE WHEN n % 60000 = 7 THEN 'source.blocked'"
                    " WHEN n % 3 = 0 THEN 'product.updated' ELSE 'offer.changed' END, 'ofr_' || n, 'cat_' || n % 2, 1,"
                    " now() - interval '30 days' + n * interval '8.6 seconds', convert_to(repeat('x', 700), 'UTF8')"
                    f" FROM generate_series(1, {ROWS}) n"
                )
                await link.cursor.execute("ANALYZE events")
            yield pool
        finally:
            await pool.close()


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("types", [["source.blocked"], ["source.degraded"], ["product.updated"]])
@pytest.mark.parametrize("direction", ["forwards", "backwards"])
async def test_only_the_blocks_are_read(pool: Pool, types: list[str], mode: str, direction: str) -> None:
    """Expected: about 1,024 events of the two blocks are read. With a rare type the planner scanned every partition in addition
    to the blocks (a parallel Seq Scan joined with them) and read all 300,000 events.
    """
    names = {"types", "hidden", direction, "up_to", *(["after"] if direction == "forwards" else [])}
    chosen = render_statement(SQL["select_events_in_blocks"], frozenset(names), 101)
    values: dict[str, Any] = {
        "org": BIG.org, "livemode": True, "blocks": [0, 300], "after": 0, "up_to": ROWS, "max_body_bytes": 10_000,
        "hidden": ["webhook.test"], "types": types,
    }  # fmt: skip
    async with pool.connect_to_tenant(BIG) as link:
        await link.driver_connection.execute(f"SET plan_cache_mode = {mode}".encode())
        statement = SQL["read_envelopes"].replace("{selection}", chosen)
        found = await explain_plan(link.driver_connection, statement, values, "ANALYZE", "TIMING OFF", "BUFFERS OFF")
    read = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in list_nodes(found)
        if "Scan" in node["Node Type"] and str(node.get("Relation Name", "")).startswith("events")
    )
    assert read <= 5_000, read
