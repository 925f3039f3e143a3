"""Database whose `now()` a test sets, for the HTTP suites and contract tests marked `settable_clock`.

Its `search_path` contains a schema with an own `now()` before `pg_catalog`; `clock_timestamp()` is unchanged. With
`settable_backend` the clock of the process also stands still; HTTP suites use the clock of the database.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import psycopg
from psycopg.rows import namedtuple_row

from adapters.postgres.locks import PostgresShards
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.schema_migrations import migrate
from domain.kernel.clock import CLOCK
from domain.orgs.model import Organisation, Plan
from domain.webhooks.model import SHARD_COUNT
from tests.support.backend import Backend
from tests.support.memory.clock import SettableClock
from tests.support.postgres import OFFER, assemble_backend, build_plan_values, create_database, server

_SETTABLE = """
CREATE SCHEMA settable;
GRANT USAGE ON SCHEMA settable TO PUBLIC;
CREATE TABLE settable.clock (now timestamptz);
INSERT INTO settable.clock VALUES ('2026-11-20 13:08Z');
GRANT SELECT ON settable.clock TO PUBLIC;
CREATE FUNCTION settable.now() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT now FROM settable.clock';
"""
_KEPT = ("schema_migrations", "log_server", "plans", "purges")
_TABLES = """
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
    AND NOT relname = ANY(%s)
"""

_ADD = """
INSERT INTO organisations (id, name, kind, plan, api_version, live_catalogue, test_catalogue, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""


class DatabaseClock(SettableClock):
    """A clock that the `now()` of a database follows."""

    def __init__(self, database: "SettableDatabase") -> None:
        super().__init__()
        self._database = database
        self.set(self.now())

    def set(self, moment: datetime) -> None:
        super().set(moment)
        self._database.execute("UPDATE settable.clock SET now = %s", moment)

    def advance(self, by: Any) -> datetime:
        self.set(self.now() + by)
        return self.now()


class SettableDatabase:
    """Access to the database as its owner."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._connection = psycopg.connect(address, autocommit=True, row_factory=namedtuple_row)
        self._tables = [row.relname for row in self.fetch_rows(_TABLES, list(_KEPT))]
        self._clear = "SET session_replication_role = replica; " + "; ".join(
            f"DELETE FROM {name}" for name in self._tables
        )

    def fetch_rows(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a statement."""
        return self._connection.execute(statement.encode(), values or None).fetchall()

    def execute(self, statement: str, *values: Any) -> None:
        """Execute a statement."""
        self._connection.execute(statement.encode(), values or None)

    def save_plan(self, plan: Plan) -> None:
        """Create or change a plan."""
        self._connection.execute(OFFER.encode(), build_plan_values(plan))

    def add_organisation(self, organisation: Organisation) -> None:
        """Add an organisation with an available plan."""
        values = (
            organisation.id,
            organisation.name,
            organisation.kind,
            organisation.plan.code,
            organisation.api_version,
            *organisation.catalogues,
            organisation.created_at,
        )
        self.execute(_ADD, *values)

    def fetch_contents(self) -> dict[str, list[str]]:
        """Return every row as text, by table."""
        return {
            name: found
            for name in self._tables
            if (found := [row.t for row in self.fetch_rows(f"SELECT t::text AS t FROM {name} AS t ORDER BY 1")])
        }

    def take_notifications(self) -> list[str]:
        """Return the payloads of the notifications since the last call."""
        return [one.payload for one in self._connection.notifies(timeout=0.05)]

    def clear(self) -> None:
        """Delete all rows of tests."""
        self.execute(self._clear)


_made: list[SettableDatabase] = []


async def settable_database() -> SettableDatabase:
    """Return the settable database of the process."""
    if not _made:
        # what is created without a schema's name goes to public
        address = await create_database(
            await server(), f"joinery_settable_{os.getpid()}", search_path="public, settable, pg_catalog"
        )
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(_SETTABLE.encode())
        await migrate(address)
        _made.append(SettableDatabase(address))
    return _made[0]


@asynccontextmanager
async def settable_backend() -> AsyncIterator[Backend]:
    """Return a backend on the database; its clock and the process's stand still until `pass_time`."""
    database = await settable_database()
    database.clear()
    clock, pool = DatabaseClock(database), Pool(database.address, size=10)
    shards = PostgresShards(pool, SHARD_COUNT)

    async def pass_time(by: timedelta) -> None:
        clock.advance(by)

    backend = assemble_backend(pool, shards, database.address, clock=clock)
    with patch.object(CLOCK, "_compute_unix_time", lambda: clock.now().timestamp()):
        yield replace(backend, pass_time=pass_time)
    await shards.close()
    await pool.close()
