"""Schema migrations: their application, and the check that running processes are compatible with the schema."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import TypeVar

from psycopg import errors

from adapters.postgres.errors import translate_errors
from adapters.postgres.nodes.connections import Connection, connect, fetch_rows, fetch_value, retry_while_busy
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.partitions import create_partitions, read_server_day
from adapters.postgres.privileges import OPERATOR, create_roles, find_other_owner, grant_privileges, list_missing_grants
from domain.kernel.errors import SchemaMismatch

LOG = logging.getLogger("joinery.schema")
_LOCK = 7_215_908_431
_SET_SEQUENTIAL_MODE = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"
"""SQL statement that makes Citus change shards one after another.

Parallel changes of shards prevent a transaction from changing several tables that refer to each other.
"""
_SET_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '2s'"
"""SQL statement that sets a short lock timeout.

Other SQL statements wait as long as a DDL statement waits for its lock.
"""
LOCK_ATTEMPTS = 15
LOCK_PAUSE_SECONDS = 1.0
"""Seconds between two attempts to acquire locks."""
_LOCK_ERRORS = (errors.LockNotAvailable, errors.DeadlockDetected)
FIRST_CHECKED_SCHEMA = 40
"""Schema number of the first release that checks whether the database's schema is compatible.

Earlier releases do not work on later schemas.
"""
_BASELINE = "0044_baseline"
_LAST_REPLACED = "0044_first_party"
"""Last of the migrations that the baseline replaces; a database with this migration has the baseline's schema."""
_TABLE = f"""
CREATE TABLE IF NOT EXISTS schema_migrations (
    name text PRIMARY KEY, applied_at timestamptz DEFAULT now(), oldest_compatible integer NOT NULL DEFAULT {FIRST_CHECKED_SCHEMA}
)
"""
_RECORDED_QUERY = f"""
SELECT name, coalesce((to_jsonb(m) ->> 'oldest_compatible')::integer, {FIRST_CHECKED_SCHEMA}) FROM schema_migrations AS m
"""
"""Query of the applied migrations that also works on schemas without the column oldest_compatible."""
_OLDEST_COMPATIBLE_LINE = re.compile(r"^-- oldest-compatible: (\d{4})$", re.MULTILINE)
_NO_TRANSACTION_LINE = re.compile(r"^-- transaction: none$", re.MULTILINE)

T = TypeVar("T")


class MigrationError(Exception):
    """Failure to migrate the database; the message states the cause and the remedy."""


@dataclass(frozen=True, slots=True)
class SchemaCompatibility:
    """Applied migrations of a database, and the releases that work on the resulting schema.

    Attributes:
        names: Names of the applied migrations.
        oldest_schema: Lowest schema number of a release that works on the schema. A release has the schema number of its last
            migration.
    """

    names: Sequence[str]
    oldest_schema: int

    @classmethod
    def from_recorded_names(cls, names: Iterable[str], oldest_schema: int) -> "SchemaCompatibility":
        """Create an instance from the names in the table `schema_migrations`.

        If the migration `_LAST_REPLACED` is applied, the baseline's name replaces this name and all earlier names.
        """
        found = set(names)
        if _LAST_REPLACED in found:
            found = {name for name in found if name > _LAST_REPLACED} | {_BASELINE}
        return cls(sorted(found), oldest_schema)

    def find_incompatibility(self) -> str | None:
        """Return a message that states why this release cannot work on the schema, and the remedy; None if it can.

        A later schema is compatible until a migration removes something that this release uses
        (docs/operations.md#upgrades).
        """
        missing = [name for name, _ in load_migrations() if name not in self.names]
        if missing and not self.find_migration_obstacle():
            return f"Migrations are pending ({len(missing)}, starting with {missing[0]}). Run `joinery migrate`."
        return self.find_migration_obstacle()

    def find_migration_obstacle(self) -> str | None:
        """Return a message that states why this release cannot migrate the schema, and the remedy; None if it can.

        The schema may be too old, or a later release may have removed something that this release uses.
        """
        if self.names and _BASELINE not in self.names:
            return (
                f"The database's schema ({max(self.names)}) is older than this release can migrate. "
                f"First run `joinery migrate` of release 0.1, whose last migration is {_LAST_REPLACED}."
            )
        last, _ = load_migrations()[-1]
        if self.oldest_schema <= parse_schema_number(last):
            return None
        return (
            f"The database's schema ({max(self.names)}) requires a release that includes migration {self.oldest_schema:04}, "
            f"but the last migration of this release is {last}. Use a newer release."
        )

    def list_unknown_migrations(self) -> list[str]:
        """Return the names of applied migrations that this release does not contain."""
        return sorted(set(self.names) - {name for name, _ in load_migrations()})


def parse_schema_number(name: str) -> int:
    """Return the schema number of a migration: the first four digits of the name."""
    return int(name[:4])


