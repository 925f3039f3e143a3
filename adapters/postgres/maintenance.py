"""Partitions and purges, which are refused while the database's clock may be wrong."""

from datetime import date, timedelta
from typing import Final, LiteralString

from psycopg import sql

from adapters.postgres.nodes.connecting import Connection, is_distributed
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.partitions import (
    BATCH,
    PARTITIONED,
    days_of,
    default_of,
    deletion,
    drop_days,
    make_days,
)
from adapters.postgres.purge_guard import PostgresPurgeGuard
from domain.audit.model import id_at
from domain.kernel import retention
from domain.kernel.clock import now

_PRESENT: Final = """
WITH RECURSIVE present (org) AS (
    (SELECT org FROM {part} ORDER BY org LIMIT 1)
    UNION ALL
    SELECT (SELECT p.org FROM {part} p WHERE p.org > present.org ORDER BY p.org LIMIT 1)
    FROM present WHERE present.org IS NOT NULL
)
SELECT coalesce(string_agg(org, ','), '') FROM present
"""
"""Organisations that have rows in a partition: a step of an index for each that has any, whatever the number of rows."""
_KEPT: Final = """
SELECT o.id, p.{days} FROM organisations o JOIN plans p ON p.code = o.plan WHERE o.id = ANY(%(orgs)s) AND p.{days} < %(age)s
"""
_SHARDS: Final = (
    "SELECT result FROM run_command_on_shards(%(part)s::text::regclass, %(each)s) WHERE success AND result <> ''"
)
"""A node that does not answer is left for the next time."""

_ANCHORED: Final = """
UPDATE audit_chains AS c SET began = due.sequence, anchor = due.hash
FROM (
    SELECT h.org, h.livemode, last.sequence, last.hash FROM audit_chains AS h CROSS JOIN LATERAL (
        SELECT e.sequence, e.hash FROM audit_entries AS e
        WHERE e.org = h.org AND e.livemode = h.livemode AND e.id < %(bound)s ORDER BY e.id DESC LIMIT 1
    ) AS last
) AS due
WHERE c.org = due.org AND c.livemode = due.livemode AND due.sequence > c.began AND due.hash IS NOT NULL
"""
_OLD_ENTRIES: Final = """
DELETE FROM audit_entries AS e USING audit_chains AS c
WHERE e.org = c.org AND e.livemode = c.livemode AND e.sequence <= c.began AND e.id < %(bound)s
"""

_LOADED: Final = ("products", "product_terms", "variants", "offers", "row_fingerprints")
_CHANGED: Final = """
SELECT c.relname FROM pg_class c LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE c.oid = ANY(%s::text[]::regclass[]) AND (c.reltuples <= 0 OR s.n_mod_since_analyze > c.reltuples / 10)
ORDER BY c.relname
"""
"""Tables that were never looked at, or of which a tenth has changed since: with many organisations in a table, most loads
change less, and looking at a million rows takes seconds."""


