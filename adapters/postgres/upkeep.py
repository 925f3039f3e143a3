"""Keeping tables small: daily partitions made ahead, old ones dropped."""

from datetime import UTC, date, datetime, timedelta
from typing import Final

from psycopg import sql

from adapters.postgres.pool import Pool

KEPT_DAYS: Final = {"events": 31, "request_logs": 91}
AHEAD: Final = 3


class PostgresUpkeep:
    """Across tenants, for the scheduler."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def partitions(self, today: date | None = None) -> None:
        """Have a partition for each of the next days, and none older than what is kept."""
        today = today or datetime.now(UTC).date()
        for table, kept in KEPT_DAYS.items():
            for ahead in range(1, AHEAD + 1):
                await self._make(table, today + timedelta(days=ahead))
            await self._drop(table, today - timedelta(days=kept))

    async def _make(self, table: str, day: date) -> None:
        """The default partition takes what comes on days without one, so a day that has rows there is left as it is."""
        name = f"{table}_{day:%Y%m%d}"
        statement = sql.SQL("CREATE TABLE IF NOT EXISTS {} PARTITION OF {} FOR VALUES FROM ({}) TO ({})").format(
            sql.Identifier(name), sql.Identifier(table), sql.Literal(day), sql.Literal(day + timedelta(days=1))
        )
        async with self._pool.owner() as link:
            cursor = await link.cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (name,))
            row = await cursor.fetchone()
            if row and not row[0]:
                await link.connection.execute(statement)

    async def _drop(self, table: str, before: date) -> None:
        async with self._pool.owner() as link:
            cursor = await link.cursor.execute(
                "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", (table,)
            )
            for (name,) in await cursor.fetchall():
                day = name.rpartition("_")[2]
                if day.isdigit() and datetime.strptime(day, "%Y%m%d").date() < before:  # noqa: DTZ007  a date alone
                    await link.connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))

    async def statistics(self) -> None:
        """Have the planner know how much there is: tables that just grew are otherwise planned for as if they were small."""
        async with self._pool.owner() as link:
            await link.connection.execute("ANALYZE products, product_terms, variants, offers, marks")

    async def forget_request_logs(self) -> int:
        """Drop request logs older than each organisation's plan keeps them; answers how many."""
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(
                "DELETE FROM request_logs l USING organisations o, plans p WHERE o.id = l.org AND p.code = o.plan "
                "AND l.created_at < now() - make_interval(days => p.request_log_days)"
            )
            return int(cursor.rowcount)
