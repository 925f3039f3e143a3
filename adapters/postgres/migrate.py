"""Schema migrations: their application, and the check of the schema's compatibility by running processes."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import TypeVar

from psycopg import errors

from adapters.postgres.errors import translated
from adapters.postgres.nodes.connecting import Connection, connect, fetch, fetch_value, retry
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.partitions import make_days, server_day
from adapters.postgres.privileges import OPERATOR, grant, make_roles, missing_grants, other_owner
from domain.kernel.errors import SchemaMismatch

LOG = logging.getLogger("joinery.schema")
_LOCK = 7_215_908_431
_SEQUENTIAL = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"
"""A cluster must change shards sequentially, because parallel changes prevent a transaction from changing several tables that refer to
each other. A plain PostgreSQL ignores the setting."""
_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '2s'"
"""Statements that queue behind a waiting DDL statement wait as long as it does, so each attempt is short."""
ATTEMPTS = 15
PAUSE = 1.0
"""Seconds between two attempts at a lock."""
_BUSY = (errors.LockNotAvailable, errors.DeadlockDetected)
OLDEST = 40
"""Releases before this schema number do not check compatibility and work on no later schema."""
_BASELINE = "0044_baseline"
_REPLACED = "0044_first_party"
"""Last of the migrations that the baseline replaces; a database with it has the baseline's schema."""
_TABLE = f"""
CREATE TABLE IF NOT EXISTS schema_migrations (
    name text PRIMARY KEY, applied_at timestamptz DEFAULT now(), oldest_compatible integer NOT NULL DEFAULT {OLDEST}
)
"""
_RECORDED = f"""
SELECT name, coalesce((to_jsonb(m) ->> 'oldest_compatible')::integer, {OLDEST}) FROM schema_migrations AS m
"""
"""Query that also works on schemas without the column oldest_compatible."""
_OLDEST = re.compile(r"^-- oldest-compatible: (\d{4})$", re.MULTILINE)
_NO_TRANSACTION = re.compile(r"^-- transaction: none$", re.MULTILINE)

T = TypeVar("T")


class MigrationError(Exception):
    """Failure to migrate the database; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Compatibility of a database's schema: its migrations, and the minimum schema number of a release that works on it."""

    names: Sequence[str]
    oldest: int

    @classmethod
    def recorded(cls, names: Iterable[str], oldest: int) -> "Compatibility":
        """Create from the names in `schema_migrations`; the baseline replaces its predecessors."""
        found = set(names)
        if _REPLACED in found:
            found = {name for name in found if name > _REPLACED} | {_BASELINE}
        return cls(sorted(found), oldest)

    def fault(self) -> str | None:
        """Return why this release cannot work on the schema, with the remedy, or None.

        A later schema is compatible until a migration contracts it (docs/operations.md#upgrades).
        """
        missing = [name for name, _ in available() if name not in self.names]
        if missing and not self.refusal():
            return f"Migrations are pending ({len(missing)}, starting with {missing[0]}). Run `joinery migrate`."
        return self.refusal()

    def refusal(self) -> str | None:
        """Return why this release cannot migrate the schema, or None: the schema is too old, or a later release has contracted it."""
        if self.names and _BASELINE not in self.names:
            return (
                f"The database's schema ({max(self.names)}) is older than this release can migrate. "
                f"First run `joinery migrate` of release 0.1, whose last migration is {_REPLACED}."
            )
        last, _ = available()[-1]
        if self.oldest <= number_of(last):
            return None
        return (
            f"The database's schema ({max(self.names)}) requires a release that includes migration {self.oldest:04}, "
            f"but the last migration of this release is {last}. Use a newer release."
        )

    def unknown(self) -> list[str]:
        """Return the migrations of later releases."""
        return sorted(set(self.names) - {name for name, _ in available()})


def number_of(name: str) -> int:
    """Return the schema number of a migration."""
    return int(name[:4])


def oldest_compatible(name: str, script: str) -> int:
    """Return the minimum schema number of a release that works after the migration.

    A migration that only expands the schema declares nothing; one that contracts it contains `-- oldest-compatible: NNNN`.
    """
    found = _OLDEST.search(script)
    return int(found[1]) if found else min(OLDEST, number_of(name))


