"""Folding of usage into days, with notification at 80% and 100% of what a plan includes."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.events.model import Event
from domain.events.ports import EventLog
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.orgs.ports import OrgStore
from domain.usage.meters import DELIVERIES, METERS, Threshold, month_of, reached
from domain.usage.ports import UsageMeters, UsageUpkeep
from domain.usage.usecases.service import Usage, UsageService
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

Describe = Callable[[Usage, Tenant, datetime], Mapping[str, Any]]
AT_ONCE = 1_000
"""Maximum tenants per tick."""
_LOG = logging.getLogger("joinery.usage")
_CONTEXT = AuditContext(Actor("service", "scheduler"), "usage.fold")


@dataclass(frozen=True, slots=True)
class UsageFolding:
    """Tick of the leading scheduler; a concurrent run is harmless."""

    uow: UnitOfWork
    upkeep: UsageUpkeep
    clock: Clock
    describe: Describe
    """Returns the resource that the event carries."""
    service: UsageService
    wake: Callable[[Tx], Awaitable[None]]
    """Notifies workers to reload the tenant's webhook endpoints."""

    async def tick(self) -> None:
        """Fold each tenant's entries in a transaction of its own, and resume deliveries that were held back."""
        for tenant in await self.upkeep.to_resume(month_of(self.clock.now().date())):
            await self._run_step(tenant, self._resume)
        for tenant in await self.upkeep.unfolded(AT_ONCE):
            await self._run_step(tenant, self._fold)

    async def _run_step(self, tenant: Tenant, step: Callable[[Tx], Awaitable[None]]) -> None:
        """Run the step for a tenant; errors are logged, and its entries remain for the next tick."""
        try:
            async with self.uow.begin(tenant, _CONTEXT) as tx:
                await step(tx)
        except Unavailable as error:
            _LOG.warning("usage could not be folded: %s", error, extra={"org": tenant.org})
        except Exception:
            _LOG.exception("usage could not be folded", extra={"org": tenant.org})

    async def _fold(self, tx: Tx) -> None:
        await tx[UsageMeters].fold()
        levels = await self.service.levels(tx)
        for meter, amount in levels.items():
            await tx[UsageMeters].note(meter, amount)
        if tx.tenant.livemode:
            await self._report_thresholds(tx, {**await tx[UsageMeters].used(month_of(tx.now.date())), **levels})

    async def _report_thresholds(self, tx: Tx, used: Mapping[str, int]) -> None:
        month, plan = month_of(tx.now.date()), (await tx[OrgStore].own()).plan
        reported = {(one.meter, one.percent, one.included) for one in await tx[UsageMeters].thresholds(month)}
        included = {meter: plan.included(meter) for meter in METERS}
        for meter, percent in reached(used, included):
            most = included[meter] or 0
            if (meter, percent, most) in reported:
                continue
            hold_back = (meter, percent) == (DELIVERIES, 100)
            if await tx[UsageMeters].reach(Threshold(meter, month, percent, most, tx.now), hold_back=hold_back):
                which = {
                    "id": tx.tenant.org,
                    "meter": meter,
                    "threshold": percent,
                    "used": used[meter],
                    "included": most,
                }
                data = {**self.describe(await self.service.usage(tx), tx.tenant, tx.now), **which}
                await tx[EventLog].append([Event("usage.threshold_reached", tx.tenant.org, 1, data)])
            if hold_back:
                await self.wake(tx)

    async def _resume(self, tx: Tx) -> None:
        await tx[UsageMeters].resume()
        await self.wake(tx)
