"""Daily partitions: created in advance and dropped by age, without delaying other sessions.

Creating and dropping a partition waits for sessions that read the table for long, such as a dump, and other sessions queue behind the waiting
statement. Each attempt therefore times out soon, and a later one completes the work.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Final, LiteralString

from psycopg import errors, sql

from adapters.postgres.nodes.connecting import Connection, fetch, fetch_value, is_distributed, repeat, retry
from adapters.postgres.privileges import close
from domain.kernel import retention
from domain.kernel.ids import encode, uuid7

LOG = logging.getLogger("joinery.maintenance")
AHEAD = 3
"""Number of days after today whose partitions are created."""
MOST_MOVED = 20_000
"""Maximum rows that are moved from the default partition to a new one; a day with more rows gets no partition."""
BATCH = 5_000
TRIES = 3
PAUSE = 1.0
_LOCK = 7_215_908_433
_WAIT = b"SET LOCAL lock_timeout = '200ms'"
_HOLD = b"SET LOCAL statement_timeout = '600ms'"
"""Attaching a partition locks the default partition while that is scanned."""
_BUSY = (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected)


def _midnight(day: date) -> datetime:
    """Return the start of the day in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def first_id(prefix: str, day: date) -> str:
    """Return the lowest id of the day (UTC); ids begin with the time of their creation."""
    return f"{prefix}_{encode(uuid7(int(_midnight(day).timestamp()) * 1000, 0))}"


def _delivery(day: date) -> str:
    return first_id("dlv", day)


@dataclass(frozen=True, slots=True)
class Days:
    """Daily partitioning of a table: number of days kept, the column, and its value at the start of a day."""

    kept: int
    column: LiteralString
    bound: Callable[[date], datetime | str] = _midnight

    def within(self, day: date) -> sql.Composed:
        """Return the condition for rows of the day."""
        after = sql.SQL("{} >= {} AND ").format(sql.Identifier(self.column), sql.Literal(self.bound(day)))
        return after + self.before(day + timedelta(days=1))

    def before(self, day: date) -> sql.Composed:
        """Return the condition for rows of earlier days."""
        return sql.SQL("{} < {}").format(sql.Identifier(self.column), sql.Literal(self.bound(day)))


PARTITIONED: Final[Mapping[str, Days]] = {
    "events": Days(retention.EVENTS.days + 1, "time"),
    "request_logs": Days(retention.REQUEST_LOGS.days + 1, "created_at"),
    "webhook_deliveries": Days(retention.DELIVERIES.days, "id", _delivery),
}


def partition_name(table: str, day: date) -> str:
    """Return the name of the day's partition."""
    return f"{table}_{day:%Y%m%d}"


def default_of(table: str) -> sql.Identifier:
    """Return the default partition, for rows of days without a partition."""
    return sql.Identifier(f"{table}_default")


async def days_of(connection: Connection, table: str) -> dict[date, str]:
    """Return the names of the partitions by day, oldest first."""
    children = (
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = %s::regclass"
    )
    named = [(name, name.rpartition("_")[2]) for (name,) in await fetch(connection, children, (table,))]
    dated = [(datetime.strptime(day, "%Y%m%d").date(), name) for name, day in named if day.isdigit()]  # noqa: DTZ007  a date alone
    return dict(sorted(dated))


async def server_day(connection: Connection) -> date:
    """Return the current date (UTC) by the database server's clock."""
    day: date = await fetch_value(connection, "SELECT (now() AT TIME ZONE 'UTC')::date")
    return day


async def make_days(connection: Connection, today: date) -> None:
    """Create the partitions of today and the next days; log failures."""
    for table in PARTITIONED:
        days = [today + timedelta(days=ahead) for ahead in range(AHEAD + 1)]
        await _each(connection, {partition_name(table, day): partial(_make, connection, table, day) for day in days})


