"""Finding and repairing due times that a wrong clock has set."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from psycopg import sql

from adapters.postgres.nodes.pool import Pool, reading


@dataclass(frozen=True, slots=True)
class DueTime:
    """A column of due times by its display name; `absurd` holds of rows (`t`) due later than anything plans."""

    name: str
    table: LiteralString
    column: LiteralString
    absurd: LiteralString

    @property
    def find(self) -> LiteralString:
        """The statement that reads the absurd rows of a node."""
        return "SELECT t.org, t.livemode, t.id FROM here." + self.table + " AS t WHERE " + self.absurd


def _pull(name: str, column: LiteralString, minutes: LiteralString) -> DueTime:
    # an adaptive schedule stretches an interval to four times its length, and jitter by a tenth of that
    longest = "greatest(1440, 5 * coalesce((t.schedule->>'" + minutes + "')::integer, 0))"
    return DueTime(name, "sources", column, "t." + column + " > now() + make_interval(mins => " + longest + ")")


_DUE_TIMES: Final = (
    _pull("sources' pulls", "next_pull", "interval_minutes"),
    _pull("sources' stock pulls", "next_stock_pull", "stock_interval_minutes"),
    # a new job is due at once, and one that failed within minutes; a run that waits, when its source says
    DueTime(
        "jobs",
        "jobs",
        "run_at",
        "t.run_at > now() + interval '1 day' OR (t.attempt = 0 AND t.run_at > now() + interval '1 minute')",
    ),
    DueTime("jobs' leases", "jobs", "lease_until", "t.lease_until > now() + interval '1 hour'"),
    DueTime(
        "webhook deliveries", "webhook_deliveries", "next_attempt_at", "t.next_attempt_at > now() + interval '3 days'"
    ),
)
_MAIL: Final = "next_at > now() + interval '1 day'"


class PostgresScheduleRepair:
    """Across tenants, for `joinery doctor`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find(self) -> Mapping[str, int]:
        """Return how many due times of each kind are absurd."""
        found = {due.name: sum(map(len, await self._absurd(due))) for due in _DUE_TIMES}
        async with self._pool.owner() as link:
            row = await (await link.connection.execute(f"SELECT count(*) FROM outgoing_mail WHERE {_MAIL}")).fetchone()
        return found | {"mail to people": row[0] if row else 0}

    async def repair(self) -> Mapping[str, int]:
        """Make them due now; return how many of each kind."""
        found = {due.name: await self._make_due(due) for due in _DUE_TIMES}
        async with self._pool.owner() as link:
            cursor = await link.connection.execute(f"UPDATE outgoing_mail SET next_at = now() WHERE {_MAIL}")
            return found | {"mail to people": cursor.rowcount}

    async def _absurd(self, due: DueTime) -> list[list[tuple[Any, ...]]]:
        return await self._pool.each(reading(due.find))

    async def _make_due(self, due: DueTime) -> int:
        """Find the rows node by node, and change them organisation by organisation, as a cluster's tables want it."""
        rows: defaultdict[tuple[str, bool], list[str]] = defaultdict(list)
        for found in await self._absurd(due):
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
