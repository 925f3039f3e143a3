"""Finding and repairing due times that a wrong clock has set."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from psycopg import sql

from adapters.postgres.nodes.pool import Pool, reading


@dataclass(frozen=True, slots=True)
class DueColumn:
    """A column of due times, and the condition `implausible` of rows (`t`) that are due later than the service plans."""

    name: str
    table: LiteralString
    column: LiteralString
    implausible: LiteralString

    @property
    def query(self) -> LiteralString:
        """The query for the implausible rows of a node."""
        return "SELECT t.org, t.livemode, t.id FROM here." + self.table + " AS t WHERE " + self.implausible


def _pull(name: str, column: LiteralString, minutes: LiteralString) -> DueColumn:
    # an adaptive schedule extends an interval to four times its length, and jitter adds a tenth of that
    longest = "greatest(1440, 5 * coalesce((t.schedule->>'" + minutes + "')::integer, 0))"
    return DueColumn(name, "sources", column, "t." + column + " > now() + make_interval(mins => " + longest + ")")


_DUE_TIMES: Final = (
    _pull("sources' pulls", "next_pull", "interval_minutes"),
    _pull("sources' stock pulls", "next_stock_pull", "stock_interval_minutes"),
    # a new job is due at once, a failed one within minutes, and a waiting run when its source says
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
_MAIL: Final = "next_at > now() + interval '1 day'"


class PostgresScheduleRepair:
    """Finds and repairs implausible due times across tenants, for `joinery doctor`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find(self) -> Mapping[str, int]:
        """Count the implausible due times of each kind."""
        found = {due.name: sum(map(len, await self._find_implausible(due))) for due in _DUE_TIMES}
        async with self._pool.owner() as link:
            row = await (await link.connection.execute(f"SELECT count(*) FROM outgoing_mail WHERE {_MAIL}")).fetchone()
        return found | {"mail to people": row[0] if row else 0}

    async def repair(self) -> Mapping[str, int]:
        """Make the implausible due times due now; return the number of each kind."""
        found = {due.name: await self._make_due(due) for due in _DUE_TIMES}
        async with self._pool.owner() as link:
            cursor = await link.connection.execute(f"UPDATE outgoing_mail SET next_at = now() WHERE {_MAIL}")
            return found | {"mail to people": cursor.rowcount}

    async def _find_implausible(self, due: DueColumn) -> list[list[tuple[Any, ...]]]:
        return await self._pool.each(reading(due.query))

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
            row = await (await link.connection.execute("SELECT now()")).fetchone()
            assert row is not None
            for (org, livemode), ids in rows.items():
                changed += (await link.connection.execute(statement, (row[0], org, livemode, ids))).rowcount
        return changed
