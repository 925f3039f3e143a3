"""Row-level security: the database refuses statements without a tenant filter."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from psycopg import errors, sql

from adapters.postgres.errors import StaleRoute
from adapters.postgres.maintenance import PostgresMaintenance
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.privileges import APP, PRIVILEGES
from adapters.postgres.schema_migrations import migrate
from adapters.postgres.session import TenantSession
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import RecordedEffects
from tests.postgres.databases import create_temporary_database
from tests.support import builders
from tests.support.citus import ON_CLUSTER
from tests.support.postgres import database, postgres_backend
from tests.tenancy.schema import ROLE, TenantTable, insert_row, list_tenant_tables

pytestmark = pytest.mark.asyncio
BY_CLUSTERS = (StaleRoute, errors.FeatureNotSupported) if ON_CLUSTER else ()
REFUSED = (errors.InsufficientPrivilege, *BY_CLUSTERS)
"""A cluster additionally refuses statements that it cannot execute on the organisation's node."""
KNOWN = {"api_keys", "events", "jobs", "members", "offers", "products", "request_logs", "runs", "sources", "variants"}


@dataclass
class TenantRows:
    """Tenant tables with a row of each of four tenants, and connections of the superuser and the processes."""

    owner: psycopg.AsyncConnection[Any]
    pool: Pool
    tables: list[TenantTable]
    tenants: list[Tenant]

    def create_session(self, link: Any, tenant: Tenant) -> TenantSession:
        """Return a session as stores use it."""
        return TenantSession(link, tenant, builders.CALL, builders.MOMENT, RecordedEffects())

    async def count_rows(self, table: TenantTable, tenant: Tenant) -> int:
        """Return the number of the tenant's rows as the superuser sees them."""
        where = sql.SQL("org = {}").format(sql.Literal(tenant.org))
        if table.has_mode:
            where += sql.SQL(" AND livemode = {}").format(sql.Literal(tenant.livemode))
        statement = sql.SQL("SELECT count(*) FROM {} WHERE ").format(sql.Identifier(table.name)) + where
        row = await (await self.owner.execute(statement)).fetchone()
        return int(row[0]) if row else 0


@pytest_asyncio.fixture
async def rows() -> AsyncIterator[TenantRows]:
    """Yield two organisations in both modes."""
    async with (
        postgres_backend() as backend,
        await psycopg.AsyncConnection.connect(await database(), autocommit=True) as owner,
    ):
        orgs = [(await backend.organisation()).id for _ in range(2)]
        tenants = [Tenant(org, livemode) for org in orgs for livemode in (True, False)]
        tables = [
            table
            for table in await list_tenant_tables(owner)
            # licences decide who reads copies (tests/contract/test_published_catalogues.py)
            if not table.is_partition and not table.name.startswith("published_")
        ]
        for table in tables:
            for number, tenant in enumerate(tenants):
                if table.has_mode or tenant.livemode:
                    await insert_row(owner, table, tenant.org, tenant.livemode, _build_number(tenant, number))
        pool = Pool(await database(), size=2)
        try:
            yield TenantRows(owner, pool, tables, tenants)
        finally:
            for table in tables:
                statement = sql.SQL("DELETE FROM {} WHERE org = ANY({})")
                await owner.execute(statement.format(sql.Identifier(table.name), sql.Literal(orgs)))
            await pool.close()


def _build_number(tenant: Tenant, number: int) -> int:
    return abs(hash(tenant.org)) % 100_000_000 * 4 + number


async def test_every_table_of_tenants_is_secured(rows: TenantRows) -> None:
    assert {table.name for table in rows.tables} >= KNOWN
    forced = [table for table in rows.tables if table.is_forced or ON_CLUSTER]  # its owner moves it (ADR 25)
    assert [table.name for table in rows.tables if not (table.is_secured and table in forced and table.policies)] == []


async def test_partitions_cannot_be_accessed_directly(rows: TenantRows) -> None:
    """A partition has no policy of its own: the processes' role reaches it through its parent only."""
    everything = await list_tenant_tables(rows.owner)
    assert [table.name for table in everything if table.is_partition and table.is_accessible] == []
    assert {table.name for table in everything if table.is_partition} >= {"events_default", "request_logs_default"}


async def test_later_partitions_cannot_be_accessed_directly() -> None:
    async with create_temporary_database("parts") as address:
        pool = Pool(address, size=1)
        try:
            await PostgresMaintenance(pool).maintain_partitions(date.today() + timedelta(days=1))
            await migrate(address)
            async with await psycopg.AsyncConnection.connect(address) as owner:
                parts = [table for table in await list_tenant_tables(owner) if table.is_partition]
            assert len(parts) > 4 and not any(part.is_accessible for part in parts)
        finally:
            await pool.close()


async def test_policies_apply_to_the_role(rows: TenantRows) -> None:
    async with rows.pool.connect_to_tenant(rows.tenants[0]) as link:
        cursor = await link.driver_connection.execute(
            "SELECT current_user, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
        )
        assert await cursor.fetchone() == (ROLE, False, False)
    cursor = await rows.owner.execute(
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relowner = %s::regrole", (ROLE,)
    )
    assert await cursor.fetchone() == (0,), "the owner of a table may disable its policies"


