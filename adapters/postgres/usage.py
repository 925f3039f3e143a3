"""Usage in PostgreSQL: single entries, and the daily sums to which they are aggregated."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from random import sample
from typing import Any

from adapters.postgres.nodes.pool import Pool
from adapters.postgres.stores import (
    CoordinatorStore,
    TenantStore,
    execute_count,
    fetch_all,
    fetch_first,
    load_statements,
)
from domain.kernel.tenancy import Tenant
from domain.usage.meters import MONTHLY, DayUsage, Threshold, find_month_start, find_next_month
from domain.usage.ports import UsageMeters
from ports.clock import Clock

SQL = load_statements("usage")
RESERVATION_EXPIRY = timedelta(days=2)
"""Age at which reservations of a quota expire; no run takes that long."""


class PostgresUsageMeters(TenantStore, UsageMeters):
    """Usage meters of the tenant."""

    _sql = SQL
    list_days = fetch_all(DayUsage)
    add_usage = execute_count()
    release = execute_count()
    get_last_level = fetch_first(DayUsage)
    record_level = execute_count()
    list_thresholds = fetch_all(Threshold)
    resume_deliveries = execute_count()

    @property
    def _today(self) -> date:
        """Date of the transaction (UTC)."""
        return self._session.now.date()

    async def reserve(self, meter: str, amount: int, cause: str, included: int) -> bool:
        month = find_month_start(self._today)
        await self._session.acquire_lock("usage", meter)
        entry: dict[str, Any] = {"meter": meter, "subject": cause}
        if (
            await self._fetch_scalar("sum_used_and_reserved", month=month, next=find_next_month(month), **entry)
            + amount
            > included
        ):
            return False
        await self._run("reserve", day=self._today, amount=amount, **entry)
        return True

    async def get_month_usage(self, month: date) -> Mapping[str, int]:
        rows = await self._fetch_rows("get_month_usage", month=month, next=find_next_month(month), meters=list(MONTHLY))
        return {meter: int(amount) for meter, amount in rows}

    async def aggregate(self) -> None:
        await self._run("aggregate", long_ago=self._today - RESERVATION_EXPIRY)

    async def record_threshold(self, threshold: Threshold, *, suspends_deliveries: bool) -> bool:
        values: dict[str, Any] = {"meter": threshold.meter, "month": threshold.month, "percent": threshold.percent}
        values["included"] = threshold.included
        is_new = (
            await self._run(
                "record_threshold", reached_at=threshold.reached_at, held_back=suspends_deliveries, **values
            )
            == 1
        )
        if suspends_deliveries and not is_new:
            await self._run("suspend_deliveries", **values)
        return is_new


class PostgresUsageMaintenance(CoordinatorStore):
    """Usage of all tenants, for periodic tasks of the scheduler."""

    _sql = SQL

    def __init__(self, pool: Pool, clock: Clock) -> None:
        super().__init__(pool)
        self._clock = clock

    async def find_unaggregated(self, limit: int) -> Sequence[Tenant]:
        long_ago = self._clock.now().date() - RESERVATION_EXPIRY
        tenants = [Tenant(*row) for row in await self._gather("find_unaggregated", long_ago=long_ago, limit=limit)]
        return sample(tenants, min(limit, len(tenants)))

    async def list_resumable(self, month: date) -> Sequence[Tenant]:
        return [Tenant(*row) for row in await self._gather("list_resumable", month=month)]
