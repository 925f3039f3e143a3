"""Use cases of stock checks: start a check and wait briefly for the responses."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.catalogue.model import Offer, SourceItem, Stream
from domain.catalogue.ports import CatalogueStore
from domain.checks.model import (
    OPEN_CHECKS,
    PAUSES,
    CheckFailure,
    CheckFault,
    StockCheck,
    result_of,
)
from domain.ingestion.ports import Connectors
from domain.jobs.ports import JobStore
from domain.kernel.errors import NotFound
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.runs.model import CheckInput, Run, RunStatus, RunTrigger
from domain.runs.ports import RunStore
from domain.runs.queueing import execution, queued, started
from domain.sources.model import FETCHED_KINDS, Source
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx, UnitOfWork


@dataclass(frozen=True, slots=True)
class CheckService:
    """Stock checks of a tenant's variants; workers execute them."""

    uow: UnitOfWork
    connectors: Connectors
    pauses: Sequence[float] = PAUSES
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def begin(self, tx: Tx, variant: str) -> StockCheck:
        """Queue a run for the source of each of the variant's offers, except for sources that cannot be asked.

        Raises NotFound.
        """
        items = await tx[CatalogueStore].items(variant)
        if not items:
            raise NotFound
        check, offers = new_id("chk"), _live_offers(items)
        whose = {offer.id: item for item in items for offer in item.offers}
        asked = {}
        for source, item in sorted({offer.source: whose[offer.id] for offer in offers}.items()):
            asked[source] = await self._start_run(tx, source, item, check)
        sources = [source for source, run in asked.items() if isinstance(run, Run)]
        told = {"variant": variant, "sources": sources}
        await tx[AuditLog].add(Change("stock_check", check, "create", {}, told))
        return StockCheck(check, variant, [result_of(offer, asked[offer.source]) for offer in offers])

    async def settled(self, tenant: Tenant, check: StockCheck) -> StockCheck:
        """Wait some seconds for the responses of all sources and return the check; no connection is held while waiting."""
        for pause in self.pauses:
            if not any(result.waits for result in check.results):
                break
            await self.sleep(pause)
            async with self.uow.read(tenant) as tx:
                check = await self._poll(tx, check)
        return check

    async def _start_run(self, tx: Tx, id: str, item: SourceItem, check: str) -> Run | CheckFailure:
        """Return the run that checks the source, or the reason why it cannot be checked."""
        source = await tx[SourceStore].get(id, lock=True)
        if source is None or not self._can_check(source):
            message = "The source's connector cannot ask for one item's stock."
            return CheckFailure(CheckFault.NOT_CHECKABLE, message)
        if not source.runnable:
            return CheckFailure(CheckFault.SOURCE_NOT_ACTIVE, f"The source is {source.status}.")
        waiting = await tx[RunStore].open_checks(id, OPEN_CHECKS)
        for run in waiting:
            if run.status == RunStatus.QUEUED and _is_about(run, item.variant):
                return run  # has not asked yet
        if len(waiting) >= OPEN_CHECKS:
            message = f"{OPEN_CHECKS} checks of this source wait already; ask again when some are over."
            return CheckFailure(CheckFault.TOO_MANY_CHECKS, message)
        asked = CheckInput(check, item.variant)
        run = queued(id, RunTrigger.STOCK_CHECK, tx.now, stream=Stream.STOCK, input=asked)
        await tx[RunStore].add(run)
        await tx[JobStore].add(execution(run, tx.tenant))
        await tx[AuditLog].add(started(run))
        return run

    def _can_check(self, source: Source) -> bool:
        info = self.connectors.info(source.connector)
        return info is not None and info.checks and source.kind in FETCHED_KINDS

    async def _poll(self, tx: Tx, check: StockCheck) -> StockCheck:
        """Return the current state of the check; failures remain."""
        runs = {id: run for id in check.runs if (run := await tx[RunStore].get(id)) is not None}
        items = await tx[CatalogueStore].items(check.variant)
        offers = {offer.id: offer for item in items for offer in item.offers}
        return StockCheck(
            check.id,
            check.variant,
            [
                result_of(offers[one.offer], runs[one.run]) if one.run in runs and one.offer in offers else one
                for one in check.results
            ],
        )


def _live_offers(items: Sequence[SourceItem]) -> list[Offer]:
    """Return the offers that are not withdrawn, by ID."""
    found = [offer for item in items for offer in item.offers if offer.withdrawn_at is None]
    return sorted(found, key=lambda offer: offer.id)


def _is_about(run: Run, variant: str) -> bool:
    return isinstance(run.input, CheckInput) and run.input.variant == variant