def available() -> list[tuple[str, str]]:
    """Return name and SQL of all migrations, in order."""
    folder = files(__package__).joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(name.removesuffix(".sql"), folder.joinpath(name).read_text("utf-8")) for name in names]


async def read_compatibility(conninfo: str) -> Compatibility:
    """Read the compatibility of the database's schema, as its owner."""
    with translated():
        async with await connect(conninfo, "joinery migrate") as connection:
            if await fetch_value(connection, "SELECT to_regclass('schema_migrations')") is None:
                return Compatibility([], 0)
            return await _read_compatibility(connection)


async def list_pending(conninfo: str) -> list[str]:
    """Return the names of the migrations that `migrate` would apply. Raises MigrationError."""
    found = await read_compatibility(conninfo)
    return [name for name, _ in _pending_scripts(found)]


async def migrate(conninfo: str) -> list[str]:
    """Apply the pending migrations, each in its own transaction, and create the partitions of the next days.

    Migrations stay applied if a later one fails. On the schema of a later, compatible release nothing is applied.

    Returns:
        The names of the applied migrations.

    Raises:
        MigrationError: The login does not own the tables, a privilege is missing, a table stayed locked, or the schema requires a newer release.

    """
    with translated():
        async with await connect(conninfo, "joinery migrate") as connection:
            if owner := await other_owner(connection):
                raise MigrationError(
                    f"The login {connection.info.user} does not own the tables of the database. Migrate as their owner, "
                    f"{owner}: set JOINERY_MIGRATE_DATABASE_URL."
                )
            if grants := await missing_grants(connection):
                statements = "\n  ".join(f"{grant};" for grant in grants)
                reason = f"The login {connection.info.user} lacks privileges. Have a superuser of the server run:"
                raise MigrationError(f"{reason}\n  {statements}")
            try:
                return await _migrate(connection)
            except errors.ActiveSqlTransaction as error:
                message = error.diag.message_primary
                raise MigrationError(f"A migration lacks the line `-- transaction: none`: {message}.") from error
            except errors.InsufficientPrivilege as error:
                message = f"The login {connection.info.user} lacks a privilege: {error.diag.message_primary}."
                raise MigrationError(f"{message} Migrate as the owner of the database's tables.") from error