def find_oldest_schema(name: str, script: str) -> int:
    """Return the lowest schema number of a release that works after the migration.

    A migration that removes something contains the line `-- oldest-compatible: NNNN`; without the line, it only adds to
    the schema.

    Args:
        name: Name of the migration.
        script: SQL of the migration.
    """
    found = _OLDEST_COMPATIBLE_LINE.search(script)
    return int(found[1]) if found else min(FIRST_CHECKED_SCHEMA, parse_schema_number(name))


def load_migrations() -> list[tuple[str, str]]:
    """Return the name and the SQL of each migration of this release, in order."""
    folder = files(__package__).joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(name.removesuffix(".sql"), folder.joinpath(name).read_text("utf-8")) for name in names]


async def read_compatibility(conninfo: str) -> SchemaCompatibility:
    """Return the applied migrations of a database and the compatibility of the schema."""
    with translate_errors():
        async with await connect(conninfo, "joinery migrate") as connection:
            if await fetch_value(connection, "SELECT to_regclass('schema_migrations')") is None:
                return SchemaCompatibility([], 0)
            return await _read_compatibility(connection)


async def list_pending_migrations(conninfo: str) -> list[str]:
    """Return the names of the migrations that `migrate` would apply. Raises MigrationError."""
    compatibility = await read_compatibility(conninfo)
    return [name for name, _ in _list_pending_scripts(compatibility)]


async def migrate(conninfo: str) -> list[str]:
    """Apply the pending migrations, each in its own transaction, and create the partitions of the next days.

    Applied migrations remain if a later one fails. Nothing is applied to the schema of a later, compatible release.

    Returns:
        The names of the migrations that this call has applied.

    Raises:
        MigrationError: The role does not own the tables, a privilege is missing, a table stayed locked, or the schema
            requires a newer release.
    """
    with translate_errors():
        async with await connect(conninfo, "joinery migrate") as connection:
            if owner := await find_other_owner(connection):
                raise MigrationError(
                    f"The role {connection.info.user} does not own the tables of the database. Migrate as their owner, "
                    f"{owner}: set JOINERY_MIGRATE_DATABASE_URL."
                )
            if grants := await list_missing_grants(connection):
                statements = "\n  ".join(f"{grant};" for grant in grants)
                reason = f"The role {connection.info.user} lacks privileges. Have a superuser of the server run:"
                raise MigrationError(f"{reason}\n  {statements}")
            try:
                return await _migrate(connection)
            except errors.ActiveSqlTransaction as error:
                message = error.diag.message_primary
                raise MigrationError(f"A migration lacks the line `-- transaction: none`: {message}.") from error
            except errors.InsufficientPrivilege as error:
                message = f"The role {connection.info.user} lacks a privilege: {error.diag.message_primary}."
                raise MigrationError(f"{message} Migrate as the owner of the database's tables.") from error


async def apply_pending(connection: Connection, last_name: str | None = None) -> list[str]:
    """Apply the pending migrations in the connection's transaction; return their names. Raises MigrationError.

    Args:
        connection: Connection to a database without other sessions.
        last_name: Name of the last migration to apply; None for all migrations.
    """
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    pending = await _prepare_migration(connection, last_name)
    for name, script in pending:
        transactional = script.replace(" CONCURRENTLY", "") if _NO_TRANSACTION_LINE.search(script) else script
        await _apply_in_transaction(connection, name, transactional)
    return [name for name, _ in pending]


async def _migrate(connection: Connection) -> list[str]:
    await connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
    try:
        pending = await _run_with_retries("preparing", connection, _prepare_migration)
        for name, script in pending:
            if _NO_TRANSACTION_LINE.search(script):
                await _apply_outside_transaction(connection, name, script)
            else:
                await _run_with_retries(name, connection, partial(_apply_in_transaction, name=name, script=script))
        if not (
            await _read_compatibility(connection)
        ).list_unknown_migrations():  # the newest release determines privileges
            await _run_with_retries("granting privileges", connection, grant_privileges)
        await create_partitions(connection, await read_server_day(connection))
    finally:
        if not connection.closed:
            await connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))
    return [name for name, _ in pending]


async def _prepare_migration(connection: Connection, last_name: str | None = None) -> list[tuple[str, str]]:
    """Create the roles and the table schema_migrations if missing; return the pending migrations.

    Raises MigrationError if this release cannot migrate the schema.
    """
    await connection.execute(_TABLE)
    pending = _list_pending_scripts(await _read_compatibility(connection), last_name)
    await create_roles(connection)
    return pending


async def _apply_in_transaction(connection: Connection, name: str, script: str) -> None:
    await connection.execute(script.encode())
    await _record_migration(connection, name, script)


async def _apply_outside_transaction(connection: Connection, name: str, script: str) -> None:
    """Apply a migration whose statements PostgreSQL rejects inside a transaction, such as CREATE INDEX CONCURRENTLY.

    Each statement of the script ends with a semicolon at the end of a line. If one fails, the next migration run
    executes all again.
    """
    await connection.execute("SET lock_timeout = 0")
    for statement in re.split(r";\s*$", script, flags=re.MULTILINE):
        if re.sub(r"--.*", "", statement).strip():
            await connection.execute(statement.encode())
    await _record_migration(connection, name, script)


