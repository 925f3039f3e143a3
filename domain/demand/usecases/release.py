"""Release of the cells of days that are over, across organisations (ADR 107)."""

import logging
from dataclasses import dataclass

from domain.demand.cells import Cell, build_cells, select_releasable
from domain.demand.model import PRODUCT_SIGNAL_TYPES, DemandDay, SignalType, find_release_bound
from domain.demand.ports import DemandUpkeep, VendorStatsStore
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

_LOG = logging.getLogger("joinery.demand")
_CONTEXT = AuditContext(Actor("service", "scheduler"), "demand.release")


@dataclass(frozen=True, slots=True)
class DemandReleaser:
    """Scheduled task that releases the cells of each vendor's days; concurrent and repeated runs have the effect of one."""

    uow: UnitOfWork
    upkeep: DemandUpkeep
    clock: Clock

    async def release_days(self) -> None:
        """Release the cells of all days that are over, and delete the signals of these days."""
        for day in await self.upkeep.list_days(find_release_bound(self.clock.now())):
            try:
                await self.release_day(day)
            except Unavailable as error:
                _LOG.warning("cells not released: %s", error, extra={"org": day.vendor})
            except Exception:
                _LOG.exception("cells not released", extra={"org": day.vendor})

    async def release_day(self, day: DemandDay) -> None:
        """Store the cells of a day in one transaction, then delete the day's signals.

        After a crash in between, the day is found again. Its cells are then stored already and do not change.
        """
        if day.vendor:
            cells = [cell for kind in PRODUCT_SIGNAL_TYPES for cell in await self._compute_cells(day, kind)]
            async with self.uow.begin(Tenant(day.vendor, day.livemode), _CONTEXT) as tx:
                await tx[VendorStatsStore].add_cells(day.day, cells)
        else:
            cells = await self._compute_cells(day, SignalType.SEARCH_MISS)
            await self.upkeep.add_query_cells(day.livemode, day.day, cells)
        await self.upkeep.remove_signals(day)

    async def delete_expired(self) -> None:
        """Delete IDs of signals, and cells, whose retention has ended."""
        await self.upkeep.delete_expired(self.clock.now())

    async def _compute_cells(self, day: DemandDay, kind: SignalType) -> list[Cell]:
        released = select_releasable(await self.upkeep.summarise_subjects(day, kind))
        return build_cells(kind, released, await self.upkeep.summarise_rest(day, kind, released.keys()))
