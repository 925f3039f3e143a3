"""What was used, in PostgreSQL: entries beside what they count, and a row for each day that they are folded into."""

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
"""After which what was reserved has ended, whatever became of it: no run lasts as long."""


class PostgresUsageMeters(TenantStore, UsageMeters):
    """UsageMeters."""

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
        these: dict[str, Any] = {"meter": meter, "subject": of}
        if await self._value("taken", month=month, next=next_month(month), **these) + amount > included:
            return False
        await self._run("reserve", day=self._today, amount=amount, **these)
        return True

    async def used(self, month: date) -> Mapping[str, int]:
        rows = await self._rows("used", month=month, next=next_month(month), meters=list(MONTHLY))
        return {meter: int(amount) for meter, amount in rows}

    async def fold(self) -> None:
        await self._run("fold", long_ago=self._today - FORGOTTEN)

    async def reach(self, threshold: Threshold, *, hold_back: bool) -> bool:
        one: dict[str, Any] = {"meter": threshold.meter, "month": threshold.month, "percent": threshold.percent}
        one["included"] = threshold.included
        fresh = await self._run("reach", reached_at=threshold.reached_at, held_back=hold_back, **one)
        if hold_back and not fresh:
            await self._run("hold_back", **one)
        return fresh == 1


class PostgresUsageUpkeep(CoordinatorStore):
    """UsageUpkeep."""

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
