"""Dump of a consistent snapshot of the database, and its restoration into an empty database in one transaction.

Rows are copied; the schema comes from the migrations. A backup therefore fits any PostgreSQL version and owner, needs no other program,
and can be taken by an owner who is subject to row-level security (ADR 83).
"""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date

from psycopg import sql

from adapters.postgres.errors import translated
from adapters.postgres.migrate import Compatibility, apply
from adapters.postgres.nodes.connecting import BEGIN_EPOCHS, Connection, connect, fetch, fetch_value, is_distributed
from adapters.postgres.partitions import attachment, days_of
from adapters.postgres.privileges import grant
from domain.kernel import retention
from domain.runs.model import OPEN, REPLAYABLE
from domain.storage.model import StoredKind

_TABLES = """
SELECT c.relname, c.relkind = 'p', array_agg(a.attname::text ORDER BY a.attnum), (
    SELECT coalesce(array_agg(DISTINCT f.relname::text), '{}') FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
    WHERE k.conrelid = c.oid AND k.contype = 'f' AND f.oid <> c.oid)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND c.relname <> 'schema_migrations'
GROUP BY c.oid, c.relname, c.relkind ORDER BY c.relname
"""
_SEQUENCES = "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' ORDER BY sequencename"
_OBJECTS = """
SELECT key, bool_or(needed) FROM (
    SELECT snapshot AS key, status = ANY(%(open)s) OR status = ANY(%(replayable)s) AND id = max(id)
        OVER (PARTITION BY org, livemode, source, stream, status) AS needed FROM runs WHERE snapshot IS NOT NULL
    UNION ALL SELECT key, false FROM uploads
    UNION ALL SELECT input ->> 'key', true FROM runs
        WHERE input ->> 'key' IS NOT NULL AND snapshot IS NULL AND status = ANY(%(open)s)
    UNION ALL SELECT key, free_after >= %(until_freed)s FROM stored_objects WHERE kind = %(image)s AND NOT freed
) AS named GROUP BY key ORDER BY key
"""
_CONTENT = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'S') ORDER BY c.relname LIMIT 1
"""
_NO_LIMITS = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET client_encoding = 'UTF8'"
_BEGIN_SNAPSHOTS = b"SET LOCAL citus.max_adaptive_executor_pool_size = 1; SELECT count(*) FROM storage_usage"
"""In a cluster each node has its own snapshot: its rows are read over one connection, and all snapshots begin at the same time."""


class DumpError(Exception):
    """Failure to restore a backup; the message says why."""


@dataclass(frozen=True, slots=True)
class TableShape:
    """Dumped table with its columns in order and the days of its partitions (ISO dates)."""

    name: str
    columns: Sequence[str]
    days: Sequence[str] = ()


class Snapshot:
    """Consistent snapshot of the database while its transaction is open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.copied = 0
        """Number of rows of the table that was copied last."""

    async def version(self) -> str:
        """Return the server's version."""
        return str(await fetch_value(self._connection, "SHOW server_version"))

    async def migrations(self) -> list[str]:
        """Return the names of the applied migrations."""
        rows = await fetch(self._connection, "SELECT name FROM schema_migrations ORDER BY name")
        return [name for (name,) in rows]

    async def tables(self) -> list[TableShape]:
        """Return all tables in the order of their foreign keys, referenced ones first. Raises DumpError."""
        waiting = {row[0]: row for row in await fetch(self._connection, _TABLES)}
        ordered: list[TableShape] = []
        while waiting:
            ready = [row for row in waiting.values() if not set(row[3]) & waiting.keys()]
            for name, partitioned, columns, _ in ready:
                days = await days_of(self._connection, name) if partitioned else {}
                ordered.append(TableShape(name, columns, [day.isoformat() for day in days]))
                del waiting[name]
            if not ready:
                raise DumpError(f"The foreign keys of the tables {', '.join(sorted(waiting))} form a cycle.")
        return ordered

    async def rows(self, table: TableShape) -> AsyncIterator[bytes]:
        """Iterate over the table's rows in PostgreSQL's binary COPY format; `copied` is their number afterwards."""
        columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
        statement = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT binary)")
        async with self._connection.cursor() as cursor:
            async with cursor.copy(statement.format(columns, sql.Identifier(table.name))) as copy:
                async for chunk in copy:
                    yield bytes(chunk)
            self.copied = cursor.rowcount

    async def sequences(self) -> dict[str, int]:
        """Return each sequence's last value; read after the rows, it covers all values in them."""
        last: dict[str, int] = {}
        for (name,) in await fetch(self._connection, _SEQUENCES):
            statement = sql.SQL("SELECT last_value - (NOT is_called)::integer FROM {}").format(sql.Identifier(name))
            last[name] = await fetch_value(self._connection, statement)
        return last

    async def objects(self) -> dict[str, bool]:
        """Return the object keys in rows, and whether the object must exist; a pending upload may lack it."""
        values = {
            "open": sorted(OPEN), "replayable": sorted(REPLAYABLE),
            "image": StoredKind.IMAGE, "until_freed": retention.UNTIL_FREED,
        }  # fmt: skip
        return dict(await fetch(self._connection, _OBJECTS, values))


