"""Daily partitions: created in advance and dropped by age, without delaying other sessions.

Creating or dropping a partition waits for sessions that read the table for long, such as a dump, and other sessions
wait behind that statement. Each attempt therefore has a short timeout, and the next maintenance run completes the work.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Final, LiteralString

from psycopg import errors, sql

from adapters.postgres.nodes.connections import (
    Connection,
    fetch_rows,
    fetch_value,
    is_distributed,
    repeat_in_batches,
    retry_while_busy,
)
from adapters.postgres.privileges import revoke_all
from domain.kernel import retention
from domain.kernel.ids import build_uuid7, encode_base62

LOG = logging.getLogger("joinery.maintenance")
DAYS_AHEAD = 3
"""Number of days after today for which partitions are created."""
MAX_MOVED_ROWS = 20_000
"""Maximum number of rows moved from the default partition to a new one; a day with more rows gets no partition."""
MAX_ROWS_PER_DELETION = 5_000
"""Maximum number of rows that one SQL statement deletes."""
LOCK_ATTEMPTS = 3
"""Maximum number of attempts to acquire locks."""
LOCK_PAUSE_SECONDS = 1.0
"""Seconds between two attempts to acquire locks."""
_LOCK = 7_215_908_433
_SET_LOCK_TIMEOUT = b"SET LOCAL lock_timeout = '200ms'"
_SET_STATEMENT_TIMEOUT = b"SET LOCAL statement_timeout = '600ms'"
"""SQL statement that sets a short timeout, because attaching a partition scans the default partition under a lock."""
_LOCK_ERRORS = (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected)


def _compute_midnight(day: date) -> datetime:
    """Return the start of the day in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def compute_first_id(prefix: str, day: date) -> str:
    """Return the lowest ID that can be created on the day (UTC), since IDs begin with the time of their creation."""
    return f"{prefix}_{encode_base62(build_uuid7(int(_compute_midnight(day).timestamp()) * 1000, 0))}"


def _compute_first_delivery_id(day: date) -> str:
    return compute_first_id("dlv", day)


@dataclass(frozen=True, slots=True)
class DailyPartitioning:
    """Daily partitioning of a table.

    Attributes:
        days_kept: Number of days after which a partition is dropped.
        column: Name of the partitioning column.
        compute_lower_bound: Function that returns the lowest value of the column on a day.
    """

    days_kept: int
    column: LiteralString
    compute_lower_bound: Callable[[date], datetime | str] = _compute_midnight

    def build_day_condition(self, day: date) -> sql.Composed:
        """Return the SQL condition that a row belongs to the day."""
        after = sql.SQL("{} >= {} AND ").format(sql.Identifier(self.column), sql.Literal(self.compute_lower_bound(day)))
        return after + self.build_earlier_condition(day + timedelta(days=1))

    def build_earlier_condition(self, day: date) -> sql.Composed:
        """Return the SQL condition that a row belongs to an earlier day."""
        return sql.SQL("{} < {}").format(sql.Identifier(self.column), sql.Literal(self.compute_lower_bound(day)))


PARTITIONED_TABLES: Final[Mapping[str, DailyPartitioning]] = {
    "events": DailyPartitioning(retention.EVENTS.days + 1, "time"),
    "request_logs": DailyPartitioning(retention.REQUEST_LOGS.days + 1, "created_at"),
    "webhook_deliveries": DailyPartitioning(retention.DELIVERIES.days, "id", _compute_first_delivery_id),
}


def build_partition_name(table: str, day: date) -> str:
    """Return the name of a table's partition for the day."""
    return f"{table}_{day:%Y%m%d}"


def build_default_partition_name(table: str) -> sql.Identifier:
    """Return the name of a table's default partition, which stores the rows of days without a partition."""
    return sql.Identifier(f"{table}_default")


async def list_partitions(connection: Connection, table: str) -> dict[date, str]:
    """Return the names of a table's daily partitions by day, oldest first."""
    children = (
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = %s::regclass"
    )
    named = [(name, name.rpartition("_")[2]) for (name,) in await fetch_rows(connection, children, (table,))]
    dated = [(datetime.strptime(day, "%Y%m%d").date(), name) for name, day in named if day.isdigit()]  # noqa: DTZ007  a date alone
    return dict(sorted(dated))


async def read_server_day(connection: Connection) -> date:
    """Return the current date (UTC) by the database server's clock."""
    day: date = await fetch_value(connection, "SELECT (now() AT TIME ZONE 'UTC')::date")
    return day


async def create_partitions(connection: Connection, today: date) -> None:
    """Create the missing partitions of today and the next days in all partitioned tables; log failures."""
    for table in PARTITIONED_TABLES:
        days = [today + timedelta(days=ahead) for ahead in range(DAYS_AHEAD + 1)]
        await _run_steps(
            connection,
            "partition %s not created",
            {build_partition_name(table, day): partial(_create_partition, connection, table, day) for day in days},
        )