async def test_a_missing_filter_reads_only_own_rows(rows: TenantRows) -> None:
    for tenant in rows.tenants:
        for table in rows.tables:
            own = await rows.count_rows(table, tenant)
            with _allow_cluster_refusal():
                async with rows.pool.connect_to_tenant(tenant) as link:
                    seen = await rows.create_session(link, tenant).fetch_row(
                        _build_statement("SELECT count(*) FROM {}", table)
                    )
                assert seen == (own,), (table.name, tenant)
            assert own > 0


async def test_a_missing_filter_changes_and_deletes_only_own_rows(rows: TenantRows) -> None:
    for tenant in rows.tenants[1:3]:
        for table in rows.tables:
            own = await rows.count_rows(table, tenant)
            for right, words in (("UPDATE", "UPDATE {} SET org = org"), ("DELETE", "DELETE FROM {}")):
                if right not in PRIVILEGES[APP][table.name].replace("UPDATE (", ""):  # not for some columns only
                    continue
                with _allow_cluster_refusal():
                    async with (
                        rows.pool.connect_to_tenant(tenant) as link,
                        link.driver_connection.transaction(force_rollback=True),
                    ):
                        changed = await rows.create_session(link, tenant).run(_build_statement(words, table))
                    assert changed == own, (words, table.name)


async def test_rows_cannot_be_moved_to_another_tenant(rows: TenantRows) -> None:
    mine, sandbox, theirs, _ = rows.tenants
    for table in rows.tables:
        for other in [theirs, sandbox] if table.has_mode else [theirs]:
            moved = "org = {}, livemode = {}" if table.has_mode else "org = {}"
            given = sql.SQL(moved).format(sql.Literal(other.org), sql.Literal(other.livemode))
            await _expect_refusal(rows, mine, _build_statement("UPDATE {} SET ", table) + given)
            await _expect_refusal(rows, mine, await _build_copy(rows.owner, table, other))


async def test_connections_without_a_tenant_have_no_access(rows: TenantRows) -> None:
    """A connection without a tenant neither reads nor writes: it fails."""
    async with await psycopg.AsyncConnection.connect(await database(), autocommit=True) as connection:
        await connection.execute(f"SET ROLE {ROLE}".encode())
        for table in rows.tables:
            with pytest.raises(errors.UndefinedObject, match="joinery.org"):
                await connection.execute(_build_statement("SELECT count(*) FROM {}", table))
            with pytest.raises((errors.UndefinedObject, errors.InsufficientPrivilege)):
                await insert_row(connection, table, rows.tenants[0].org, True, 1)


async def test_rows_without_organisation_or_mode_are_refused(rows: TenantRows) -> None:
    """Applies even to the superuser, to whom no policy applies."""
    for table in rows.tables:
        for column in ["org", "livemode"] if table.has_mode else ["org"]:
            with pytest.raises(
                (errors.NotNullViolation, errors.NullValueNotAllowed), match=f'"{column}"|partition column'
            ):
                await insert_row(rows.owner, table, rows.tenants[0].org, True, 1, {column: "NULL"})


def _build_statement(words: str, table: TenantTable) -> sql.Composed:
    return sql.SQL(words).format(sql.Identifier(table.name))


async def _build_copy(owner: psycopg.AsyncConnection[Any], table: TenantTable, other: Tenant) -> sql.Composed:
    """Return a statement that inserts a copy of the tenant's row as another tenant's."""
    changed: dict[str, Any] = {"org": other.org} | ({"livemode": other.livemode} if table.has_mode else {})
    given = "attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''"
    cursor = await owner.execute(f"SELECT attname FROM pg_attribute WHERE {given}".encode(), (table.name,))
    columns = sql.SQL(", ").join(sql.Identifier(name) for (name,) in await cursor.fetchall())
    words = "INSERT INTO {} ({}) SELECT {} FROM (SELECT (jsonb_populate_record(t, {})).* FROM {} t LIMIT 1) AS copied"
    name = sql.Identifier(table.name)
    return sql.SQL(words).format(name, columns, columns, sql.Literal(psycopg.types.json.Jsonb(changed)), name)


async def _expect_refusal(rows: TenantRows, tenant: Tenant, statement: sql.Composed) -> None:
    with pytest.raises(
        REFUSED, match="row-level security|permission denied for table|could not be executed|partition value"
    ):
        async with rows.pool.connect_to_tenant(tenant) as link:
            await rows.create_session(link, tenant).run(statement)


def _allow_cluster_refusal() -> AbstractContextManager[None]:
    return suppress(*BY_CLUSTERS)


async def test_organisations_read_only_themselves() -> None:
    async with postgres_backend() as backend:
        one, _ = await backend.organisation(), await backend.organisation()
    pool = Pool(await database(), size=1)
    try:
        async with pool.connect_to_tenant(Tenant(one.id, True)) as link:
            cursor = await link.driver_connection.execute("SELECT id FROM organisations")
            assert await cursor.fetchall() == [(one.id,)]
    finally:
        await pool.close()
