"""Partitions by day: created ahead, and dropped when they are old, without delaying other sessions.

A session that reads a table for long (a dump, a report) holds locks that creating and dropping a partition must wait for, and all others
queue behind whoever waits. So each attempt gives up soon, and a later one does the rest.
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
"""Days made before they begin; today's is made, too."""
MOST_MOVED = 20_000
"""Rows of a day that are moved out of the default partition when the day is made; with more, the day stays there."""
BATCH = 5_000
TRIES = 3
PAUSE = 1.0
_LOCK = 7_215_908_433
_WAIT = b"SET LOCAL lock_timeout = '200ms'"
_HOLD = b"SET LOCAL statement_timeout = '600ms'"
"""Attaching a partition keeps everybody out of the default one while that is looked through."""
_BUSY = (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected)


def _midnight(day: date) -> datetime:
    """Return when the day begins in UTC, whatever the session's time zone."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def first_id(prefix: str, day: date) -> str:
    """Return the lowest id that can be made on that day (UTC): ids begin with the time of their creation."""
    return f"{prefix}_{encode(uuid7(int(_midnight(day).timestamp()) * 1000, 0))}"


def _delivery(day: date) -> str:
    return first_id("dlv", day)


@dataclass(frozen=True, slots=True)
class Days:
    """A table partitioned by day: how many days are kept, the column, and its value where a day begins."""

    kept: int
    column: LiteralString
    bound: Callable[[date], datetime | str] = _midnight

    def within(self, day: date) -> sql.Composed:
        """Return the condition that a row is of that day."""
        after = sql.SQL("{} >= {} AND ").format(sql.Identifier(self.column), sql.Literal(self.bound(day)))
        return after + self.before(day + timedelta(days=1))

    def before(self, day: date) -> sql.Composed:
        """Return the condition that a row is of an earlier day."""
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
    """Return the partition of rows whose day has none."""
    return sql.Identifier(f"{table}_default")


async def days_of(connection: Connection, table: str) -> dict[date, str]:
    """Return the partitions by their day, oldest first."""
    children = (
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = %s::regclass"
    )
    named = [(name, name.rpartition("_")[2]) for (name,) in await fetch(connection, children, (table,))]
    dated = [(datetime.strptime(day, "%Y%m%d").date(), name) for name, day in named if day.isdigit()]  # noqa: DTZ007  a date alone
    return dict(sorted(dated))


async def server_day(connection: Connection) -> date:
    """Return today (UTC) by the database server's clock."""
    day: date = await fetch_value(connection, "SELECT (now() AT TIME ZONE 'UTC')::date")
    return day


async def make_days(connection: Connection, today: date) -> None:
    """Create the partitions of today and the next days; log those that cannot be created now."""
    for table in PARTITIONED:
        days = [today + timedelta(days=ahead) for ahead in range(AHEAD + 1)]
        await _each(connection, {partition_name(table, day): partial(_make, connection, table, day) for day in days})


async def drop_days(connection: Connection, today: date) -> None:
    """Drop the days that are no longer kept, and their rows in the default partitions; log what cannot be dropped now."""
    for table, days in PARTITIONED.items():
        before = today - timedelta(days=days.kept)
        held = await days_of(connection, table)
        await _each(
            connection, {name: partial(_drop, connection, table, day) for day, name in held.items() if day < before}
        )
        await _each(connection, {f"{table}_default": partial(_forget_aged, connection, table, before)})


async def _each(connection: Connection, steps: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
    """Run the steps of one table, by their partition. When one is blocked, the others would be, too."""
    for name, step in steps.items():
        try:
            await retry(step, TRIES, PAUSE, _BUSY)
        except _BUSY as error:
            LOG.warning("%s is in use, and left for the next time: %s", name, error.diag.message_primary)
            return
        except Exception:
            if connection.closed:
                raise
            LOG.exception("%s could not be made or dropped", name)


@asynccontextmanager
async def _alone(connection: Connection) -> AsyncIterator[None]:
    """Begin a transaction that waits for no lock for long, and is the only one of its kind."""
    async with connection.transaction():
        await connection.execute(_WAIT)
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        yield


async def _make(connection: Connection, table: str, day: date) -> None:
    """Create the day's table by itself, with its rows of the default partition, and attach it."""
    name, days = partition_name(table, day), PARTITIONED[table]
    if day in await days_of(connection, table):
        return
    if await _count(connection, default_of(table), days.within(day), MOST_MOVED + 1) > MOST_MOVED:
        LOG.warning("%s: the default partition has too many rows of that day, which stays there", name)
        return
    async with _alone(connection):
        if day in await days_of(connection, table):
            return
        await connection.execute(
            sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)").format(sql.Identifier(name), sql.Identifier(table))
        )
        await connection.execute("SELECT expect_large_tenants(%s)", (name,))
        await close(connection, name)
        if await is_distributed(connection, table):  # before it is attached: nobody waits for it meanwhile
            await connection.execute("SELECT create_distributed_table(%s, 'org', colocate_with => %s)", (name, table))
        await _move(connection, table, name, days.within(day))
        await connection.execute(_HOLD)
        await connection.execute(attachment(sql.SQL("ALTER TABLE {} ATTACH PARTITION {}"), table, day))


def attachment(words: sql.SQL, table: str, day: date) -> sql.Composed:
    """Return `words`, formatted with the table and the partition, followed by the day's bounds."""
    bound = PARTITIONED[table].bound
    first, end = sql.Literal(bound(day)), sql.Literal(bound(day + timedelta(days=1)))
    parts = words.format(sql.Identifier(table), sql.Identifier(partition_name(table, day)))
    return parts + sql.SQL(" FOR VALUES FROM ({}) TO ({})").format(first, end)


