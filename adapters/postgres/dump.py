"""Dump of a consistent snapshot of the database, and its restoration into an empty database in one transaction.

Rows are copied; the schema comes from the migrations. A backup therefore fits any PostgreSQL version and owner, needs no other program,
and can be taken by an owner who is subject to row-level security (ADR 83).
"""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date

from psycopg import sql

from adapters.postgres.errors import translate_errors
from adapters.postgres.nodes.connections import (
    BEGIN_EPOCHS,
    Connection,
    connect,
    fetch_rows,
    fetch_value,
    is_distributed,
)
from adapters.postgres.partitions import build_partition_statement, list_partitions
from adapters.postgres.privileges import grant_privileges
from adapters.postgres.schema_migrations import SchemaCompatibility, apply_pending
from domain.kernel import retention
from domain.runs.model import OPEN_STATUSES, REPLAYABLE_STATUSES
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
_NON_EMPTY_TABLES = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'S') ORDER BY c.relname LIMIT 1
"""
_NO_LIMITS = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET client_encoding = 'UTF8'"
_BEGIN_SNAPSHOTS = b"SET LOCAL citus.max_adaptive_executor_pool_size = 1; SELECT count(*) FROM storage_usage"
"""SQL statements that begin the snapshots of all nodes of a cluster at the same time.

Each node is then read over one connection.
"""


class DumpError(Exception):
    """Failure to take or restore a backup; the message states the reason."""


@dataclass(frozen=True, slots=True)
class TableShape:
    """Columns and partitions of a table in a backup.

    Attributes:
        name: Name of the table.
        columns: Names of the columns, in the order of the dumped values.
        days: Days that have a partition, as ISO dates; empty for a table without partitions.
    """

    name: str
    columns: Sequence[str]
    days: Sequence[str] = ()


class DatabaseSnapshot:
    """Consistent snapshot of the database, valid while its transaction is open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.copied_row_count = 0
        """Number of rows of the last table that `copy_rows` has read to its end."""

    async def read_server_version(self) -> str:
        """Return the version of the PostgreSQL server."""
        return str(await fetch_value(self._connection, "SHOW server_version"))

    async def list_migrations(self) -> list[str]:
        """Return the names of the applied migrations."""
        rows = await fetch_rows(self._connection, "SELECT name FROM schema_migrations ORDER BY name")
        return [name for (name,) in rows]

    async def list_tables(self) -> list[TableShape]:
        """Return the columns and partitions of all tables, referenced tables before those that refer to them.

        Raises DumpError if the foreign keys form a cycle.
        """
        remaining = {row[0]: row for row in await fetch_rows(self._connection, _TABLES)}
        ordered: list[TableShape] = []
        while remaining:
            ready = [row for row in remaining.values() if not set(row[3]) & remaining.keys()]
            for name, partitioned, columns, _ in ready:
                days = await list_partitions(self._connection, name) if partitioned else {}
                ordered.append(TableShape(name, columns, [day.isoformat() for day in days]))
                del remaining[name]
            if not ready:
                raise DumpError(f"The foreign keys of the tables {', '.join(sorted(remaining))} form a cycle.")
        return ordered

    async def copy_rows(self, table: TableShape) -> AsyncIterator[bytes]:
        """Yield the table's rows in PostgreSQL's binary COPY format, and store their number in `copied_row_count`."""
        columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
        statement = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT binary)")
        async with self._connection.cursor() as cursor:
            async with cursor.copy(statement.format(columns, sql.Identifier(table.name))) as copy:
                async for chunk in copy:
                    yield bytes(chunk)
            self.copied_row_count = cursor.rowcount

    async def read_sequences(self) -> dict[str, int]:
        """Return each sequence's last value. Call this after reading all rows, so that no row has a higher value."""
        last: dict[str, int] = {}
        for (name,) in await fetch_rows(self._connection, _SEQUENCES):
            statement = sql.SQL("SELECT last_value - (NOT is_called)::integer FROM {}").format(sql.Identifier(name))
            last[name] = await fetch_value(self._connection, statement)
        return last

    async def list_object_keys(self) -> dict[str, bool]:
        """Return whether the object must exist, by key, for all stored objects that rows refer to.

        The object of an upload, for example, may be missing.
        """
        values = {
            "open": sorted(OPEN_STATUSES), "replayable": sorted(REPLAYABLE_STATUSES),
            "image": StoredKind.IMAGE, "until_freed": retention.UNTIL_FREED,
        }  # fmt: skip
        return dict(await fetch_rows(self._connection, _OBJECTS, values))


