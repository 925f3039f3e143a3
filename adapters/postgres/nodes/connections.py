"""Connections to one PostgreSQL server, which client and server close within seconds if the other machine disappears.

On each new connection the server's identity is compared with the stored one. A server that was restored, copied or
promoted may lack events that readers have received, so all its event logs start a new epoch.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Final, TypeVar

import psycopg
from psycopg import AsyncConnection, errors, sql
from psycopg.abc import Params
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from domain.kernel.clock import CLOCK

T = TypeVar("T")
Connection = AsyncConnection[TupleRow]
DatabaseRow = tuple[Any, ...]
"""Row of a table or of an SQL statement's result, as a tuple of column values."""
Statement = str | bytes | sql.SQL | sql.Composed
LOG = logging.getLogger("joinery.changes")

_CLIENT_SETTINGS: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 11_000,
}
_SERVER_SETTINGS = (
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; "
    "SET tcp_user_timeout = 11000"
)
"""Settings with which the server closes a connection within seconds after the client's machine loses power or network.

Otherwise the session's locks last two hours by default on most systems. Unix sockets ignore the settings.
"""

_READ_IDENTITY = """
SELECT stored.identity, current.identity FROM (
    SELECT (SELECT system_identifier FROM pg_control_system())
        || '.' || (SELECT oid FROM pg_database WHERE datname = current_database())
        || '.' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) AS identity
) AS current LEFT JOIN log_server AS stored ON true
"""
"""Query of the server identity that is stored with the event logs, and of the current server identity.

The identity consists of system identifier, database and timeline, which together identify a history of writes. Each
node of a Citus cluster has its own identity.
"""
_STORE_FIRST_IDENTITY = "INSERT INTO log_server (identity) VALUES (%s) ON CONFLICT DO NOTHING"
_REPLACE_IDENTITY = "UPDATE log_server SET identity = %s WHERE identity = %s"
BEGIN_EPOCHS = """
UPDATE event_logs SET epoch = 1 + floor(random() * 2147483646)::integer,
    began = CASE WHEN began = 0 THEN last ELSE least(began, last) END
"""
_LOCAL_SHARDS = """
SELECT shard_name(s.logicalrelid, s.shardid) FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid)
JOIN pg_dist_local_group g USING (groupid) WHERE s.logicalrelid = 'event_logs'::regclass ORDER BY s.shardid
"""


async def connect(conninfo: str, application_name: str) -> Connection:
    """Open a connection in autocommit mode; settings in `conninfo` take precedence over the defaults.

    Args:
        conninfo: Address, login and settings.
        application_name: Name of the connection in pg_stat_activity.

    Raises:
        psycopg.Error: The server does not respond, or refuses the connection.
    """
    settings = _CLIENT_SETTINGS | conninfo_to_dict(conninfo) | {"application_name": application_name}
    connection = await psycopg.AsyncConnection.connect(**settings, autocommit=True)
    try:
        await connection.execute(_SERVER_SETTINGS)
    except BaseException:
        await connection.close()
        raise
    return connection


async def fetch_rows(connection: Connection, statement: Statement, values: Params | None = None) -> list[DatabaseRow]:
    """Execute an SQL statement and return all rows."""
    return await (await connection.execute(statement, values)).fetchall()


async def fetch_value(connection: Connection, statement: Statement, values: Params | None = None) -> Any:
    """Execute an SQL statement and return the first column of its first row, or None if there is no row."""
    row = await (await connection.execute(statement, values)).fetchone()
    return row[0] if row else None


async def retry_while_busy(
    step: Callable[[], Awaitable[T]],
    max_attempts: int,
    pause_seconds: float,
    lock_errors: tuple[type[psycopg.Error], ...],
) -> T:
    """Run a step, repeat it after errors of the types `lock_errors`, and return its result.

    Args:
        step: Function to run.
        max_attempts: Maximum number of attempts; the error of the last one is raised.
        pause_seconds: Seconds between two attempts.
        lock_errors: Types of errors that occur because other sessions hold locks.
    """
    for _ in range(max_attempts - 1):
        with suppress(*lock_errors):
            return await step()
        await asyncio.sleep(pause_seconds)
    return await step()


async def repeat_in_batches(connection: Connection, statement: Statement, batch_size: int) -> int:
    """Repeat an SQL statement until it changes fewer than `batch_size` rows; return the total number of changed rows.

    Args:
        connection: The connection.
        statement: Statement that changes at most `batch_size` rows and selects their number.
        batch_size: Maximum number of rows that one execution changes.
    """
    total = 0
    while True:
        count: int = await fetch_value(connection, statement)
        total += count
        if count < batch_size:
            return total


async def synchronise_clock(connection: Connection) -> None:
    """Set the clock of this process to the time of the database server."""
    sent = monotonic()
    CLOCK.apply_reading(await fetch_value(connection, "SELECT clock_timestamp()"), sent, monotonic())


async def is_distributed(connection: Connection, table: str) -> bool:
    """Return whether the table is distributed or replicated by Citus; False without Citus."""
    if await fetch_value(connection, "SELECT to_regclass('pg_catalog.pg_dist_partition')") is None:
        return False
    statement = "SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass(%s))"
    return bool(await fetch_value(connection, statement, (table,)))


async def start_epochs_if_server_changed(connection: Connection) -> None:
    """Start a new epoch in all event logs if the stored server identity is not that of this server.

    Call this before any read, on a connection with the owner's privileges.
    """
    try:
        [(stored, current)] = await fetch_rows(connection, _READ_IDENTITY)
    except errors.UndefinedTable:
        return  # not migrated, so there are no logs
    if stored == current:
        return
    async with connection.transaction():
        if stored is None:
            await connection.execute(_STORE_FIRST_IDENTITY, (current,))
        elif (
            await connection.execute(_REPLACE_IDENTITY, (current, stored))
        ).rowcount:  # only one session changes the row
            await _begin_epochs(connection)
            LOG.warning("database restored, copied or promoted; new epoch started in all event logs of that database")


async def _begin_epochs(connection: Connection) -> None:
    """Start a new epoch in the event logs on this server; logs on other nodes of a cluster remain unchanged."""
    if not await is_distributed(connection, "event_logs"):
        await connection.execute(BEGIN_EPOCHS)
        return
    await connection.execute("SET LOCAL citus.enable_manual_changes_to_shards = on")
    for (name,) in await fetch_rows(connection, _LOCAL_SHARDS):
        await connection.execute(BEGIN_EPOCHS.replace("event_logs", name).encode())