@asynccontextmanager
async def snapshot(conninfo: str) -> AsyncIterator[Snapshot]:
    """Open a snapshot of the database. Raises Unavailable."""
    with translated():
        async with await connect(conninfo, "joinery backup") as connection:
            await connection.execute(_NO_LIMITS)
            await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if await is_distributed(connection, "storage_usage"):
                await connection.execute(_BEGIN_SNAPSHOTS)
            yield Snapshot(connection)
            await connection.execute("ROLLBACK")


async def record_backup(conninfo: str) -> None:
    """Record the current time as that of the latest backup."""
    with translated():
        async with await connect(conninfo, "joinery backup") as connection:
            await connection.execute(
                "INSERT INTO platform_backups (finished_at) VALUES (clock_timestamp()) "
                "ON CONFLICT (id) DO UPDATE SET finished_at = excluded.finished_at"
            )


class Loader:
    """Loader of a backup into an empty database, in one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def schema(self, migrations: Sequence[str], tables: Sequence[TableShape]) -> None:
        """Create the empty tables of the migrations. Raises DumpError, MigrationError."""
        recorded = Compatibility.recorded(migrations, 0)
        if refused := recorded.refusal():
            raise DumpError(refused)
        if await apply(self._connection, max(recorded.names)) != recorded.names:
            raise DumpError(
                f"This release does not support the backup's schema {max(migrations)}. Use the release that the backup names."
            )
        names = sql.SQL(", ").join(sql.Identifier(table.name) for table in tables)
        await self._connection.execute(sql.SQL("TRUNCATE {}").format(names))
        for table in tables:
            for day in table.days:
                template = sql.SQL("CREATE TABLE {1} PARTITION OF {0}")
                await self._connection.execute(attachment(template, table.name, date.fromisoformat(day)))

    async def rows(self, table: TableShape, chunks: AsyncIterable[bytes]) -> int:
        """Copy rows into a table; return their number. Forced row-level security is suspended meanwhile, because it binds the owner."""
        name = sql.Identifier(table.name)
        columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
        is_forced = "SELECT relforcerowsecurity FROM pg_class WHERE oid = %s::regclass"
        forced = await fetch_value(self._connection, is_forced, (table.name,))
        if forced:
            await self._connection.execute(sql.SQL("ALTER TABLE {} NO FORCE ROW LEVEL SECURITY").format(name))
        cursor = self._connection.cursor()
        async with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(name, columns)) as copy:
            async for chunk in chunks:
                await copy.write(chunk)
        if forced:
            await self._connection.execute(sql.SQL("ALTER TABLE {} FORCE ROW LEVEL SECURITY").format(name))
        return cursor.rowcount

    async def finish(self, sequences: Mapping[str, int]) -> None:
        """Set the sequences, migrate the schema to this release, and grant the processes' privileges.

        Positions that were assigned after the backup will be assigned again, so every event log starts a new epoch.
        """
        for name, last in sequences.items():
            if last > 0:
                await self._connection.execute("SELECT setval(%s::regclass, %s)", (name, last))
        await apply(self._connection)
        await self._connection.execute(BEGIN_EPOCHS)
        await self._connection.execute("DELETE FROM log_server")
        await grant(self._connection)


@asynccontextmanager
async def loading(conninfo: str) -> AsyncIterator[Loader]:
    """Open a loader for an empty database; an exception rolls its transaction back. Raises DumpError."""
    with translated():
        async with await connect(conninfo, "joinery restore") as connection:
            await connection.execute(_NO_LIMITS)
            async with connection.transaction():
                if relation := await fetch_value(connection, _CONTENT):
                    raise DumpError(
                        f"The database is not empty: it contains {relation}. Restore into a newly created database."
                    )
                yield Loader(connection)
            await connection.execute("ANALYZE")
