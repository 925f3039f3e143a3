"""Maintenance across tenants: partitions, statistics, and purges by age, which are refused while the database's clock may be wrong.

Schedule repair corrects due times that a wrong clock has set.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, LiteralString

from psycopg import sql

from adapters.postgres.idempotency import SQL as RESPONSE_SQL
from adapters.postgres.nodes.connections import (
    Connection,
    DatabaseRow,
    fetch_rows,
    fetch_value,
    is_distributed,
    repeat_in_batches,
)
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool, create_row_reader
from adapters.postgres.partitions import (
    MAX_ROWS_PER_DELETION,
    PARTITIONED_TABLES,
    build_default_partition_name,
    build_deletion,
    create_partitions,
    drop_expired_partitions,
    list_partitions,
    read_server_day,
)
from adapters.postgres.stores import CoordinatorStore
from domain.audit.model import compute_lowest_id
from domain.kernel import retention
from domain.kernel.clock import now

LOG = logging.getLogger("joinery.maintenance")

_CLOCK_IS_PLAUSIBLE: Final[LiteralString] = "now() BETWEEN last_at - interval '1 minute' AND last_at + interval '1 day'"
"""SQL condition that the database's clock is at most a minute before and at most a day after the last purge."""
_GUARD_STATEMENTS: Final[Mapping[str, LiteralString]] = {
    "claim": f"UPDATE purges SET last_at = now() WHERE {_CLOCK_IS_PLAUSIBLE}",
    "state": f"SELECT last_at, now(), NOT ({_CLOCK_IS_PLAUSIBLE}) FROM purges",
    "confirm": "UPDATE purges SET last_at = now()",
}


@dataclass(frozen=True, slots=True)
class PurgeState:
    """State of the purge guard.

    Attributes:
        last_at: Time of the last purge.
        now: Current time by the database's clock.
        is_refused: Whether purges are refused, because the clock may be wrong.
    """

    last_at: datetime
    now: datetime
    is_refused: bool


class PostgresPurgeGuard(CoordinatorStore):
    """Guard that refuses purges after the database's clock has gone back, or advanced by more than a day.

    A wrong clock cannot be distinguished from a service that was stopped, so an operator must confirm the clock.
    """

    _sql = _GUARD_STATEMENTS
    is_refusing = False
    """True if the last attempt to begin a purge was refused."""

    async def begin_purge(self) -> bool:
        """Record the time of a purge and return True; return False if purges are refused."""
        async with self._pool.connect_to_coordinator() as connection:
            return await self.begin_purge_on(connection.driver_connection)

    async def begin_purge_on(self, connection: Connection) -> bool:
        """Record the time of a purge on an open connection and return True; return False if purges are refused."""
        claimed = await connection.execute(_GUARD_STATEMENTS["claim"])
        refused, self.is_refusing = self.is_refusing, claimed.rowcount == 0
        if self.is_refusing and not refused:
            LOG.error(
                "purges refused: the database's clock is more than a day after or a minute before the last purge; "
                "if the clock is right, run `joinery doctor --repair-schedule`"
            )
        return not self.is_refusing

    async def read_state(self) -> PurgeState:
        """Return the time of the last purge, the database's time, and whether purges are refused."""
        [state] = await self._fetch_all(PurgeState, "state")
        return state

    async def confirm_clock(self) -> None:
        """Accept the current time of the database's clock, so that purges resume."""
        await self._run("confirm")


_ORGS_WITH_ROWS = """
WITH RECURSIVE present (org) AS (
    (SELECT org FROM {part} ORDER BY org LIMIT 1)
    UNION ALL
    SELECT (SELECT p.org FROM {part} p WHERE p.org > present.org ORDER BY p.org LIMIT 1)
    FROM present WHERE present.org IS NOT NULL
)
SELECT coalesce(string_agg(org, ','), '') FROM present
"""
"""Query of the organisations with rows in a partition.

The recursion takes one index lookup per organisation instead of a full scan.
"""
_RETENTION_QUERY = """
SELECT o.id, p.{days} FROM organisations o JOIN plans p ON p.code = o.plan WHERE o.id = ANY(%(orgs)s) AND p.{days} < %(age)s
"""
_QUERY_ON_SHARDS = (
    "SELECT result FROM run_command_on_shards(%(part)s::text::regclass, %(each)s) WHERE success AND result <> ''"
)
"""SQL statement that runs a query on every shard; nodes that do not respond are skipped until the next purge."""

