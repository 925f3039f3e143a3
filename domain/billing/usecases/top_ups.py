"""Automatic purchases of credit when the balance is low."""

import logging
from dataclasses import dataclass

from domain.billing.model import PurchaseKind, build_top_up_key
from domain.billing.ports import BillingRegistry
from domain.billing.usecases.purchases import PurchaseService
from domain.kernel.errors import DomainError
from domain.kernel.tenancy import Actor, AuditContext
from ports.clock import Clock

_CONTEXT = AuditContext(Actor("service", "scheduler"), "billing.top_up")
_LOG = logging.getLogger("joinery.billing")


@dataclass(frozen=True, slots=True)
class TopUps:
    """Scheduled task that buys credit for organisations that have chosen it, at most once a day each."""

    clock: Clock
    registry: BillingRegistry
    purchases: PurchaseService

    async def buy_due(self) -> None:
        """Buy credit with the stored card for each organisation with low credit; errors are logged."""
        if self.purchases.billing.payments is None:
            return
        day = self.clock.now().date()
        for tenant, credits in await self.registry.list_top_ups(day):
            try:
                await self.purchases.buy(tenant, _CONTEXT, credits, build_top_up_key(day), PurchaseKind.AUTOMATIC)
            except DomainError as error:
                _LOG.warning("credit not bought: %s", error, extra={"org": tenant.org})
            except Exception:
                _LOG.exception("credit not bought", extra={"org": tenant.org})
