"""What was measured of the service's own health, one row a component and day."""

from collections.abc import Sequence
from datetime import date, datetime

from adapters.postgres.nodes.pool import Pool
from adapters.postgres.sqlfile import statements
from domain.platform.model import ComponentState
from ports.platform import Check, DayCount

SQL = statements("platform")


class PostgresPlatformChecks:
    """Across tenants; the scheduler writes, everybody reads."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def record(self, checks: Sequence[Check]) -> None:
        async with self._pool.system() as link, link.connection.transaction():
            for check in checks:
                values = {
                    "component": check.component,
                    "day": check.at.date(),
                    "passed": int(check.passed),
                    "failed": int(not check.passed),
                    "state": check.state,
                    "at": check.at,
                }
                await link.cursor.execute(SQL["record"], values)

    async def latest(self) -> Sequence[Check]:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["latest"])
            rows = await cursor.fetchall()
        return [Check(component, at, ComponentState(state)) for component, at, state in rows]

    async def days(self, since: date) -> Sequence[DayCount]:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["days"], {"since": since})
            return [DayCount(*row) for row in await cursor.fetchall()]

    async def forget(self, before: datetime) -> int:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["forget"], {"day": before.date()})
            return int(cursor.rowcount)
