"""Use cases of stock checks: start a check, and wait briefly for the sources' responses."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.catalogue.model import Offer, SourceItem, Stream
from domain.catalogue.ports import CatalogueStore
from domain.checks.model import (
    MAX_OPEN_CHECKS,
    PAUSES,
    CheckFailure,
    CheckFault,
    StockCheck,
    build_result,
)
from domain.ingestion.ports import Connectors
from domain.jobs.ports import JobStore
from domain.kernel.errors import NotFound
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.runs.model import CheckInput, Run, RunStatus, RunTrigger
from domain.runs.ports import RunStore
from domain.runs.run_queue import build_queued_run_change, new_execution_job, new_run
from domain.sources.model import FETCHED_KINDS, Source
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx, UnitOfWork


@dataclass(frozen=True, slots=True)
class CheckService:
    """Use cases of stock checks, which workers execute."""

    uow: UnitOfWork
    connectors: Connectors
    pauses: Sequence[float] = PAUSES
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def start_check(self, tx: Tx, variant: str) -> StockCheck:
        """Start a check: queue a run for each source that has offers of the variant and can check single items.

        Raises NotFound.
        """
        items = await tx[CatalogueStore].list_source_items(variant)
        if not items:
            raise NotFound
        check, offers = new_id("chk"), _select_live_offers(items)
        item_by_offer = {offer.id: item for item in items for offer in item.offers}
        requests = {}
        for source, item in sorted({offer.source: item_by_offer[offer.id] for offer in offers}.items()):
            requests[source] = await self._start_run(tx, source, item, check)
        sources = [source for source, run in requests.items() if isinstance(run, Run)]
        details = {"variant": variant, "sources": sources}
        await tx[AuditLog].add(Change("stock_check", check, "create", {}, details))
        return StockCheck(check, variant, [build_result(offer, requests[offer.source]) for offer in offers])

    async def wait_for_results(self, tenant: Tenant, check: StockCheck) -> StockCheck:
        """Wait a few seconds for the sources' responses, without a database connection; return the check."""
        for pause in self.pauses:
            if not any(result.is_waiting for result in check.results):
                break
            await self.sleep(pause)
            async with self.uow.begin_reading(tenant) as tx:
                check = await self._reload(tx, check)
        return check

    async def _start_run(self, tx: Tx, source_id: str, item: SourceItem, check: str) -> Run | CheckFailure:
        """Queue a run that checks the item, unless one is queued; return the run, or why there is none."""
        source = await tx[SourceStore].get(source_id, lock=True)
        if source is None or not self._can_check(source):
            message = "The source's connector does not support stock checks. Import the current stock by a run instead."
            return CheckFailure(CheckFault.NOT_CHECKABLE, message)
        if not source.is_runnable:
            message = f"The source is {source.status}. Only active and degraded sources are checked."
            return CheckFailure(CheckFault.SOURCE_NOT_ACTIVE, message)
        waiting = await tx[RunStore].list_open_checks(source_id, MAX_OPEN_CHECKS)
        for run in waiting:
            if run.status == RunStatus.QUEUED and _is_about(run, item.variant):
                return run  # has not queried the source yet
        if len(waiting) >= MAX_OPEN_CHECKS:
            message = f"{MAX_OPEN_CHECKS} checks of this source are already waiting. Try again when some have ended."
            return CheckFailure(CheckFault.TOO_MANY_CHECKS, message)
        check_input = CheckInput(check, item.variant)
        run = new_run(source_id, RunTrigger.STOCK_CHECK, tx.now, stream=Stream.STOCK, input=check_input)
        await tx[RunStore].add(run)
        await tx[JobStore].add(new_execution_job(run, tx.tenant))
        await tx[AuditLog].add(build_queued_run_change(run))
        return run

    def _can_check(self, source: Source) -> bool:
        info = self.connectors.find_connector(source.connector)
        return info is not None and info.can_check_stock and source.kind in FETCHED_KINDS

    async def _reload(self, tx: Tx, check: StockCheck) -> StockCheck:
        """Return the check with the current results of its runs; results without a run remain unchanged."""
        runs = {id: run for id in check.runs if (run := await tx[RunStore].get(id)) is not None}
        items = await tx[CatalogueStore].list_source_items(check.variant)
        offers = {offer.id: offer for item in items for offer in item.offers}
        return StockCheck(
            check.id,
            check.variant,
            [
                build_result(offers[one.offer], runs[one.run]) if one.run in runs and one.offer in offers else one
                for one in check.results
            ],
        )


def _select_live_offers(items: Sequence[SourceItem]) -> list[Offer]:
    """Return the offers that are not withdrawn, ordered by ID."""
    found = [offer for item in items for offer in item.offers if offer.withdrawn_at is None]
    return sorted(found, key=lambda offer: offer.id)


def _is_about(run: Run, variant: str) -> bool:
    return isinstance(run.input, CheckInput) and run.input.variant == variant
