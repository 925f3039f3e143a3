"""Usage in PostgreSQL: entries, and the daily rows that they are folded into."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from random import sample
from typing import Any

from adapters.postgres.nodes.pool import Pool
from adapters.postgres.stores import CoordinatorStore, TenantStore, every, first, run, statements
from domain.kernel.tenancy import Tenant
from domain.usage.meters import MONTHLY, DayUsage, Threshold, month_of, next_month
from domain.usage.ports import UsageMeters
from ports.clock import Clock

SQL = statements("usage")
FORGOTTEN = timedelta(days=2)
"""Age at which reservations expire; no run lasts as long."""


class PostgresUsageMeters(TenantStore, UsageMeters):
    """Usage meters of the tenant."""

    _sql = SQL
    days = every(DayUsage)
    count = run()
    release = run()
    level = first(DayUsage)
    note = run()
    thresholds = every(Threshold)
    resume = run()

    @property
    def _today(self) -> date:
        return self._session.now.date()

    async def reserve(self, meter: str, amount: int, of: str, included: int) -> bool:
        month = month_of(self._today)
        await self._session.take_turn("usage", meter)
        entry: dict[str, Any] = {"meter": meter, "subject": of}
        if await self._value("taken", month=month, next=next_month(month), **entry) + amount > included:
            return False
        await self._run("reserve", day=self._today, amount=amount, **entry)
        return True

    async def used(self, month: date) -> Mapping[str, int]:
        rows = await self._rows("used", month=month, next=next_month(month), meters=list(MONTHLY))
        return {meter: int(amount) for meter, amount in rows}

    async def fold(self) -> None:
        await self._run("fold", long_ago=self._today - FORGOTTEN)

    async def reach(self, threshold: Threshold, *, hold_back: bool) -> bool:
        values: dict[str, Any] = {"meter": threshold.meter, "month": threshold.month, "percent": threshold.percent}
        values["included"] = threshold.included
        is_new = await self._run("reach", reached_at=threshold.reached_at, held_back=hold_back, **values) == 1
        if hold_back and not is_new:
            await self._run("hold_back", **values)
        return is_new


class PostgresUsageUpkeep(CoordinatorStore):
    """Usage of all tenants, for the scheduler."""

    _sql = SQL

    def __init__(self, pool: Pool, clock: Clock) -> None:
        super().__init__(pool)
        self._clock = clock

    async def unfolded(self, limit: int) -> Sequence[Tenant]:
        long_ago = self._clock.now().date() - FORGOTTEN
        tenants = [Tenant(*row) for row in await self._gather("unfolded", long_ago=long_ago, limit=limit)]
        return sample(tenants, min(limit, len(tenants)))

    async def to_resume(self, month: date) -> Sequence[Tenant]:
        return [Tenant(*row) for row in await self._gather("to_resume", month=month)]
