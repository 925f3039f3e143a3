"""Application of migrations: order, transactions, and declared compatibility."""

import asyncio

import psycopg
import pytest

from adapters.postgres import schema_migrations
from adapters.postgres.schema_migrations import (
    FIRST_CHECKED_SCHEMA,
    MigrationError,
    find_oldest_schema,
    load_migrations,
    parse_schema_number,
    read_compatibility,
)
from tests.postgres.databases import create_database

NEXT = "9001_next"


def _add_migrations(monkeypatch: pytest.MonkeyPatch, *scripts: tuple[str, str]) -> None:
    monkeypatch.setattr(schema_migrations, "load_migrations", lambda known=load_migrations(): [*known, *scripts])


def test_every_migration_leaves_the_last_release_working() -> None:
    """Contract a release after expanding: raise the number with the release that no longer needs the removed parts."""
    assert {
        name: find_oldest_schema(name, script)
        for name, script in load_migrations()
        if parse_schema_number(name) > FIRST_CHECKED_SCHEMA
    } == {
        name: FIRST_CHECKED_SCHEMA for name, _ in load_migrations() if parse_schema_number(name) > FIRST_CHECKED_SCHEMA
    }


def test_an_index_is_created_outside_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    address = asyncio.run(create_database("migrating_index"))
    script = "-- transaction: none\nDROP INDEX CONCURRENTLY IF EXISTS next;\nCREATE INDEX CONCURRENTLY next ON users (created_at);\n"
    _add_migrations(monkeypatch, (NEXT, script))
    assert asyncio.run(schema_migrations.migrate(address)) == [NEXT]
    with psycopg.connect(address) as owner:
        assert owner.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = 'next'::regclass").fetchone() == (
            True,
        )


def test_a_migration_must_declare_that_it_needs_no_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    address = asyncio.run(create_database("migrating_undeclared"))
    _add_migrations(monkeypatch, (NEXT, "CREATE INDEX CONCURRENTLY next ON users (created_at);\n"))
    with pytest.raises(MigrationError, match="transaction: none"):
        asyncio.run(schema_migrations.migrate(address))
    assert asyncio.run(schema_migrations.list_pending_migrations(address)) == [NEXT]


def test_migrations_applied_before_a_failure_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    address = asyncio.run(create_database("migrating_failure"))
    _add_migrations(monkeypatch, (NEXT, "CREATE TABLE made (a integer)"), ("9002_broken", "SELECT 1 / 0"))
    with pytest.raises(psycopg.errors.DivisionByZero):
        asyncio.run(schema_migrations.migrate(address))
    assert NEXT in (found := asyncio.run(read_compatibility(address))).names and "9002_broken" not in found.names


def test_pending_migrations_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    address = asyncio.run(create_database("migrating_plan"))
    assert asyncio.run(schema_migrations.list_pending_migrations(address)) == []
    _add_migrations(monkeypatch, (NEXT, "SELECT 1"))
    assert asyncio.run(schema_migrations.list_pending_migrations(address)) == [NEXT]


def test_a_table_in_use_fails_the_migration(monkeypatch: pytest.MonkeyPatch) -> None:
    address = asyncio.run(create_database("migrating_busy"))
    _add_migrations(monkeypatch, (NEXT, "ALTER TABLE users ADD COLUMN next text"))
    monkeypatch.setattr(schema_migrations, "LOCK_ATTEMPTS", 1)
    with psycopg.connect(address) as holder:
        holder.execute("SELECT count(*) FROM users")
        with pytest.raises(MigrationError, match="was locked by other sessions"):
            asyncio.run(schema_migrations.migrate(address))
    assert asyncio.run(schema_migrations.migrate(address)) == [NEXT]


def test_a_contracting_migration_excludes_earlier_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    address = asyncio.run(create_database("migrating_contract"))
    with monkeypatch.context() as later:
        _add_migrations(later, (NEXT, "-- oldest-compatible: 9001\nSELECT 1"))
        assert asyncio.run(schema_migrations.migrate(address)) == [NEXT]
        assert asyncio.run(read_compatibility(address)).find_incompatibility() is None
    found = asyncio.run(read_compatibility(address))
    assert found.oldest_schema == 9001 and "newer release" in str(found.find_incompatibility())
    with pytest.raises(MigrationError, match="Use a newer release"):
        asyncio.run(schema_migrations.migrate(address))


def test_an_expanding_migration_keeps_earlier_releases_working(monkeypatch: pytest.MonkeyPatch) -> None:
    address = asyncio.run(create_database("migrating_expand"))
    with monkeypatch.context() as later:
        _add_migrations(later, (NEXT, "ALTER TABLE users ADD COLUMN next text"))
        asyncio.run(schema_migrations.migrate(address))
    found = asyncio.run(read_compatibility(address))
    assert (found.find_incompatibility(), found.list_unknown_migrations()) == (None, [NEXT])
    assert asyncio.run(schema_migrations.migrate(address)) == []