_MOVE_ANCHORS = """
UPDATE audit_chains AS c SET began = due.sequence, anchor = due.hash
FROM (
    SELECT h.org, h.livemode, last.sequence, last.hash FROM audit_chains AS h CROSS JOIN LATERAL (
        SELECT e.sequence, e.hash FROM audit_entries AS e
        WHERE e.org = h.org AND e.livemode = h.livemode AND e.id < %(bound)s ORDER BY e.id DESC LIMIT 1
    ) AS last
) AS due
WHERE c.org = due.org AND c.livemode = due.livemode AND due.sequence > c.began AND due.hash IS NOT NULL
"""
_OLD_ENTRIES = """
DELETE FROM audit_entries AS e USING audit_chains AS c
WHERE e.org = c.org AND e.livemode = c.livemode AND e.sequence <= c.began AND e.id < %(bound)s
"""

_ANALYSED_TABLES = ("products", "product_terms", "product_facets", "variants", "offers", "row_fingerprints")
_CHANGED_TABLES = """
SELECT c.relname FROM pg_class c LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE c.oid = ANY(%s::text[]::regclass[]) AND (c.reltuples <= 0 OR s.n_mod_since_analyze > c.reltuples / 10)
ORDER BY c.relname
"""
"""Query of the tables that were never analysed, or have changed in more than a tenth of the rows since the analysis."""