@asynccontextmanager
async def open_snapshot(conninfo: str) -> AsyncIterator[DatabaseSnapshot]:
    """Open a consistent snapshot of the database, which ends with the context. Raises Unavailable."""
    with translate_errors():
        async with await connect(conninfo, "joinery backup") as connection:
            await connection.execute(_NO_LIMITS)
            await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if await is_distributed(connection, "storage_usage"):
                await connection.execute(_BEGIN_SNAPSHOTS)
            yield DatabaseSnapshot(connection)
            await connection.execute("ROLLBACK")


async def record_backup(conninfo: str) -> None:
    """Record the current time as the time of the last completed backup."""
    with translate_errors():
        async with await connect(conninfo, "joinery backup") as connection:
            await connection.execute(
                "INSERT INTO platform_backups (finished_at) VALUES (clock_timestamp()) "
                "ON CONFLICT (id) DO UPDATE SET finished_at = excluded.finished_at"
            )


class DumpLoader:
    """Loader of a backup into an empty database. The whole load is one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create_schema(self, migrations: Sequence[str], tables: Sequence[TableShape]) -> None:
        """Create the backup's tables, without rows, by applying the backup's migrations.

        Args:
            migrations: Names of the migrations that the backed-up database had.
            tables: Tables of the backup.

        Raises:
            DumpError: This release does not support the backup's schema.
            MigrationError: A migration failed.
        """
        recorded = SchemaCompatibility.from_recorded_names(migrations, 0)
        if refused := recorded.find_migration_obstacle():
            raise DumpError(refused)
        if await apply_pending(self._connection, max(recorded.names)) != recorded.names:
            raise DumpError(
                f"This release does not support the backup's schema {max(migrations)}. Use the release that the backup names."
            )
        names = sql.SQL(", ").join(sql.Identifier(table.name) for table in tables)
        await self._connection.execute(sql.SQL("TRUNCATE {}").format(names))
        for table in tables:
            for day in table.days:
                template = sql.SQL("CREATE TABLE {1} PARTITION OF {0}")
                await self._connection.execute(build_partition_statement(template, table.name, date.fromisoformat(day)))

    async def load_rows(self, table: TableShape, chunks: AsyncIterable[bytes]) -> int:
        """Copy rows in PostgreSQL's binary COPY format into a table; return their number."""
        name = sql.Identifier(table.name)
        columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
        is_forced = "SELECT relforcerowsecurity FROM pg_class WHERE oid = %s::regclass"
        forced = await fetch_value(self._connection, is_forced, (table.name,))
        if forced:  # forced row-level security applies to the owner too, so it is suspended meanwhile
            await self._connection.execute(sql.SQL("ALTER TABLE {} NO FORCE ROW LEVEL SECURITY").format(name))
        cursor = self._connection.cursor()
        async with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(name, columns)) as copy:
            async for chunk in chunks:
                await copy.write(chunk)
        if forced:
            await self._connection.execute(sql.SQL("ALTER TABLE {} FORCE ROW LEVEL SECURITY").format(name))
        return cursor.rowcount

    async def finish(self, sequences: Mapping[str, int]) -> None:
        """Set the sequences, migrate the schema to this release, and grant privileges to the processes' roles.

        Every event log starts a new epoch, because positions assigned after the backup will be assigned again.
        """
        for name, last in sequences.items():
            if last > 0:
                await self._connection.execute("SELECT setval(%s::regclass, %s)", (name, last))
        await apply_pending(self._connection)
        await self._connection.execute(BEGIN_EPOCHS)
        await self._connection.execute("DELETE FROM log_server")
        await grant_privileges(self._connection)


@asynccontextmanager
async def open_loader(conninfo: str) -> AsyncIterator[DumpLoader]:
    """Open a loader whose transaction commits at the end of the context, and is rolled back by an exception.

    Raises DumpError if the database is not empty.
    """
    with translate_errors():
        async with await connect(conninfo, "joinery restore") as connection:
            await connection.execute(_NO_LIMITS)
            async with connection.transaction():
                if relation := await fetch_value(connection, _NON_EMPTY_TABLES):
                    raise DumpError(
                        f"The database is not empty: it contains {relation}. Restore into a newly created database."
                    )
                yield DumpLoader(connection)
            await connection.execute("ANALYZE")
