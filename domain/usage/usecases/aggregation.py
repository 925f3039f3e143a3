"""Aggregation of usage entries into daily totals, and notification at 80% and 100% of quotas."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.events.model import Event
from domain.events.ports import EventLog
from domain.jobs.usecases.ticks import log_errors
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.orgs.ports import OrgStore
from domain.usage.meters import DELIVERIES, METERS, Threshold, find_month_start, find_reached_thresholds
from domain.usage.ports import UsageMeters, UsageUpkeep
from domain.usage.usecases.service import Usage, UsageService
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

RenderUsage = Callable[[Usage, Tenant, datetime], Mapping[str, Any]]
"""Function that renders usage as a resource."""
MAX_TENANTS = 1_000
"""Maximum number of tenants whose entries are aggregated in one run of the task."""
_LOG = logging.getLogger("joinery.usage")
_CONTEXT = AuditContext(Actor("service", "scheduler"), "usage.fold")


@dataclass(frozen=True, slots=True)
class UsageAggregator:
    """Scheduled task that aggregates usage entries into daily totals; concurrent runs do no harm.

    Attributes:
        render_usage: Renders usage as a resource.
        notify_webhook_workers: Notifies workers to reload the tenant's webhook endpoints.
    """

    uow: UnitOfWork
    upkeep: UsageUpkeep
    clock: Clock
    render_usage: RenderUsage
    service: UsageService
    notify_webhook_workers: Callable[[Tx], Awaitable[None]]

    async def aggregate_usage(self) -> None:
        """Aggregate the entries of each tenant, and resume deliveries that a quota has suspended."""
        for tenant in await self.upkeep.list_resumable(find_month_start(self.clock.now().date())):
            await self._run_step(tenant, self._resume_deliveries)
        for tenant in await self.upkeep.find_unaggregated(MAX_TENANTS):
            await self._run_step(tenant, self._aggregate)

    async def _run_step(self, tenant: Tenant, step: Callable[[Tx], Awaitable[None]]) -> None:
        """Run `step` in a transaction of the tenant; errors are logged, not raised."""
        with log_errors(_LOG, "usage could not be aggregated", tenant):
            async with self.uow.begin(tenant, _CONTEXT) as tx:
                await step(tx)

    async def _aggregate(self, tx: Tx) -> None:
        await tx[UsageMeters].aggregate()
        levels = await self.service.measure_levels(tx)
        for meter, amount in levels.items():
            await tx[UsageMeters].record_level(meter, amount)
        if tx.tenant.livemode:
            await self._report_thresholds(
                tx, {**await tx[UsageMeters].get_month_usage(find_month_start(tx.now.date())), **levels}
            )

    async def _report_thresholds(self, tx: Tx, used: Mapping[str, int]) -> None:
        month, organisation = find_month_start(tx.now.date()), await tx[OrgStore].get_organisation()
        reported = {(one.meter, one.percent, one.included) for one in await tx[UsageMeters].list_thresholds(month)}
        included = {meter: organisation.plan.find_included_amount(meter) for meter in METERS}
        for meter, percent in find_reached_thresholds(used, included):
            quota = included[meter] or 0
            if (meter, percent, quota) in reported:
                continue
            is_delivery_limit = (meter, percent) == (DELIVERIES, 100) and (
                organisation.find_quota(meter, livemode=True) is not None
            )
            if await tx[UsageMeters].record_threshold(
                Threshold(meter, month, percent, quota, tx.now), suspends_deliveries=is_delivery_limit
            ):
                details = {
                    "id": tx.tenant.org,
                    "meter": meter,
                    "threshold": percent,
                    "used": used[meter],
                    "included": quota,
                }
                data = {**self.render_usage(await self.service.get_month_usage(tx), tx.tenant, tx.now), **details}
                await tx[EventLog].append([Event("usage.threshold_reached", tx.tenant.org, 1, data)])
            if is_delivery_limit:
                await self.notify_webhook_workers(tx)

    async def _resume_deliveries(self, tx: Tx) -> None:
        await tx[UsageMeters].resume_deliveries()
        await self.notify_webhook_workers(tx)
