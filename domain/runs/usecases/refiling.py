"""Filing a source's stored products by its category rules of now: nothing is fetched or read, and only what moves is written."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from domain.catalogue.batch import KeyRange
from domain.catalogue.category_rules import Filed
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.usecases.writing import write
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.errors import DomainError
from domain.runs.model import Run, RunError, RunErrorCode, RunStage, RunStatus
from domain.runs.ports import RunStore
from domain.runs.usecases.category_rules import filing_of
from domain.runs.usecases.execution import TRIES
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx, UnitOfWork

_LOG = logging.getLogger("joinery.runs")
LOOKED_AT: Final = 2_000
"""Products that are looked at in one transaction."""
WRITTEN: Final = 250
"""Products that are written in one transaction."""


@dataclass(frozen=True, slots=True)
class Refiling:
    """The handler of `runs.refile` jobs. What is filed rightly is passed over, so whoever takes it over begins anew.

    It says nothing of the source's health, freshness or schedule, for the source is not asked.
    """

    uow: UnitOfWork
    lease: timedelta = timedelta(seconds=30)

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """File every product, or end the run as failed. Raises LeaseLost when another worker took it over."""
        context = job.context()
        after: str | None = ""
        try:
            while after is not None and not lost.is_set():
                async with self.uow.begin(job.tenant, context) as tx:
                    after = await self._step(tx, job, after)
        except DomainError:
            raise
        except Exception as error:
            if job.attempt < TRIES:
                raise
            _LOG.exception("refiling given up after %d attempts", TRIES, extra={"run": job.args["run"]})
            async with self.uow.begin(job.tenant, context) as tx:
                await _fail(tx, job, error)

    async def _step(self, tx: Tx, job: ClaimedJob, after: str) -> str | None:
        """File some products, those behind that id; answers behind which to go on, or None at the end."""
        run = await tx[RunStore].get(str(job.args["run"]))
        source = await tx[SourceStore].get(run.source) if run else None
        if run is None or source is None or run.finished_at is not None:
            await tx[JobStore].finish(job)
            return None
        looked_at = await tx[CatalogueStore].filings(source.id, after, LOOKED_AT)
        filing = await filing_of(tx, source.id)
        misfiled = [one for one in looked_at if filing.category(one.path, one.stated) != one.category]
        reconciler = CatalogueReconciler(source, run.id, run.stream, tx.now, False, {}, lambda _: True, filing=filing)
        events = await self._write(tx, source, reconciler, misfiled[:WRITTEN])
        at_end = len(looked_at) < LOOKED_AT and len(misfiled) <= WRITTEN
        seen = misfiled[WRITTEN - 1].id if len(misfiled) > WRITTEN else looked_at[-1].id if looked_at else after
        await tx[RunStore].save(_further(run, reconciler, tx, at_end=at_end))
        await tx[EventLog].append(events)
        await (tx[JobStore].finish(job) if at_end else tx[JobStore].hold(job, self.lease))
        return None if at_end else seen

    async def _write(
        self, tx: Tx, source: Source, reconciler: CatalogueReconciler, chosen: Sequence[Filed]
    ) -> Sequence[Event]:
        if not chosen:
            return ()
        await tx[CatalogueStore].take_turn()
        products = await tx[CatalogueStore].load(source.id, [one.key for one in chosen])
        for product in products.values():
            reconciler.refile(product)
        return await write(tx, KeyRange(source.id, reconciler.stream, 0, 0), reconciler)


async def _fail(tx: Tx, job: ClaimedJob, error: Exception) -> None:
    run = await tx[RunStore].get(str(job.args["run"]))
    if run is not None:
        message = f"The service met an error of its own ({type(error).__name__}); set the rules again to go on."
        await tx[RunStore].save(run.ended(RunStatus.FAILED, tx.now, RunError(RunErrorCode.INTERNAL_ERROR, message)))
    await tx[JobStore].finish(job)


def _further(run: Run, reconciler: CatalogueReconciler, tx: Tx, *, at_end: bool) -> Run:
    changed = reconciler.counts.get("products_changed", 0)
    stats = {**run.stats, "products_changed": run.stats.get("products_changed", 0) + changed}
    run = replace(run.started(tx.now), stage=RunStage.STORE, stats=stats)
    return run.ended(RunStatus.SUCCEEDED, tx.now) if at_end else run
