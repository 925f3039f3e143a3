"""Planner statistics: renewed after many changes, and taken for the largest organisation."""

import asyncio
from typing import Any

import psycopg
import pytest

from adapters.postgres.maintenance import PostgresMaintenance
from adapters.postgres.nodes.connections import connect
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.partitions import create_partitions
from tests.postgres.databases import create_temporary_database

pytestmark = pytest.mark.asyncio
_OFFERS = """
INSERT INTO offers (org, livemode, id, variant, product, source, location, availability, version, stated, observed_at, updated_at)
SELECT 'org_' || n %% 10, true, 'ofr_' || %s || n, 'v' || %s || n, 'p', 's', 'main', 'in_stock', 1, 1, now(), now()
FROM generate_series(1, %s) n
"""
_ANALYSED = "SELECT relname FROM pg_stat_user_tables WHERE analyze_count > %s"


async def _add_offers(owner: psycopg.AsyncConnection[Any], label: str, rows: int) -> None:
    """Add offers and flush the server's change counters."""
    await psycopg.AsyncClientCursor(owner).execute(_OFFERS, (label, label, rows))
    await owner.execute("SELECT pg_stat_force_next_flush()")
    await owner.execute("SELECT 1")


async def _list_analysed_tables(owner: psycopg.AsyncConnection[Any], more_than: int) -> set[str]:
    """Return the tables that were analysed more often than that."""
    await asyncio.sleep(0.3)
    await owner.execute("SELECT pg_stat_clear_snapshot()")
    return {name for (name,) in await (await owner.execute(_ANALYSED, (more_than,))).fetchall()}


async def test_only_tables_with_many_changes_are_analysed_again() -> None:
    async with create_temporary_database("statistics") as address, await connect(address, "test") as owner:
        pool = Pool(address, size=1)
        try:
            maintenance = PostgresMaintenance(pool)
            await owner.execute("ALTER TABLE offers SET (autovacuum_enabled = off)")
            await _add_offers(owner, "first", 1000)
            await maintenance.update_statistics()
            assert {"offers", "products", "variants"} <= await _list_analysed_tables(owner, 0)
            await _add_offers(owner, "few", 50)
            await maintenance.update_statistics()
            assert "offers" not in await _list_analysed_tables(owner, 1)
            await _add_offers(owner, "many", 500)
            await maintenance.update_statistics()
            assert "offers" in await _list_analysed_tables(owner, 1)
        finally:
            await pool.close()


async def test_plans_assume_the_largest_organisation() -> None:
    """Applies to every tenant table, including future partitions."""
    async with create_temporary_database("largest") as address, await connect(address, "test") as owner:
        await create_partitions(owner, (await _query_today(owner)))
        cursor = await owner.execute(
            "SELECT c.relname, a.attoptions FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org' "
            "WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace "
            "AND EXISTS (SELECT FROM pg_attribute m WHERE m.attrelid = c.oid AND m.attname = 'livemode')"
        )
        found = dict(await cursor.fetchall())
        published = {name for name in found if name.startswith("published_")}
        assert {name for name, options in found.items() if not options} == {
            "api_keys",
            "brand_claims",
            "licences",
            *published,
        }
        assert any(name.startswith("events_2") for name in found)
        await _add_offers(owner, "any", 300)
        await owner.execute("ANALYZE offers")
        cursor = await owner.execute("SELECT n_distinct FROM pg_stats WHERE tablename = 'offers' AND attname = 'org'")
        assert await cursor.fetchall() == [(1.0,)]


async def _query_today(owner: psycopg.AsyncConnection[Any]) -> Any:
    row = await (await owner.execute("SELECT current_date")).fetchone()
    assert row is not None
    return row[0]