async def apply(connection: Connection, up_to: str | None = None) -> list[str]:
    """Apply the pending migrations, up to the named one, in the connection's transaction. Raises MigrationError."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    missing = await _prepare(connection, up_to)
    for name, script in missing:  # a database without other sessions, where all migrations share one transaction
        transactional = script.replace(" CONCURRENTLY", "") if _NO_TRANSACTION.search(script) else script
        await _apply_one(connection, name, transactional)
    return [name for name, _ in missing]


async def _migrate(connection: Connection) -> list[str]:
    await connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
    try:
        missing = await _run_with_retries("preparing", connection, _prepare)
        for name, script in missing:
            if _NO_TRANSACTION.search(script):
                await _apply_outside_transaction(connection, name, script)
            else:
                await _run_with_retries(name, connection, partial(_apply_one, name=name, script=script))
        if not (await _read_compatibility(connection)).unknown():  # the newest release determines privileges
            await _run_with_retries("granting privileges", connection, grant)
        await make_days(connection, await server_day(connection))
    finally:
        if not connection.closed:
            await connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))
    return [name for name, _ in missing]


async def _prepare(connection: Connection, up_to: str | None = None) -> list[tuple[str, str]]:
    """Create the roles and the table of migrations; return the pending migrations. Raises MigrationError."""
    await connection.execute(_TABLE)
    missing = _pending_scripts(await _read_compatibility(connection), up_to)
    await make_roles(connection)
    return missing


async def _apply_one(connection: Connection, name: str, script: str) -> None:
    await connection.execute(script.encode())
    await _record(connection, name, script)


async def _apply_outside_transaction(connection: Connection, name: str, script: str) -> None:
    """Apply a migration that PostgreSQL refuses inside a transaction, such as CREATE INDEX CONCURRENTLY.

    Each statement ends with a semicolon at the end of a line. A repeated attempt starts again with the first statement.
    """
    await connection.execute("SET lock_timeout = 0")
    for statement in re.split(r";\s*$", script, flags=re.MULTILINE):
        if re.sub(r"--.*", "", statement).strip():
            await connection.execute(statement.encode())
    await _record(connection, name, script)


async def _record(connection: Connection, name: str, script: str) -> None:
    await connection.execute(
        "INSERT INTO schema_migrations (name, oldest_compatible) VALUES (%s, %s)",
        (name, oldest_compatible(name, script)),
    )


async def _run_with_retries(name: str, connection: Connection, step: Callable[[Connection], Awaitable[T]]) -> T:
    """Run a step in a transaction with short lock waits, and retry while other sessions hold the locks. Raises MigrationError."""

    async def attempt() -> T:
        async with connection.transaction():
            await connection.execute(_SEQUENTIAL)
            await connection.execute(_LOCK_TIMEOUT)
            return await step(connection)

    try:
        return await retry(attempt, ATTEMPTS, PAUSE, _BUSY)
    except _BUSY as error:
        raise MigrationError(
            f"{name}: a table stayed locked by other sessions ({error.diag.message_primary}). This step was rolled "
            "back; run `joinery migrate` again, or end the session that holds the lock (pg_stat_activity)."
        ) from error


def _pending_scripts(found: Compatibility, up_to: str | None = None) -> list[tuple[str, str]]:
    if refused := found.refusal():
        raise MigrationError(refused)
    return [entry for entry in available() if entry[0] not in found.names and (up_to is None or entry[0] <= up_to)]


async def _read_compatibility(connection: Connection) -> Compatibility:
    rows = await fetch(connection, _RECORDED)
    return Compatibility.recorded((name for name, _ in rows), max((oldest for _, oldest in rows), default=0))


EVERY = 15.0
"""Seconds between two checks of the schema."""
MAX_AGE = 1.0
"""Seconds for which `require` reuses the result of a check."""
_NOT_MIGRATED = (
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedObject,
    errors.InsufficientPrivilege,
    errors.InvalidParameterValue,
)
"""Errors of a database that has not been migrated: a role, table, column or privilege is missing."""
_STATEMENT = "SELECT array_agg(name ORDER BY name), max(oldest_compatible) FROM schema_migrations"


class PostgresSchemaCheck:
    """Check of the schema's compatibility."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._checking: asyncio.Task[str | None] | None = None
        self._checked_at = float("-inf")
        self.fault: str | None = None

    async def check(self) -> str | None:
        """Check the schema; concurrent callers share one check. Raises Unavailable if the database does not answer."""
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check(), name="schema check")
        return await asyncio.shield(self._checking)

    async def require(self) -> None:
        """Raise SchemaMismatch unless a check of the last MAX_AGE seconds found the schema compatible."""
        is_fresh = asyncio.get_running_loop().time() - self._checked_at < MAX_AGE
        if (self.fault if is_fresh else await self.check()) is not None:
            raise SchemaMismatch

    async def watch(self, *, until_fault: bool = False) -> None:
        """Check regularly, until cancelled or, with `until_fault`, until there is a fault.

        While the database does not answer, the last result is kept.
        """
        while True:
            try:
                await self.check()
            except Exception as error:
                LOG.debug("the schema could not be read: %s", error)
            if until_fault and self.fault:
                return
            # Until the first check succeeds the result is unknown, so checks are more frequent.
            await asyncio.sleep(EVERY if self._checked_at > float("-inf") else MAX_AGE)

    async def _check(self) -> str | None:
        try:
            async with self._pool.coordinator() as link:
                [(names, oldest)] = await fetch(link.connection, _STATEMENT)
            fault = Compatibility.recorded(names or [], oldest or 0).fault()
        except _NOT_MIGRATED as error:
            LOG.debug("schema_migrations cannot be read: %s", error)
            fault = "The database has not been migrated to this release's schema. Run `joinery migrate`."
            if OPERATOR in (error.diag.message_primary or ""):
                fault = f"The login cannot SET ROLE {OPERATOR}. See docs/operations.md#rights-in-the-database."
        if fault != self.fault:
            LOG.log(logging.ERROR if fault else logging.INFO, "%s", fault or "the schema fits this release")
        self.fault, self._checked_at = fault, asyncio.get_running_loop().time()
        return fault