class PostgresMaintenance:
    """Periodic maintenance of the database, which the scheduler runs."""

    def __init__(self, pool: Pool, guard: PostgresPurgeGuard | None = None) -> None:
        self._pool, self._guard = pool, guard or PostgresPurgeGuard(pool)

    async def maintain_partitions(self, today: date | None = None) -> None:
        """Create the partitions of the next days; drop the expired ones unless the purge guard refuses.

        `today` replaces the current day of the database. The guard is not asked if `today` is set.
        """
        async with self._pool.connect_as_owner() as connection:
            may_drop = today is not None or await self._guard.begin_purge_on(connection.driver_connection)
            today = today or await read_server_day(connection.driver_connection)
            await create_partitions(connection.driver_connection, today)
            if may_drop:
                await drop_expired_partitions(connection.driver_connection, today)

    async def update_statistics(self) -> None:
        """Analyse each table that imports fill if more than a tenth of its rows has changed since the last analysis."""
        async with self._pool.connect_as_owner() as connection:
            changed = await fetch_rows(connection.driver_connection, _CHANGED_TABLES, (list(_ANALYSED_TABLES),))
            if changed:
                tables = sql.SQL(", ").join(sql.Identifier(name) for (name,) in changed)
                await connection.driver_connection.execute(sql.SQL("ANALYZE (SKIP_LOCKED) {}").format(tables))

    async def purge_request_logs(self, today: date | None = None) -> int:
        """Delete request logs older than the retention in the organisation's plan; return their number.

        `today` replaces the current day of the database.
        """
        return await self._purge("request_logs", "request_log_days", sql.SQL("true"), today)

    async def purge_stored_responses(self) -> int:
        """Delete expired stored responses of requests with an idempotency key; return their number."""
        since = now() - retention.IDEMPOTENT_RESPONSES

        async def purge(connection: PooledConnection) -> int:
            orgs = [
                org
                for (org,) in await connection.fetch_rows(
                    connection.expand_shards(RESPONSE_SQL["list_orgs_with_expired"]), {"since": since}
                )
            ]
            return await connection.run(RESPONSE_SQL["purge_expired"], {"orgs": orgs, "since": since})

        return sum(await self._pool.scatter_best_effort(purge))

    async def purge_inbound_messages(self) -> int:
        """Delete inbound messages whose retention has ended; return their number."""
        async with self._pool.connect_as_owner() as connection:
            values = (now() - retention.INBOUND_MESSAGES,)
            cursor = await connection.driver_connection.execute(
                "DELETE FROM inbound_messages WHERE received_at < %s", values
            )
            return cursor.rowcount

    async def purge_audit_entries(self) -> int:
        """Delete the audit entries whose retention has ended, from the start of each audit chain; return their number.

        The hash of the last deleted entry is stored, so that the remaining chain can be verified.
        """
        moment = now()
        values = {"bound": compute_lowest_id(moment - retention.AUDIT_ENTRIES)}
        async with (
            self._pool.connect_as_owner() as connection
        ):  # separate transactions, so that chain heads are locked during one statement only
            await connection.driver_connection.execute("DELETE FROM audit_kept WHERE expires_at < %s", (moment,))
            await connection.driver_connection.execute(_MOVE_ANCHORS, values)
            cursor = await connection.driver_connection.execute(_OLD_ENTRIES, values)
            return cursor.rowcount

    async def purge_deliveries(self, today: date | None = None) -> int:
        """Delete completed webhook deliveries older than the retention in the organisation's plan; return their number.

        Pending deliveries remain until their partition is dropped. `today` replaces the current day of the database.
        """
        ended = sql.SQL("status IN ('succeeded', 'failed')")
        return await self._purge("webhook_deliveries", "delivery_days", ended, today)

    async def _purge(self, table: str, days_column: LiteralString, condition: sql.SQL, today: date | None) -> int:
        """Delete expired rows by partition and organisation, in batches; return their number.

        Args:
            table: The partitioned table.
            days_column: Column of plans with the number of days for which an organisation's rows are stored.
            condition: Additional condition that deleted rows must fulfil.
            today: The current day; None for the database's.
        """
        total = 0
        async with self._pool.connect_as_owner() as connection:
            today = today or await read_server_day(connection.driver_connection)
            retention_query = sql.SQL(_RETENTION_QUERY).format(days=sql.Identifier(days_column))
            partitions = await list_partitions(connection.driver_connection, table)
            dated = [(sql.Identifier(name), (today - day).days) for day, name in partitions.items()]
            for partition, age in [*dated, (build_default_partition_name(table), PARTITIONED_TABLES[table].days_kept)]:
                orgs = await _list_orgs_with_rows(connection.driver_connection, partition) if age > 0 else []
                for org, days in (
                    await fetch_rows(connection.driver_connection, retention_query, {"orgs": orgs, "age": age})
                    if orgs
                    else ()
                ):
                    org_condition = sql.SQL("org = {} AND ").format(sql.Literal(org)) + condition
                    age_condition = PARTITIONED_TABLES[table].build_earlier_condition(today - timedelta(days=days))
                    total += await repeat_in_batches(
                        connection.driver_connection,
                        build_deletion(partition, org_condition + sql.SQL(" AND ") + age_condition),
                        MAX_ROWS_PER_DELETION,
                    )
        return total


async def _list_orgs_with_rows(connection: Connection, partition: sql.Identifier) -> list[str]:
    """Return the organisations that have rows in the partition. In a cluster, each node reads the shards it stores."""
    name = partition.as_string(connection)
    if await is_distributed(connection, name):
        params = {"part": name, "each": _ORGS_WITH_ROWS.format(part="%1$s")}
        rows = await fetch_rows(connection, _QUERY_ON_SHARDS, params)
    else:
        rows = await fetch_rows(connection, sql.SQL(_ORGS_WITH_ROWS).format(part=partition))
    return [org for (names,) in rows if names for org in names.split(",")]


@dataclass(frozen=True, slots=True)
class DueColumn:
    """Column with due times, in which schedule repair looks for implausible values.

    Attributes:
        name: Name in the report.
        table: Name of the table.
        column: Name of the column.
        implausible_condition: SQL condition on a row `t` that its due time is later than any that the service sets.
    """

    name: str
    table: LiteralString
    column: LiteralString
    implausible_condition: LiteralString

    @property
    def implausible_rows_query(self) -> LiteralString:
        """SQL statement that selects the rows with an implausible due time on one node."""
        return "SELECT t.org, t.livemode, t.id FROM here." + self.table + " AS t WHERE " + self.implausible_condition