async def drop_expired_partitions(connection: Connection, today: date) -> None:
    """Drop the expired partitions of all partitioned tables, and expired rows of the default partitions; log failures."""
    for table, partitioning in PARTITIONED_TABLES.items():
        first_kept_day = today - timedelta(days=partitioning.days_kept)
        partitions = await list_partitions(connection, table)
        await _run_steps(
            connection,
            "partition %s not dropped",
            {
                name: partial(_drop_partition, connection, table, day)
                for day, name in partitions.items()
                if day < first_kept_day
            },
        )
        await _run_steps(
            connection,
            "expired rows of partition %s not deleted",
            {f"{table}_default": partial(_delete_expired, connection, table, first_kept_day)},
        )


async def _run_steps(
    connection: Connection, failure_message: str, steps: Mapping[str, Callable[[], Awaitable[None]]]
) -> None:
    """Run the steps in order; each changes the partition that is named by the step's key. Log `failure_message` if a step fails.

    If another session blocks a step, the remaining steps are skipped, because they would be blocked as well.
    """
    for name, step in steps.items():
        try:
            await retry_while_busy(step, LOCK_ATTEMPTS, LOCK_PAUSE_SECONDS, _LOCK_ERRORS)
        except _LOCK_ERRORS as error:
            LOG.warning("partition %s in use, deferred to the next run: %s", name, error.diag.message_primary)
            return
        except Exception:
            if connection.closed:
                raise
            LOG.exception(failure_message, name)


@asynccontextmanager
async def _begin_serialised(connection: Connection) -> AsyncIterator[None]:
    """Begin a transaction with a short lock timeout. Only one transaction of this kind runs at a time."""
    async with connection.transaction():
        await connection.execute(_SET_LOCK_TIMEOUT)
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        yield


async def _create_partition(connection: Connection, table: str, day: date) -> None:
    """Create the table of the day, move the day's rows to it from the default partition, and attach it as a partition."""
    name, partitioning = build_partition_name(table, day), PARTITIONED_TABLES[table]
    if day in await list_partitions(connection, table):
        return
    if (
        await _count_rows(
            connection, build_default_partition_name(table), partitioning.build_day_condition(day), MAX_MOVED_ROWS + 1
        )
        > MAX_MOVED_ROWS
    ):
        LOG.warning("partition %s not created: too many rows of the day in the default partition", name)
        return
    async with _begin_serialised(connection):
        if day in await list_partitions(connection, table):
            return
        await connection.execute(
            sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)").format(sql.Identifier(name), sql.Identifier(table))
        )
        await connection.execute("SELECT expect_large_tenants(%s)", (name,))
        await revoke_all(connection, name)
        if await is_distributed(connection, table):  # before it is attached, so that no other session waits for it
            await connection.execute("SELECT create_distributed_table(%s, 'org', colocate_with => %s)", (name, table))
        await _move_rows(connection, table, name, partitioning.build_day_condition(day))
        await connection.execute(_SET_STATEMENT_TIMEOUT)
        await connection.execute(build_partition_statement(sql.SQL("ALTER TABLE {} ATTACH PARTITION {}"), table, day))


def build_partition_statement(template: sql.SQL, table: str, day: date) -> sql.Composed:
    """Return an SQL statement that creates or attaches the partition of a day, with the day's bounds.

    Args:
        template: Start of the statement, with placeholders for the names of the table and the partition.
        table: Name of the table.
        day: The day.
    """
    bound = PARTITIONED_TABLES[table].compute_lower_bound
    first, end = sql.Literal(bound(day)), sql.Literal(bound(day + timedelta(days=1)))
    parts = template.format(sql.Identifier(table), sql.Identifier(build_partition_name(table, day)))
    return parts + sql.SQL(" FOR VALUES FROM ({}) TO ({})").format(first, end)


async def _move_rows(connection: Connection, table: str, target: str, condition: sql.Composed) -> None:
    """Move the rows that fulfil the condition from the table's default partition to the table `target`."""
    columns_query = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
    columns = sql.SQL(", ").join(
        sql.Identifier(column) for (column,) in await fetch_rows(connection, columns_query, (table,))
    )
    await connection.execute(
        sql.SQL("WITH moved AS (DELETE FROM {} WHERE {} RETURNING {}) INSERT INTO {} ({}) SELECT {} FROM moved").format(
            build_default_partition_name(table), condition, columns, sql.Identifier(target), columns, columns
        )
    )


async def _drop_partition(connection: Connection, table: str, day: date) -> None:
    name = sql.Identifier(build_partition_name(table, day))
    if table != "events":
        async with _begin_serialised(connection):
            await connection.execute(sql.SQL("DROP TABLE {}").format(name))
        return
    await _raise_low_watermarks(connection, name, sql.SQL("true"), day + timedelta(days=2))
    async with _begin_serialised(connection):
        statement = sql.SQL("CREATE TEMPORARY TABLE misdated ON COMMIT DROP AS SELECT * FROM {} AS e WHERE NOT {}")
        await connection.execute(statement.format(name, _IS_BELOW_LOW_WATERMARK))
        await connection.execute(sql.SQL("DROP TABLE {}").format(name))
        await connection.execute(
            sql.SQL("INSERT INTO {} SELECT * FROM misdated").format(build_default_partition_name(table))
        )


