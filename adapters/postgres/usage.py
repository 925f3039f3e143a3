"""What was used, in PostgreSQL: entries beside what they count, and a row for each day that they are folded into."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from random import sample
from typing import Any, Final

from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.session import Session, lock_number
from adapters.postgres.sqlfile import statements
from adapters.postgres.table import Table
from domain.kernel.tenancy import Tenant
from domain.usage.meters import MONTHLY, DayUsage, Threshold, month_of, next_month
from domain.usage.model import ModelUse
from ports.clock import Clock

SQL: Final = statements("usage")
MODEL_USES: Final = Table(ModelUse, "model_uses")
FORGOTTEN: Final = timedelta(days=2)
"""After which what was reserved has ended, whatever became of it: no run lasts as long."""


class PostgresUsageMeters:
    """UsageMeters."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def _today(self) -> date:
        return self._session.now.date()

    async def count(self, meter: str, amount: int, of: str) -> None:
        await self._session.run(SQL["count"], meter=meter, subject=of, day=self._today, amount=amount)

    async def reserve(self, meter: str, amount: int, of: str, included: int) -> bool:
        tenant, month = self._session.tenant, month_of(self._today)
        await self._session.run(SQL["turn"], number=lock_number("usage", tenant.org, tenant.livemode, meter))
        these: dict[str, Any] = {"meter": meter, "subject": of}
        row = await self._session.one(SQL["taken"], month=month, next=next_month(month), **these)
        if row is not None and row[0] + amount > included:
            return False
        await self._session.run(SQL["reserve"], day=self._today, amount=amount, **these)
        return True

    async def release(self, meter: str, of: str) -> None:
        await self._session.run(SQL["release"], meter=meter, subject=of)

    async def used(self, month: date) -> Mapping[str, int]:
        rows = await self._session.all(SQL["used"], month=month, next=next_month(month), meters=list(MONTHLY))
        return {meter: int(amount) for meter, amount in rows}

    async def days(self, meters: Sequence[str], since: date, until: date) -> Sequence[DayUsage]:
        rows = await self._session.all(SQL["days"], meters=list(meters), since=since, until=until)
        return [DayUsage(meter, day, int(amount)) for meter, day, amount in rows]

    async def level(self, meter: str, before: date) -> DayUsage | None:
        row = await self._session.one(SQL["level"], meter=meter, before=before)
        return DayUsage(*row) if row else None

    async def fold(self) -> None:
        await self._session.run(SQL["fold"], long_ago=self._today - FORGOTTEN)

    async def note(self, meter: str, amount: int) -> None:
        await self._session.run(SQL["note"], meter=meter, day=self._today, amount=amount)

    async def thresholds(self, month: date) -> Sequence[Threshold]:
        return [Threshold(*row) for row in await self._session.all(SQL["thresholds"], month=month)]

    async def reach(self, threshold: Threshold, *, hold_back: bool) -> bool:
        one: dict[str, Any] = {"meter": threshold.meter, "month": threshold.month, "percent": threshold.percent}
        one["included"] = threshold.included
        fresh = await self._session.run(SQL["reach"], reached_at=threshold.reached_at, held_back=hold_back, **one)
        if hold_back and not fresh:
            await self._session.run(SQL["hold_back"], **one)
        return fresh == 1

    async def resume(self) -> None:
        await self._session.run(SQL["resume"])


class PostgresUsageUpkeep:
    """UsageUpkeep."""

    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool, self._clock = pool, clock

    async def unfolded(self, limit: int) -> Sequence[Tenant]:
        long_ago = self._clock.now().date() - FORGOTTEN
        found = await self._pool.scatter_best_effort(reading(SQL["unfolded"], long_ago=long_ago, limit=limit))
        tenants = [Tenant(*row) for rows in found for row in rows]
        return sample(tenants, min(limit, len(tenants)))

    async def to_resume(self, month: date) -> Sequence[Tenant]:
        found = await self._pool.scatter_best_effort(reading(SQL["to_resume"], month=month))
        return [Tenant(*row) for rows in found for row in rows]