async def drop_days(connection: Connection, today: date) -> None:
    """Drop expired partitions, and expired rows of the default partitions; log failures."""
    for table, days in PARTITIONED.items():
        before = today - timedelta(days=days.kept)
        partitions = await days_of(connection, table)
        await _each(
            connection,
            {name: partial(_drop, connection, table, day) for day, name in partitions.items() if day < before},
        )
        await _each(connection, {f"{table}_default": partial(_delete_expired, connection, table, before)})


async def _each(connection: Connection, steps: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
    """Run a table's steps by partition; stop at the first blocked one, since the others would be blocked as well."""
    for name, step in steps.items():
        try:
            await retry(step, TRIES, PAUSE, _BUSY)
        except _BUSY as error:
            LOG.warning("%s is in use, deferred to the next run: %s", name, error.diag.message_primary)
            return
        except Exception:
            if connection.closed:
                raise
            LOG.exception("%s could not be created or dropped", name)


@asynccontextmanager
async def _serialised(connection: Connection) -> AsyncIterator[None]:
    """Begin a transaction with a short lock timeout, serialised with other transactions of this module."""
    async with connection.transaction():
        await connection.execute(_WAIT)
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        yield


async def _make(connection: Connection, table: str, day: date) -> None:
    """Create the day's table, move its rows from the default partition, and attach it."""
    name, days = partition_name(table, day), PARTITIONED[table]
    if day in await days_of(connection, table):
        return
    if await _count(connection, default_of(table), days.within(day), MOST_MOVED + 1) > MOST_MOVED:
        LOG.warning("%s not created: the default partition has too many rows of the day", name)
        return
    async with _serialised(connection):
        if day in await days_of(connection, table):
            return
        await connection.execute(
            sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)").format(sql.Identifier(name), sql.Identifier(table))
        )
        await connection.execute("SELECT expect_large_tenants(%s)", (name,))
        await close(connection, name)
        if await is_distributed(connection, table):  # before it is attached, so that no other session waits for it
            await connection.execute("SELECT create_distributed_table(%s, 'org', colocate_with => %s)", (name, table))
        await _move(connection, table, name, days.within(day))
        await connection.execute(_HOLD)
        await connection.execute(attachment(sql.SQL("ALTER TABLE {} ATTACH PARTITION {}"), table, day))


def attachment(template: sql.SQL, table: str, day: date) -> sql.Composed:
    """Return the template formatted with table and partition, followed by the day's bounds."""
    bound = PARTITIONED[table].bound
    first, end = sql.Literal(bound(day)), sql.Literal(bound(day + timedelta(days=1)))
    parts = template.format(sql.Identifier(table), sql.Identifier(partition_name(table, day)))
    return parts + sql.SQL(" FOR VALUES FROM ({}) TO ({})").format(first, end)


async def _move(connection: Connection, table: str, name: str, rows: sql.Composed) -> None:
    """Move rows of the default partition to a table that is not yet attached."""
    names = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
    columns = sql.SQL(", ").join(sql.Identifier(column) for (column,) in await fetch(connection, names, (table,)))
    await connection.execute(
        sql.SQL("WITH moved AS (DELETE FROM {} WHERE {} RETURNING {}) INSERT INTO {} ({}) SELECT {} FROM moved").format(
            default_of(table), rows, columns, sql.Identifier(name), columns, columns
        )
    )


async def _drop(connection: Connection, table: str, day: date) -> None:
    name = sql.Identifier(partition_name(table, day))
    if table != "events":
        async with _serialised(connection):
            await connection.execute(sql.SQL("DROP TABLE {}").format(name))
        return
    await _raise_low_watermarks(connection, name, sql.SQL("true"), day + timedelta(days=2))
    async with _serialised(connection):
        statement = sql.SQL("CREATE TEMPORARY TABLE misdated ON COMMIT DROP AS SELECT * FROM {} AS e WHERE NOT {}")
        await connection.execute(statement.format(name, _BELOW_LOW))
        await connection.execute(sql.SQL("DROP TABLE {}").format(name))
        await connection.execute(sql.SQL("INSERT INTO {} SELECT * FROM misdated").format(default_of(table)))