_IS_BELOW_LOW_WATERMARK = sql.SQL(
    "EXISTS (SELECT FROM event_logs AS l WHERE l.org = e.org AND l.livemode = e.livemode AND e.position <= l.low)"
)


async def _raise_low_watermarks(
    connection: Connection, partition: sql.Identifier, condition: sql.Composable, reference_day: date
) -> None:
    """Raise the low watermarks of event logs to the highest position of the events that will be deleted, and commit.

    Events that are dated too early are ignored, because their positions are above events that remain. An event is dated
    too early if its position is above the median position of its log in the reference partition: the first partition
    with events from `reference_day` on.

    Args:
        connection: Connection without an open transaction.
        partition: Partition of the events.
        condition: SQL condition of the events that will be deleted.
        reference_day: Earliest day of the reference partition. This day is later than the days of all events that will
            be deleted.
    """
    reference_query: sql.Composable = sql.SQL(
        "SELECT NULL::text AS org, NULL::boolean AS livemode, NULL::bigint AS position WHERE false"
    )
    if (reference_partition := await _find_partition_with_events(connection, reference_day)) is not None:
        reference_query = sql.SQL(
            "SELECT org, livemode, percentile_disc(0.5) WITHIN GROUP (ORDER BY position) AS position FROM {} "
            "GROUP BY org, livemode"
        ).format(reference_partition)
    # writers' clocks date events; a wrong date must not delete an event, and all events below its position, too early
    statement = sql.SQL(
        "UPDATE event_logs AS l SET low = deleted.position FROM (SELECT e.org, e.livemode, max(e.position) AS position "
        "FROM {} AS e LEFT JOIN ({}) AS median ON median.org = e.org AND median.livemode = e.livemode "
        "WHERE {} AND (e.position > median.position) IS NOT TRUE GROUP BY e.org, e.livemode) AS deleted "
        "WHERE l.org = deleted.org AND l.livemode = deleted.livemode AND l.low < deleted.position"
    )
    async with connection.transaction():
        await connection.execute(_SET_LOCK_TIMEOUT)
        await connection.execute(statement.format(partition, reference_query, condition))
        await connection.execute(
            "DELETE FROM event_log_terms AS t USING event_logs AS l "
            "WHERE l.org = t.org AND l.livemode = t.livemode AND t.block < l.low / 512"
        )


async def _find_partition_with_events(connection: Connection, day: date) -> sql.Identifier | None:
    """Return the first partition with events from `day` on, or None if there are no such events."""
    for later, name in (await list_partitions(connection, "events")).items():
        if later >= day and await _count_rows(connection, sql.Identifier(name), sql.SQL("true"), 1):
            return sql.Identifier(name)
    return None


async def _count_rows(connection: Connection, partition: sql.Identifier, condition: sql.Composable, limit: int) -> int:
    """Return the number of a partition's rows that fulfil the condition; stop counting at `limit`."""
    statement = sql.SQL("SELECT count(*) FROM (SELECT 1 FROM {} WHERE {} LIMIT {}) AS found")
    count: int = await fetch_value(connection, statement.format(partition, condition, sql.Literal(limit)))
    return count


async def _delete_expired(connection: Connection, table: str, first_kept_day: date) -> None:
    """Delete the rows of days before `first_kept_day` from the table's default partition.

    For events, first raise the low watermarks; then delete only events up to the low watermark of their log.
    """
    condition = PARTITIONED_TABLES[table].build_earlier_condition(first_kept_day)
    if not await _count_rows(connection, build_default_partition_name(table), condition, 1):
        return
    if table == "events":
        await _raise_low_watermarks(connection, build_default_partition_name(table), condition, first_kept_day)
        condition += sql.SQL(" AND {}").format(_IS_BELOW_LOW_WATERMARK)
    batch = build_deletion(build_default_partition_name(table), condition)
    if await is_distributed(connection, table):  # a cluster cannot execute a batch over all organisations
        batch = sql.SQL("WITH deleted AS (DELETE FROM {} AS e WHERE {} RETURNING 1) SELECT 0").format(
            build_default_partition_name(table), condition
        )
    await repeat_in_batches(connection, batch, MAX_ROWS_PER_DELETION)


def build_deletion(partition: sql.Identifier, condition: sql.Composed) -> sql.Composed:
    """Return an SQL statement that deletes at most MAX_ROWS_PER_DELETION rows of a partition and selects the number of deleted rows.

    Args:
        partition: Name of the partition.
        condition: SQL condition of the rows to delete. The statement contains the condition twice, so that a cluster sends
            the whole statement to the organisation's node.
    """
    return sql.SQL(
        "WITH deleted AS (DELETE FROM {} AS e WHERE {} AND e.ctid = ANY (ARRAY(SELECT e.ctid FROM {} AS e WHERE {} LIMIT {})) "
        "RETURNING 1) SELECT count(*) FROM deleted"
    ).format(partition, condition, partition, condition, sql.Literal(MAX_ROWS_PER_DELETION))
