"""Corrections in catalogues of tests, by the use cases and their job."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from domain.agents.usecases.variant_groups import VariantGrouper
from domain.audit.model import AuditAct, AuditFilter
from domain.audit.ports import AuditLog
from domain.catalogue.corrections import Correction, CorrectionAction
from domain.corrections.model import BatchAction, CorrectionBatch, CorrectionFilter
from domain.corrections.ports import CorrectionBatchStore, CorrectionStore
from domain.corrections.usecases.execution import BatchExecutor
from domain.corrections.usecases.service import CorrectionService
from domain.events.model import Event
from domain.jobs.model import build_lane_name
from domain.jobs.ports import JobDispatcher
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.resource import require_found
from domain.kernel.tenancy import Actor
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from tests.support import builders
from tests.support.merged_catalogues import MERGING, MergedCatalogue

SERVICE = CorrectionService()
ANNA = replace(builders.CALL, actor=Actor("user", "usr_anna"), operation="corrections.correct", is_reversible=True)


@dataclass
class CorrectedCatalogue:
    """Catalogue that one person corrects."""

    shop: MergedCatalogue
    dispatch: JobDispatcher
    grouper: VariantGrouper = field(default_factory=lambda: VariantGrouper(MERGING, SERVICE))

    async def correct(self, object: str, field: str, value: Any = None, action: str = "override") -> list[Event]:
        """Correct a field; return the events."""
        async with self.shop.uow.begin(self.shop.tenant, ANNA) as tx:
            await SERVICE.correct(tx, object, field, CorrectionAction(action), value)
            return list(tx.recorded.events)

    async def remove(self, correction: Correction) -> list[Event]:
        async with self.shop.uow.begin(self.shop.tenant, ANNA) as tx:
            await SERVICE.remove(tx, correction.id)
            return list(tx.recorded.events)

    async def group(self, title: str, variants: Mapping[str, Mapping[str, str]]) -> None:
        """Show the products of the variants as one."""
        async with self.shop.uow.begin(self.shop.tenant, ANNA) as tx:
            await self.grouper.group_products(tx, {"title": title, "variants": variants})

    async def list(self, **filter: Any) -> list[Correction]:
        """Return the corrections that match a filter, newest first."""
        async with self.shop.uow.begin_reading(self.shop.tenant) as tx:
            return [*(await tx[CorrectionStore].page(PageRequest(500), CorrectionFilter(**filter))).items]

    async def find(self, object: str, field: str) -> Correction:
        """Return the correction of a field."""
        [found] = [one for one in await self.list(field=field) if one.object == object]
        return found

    async def apply(
        self, products: Sequence[str], field: str, action: str, value: Any = None, level: str = "product"
    ) -> CorrectionBatch:
        """Correct many products, and execute the job."""
        async with self.shop.uow.begin(self.shop.tenant, replace(ANNA, operation="corrections.apply")) as tx:
            batch = await SERVICE.apply(tx, products, field, BatchAction(action), value, level)
        await self.work()
        return await self.get_batch(batch.id)

    async def undo_batch(self, id: str) -> CorrectionBatch:
        """Undo a bulk correction as the audit log does, and execute the job."""
        async with self.shop.uow.begin(self.shop.tenant, ANNA) as tx:
            [entry] = (await tx[AuditLog].page(PageRequest(1), AuditFilter(target=id))).items
            await SERVICE.undo(tx, AuditAct((entry,), entry))
            [change] = tx.recorded.changes
        await self.work()
        return await self.get_batch(change.id)

    async def get_batch(self, id: str) -> CorrectionBatch:
        async with self.shop.uow.begin_reading(self.shop.tenant) as tx:
            return require_found(await tx[CorrectionBatchStore].get(id))

    async def work(self) -> None:
        """Execute the waiting bulk corrections of the person, who is a member."""
        async with self.shop.uow.begin(self.shop.tenant, ANNA) as tx:
            if await tx[OrgStore].find_member_by_user(ANNA.actor.id) is None:
                await tx[OrgStore].add_member(
                    Member(ANNA.actor.id, tx.tenant.org, f"{new_id('usr')}@fjord.example", "editor", tx.now)
                )
        lane = build_lane_name(self.shop.tenant.org, f"corrections:{self.shop.tenant.mode}")
        while jobs := await self.dispatch.claim(lane, 10, timedelta(seconds=30)):
            for job in jobs:
                await BatchExecutor(self.shop.uow)(job, asyncio.Event())