async def _record_migration(connection: Connection, name: str, script: str) -> None:
    await connection.execute(
        "INSERT INTO schema_migrations (name, oldest_compatible) VALUES (%s, %s)",
        (name, find_oldest_schema(name, script)),
    )


async def _run_with_retries(label: str, connection: Connection, step: Callable[[Connection], Awaitable[T]]) -> T:
    """Run a step in a transaction with a short lock timeout; repeat it while other sessions hold the locks.

    Args:
        label: Name of the step for the error message.
        connection: The connection.
        step: Function that runs inside the transaction.

    Raises:
        MigrationError: A lock was not available in any attempt.
    """

    async def attempt() -> T:
        async with connection.transaction():
            await connection.execute(_SET_SEQUENTIAL_MODE)
            await connection.execute(_SET_LOCK_TIMEOUT)
            return await step(connection)

    try:
        return await retry_while_busy(attempt, LOCK_ATTEMPTS, LOCK_PAUSE_SECONDS, _LOCK_ERRORS)
    except _LOCK_ERRORS as error:
        raise MigrationError(
            f"{label}: a table was locked by other sessions ({error.diag.message_primary}). This step was rolled "
            "back. Run `joinery migrate` again. If it fails again, first end the session that holds the lock (pg_stat_activity)."
        ) from error


def _list_pending_scripts(compatibility: SchemaCompatibility, last_name: str | None = None) -> list[tuple[str, str]]:
    if refusal := compatibility.find_migration_obstacle():
        raise MigrationError(refusal)
    return [
        entry
        for entry in load_migrations()
        if entry[0] not in compatibility.names and (last_name is None or entry[0] <= last_name)
    ]


async def _read_compatibility(connection: Connection) -> SchemaCompatibility:
    rows = await fetch_rows(connection, _RECORDED_QUERY)
    return SchemaCompatibility.from_recorded_names(
        (name for name, _ in rows), max((oldest for _, oldest in rows), default=0)
    )


CHECK_SECONDS = 15.0
"""Seconds between two checks of the schema by `watch`."""
MAX_RESULT_AGE_SECONDS = 1.0
"""Maximum age in seconds of a check whose result `require_compatible` reuses."""
_UNMIGRATED_ERRORS = (
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedObject,
    errors.InsufficientPrivilege,
    errors.InvalidParameterValue,
)
"""Errors of a database that lacks a migration: a role, table, column or privilege is missing."""
_COMPATIBILITY_QUERY = "SELECT array_agg(name ORDER BY name), max(oldest_compatible) FROM schema_migrations"


class PostgresSchemaCheck:
    """Repeated check whether this release is compatible with the database's schema."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._checking: asyncio.Task[str | None] | None = None
        self._checked_at = float("-inf")
        self.incompatibility: str | None = None
        """Reason why the schema is incompatible, from the last check; None if it is compatible or not checked yet."""

    async def check(self) -> str | None:
        """Check the schema now; return the reason for an incompatibility, or None. Concurrent callers share one check.

        Raises Unavailable if the database does not respond.
        """
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check(), name="schema check")
        return await asyncio.shield(self._checking)

    async def require_compatible(self) -> None:
        """Raise SchemaMismatch if the schema is incompatible. The result of a check within MAX_RESULT_AGE_SECONDS is reused."""
        is_fresh = asyncio.get_running_loop().time() - self._checked_at < MAX_RESULT_AGE_SECONDS
        if (self.incompatibility if is_fresh else await self.check()) is not None:
            raise SchemaMismatch

    async def watch(self, *, until_incompatible: bool = False) -> None:
        """Check the schema at regular intervals until cancelled.

        With `until_incompatible`, return as soon as the schema is incompatible. The last result remains valid while the
        database does not respond.
        """
        while True:
            try:
                await self.check()
            except Exception as error:
                LOG.debug("schema not read: %s", error)
            if until_incompatible and self.incompatibility:
                return
            # Until the first check succeeds the result is unknown, so checks are more frequent.
            await asyncio.sleep(CHECK_SECONDS if self._checked_at > float("-inf") else MAX_RESULT_AGE_SECONDS)

    async def _check(self) -> str | None:
        try:
            async with self._pool.connect_to_coordinator() as connection:
                [(names, oldest)] = await fetch_rows(connection.driver_connection, _COMPATIBILITY_QUERY)
            fault = SchemaCompatibility.from_recorded_names(names or [], oldest or 0).find_incompatibility()
        except _UNMIGRATED_ERRORS as error:
            LOG.debug("schema_migrations not read: %s", error)
            fault = "The database has not been migrated to this release's schema. Run `joinery migrate`."
            if OPERATOR in (error.diag.message_primary or ""):
                fault = (
                    f"The role of this process's database URL cannot SET ROLE {OPERATOR}. Grant {OPERATOR} to this "
                    "role (docs/operations.md#rights-in-the-database)."
                )
        if fault != self.incompatibility:
            LOG.log(logging.ERROR if fault else logging.INFO, "%s", fault or "schema compatible with this release")
        self.incompatibility, self._checked_at = fault, asyncio.get_running_loop().time()
        return fault
