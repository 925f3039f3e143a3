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

from adapters.postgres.idempotency import SQL as ANSWERS
from adapters.postgres.nodes.connecting import Connection, Fetched, fetch, fetch_value, is_distributed, repeat
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.partitions import (
    BATCH,
    PARTITIONED,
    days_of,
    default_of,
    deletion,
    drop_days,
    make_days,
    server_day,
)
from adapters.postgres.stores import CoordinatorStore
from domain.audit.model import id_at
from domain.kernel import retention
from domain.kernel.clock import now

LOG = logging.getLogger("joinery.maintenance")

_PLAUSIBLE: Final[LiteralString] = "now() BETWEEN last_at - interval '1 minute' AND last_at + interval '1 day'"
"""Condition that the clock has neither gone back nor jumped ahead since the last purge."""
_GUARD: Final[Mapping[str, LiteralString]] = {
    "claim": f"UPDATE purges SET last_at = now() WHERE {_PLAUSIBLE}",
    "state": f"SELECT last_at, now(), NOT ({_PLAUSIBLE}) FROM purges",
    "confirm": "UPDATE purges SET last_at = now()",
}


@dataclass(frozen=True, slots=True)
class PurgeState:
    """State of the purge guard: time of the last purge, the database's time, and whether purges are refused."""

    last_at: datetime
    now: datetime
    refused: bool


class PostgresPurgeGuard(CoordinatorStore):
    """Guard that refuses purges if the database's clock has moved by more than a day since the last purge, or back.

    A wrong clock cannot be distinguished from a service that was stopped, so an operator must confirm the clock.
    """

    _sql = _GUARD
    refuses = False
    """True if the last purge was refused."""

    async def claim(self) -> bool:
        """Record a purge and return True, or refuse it."""
        async with self._pool.coordinator() as link:
            return await self.claim_on(link.connection)

    async def claim_on(self, connection: Connection) -> bool:
        """Record a purge and return True, or refuse it, on an open connection."""
        claimed = await connection.execute(_GUARD["claim"])
        refused, self.refuses = self.refuses, claimed.rowcount == 0
        if self.refuses and not refused:
            LOG.error(
                "purges are refused: the database's clock moved by more than a day since the last purge, or back by more than a "
                "minute; if the clock is right (the service was stopped), run `joinery doctor --repair-schedule`"
            )
        return not self.refuses

    async def state(self) -> PurgeState:
        """Return the current state."""
        [state] = await self._every(PurgeState, "state")
        return state

    async def confirm(self) -> None:
        """Accept the database's clock, so that purges resume."""
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
"""Organisations with rows in a partition, by one index step per organisation instead of a scan of the rows."""
_KEPT = """
SELECT o.id, p.{days} FROM organisations o JOIN plans p ON p.code = o.plan WHERE o.id = ANY(%(orgs)s) AND p.{days} < %(age)s
"""
_SHARDS = "SELECT result FROM run_command_on_shards(%(part)s::text::regclass, %(each)s) WHERE success AND result <> ''"
"""Nodes that do not answer are skipped until the next purge."""

_ANCHORED = """
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

_LOADED = ("products", "product_terms", "variants", "offers", "row_fingerprints")
_CHANGED = """
SELECT c.relname FROM pg_class c LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE c.oid = ANY(%s::text[]::regclass[]) AND (c.reltuples <= 0 OR s.n_mod_since_analyze > c.reltuples / 10)
ORDER BY c.relname
"""
"""Tables that were never analysed or have changed by a tenth since. Analysing a million rows takes seconds, and with many organisations most
imports change less."""


class PostgresMaintenance:
    """Maintenance by the scheduler."""

    def __init__(self, pool: Pool, guard: PostgresPurgeGuard | None = None) -> None:
        self._pool, self._guard = pool, guard or PostgresPurgeGuard(pool)

    async def partitions(self, today: date | None = None) -> None:
        """Create the partitions of the next days, and drop expired ones unless purges are refused. `today` is the database's day."""
        async with self._pool.owner() as link:
            may_drop = today is not None or await self._guard.claim_on(link.connection)
            today = today or await server_day(link.connection)
            await make_days(link.connection, today)
            if may_drop:
                await drop_days(link.connection, today)

    async def statistics(self) -> None:
        """Analyse the tables that runs fill, if a tenth of a table has changed."""
        async with self._pool.owner() as link:
            changed = await fetch(link.connection, _CHANGED, (list(_LOADED),))
            if changed:
                tables = sql.SQL(", ").join(sql.Identifier(name) for (name,) in changed)
                await link.connection.execute(sql.SQL("ANALYZE (SKIP_LOCKED) {}").format(tables))

    async def purge_request_logs(self, today: date | None = None) -> int:
        """Delete request logs older than each organisation's plan keeps them; return their number."""
        return await self._purge("request_logs", "request_log_days", sql.SQL("true"), today)

    async def purge_answers(self) -> int:
        """Delete responses older than they are kept for retries; return their number."""
        since = now() - retention.IDEMPOTENT_ANSWERS

        async def purge(link: PooledConnection) -> int:
            orgs = [org for (org,) in await link.rows(link.here(ANSWERS["expired"]), {"since": since})]
            return await link.run(ANSWERS["purge_expired"], {"orgs": orgs, "since": since})

        return sum(await self._pool.scatter_best_effort(purge))

    async def purge_inbound_messages(self) -> int:
        """Delete inbound messages older than the retention; return their number."""
        async with self._pool.owner() as link:
            values = (now() - retention.INBOUND_MESSAGES,)
            cursor = await link.connection.execute("DELETE FROM inbound_messages WHERE received_at < %s", values)
            return cursor.rowcount

    async def purge_audit(self) -> int:
        """Delete the oldest entries of each chain by age, keeping the last deleted hash as the anchor; return the number of entries."""
        moment = now()
        values = {"bound": id_at(moment - retention.AUDIT_ENTRIES)}
        async with (
            self._pool.owner() as link
        ):  # separate transactions, so that chain heads are locked during one statement only
            await link.connection.execute("DELETE FROM audit_kept WHERE expires_at < %s", (moment,))
            await link.connection.execute(_ANCHORED, values)
            cursor = await link.connection.execute(_OLD_ENTRIES, values)
            return cursor.rowcount

    async def purge_deliveries(self, today: date | None = None) -> int:
        """Delete completed webhook deliveries older than each organisation's plan keeps them; return their number.

        Pending deliveries remain until their partition is dropped.
        """
        ended = sql.SQL("status IN ('succeeded', 'failed')")
        return await self._purge("webhook_deliveries", "delivery_days", ended, today)

    async def _purge(self, table: str, kept: LiteralString, rows: sql.SQL, today: date | None) -> int:
        """Delete rows by partition and organisation, in batches; return their number."""
        total = 0
        async with self._pool.owner() as link:
            today = today or await server_day(link.connection)
            shorter_plans = sql.SQL(_KEPT).format(days=sql.Identifier(kept))
            parts = await days_of(link.connection, table)
            dated = [(sql.Identifier(name), (today - day).days) for day, name in parts.items()]
            for part, age in [*dated, (default_of(table), PARTITIONED[table].kept)]:
                orgs = await _orgs_with_rows(link.connection, part) if age > 0 else []
                for org, days in (
                    await fetch(link.connection, shorter_plans, {"orgs": orgs, "age": age}) if orgs else ()
                ):
                    own = sql.SQL("org = {} AND ").format(sql.Literal(org)) + rows
                    older = PARTITIONED[table].before(today - timedelta(days=days))
                    total += await repeat(link.connection, deletion(part, own + sql.SQL(" AND ") + older), BATCH)
        return total


