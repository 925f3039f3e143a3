"""Rows of three organisations in every table of tenants, and the content of all tables."""

import psycopg
from psycopg import sql

from tests.tenancy.schema import insert_row, list_tenant_tables


async def fill_tables(address: str) -> None:
    """Insert a row of each of three organisations in every table of tenants."""
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        await owner.execute(
            "INSERT INTO organisations SELECT 'org_' || n, 'Name ' || n, 'retailer', 'free', NULL, 'l' || n, 't' || n, now() "
            "FROM generate_series(1, 3) n"
        )
        for table in await list_tenant_tables(owner):
            if not table.is_partition:
                for n in range(3):
                    await insert_row(owner, table, f"org_{n + 1}", n > 0, n)


async def read_tables(address: str) -> dict[str, list[str]]:
    """Read all rows of all tables as text."""
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        await owner.execute("SET timezone = 'UTC'")
        cursor = await owner.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') "
            "AND NOT relispartition AND relname <> 'schema_migrations'"
        )
        found = {}
        for (name,) in await cursor.fetchall():
            rows = await owner.execute(sql.SQL("SELECT t::text FROM {} t ORDER BY 1").format(sql.Identifier(name)))
            found[name] = [row[0] for row in await rows.fetchall()]
        return found
