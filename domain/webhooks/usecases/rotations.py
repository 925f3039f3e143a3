"""Ending rotations whose overlap is over: the former secret is forgotten."""

from dataclasses import dataclass
from typing import Final

from domain.kernel.tenancy import Actor, AuditContext
from domain.webhooks.ports import DeliveryLog
from domain.webhooks.usecases.service import WebhookService
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

_CONTEXT: Final = AuditContext(Actor("service", "scheduler"), "webhooks.end_rotation")
_BATCH: Final = 100


@dataclass(frozen=True, slots=True)
class Rotations:
    """What the leading scheduler ticks. A former secret signs no longer than its overlap, whenever this comes by."""

    uow: UnitOfWork
    log: DeliveryLog
    service: WebhookService
    clock: Clock

    async def end_lapsed(self) -> int:
        """End what is over, one transaction an endpoint; answers how many there were."""
        ended = 0
        while lapsed := await self.log.lapsed_rotations(self.clock.now(), _BATCH):
            for tenant, endpoint in lapsed:
                async with self.uow.begin(tenant, _CONTEXT) as tx:
                    await self.service.end_rotation(tx, endpoint)
            ended += len(lapsed)
        return ended
