"""Connections to one PostgreSQL server; each side drops them within seconds if the other machine disappears.

On each new connection the server's identity is compared with the one stored with the event logs. A server that was restored, copied or
promoted may lack events that readers have seen, so all its logs start a new epoch. A connection never outlives a replaced server.
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
Fetched = tuple[Any, ...]
"""Fetched row."""
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
"""If a client machine loses power or network, its session's locks last until the server closes the connection, by default two hours on
most systems. Unix sockets ignore these settings."""

_IDENTITY = """
SELECT kept.identity, present.identity FROM (
    SELECT (SELECT system_identifier FROM pg_control_system())
        || '.' || (SELECT oid FROM pg_database WHERE datname = current_database())
        || '.' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) AS identity
) AS present LEFT JOIN log_server AS kept ON true
"""
"""System identifier, database and timeline identify a history of writes. Each node of a Citus cluster has its own."""
_FIRST_IDENTITY = "INSERT INTO log_server (identity) VALUES (%s) ON CONFLICT DO NOTHING"
_REPLACE_IDENTITY = "UPDATE log_server SET identity = %s WHERE identity = %s"
BEGIN_EPOCHS = """
UPDATE event_logs SET epoch = 1 + floor(random() * 2147483646)::integer,
    began = CASE WHEN began = 0 THEN last ELSE least(began, last) END
"""
_LOCAL_SHARDS = """
SELECT shard_name(s.logicalrelid, s.shardid) FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid)
JOIN pg_dist_local_group g USING (groupid) WHERE s.logicalrelid = 'event_logs'::regclass ORDER BY s.shardid
"""


async def connect(conninfo: str, application: str) -> Connection:
    """Connect in autocommit mode; settings in `conninfo` override the defaults.

    Raises:
        psycopg.Error: The server does not answer, or refuses the connection.

    """
    settings = _CLIENT_SETTINGS | conninfo_to_dict(conninfo) | {"application_name": application}
    connection = await psycopg.AsyncConnection.connect(**settings, autocommit=True)
    try:
        await connection.execute(_SERVER_SETTINGS)
    except BaseException:
        await connection.close()
        raise
    return connection


async def fetch(connection: Connection, statement: Statement, values: Params | None = None) -> list[Fetched]:
    """Return all rows of a statement."""
    return await (await connection.execute(statement, values)).fetchall()


async def fetch_value(connection: Connection, statement: Statement, values: Params | None = None) -> Any:
    """Return the first column of a statement's first row, or None if there is no row."""
    row = await (await connection.execute(statement, values)).fetchone()
    return row[0] if row else None


async def retry(step: Callable[[], Awaitable[T]], tries: int, pause: float, busy: tuple[type[psycopg.Error], ...]) -> T:
    """Run a step, retrying after a pause on the errors `busy`; the error of the last attempt propagates."""
    for _ in range(tries - 1):
        with suppress(*busy):
            return await step()
        await asyncio.sleep(pause)
    return await step()


async def repeat(connection: Connection, batch: Statement, most: int) -> int:
    """Repeat a statement that changes at most `most` rows and selects their number until there are fewer; return the total."""
    total = 0
    while True:
        count: int = await fetch_value(connection, batch)
        total += count
        if count < most:
            return total


async def set_clock(connection: Connection) -> None:
    """Adjust the process's clock to that of the server."""
    sent = monotonic()
    CLOCK.adjust(await fetch_value(connection, "SELECT clock_timestamp()"), sent, monotonic())


async def is_distributed(connection: Connection, table: str) -> bool:
    """Return whether the table is distributed or a reference table of a Citus cluster; False on a plain PostgreSQL."""
    if await fetch_value(connection, "SELECT to_regclass('pg_catalog.pg_dist_partition')") is None:
        return False
    statement = "SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass(%s))"
    return bool(await fetch_value(connection, statement, (table,)))


async def confirm_server(connection: Connection) -> None:
    """Start a new epoch in all logs if another server wrote them; called before any read, on a connection as the owner."""
    try:
        [(stored, current)] = await fetch(connection, _IDENTITY)
    except errors.UndefinedTable:
        return  # not migrated, so there are no logs
    if stored == current:
        return
    async with connection.transaction():
        if stored is None:
            await connection.execute(_FIRST_IDENTITY, (current,))
        elif (
            await connection.execute(_REPLACE_IDENTITY, (current, stored))
        ).rowcount:  # only one session changes the row
            await _begin_epochs(connection)
            LOG.warning("the database was restored, copied or promoted: every event log of it begins a new epoch")


async def _begin_epochs(connection: Connection) -> None:
    """Start a new epoch in the logs of this server; those of other nodes of a cluster are unaffected."""
    if not await is_distributed(connection, "event_logs"):
        await connection.execute(BEGIN_EPOCHS)
        return
    await connection.execute("SET LOCAL citus.enable_manual_changes_to_shards = on")
    for (name,) in await fetch(connection, _LOCAL_SHARDS):
        await connection.execute(BEGIN_EPOCHS.replace("event_logs", name).encode())