async def _move(connection: Connection, table: str, name: str, rows: sql.Composed) -> None:
    """Move rows of the default partition to a table that is no partition yet."""
    named = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
    columns = sql.SQL(", ").join(sql.Identifier(column) for (column,) in await fetch(connection, named, (table,)))
    await connection.execute(
        sql.SQL("WITH moved AS (DELETE FROM {} WHERE {} RETURNING {}) INSERT INTO {} ({}) SELECT {} FROM moved").format(
            default_of(table), rows, columns, sql.Identifier(name), columns, columns
        )
    )


async def _drop(connection: Connection, table: str, day: date) -> None:
    name = sql.Identifier(partition_name(table, day))
    if table != "events":
        async with _alone(connection):
            await connection.execute(sql.SQL("DROP TABLE {}").format(name))
        return
    await _raise_low_watermarks(connection, name, sql.SQL("true"), day + timedelta(days=2))
    async with _alone(connection):
        misdated = sql.SQL("CREATE TEMPORARY TABLE misdated ON COMMIT DROP AS SELECT * FROM {} AS e WHERE NOT {}")
        await connection.execute(misdated.format(name, _LEFT_BEHIND))
        await connection.execute(sql.SQL("DROP TABLE {}").format(name))
        await connection.execute(sql.SQL("INSERT INTO {} SELECT * FROM misdated").format(default_of(table)))


_LEFT_BEHIND = sql.SQL(
    "EXISTS (SELECT FROM event_logs AS l WHERE l.org = e.org AND l.livemode = e.livemode AND e.position <= l.low)"
)


async def _raise_low_watermarks(
    connection: Connection, partition: sql.Identifier, aged: sql.Composable, later: date
) -> None:
    """Let the logs begin behind what is about to be dropped, and commit that first.

    Events are dated by their writer's clock. An event whose position is far beyond those of the days before `later` was misdated: dropped
    with its day it would be lost early, together with everything below its position.
    """
    reached: sql.Composable = sql.SQL(
        "SELECT NULL::text AS org, NULL::boolean AS livemode, NULL::bigint AS position WHERE false"
    )
    if (found := await _first_with_events(connection, later)) is not None:
        reached = sql.SQL(
            "SELECT org, livemode, percentile_disc(0.5) WITHIN GROUP (ORDER BY position) AS position FROM {} "
            "GROUP BY org, livemode"
        ).format(found)
    raised = sql.SQL(
        "UPDATE event_logs AS l SET low = gone.position FROM (SELECT e.org, e.livemode, max(e.position) AS position "
        "FROM {} AS e LEFT JOIN ({}) AS reached ON reached.org = e.org AND reached.livemode = e.livemode "
        "WHERE {} AND (e.position > reached.position) IS NOT TRUE GROUP BY e.org, e.livemode) AS gone "
        "WHERE l.org = gone.org AND l.livemode = gone.livemode AND l.low < gone.position"
    )
    async with connection.transaction():
        await connection.execute(_WAIT)
        await connection.execute(raised.format(partition, reached, aged))
        await connection.execute(
            "DELETE FROM event_log_terms AS t USING event_logs AS l "
            "WHERE l.org = t.org AND l.livemode = t.livemode AND t.block < l.low / 512"
        )


async def _first_with_events(connection: Connection, day: date) -> sql.Identifier | None:
    """Return the partition of that day, or of the next that has any events; None without one."""
    for later, name in (await days_of(connection, "events")).items():
        if later >= day and await _count(connection, sql.Identifier(name), sql.SQL("true"), 1):
            return sql.Identifier(name)
    return None


async def _count(connection: Connection, partition: sql.Identifier, rows: sql.Composable, most: int) -> int:
    """Count rows of a partition, up to so many."""
    counting = sql.SQL("SELECT count(*) FROM (SELECT 1 FROM {} WHERE {} LIMIT {}) AS found")
    found: int = await fetch_value(connection, counting.format(partition, rows, sql.Literal(most)))
    return found


async def _forget_aged(connection: Connection, table: str, before: date) -> None:
    """Delete rows of earlier days from the default partition; of events only those below the log's beginning."""
    aged = PARTITIONED[table].before(before)
    if not await _count(connection, default_of(table), aged, 1):
        return
    if table == "events":
        await _raise_low_watermarks(connection, default_of(table), aged, before)
        aged += sql.SQL(" AND {}").format(_LEFT_BEHIND)
    batch = deletion(default_of(table), aged)
    if await is_distributed(connection, table):  # a batch of all organisations' rows is none that a cluster could take
        batch = sql.SQL("WITH gone AS (DELETE FROM {} AS e WHERE {} RETURNING 1) SELECT 0").format(
            default_of(table), aged
        )
    await repeat(connection, batch, BATCH)


def deletion(table: sql.Identifier, rows: sql.Composed) -> sql.Composed:
    """Return the deletion of at most a batch of rows of one partition, which selects their number.

    The condition stands in it twice, so that a cluster sends the whole statement to the node of the organisation that it names.
    """
    return sql.SQL(
        "WITH gone AS (DELETE FROM {} AS e WHERE {} AND e.ctid = ANY (ARRAY(SELECT e.ctid FROM {} AS e WHERE {} LIMIT {})) "
        "RETURNING 1) SELECT count(*) FROM gone"
    ).format(table, rows, table, rows, sql.Literal(BATCH))