_BELOW_LOW = sql.SQL(
    "EXISTS (SELECT FROM event_logs AS l WHERE l.org = e.org AND l.livemode = e.livemode AND e.position <= l.low)"
)


async def _raise_low_watermarks(
    connection: Connection, partition: sql.Identifier, aged: sql.Composable, later: date
) -> None:
    """Raise the logs' low watermarks above the events that are about to be dropped, and commit.

    Writers' clocks date events. An event whose position exceeds those of the days before `later` has a wrong date: dropping it with its day
    would lose it and all events below its position too early.
    """
    reached: sql.Composable = sql.SQL(
        "SELECT NULL::text AS org, NULL::boolean AS livemode, NULL::bigint AS position WHERE false"
    )
    if (partition_after := await _first_with_events(connection, later)) is not None:
        reached = sql.SQL(
            "SELECT org, livemode, percentile_disc(0.5) WITHIN GROUP (ORDER BY position) AS position FROM {} "
            "GROUP BY org, livemode"
        ).format(partition_after)
    statement = sql.SQL(
        "UPDATE event_logs AS l SET low = gone.position FROM (SELECT e.org, e.livemode, max(e.position) AS position "
        "FROM {} AS e LEFT JOIN ({}) AS reached ON reached.org = e.org AND reached.livemode = e.livemode "
        "WHERE {} AND (e.position > reached.position) IS NOT TRUE GROUP BY e.org, e.livemode) AS gone "
        "WHERE l.org = gone.org AND l.livemode = gone.livemode AND l.low < gone.position"
    )
    async with connection.transaction():
        await connection.execute(_WAIT)
        await connection.execute(statement.format(partition, reached, aged))
        await connection.execute(
            "DELETE FROM event_log_terms AS t USING event_logs AS l "
            "WHERE l.org = t.org AND l.livemode = t.livemode AND t.block < l.low / 512"
        )


async def _first_with_events(connection: Connection, day: date) -> sql.Identifier | None:
    """Return the first partition with events, from the day on, or None."""
    for later, name in (await days_of(connection, "events")).items():
        if later >= day and await _count(connection, sql.Identifier(name), sql.SQL("true"), 1):
            return sql.Identifier(name)
    return None


async def _count(connection: Connection, partition: sql.Identifier, rows: sql.Composable, most: int) -> int:
    """Count the rows of a partition, at most `most`."""
    statement = sql.SQL("SELECT count(*) FROM (SELECT 1 FROM {} WHERE {} LIMIT {}) AS found")
    count: int = await fetch_value(connection, statement.format(partition, rows, sql.Literal(most)))
    return count


async def _delete_expired(connection: Connection, table: str, before: date) -> None:
    """Delete rows of earlier days from the default partition; events only below the log's low watermark."""
    aged = PARTITIONED[table].before(before)
    if not await _count(connection, default_of(table), aged, 1):
        return
    if table == "events":
        await _raise_low_watermarks(connection, default_of(table), aged, before)
        aged += sql.SQL(" AND {}").format(_BELOW_LOW)
    batch = deletion(default_of(table), aged)
    if await is_distributed(connection, table):  # a cluster cannot execute a batch over all organisations
        batch = sql.SQL("WITH gone AS (DELETE FROM {} AS e WHERE {} RETURNING 1) SELECT 0").format(
            default_of(table), aged
        )
    await repeat(connection, batch, BATCH)


def deletion(table: sql.Identifier, rows: sql.Composed) -> sql.Composed:
    """Return a statement that deletes at most BATCH rows of one partition and selects their number.

    It contains the condition twice, so that a cluster sends the whole statement to the organisation's node.
    """
    return sql.SQL(
        "WITH gone AS (DELETE FROM {} AS e WHERE {} AND e.ctid = ANY (ARRAY(SELECT e.ctid FROM {} AS e WHERE {} LIMIT {})) "
        "RETURNING 1) SELECT count(*) FROM gone"
    ).format(table, rows, table, rows, sql.Literal(BATCH))
