"""Scheduled expiry and deletion of proposals."""

import logging
from dataclasses import dataclass
from typing import Final

from domain.jobs.usecases.ticks import log_errors
from domain.kernel import retention
from domain.kernel.tenancy import Actor, AuditContext
from domain.proposals.ports import ProposalStore, ProposalUpkeep
from domain.proposals.staleness import save_stale
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

_LOG = logging.getLogger("joinery.proposals")
_EXPIRY = AuditContext(Actor("service", "scheduler"), "proposals.expire")
MAX_TENANTS: Final = 1_000
"""Maximum number of tenants that are processed in one run of the task."""


@dataclass(frozen=True, slots=True)
class ProposalExpirer:
    """Scheduled tasks that mark expired proposals as stale, and delete old ones; concurrent runs do no harm."""

    uow: UnitOfWork
    upkeep: ProposalUpkeep
    clock: Clock

    async def mark_expired(self) -> None:
        """Mark the expired proposals of each tenant as stale; errors are logged."""
        for tenant in await self.upkeep.list_tenants_with_expired(self.clock.now(), MAX_TENANTS):
            with log_errors(_LOG, "expired proposals not marked as stale", tenant):
                async with self.uow.begin(tenant, _EXPIRY) as tx:
                    for expired in await tx[ProposalStore].lock_expired():
                        await save_stale(tx, expired, "The proposal has expired.")

    async def delete_decided(self) -> None:
        """Delete decided proposals by age."""
        await self.upkeep.delete_decided(self.clock.now() - retention.PROPOSALS)
