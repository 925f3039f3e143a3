"""Baseline schema of release 0.1; `release_0044.sql` is a dump of a database that its migrations created."""

from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio

from adapters.postgres.schema_migrations import (
    MigrationError,
    list_pending_migrations,
    load_migrations,
    migrate,
    read_compatibility,
)
from tests.postgres.databases import create_temporary_database
from tests.support.postgres import database

pytestmark = pytest.mark.asyncio
DUMP = Path(__file__).parent / "release_0044.sql"
LATER = [name for name, _ in load_migrations() if name > "0044_z"]
_SCHEMA = (
    "SELECT 'column', c.relname, a.attnum::text, concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, "
    "a.attcollation::regcollation, a.attstorage, a.attstattarget, a.attoptions, pg_get_expr(d.adbin, d.adrelid), c.reloptions, "
    "c.relrowsecurity, c.relforcerowsecurity) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "
    "AND NOT a.attisdropped LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum "
    "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')",
    "SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE connamespace = 'public'::regnamespace AND contype <> 'n'",
    "SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "SELECT 'policy', tablename, policyname, concat_ws(' ', roles, permissive, cmd, qual, with_check) FROM pg_policies",
    "SELECT 'function', proname, pg_get_functiondef(oid), proacl::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    "SELECT 'rights', relname, relkind::text, relacl::text FROM pg_class WHERE relnamespace = 'public'::regnamespace",
    "SELECT 'plan', code, '', to_jsonb(plans)::text FROM plans",
)
"""Definition of a schema, without names of NOT NULL constraints, which exist from PostgreSQL 18 on."""


async def _read_schema(address: str) -> set[tuple[str, str, str, str | None]]:
    async with await psycopg.AsyncConnection.connect(address) as connection:
        cursor = connection.cursor()
        await cursor.execute(" UNION ALL ".join(_SCHEMA).encode())
        return {(kind, *map(str, rest)) for kind, *rest in await cursor.fetchall()}  # type: ignore[misc]


@pytest_asyncio.fixture
async def released_database() -> AsyncIterator[str]:
    """Return a database of release 0.1."""
    await database()  # creates the roles that policies name
    async with create_temporary_database("released", migrated=False) as address:
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
            await owner.execute(DUMP.read_bytes())
        yield address


async def test_a_database_of_the_last_release_has_the_schema_of_the_baseline(released_database: str) -> None:
    assert await list_pending_migrations(released_database) == await migrate(released_database) == LATER
    async with create_temporary_database("baseline", migrated=False) as fresh:
        assert await migrate(fresh) == [name for name, _ in load_migrations()]
        assert await _read_schema(released_database) == await _read_schema(fresh)


async def test_later_migrations_are_applied_to_the_baseline(
    released_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [*load_migrations(), ("9001_next", "CREATE TABLE made (a integer)")]
    monkeypatch.setattr("adapters.postgres.schema_migrations.load_migrations", lambda: known)
    assert await migrate(released_database) == [*LATER, "9001_next"]
    assert (await read_compatibility(released_database)).names == [name for name, _ in known]


@pytest.mark.parametrize("records", [True, False])
async def test_an_older_schema_is_refused(released_database: str, records: bool) -> None:
    async with await psycopg.AsyncConnection.connect(released_database, autocommit=True) as owner:
        await owner.execute("DELETE FROM schema_migrations WHERE name > '0043_z'")
        if not records:
            await owner.execute("ALTER TABLE schema_migrations DROP COLUMN oldest_compatible")
    with pytest.raises(
        MigrationError, match=r"0043_purges\) is older .* release 0.1, whose last migration is 0044_first_party"
    ):
        await migrate(released_database)
    assert "release 0.1" in str((await read_compatibility(released_database)).find_incompatibility())