class PostgresMaintenance:
    """Across tenants, for the scheduler."""

    def __init__(self, pool: Pool, guard: PostgresPurgeGuard | None = None) -> None:
        self._pool, self._guard = pool, guard or PostgresPurgeGuard(pool)

    async def partitions(self, today: date | None = None) -> None:
        """Create the partitions of the coming days, and drop old ones unless purges are refused. `today` is the database's day."""
        async with self._pool.owner() as link:
            may_drop = today is not None or await self._guard.claim_on(link.connection)
            today = today or await server_day(link.connection)
            await make_days(link.connection, today)
            if may_drop:
                await drop_days(link.connection, today)

    async def statistics(self) -> None:
        """Of the tables that a load fills only those of which it is a good part: others' rows are known well enough."""
        async with self._pool.owner() as link:
            changed = await (await link.connection.execute(_CHANGED, (list(_LOADED),))).fetchall()
            if changed:
                tables = sql.SQL(", ").join(sql.Identifier(name) for (name,) in changed)
                await link.connection.execute(sql.SQL("ANALYZE (SKIP_LOCKED) {}").format(tables))

    async def purge_request_logs(self, today: date | None = None) -> int:
        """Drop request logs of days older than each organisation's plan keeps them; answers how many."""
        return await self._purge("request_logs", "request_log_days", sql.SQL("true"), today)

    async def purge_inbound_messages(self) -> int:
        """By age alone, and few: one statement."""
        async with self._pool.owner() as link:
            values = (now() - retention.INBOUND_MESSAGES,)
            cursor = await link.connection.execute("DELETE FROM inbound_messages WHERE received_at < %s", values)
            return cursor.rowcount

    async def purge_audit(self) -> int:
        """What goes is the beginning of a chain; the last hash of it stays as the anchor of what is left."""
        moment = now()
        values = {"bound": id_at(moment - retention.AUDIT_ENTRIES)}
        async with self._pool.owner() as link:  # each statement by itself: a chain's end is held for one of them alone
            await link.connection.execute("DELETE FROM audit_kept WHERE expires_at < %s", (moment,))
            await link.connection.execute(_ANCHORED, values)
            cursor = await link.connection.execute(_OLD_ENTRIES, values)
            return cursor.rowcount

    async def purge_deliveries(self, today: date | None = None) -> int:
        """Drop webhook deliveries older than each organisation's plan keeps them; answers how many.

        What is still on its way stays, and goes with its day.
        """
        ended = sql.SQL("status IN ('succeeded', 'failed')")
        return await self._purge("webhook_deliveries", "delivery_days", ended, today)

    async def _purge(self, table: str, kept: LiteralString, rows: sql.SQL, today: date | None) -> int:
        """Partition by partition, organisation by organisation, a batch at a time."""
        forgotten = 0
        async with self._pool.owner() as link:
            today = today or await server_day(link.connection)
            parts = await days_of(link.connection, table)
            named = [(sql.Identifier(name), (today - day).days) for day, name in parts.items()]
            for part, age in [*named, (default_of(table), PARTITIONED[table].kept)]:
                for org, days in await _beyond(link.connection, part, kept, age):
                    own = sql.SQL("org = {} AND ").format(sql.Literal(org)) + rows
                    older = PARTITIONED[table].before(today - timedelta(days=days))
                    forgotten += await _delete(link.connection, deletion(part, own + sql.SQL(" AND ") + older))
        return forgotten


async def server_day(connection: Connection) -> date:
    """Today (UTC) by the database server's clock."""
    row = await (await connection.execute("SELECT (now() AT TIME ZONE 'UTC')::date")).fetchone()
    assert row is not None
    day: date = row[0]
    return day


async def _beyond(connection: Connection, part: sql.Identifier, kept: LiteralString, age: int) -> list[tuple[str, int]]:
    """Organisations with rows of that age in the partition, and for how many days their plans keep them."""
    if age <= 0:
        return []
    orgs = await _present(connection, part)
    statement = sql.SQL(_KEPT).format(days=sql.Identifier(kept))
    cursor = await connection.execute(statement, {"orgs": orgs, "age": age})
    return [(org, days) for org, days in await cursor.fetchall()]


async def _present(connection: Connection, part: sql.Identifier) -> list[str]:
    """Organisations that have rows in the partition; of a cluster's each node looks into its own shards."""
    name = part.as_string(connection)
    if await is_distributed(connection, name):
        given = {"part": name, "each": _PRESENT.format(part="%1$s")}
        rows = await (await connection.execute(_SHARDS, given)).fetchall()
    else:
        rows = await (await connection.execute(sql.SQL(_PRESENT).format(part=part))).fetchall()
    return [org for (found,) in rows if found for org in found.split(",")]


async def _delete(connection: Connection, batch: sql.Composed) -> int:
    """Repeat a deletion of at most `BATCH` rows until nothing is left of them; answers how many went."""
    total = 0
    while True:
        row = await (await connection.execute(batch)).fetchone()
        gone = int(row[0]) if row else 0
        total += gone
        if gone < BATCH:
            return total
