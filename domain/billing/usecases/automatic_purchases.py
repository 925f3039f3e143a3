"""Automatic purchases of credit when the balance is low."""

import logging
from dataclasses import dataclass

from domain.billing.model import PurchaseKind, build_automatic_purchase_key
from domain.billing.ports import BillingRegistry
from domain.billing.usecases.purchases import PurchaseService
from domain.jobs.usecases.ticks import log_errors
from domain.kernel.tenancy import Actor, AuditContext

_CONTEXT = AuditContext(Actor("service", "scheduler"), "billing.buy_credit")
_LOG = logging.getLogger("joinery.billing")


@dataclass(frozen=True, slots=True)
class AutomaticPurchaser:
    """Buys credit for organisations that have chosen it, at most once a day each, in a scheduled task."""

    registry: BillingRegistry
    purchases: PurchaseService

    async def buy_due(self) -> None:
        """Buy credit with the stored card for each organisation with low credit; errors are logged."""
        if self.purchases.billing.payments is None:
            return
        day = self.purchases.billing.clock.now().date()
        for tenant, credits in await self.registry.list_automatic_purchases(day):
            with log_errors(_LOG, "credit not bought", tenant):
                await self.purchases.buy(
                    tenant, _CONTEXT, credits, build_automatic_purchase_key(day), PurchaseKind.AUTOMATIC
                )