async def _orgs_with_rows(connection: Connection, part: sql.Identifier) -> list[str]:
    """Return the organisations with rows in the partition; each node of a cluster reads its own shards."""
    name = part.as_string(connection)
    if await is_distributed(connection, name):
        params = {"part": name, "each": _ORGS_WITH_ROWS.format(part="%1$s")}
        rows = await fetch(connection, _SHARDS, params)
    else:
        rows = await fetch(connection, sql.SQL(_ORGS_WITH_ROWS).format(part=part))
    return [org for (names,) in rows if names for org in names.split(",")]


@dataclass(frozen=True, slots=True)
class DueColumn:
    """Column of due times, with the condition `implausible` on rows (`t`) that are due later than the service schedules."""

    name: str
    table: LiteralString
    column: LiteralString
    implausible: LiteralString

    @property
    def query(self) -> LiteralString:
        """Query for the implausible rows of a node."""
        return "SELECT t.org, t.livemode, t.id FROM here." + self.table + " AS t WHERE " + self.implausible


def _pull(name: str, column: LiteralString, minutes: LiteralString) -> DueColumn:
    # an adaptive schedule extends an interval to four times its length, and jitter adds a tenth of that
    longest = "greatest(1440, 5 * coalesce((t.schedule->>'" + minutes + "')::integer, 0))"
    return DueColumn(name, "sources", column, "t." + column + " > now() + make_interval(mins => " + longest + ")")


_DUE_TIMES = (
    _pull("sources' pulls", "next_pull", "interval_minutes"),
    _pull("sources' stock pulls", "next_stock_pull", "stock_interval_minutes"),
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
_MAIL = "next_at > now() + interval '1 day'"


class PostgresScheduleRepair:
    """Repair of implausible due times across tenants, for `joinery doctor`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find(self) -> Mapping[str, int]:
        """Count the implausible due times of each kind."""
        found = {due.name: sum(map(len, await self._find_implausible(due))) for due in _DUE_TIMES}
        async with self._pool.owner() as link:
            mail = await fetch_value(link.connection, f"SELECT count(*) FROM outgoing_mail WHERE {_MAIL}")
        return found | {"mail to people": mail}

    async def repair(self) -> Mapping[str, int]:
        """Make the implausible due times due now; return the number of each kind."""
        found = {due.name: await self._make_due(due) for due in _DUE_TIMES}
        async with self._pool.owner() as link:
            cursor = await link.connection.execute(f"UPDATE outgoing_mail SET next_at = now() WHERE {_MAIL}")
            return found | {"mail to people": cursor.rowcount}

    async def _find_implausible(self, due: DueColumn) -> list[list[Fetched]]:
        return await self._pool.scatter_best_effort(reading(due.query))

    async def _make_due(self, due: DueColumn) -> int:
        """Find the rows by node and update them by organisation, as distributed tables require."""
        rows: defaultdict[tuple[str, bool], list[str]] = defaultdict(list)
        for found in await self._find_implausible(due):
            for org, livemode, id in found:
                rows[org, livemode].append(id)
        statement = sql.SQL("UPDATE {} SET {} = %s WHERE org = %s AND livemode = %s AND id = ANY(%s)").format(
            sql.Identifier(due.table), sql.Identifier(due.column)
        )
        changed = 0
        async with self._pool.owner() as link:
            moment = await fetch_value(link.connection, "SELECT now()")
            for (org, livemode), ids in rows.items():
                changed += (await link.connection.execute(statement, (moment, org, livemode, ids))).rowcount
        return changed
