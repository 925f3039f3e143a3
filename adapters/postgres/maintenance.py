"""Keeping tables small: daily partitions made ahead, old ones dropped, and what a plan keeps for less long deleted."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, LiteralString

from psycopg import sql

from adapters.postgres.pool import Pool, PooledConnection
from domain.kernel import retention
from domain.kernel.ids import encode, uuid7


def _day(day: date) -> date | str:
    return day


def first_id(prefix: str, day: date) -> str:
    """The lowest id that can be made on that day (UTC): ids begin with the time of their making."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return f"{prefix}_{encode(uuid7(int(midnight.timestamp()) * 1000, 0))}"


def _delivery(day: date) -> date | str:
    return first_id("dlv", day)


@dataclass(frozen=True, slots=True)
class Days:
    """A table partitioned by day: for how many days it is kept, by which column, and where a day begins in it."""

    kept: int
    column: LiteralString
    bound: Callable[[date], date | str] = _day


PARTITIONED: Final = {
    "events": Days(retention.EVENTS.days + 1, "time"),
    "request_logs": Days(retention.REQUEST_LOGS.days + 1, "created_at"),
    "webhook_deliveries": Days(retention.DELIVERIES.days, "id", _delivery),
}
AHEAD: Final = 3


class PostgresMaintenance:
    """Across tenants, for the scheduler."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def partitions(self, today: date | None = None) -> None:
        today = today or datetime.now(UTC).date()
        for table, days in PARTITIONED.items():
            for ahead in range(1, AHEAD + 1):
                await self._make(table, days, today + timedelta(days=ahead))
            await self._drop(table, days, today - timedelta(days=days.kept))

    async def _make(self, table: str, days: Days, day: date) -> None:
        """The default partition takes what comes on days without one, so a day that has rows there is left as it is."""
        name = f"{table}_{day:%Y%m%d}"
        bounds = days.bound(day), days.bound(day + timedelta(days=1))
        statement = sql.SQL("CREATE TABLE IF NOT EXISTS {} PARTITION OF {} FOR VALUES FROM ({}) TO ({})").format(
            sql.Identifier(name), sql.Identifier(table), *map(sql.Literal, bounds)
        )
        async with self._pool.owner() as link:
            cursor = await link.cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (name,))
            row = await cursor.fetchone()
            if row and not row[0]:
                await link.connection.execute(statement)

    async def _drop(self, table: str, days: Days, before: date) -> None:
        """Drop the days before that one, and what the default partition has of them."""
        aged = sql.SQL("FROM {} WHERE {} < {}").format(
            sql.Identifier(f"{table}_default"), sql.Identifier(days.column), sql.Literal(days.bound(before))
        )
        async with self._pool.owner() as link:
            cursor = await link.cursor.execute(
                "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", (table,)
            )
            for (name,) in await cursor.fetchall():
                day = name.rpartition("_")[2]
                if day.isdigit() and datetime.strptime(day, "%Y%m%d").date() < before:  # noqa: DTZ007  a date alone
                    everything = sql.SQL("FROM {}").format(sql.Identifier(name))
                    await _forget(link, table, everything, sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))
            await _forget(link, table, aged, sql.SQL("DELETE ") + aged)

    async def statistics(self) -> None:
        async with self._pool.owner() as link:
            await link.connection.execute("ANALYZE products, product_terms, variants, offers, row_fingerprints")

    async def purge_request_logs(self) -> int:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(
                "DELETE FROM request_logs l USING organisations o, plans p WHERE o.id = l.org AND p.code = o.plan "
                "AND l.created_at < now() - make_interval(days => p.request_log_days)"
            )
            return int(cursor.rowcount)

    async def purge_deliveries(self, today: date | None = None) -> int:
        """Drop webhook deliveries older than each organisation's plan keeps them; answers how many.

        What is still on its way stays, and goes with its day.
        """
        today, forgotten = today or datetime.now(UTC).date(), 0
        async with self._pool.system() as link:
            cursor = await link.cursor.execute("SELECT DISTINCT delivery_days FROM plans")
            for (kept,) in await cursor.fetchall():
                cursor = await link.cursor.execute(
                    "DELETE FROM webhook_deliveries d USING organisations o, plans p WHERE o.id = d.org "
                    "AND p.code = o.plan AND p.delivery_days = %(days)s AND d.id < %(before)s "
                    "AND d.status IN ('succeeded', 'failed')",
                    {"days": kept, "before": first_id("dlv", today - timedelta(days=kept))},
                )
                forgotten += int(cursor.rowcount)
        return forgotten


async def _forget(link: PooledConnection, table: str, rows: sql.Composed, forget: sql.Composed) -> None:
    """Forget rows. Of events, how far they are gone is recorded in the same transaction (event_low_watermark)."""
    async with link.connection.transaction():
        if table == "events":
            highest = sql.SQL("(SELECT max(position) ") + rows + sql.SQL(")")
            await link.connection.execute(
                sql.SQL("UPDATE event_low_watermark SET position = greatest(position, {})").format(highest)
            )
        await link.connection.execute(forget)