def _build_pull_column(name: str, column: LiteralString, interval_setting: LiteralString) -> DueColumn:
    # an adaptive schedule extends an interval to four times its length, and jitter adds a tenth of that; the next clock
    # time is at most a week away, and clocks can be changed in it
    max_minutes = (
        "greatest(1440, 5 * coalesce((t.schedule->>'" + interval_setting + "')::integer, 0), "
        "8 * 1440 * (t.schedule ? 'at')::integer)"
    )
    return DueColumn(name, "sources", column, "t." + column + " > now() + make_interval(mins => " + max_minutes + ")")


_DUE_COLUMNS = (
    _build_pull_column("sources' pulls", "next_pull", "interval_minutes"),
    _build_pull_column("sources' stock pulls", "next_stock_pull", "stock_interval_minutes"),
    # a new job is due at once, a failed one within minutes, and a waiting run at the time that its source requests
    DueColumn(
        "jobs",
        "jobs",
        "run_at",
        "t.run_at > now() + interval '1 day' OR (t.attempt = 0 AND t.run_at > now() + interval '1 minute')",
    ),
    DueColumn("jobs' leases", "jobs", "lease_until", "t.lease_until > now() + interval '1 hour'"),
    DueColumn(
        "webhook deliveries", "webhook_deliveries", "next_attempt_at", "t.next_attempt_at > now() + interval '3 days'"
    ),
)
_MAIL_IS_DUE_TOO_LATE = "next_at > now() + interval '1 day'"


class PostgresScheduleRepair:
    """Repair of implausible due times across tenants, for `joinery doctor`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def count_implausible(self) -> Mapping[str, int]:
        """Count the implausible due times, by name of the column in the report."""
        found = {due.name: sum(map(len, await self._find_implausible_rows(due))) for due in _DUE_COLUMNS}
        async with self._pool.connect_as_owner() as connection:
            mail = await fetch_value(
                connection.driver_connection, f"SELECT count(*) FROM outgoing_mail WHERE {_MAIL_IS_DUE_TOO_LATE}"
            )
        return found | {"outgoing mail": mail}

    async def reset_implausible(self) -> Mapping[str, int]:
        """Set the implausible due times to the current time; return their number, by name of the column in the report."""
        found = {due.name: await self._set_due_now(due) for due in _DUE_COLUMNS}
        async with self._pool.connect_as_owner() as connection:
            cursor = await connection.driver_connection.execute(
                f"UPDATE outgoing_mail SET next_at = now() WHERE {_MAIL_IS_DUE_TOO_LATE}"
            )
            return found | {"outgoing mail": cursor.rowcount}

    async def _find_implausible_rows(self, due: DueColumn) -> list[list[DatabaseRow]]:
        return await self._pool.scatter_best_effort(create_row_reader(due.implausible_rows_query))

    async def _set_due_now(self, due: DueColumn) -> int:
        """Set the implausible due times of a column to the current time; return their number.

        The rows are found on each node, but updated by organisation, because the tables are distributed.
        """
        rows: defaultdict[tuple[str, bool], list[str]] = defaultdict(list)
        for found in await self._find_implausible_rows(due):
            for org, livemode, id in found:
                rows[org, livemode].append(id)
        statement = sql.SQL("UPDATE {} SET {} = %s WHERE org = %s AND livemode = %s AND id = ANY(%s)").format(
            sql.Identifier(due.table), sql.Identifier(due.column)
        )
        changed = 0
        async with self._pool.connect_as_owner() as connection:
            moment = await fetch_value(connection.driver_connection, "SELECT now()")
            for (org, livemode), ids in rows.items():
                changed += (
                    await connection.driver_connection.execute(statement, (moment, org, livemode, ids))
                ).rowcount
        return changed
