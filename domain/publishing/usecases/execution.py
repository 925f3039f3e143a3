"""Background work of publication. Each portion is one transaction; another worker continues after the last one."""

import asyncio
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

from domain.audit.ports import AuditLog
from domain.catalogue.licences import find_view
from domain.catalogue.model import Visibility
from domain.catalogue.ports import CatalogueStore, PublishedCopies
from domain.catalogue.publication import create_assessment_job
from domain.catalogue.usecases.publication import change_visibility, limit_by_size, refresh_copies
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import LEASE
from domain.jobs.usecases.portions import execute_portions
from domain.kernel.bounds import MIB
from domain.publishing.completeness import compute_score, list_missing_of_product
from domain.publishing.model import (
    AUDITED,
    MAX_PROBLEMS,
    Assessment,
    PublicationError,
    PublicationKind,
    PublicationProblem,
    PublicationRun,
    PublicationStatus,
)
from domain.publishing.ports import LicenceStore, PublicationStore
from domain.publishing.usecases.licences import LicenceService
from ports.unit_of_work import Tx, UnitOfWork

MAX_PORTION_PRODUCTS = 100
"""Maximum number of products in one transaction."""
MAX_PORTION_BYTES = 4 * MIB
"""Maximum size of the documents of the products in one transaction, unless there is only one product."""
_ASSESSED_DOCUMENTS = 100
"""Number of documents that are assessed at once."""
_PAUSE_RATIO = 5
"""Ratio of the pause after a portion to the time that the portion took, so that it hardly slows other organisations' requests."""
_MAX_PAUSE_SECONDS = 5.0
_UNSHAREABLE = (
    "A source of the product, or of a product merged with it, has a licence basis with which data must not leave the "
    "organisation. Set another licence basis, or undo the merge."
)


@dataclass(frozen=True, slots=True)
class PublicationExecutor:
    """Handler of `publishing.execute` jobs, each of which executes one publication run."""

    uow: UnitOfWork

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Publish or withdraw the run's products, portion by portion; `lost` is set if the worker has lost the job."""
        await execute_portions(
            self.uow,
            job,
            lost,
            _execute_portion,
            _end_run,
            pause_ratio=_PAUSE_RATIO,
            max_pause_seconds=_MAX_PAUSE_SECONDS,
        )


async def _execute_portion(tx: Tx, job: ClaimedJob) -> bool:
    """Change the visibility of the next products; return whether the run has ended."""
    run = await tx[PublicationStore].get(str(job.args["run"]), lock=True)
    if run is None or not run.is_open:
        await tx[JobStore].finish(job)
        return True
    await tx[PublicationStore].lock_creation()
    await tx[CatalogueStore].lock_for_writing()
    visibility = Visibility.LISTED if run.kind == PublicationKind.PUBLISH else Visibility.UNLISTED
    ids = await tx[PublicationStore].list_candidates(run.kind, run.products, run.position, MAX_PORTION_PRODUCTS)
    if not ids:
        if run.kind == PublicationKind.WITHDRAW and run.products is None:
            if await tx[PublicationStore].count_candidates(run.kind, None):
                # products with lower IDs were listed during the run: start again
                await tx[PublicationStore].save(replace(run, position=""))
                await tx[JobStore].renew_lease(job, LEASE)
                return False
            await LicenceService().mark_withdrawn(tx)
        await _end_run(tx, job)
        return True
    ids = await limit_by_size(tx, ids, MAX_PORTION_BYTES)
    outcome = await change_visibility(tx, ids, visibility)
    problems = [PublicationProblem(id, "licence_basis", _UNSHAREABLE) for id in outcome.unshareable]
    await tx[EventLog].append(outcome.events)
    after = replace(
        run,
        status=PublicationStatus.RUNNING,
        position=ids[-1],
        done=run.done + len(ids),
        total=max(run.total, run.done + len(ids)),
        problems=(*run.problems, *problems)[:MAX_PROBLEMS],
        started_at=run.started_at or tx.now,
        updated_at=tx.now,
    )
    await tx[PublicationStore].save(after)
    await tx[JobStore].renew_lease(job, LEASE)
    return False


async def _end_run(tx: Tx, job: ClaimedJob, reason: str | None = None) -> None:
    """Store the end of the run, and the reason if it has failed, and finish the job."""
    run = await tx[PublicationStore].get(str(job.args["run"]), lock=True)
    if run is not None and run.is_open:
        started = run.started_at or tx.now
        status = PublicationStatus.FAILED if reason else PublicationStatus.SUCCEEDED
        error = PublicationError("internal_error", reason) if reason else None
        ended: PublicationRun = replace(
            run, status=status, error=error, started_at=started, completed_at=tx.now, updated_at=tx.now
        )
        await tx[PublicationStore].save(ended)
        await tx[AuditLog].add(AUDITED.describe_update(run, ended))
        await tx[JobStore].add(create_assessment_job(tx.tenant))
    await tx[JobStore].finish(job)


@dataclass(frozen=True, slots=True)
class ViewWriter:
    """Handler of `publishing.write_view` jobs, which write the documents that a new kind of licence needs."""

    uow: UnitOfWork

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Write the documents of all listed products, and then let the licences' holders read them."""
        view, after = str(job.args["view"]), ""
        while not lost.is_set():
            async with self.uow.begin(job.tenant, job.create_context()) as tx:
                ids = await tx[PublicationStore].list_listed_products(after, MAX_PORTION_PRODUCTS)
                if not ids:
                    await self._finish(tx, view)
                    await tx[JobStore].finish(job)
                    return
                ids = await limit_by_size(tx, ids, MAX_PORTION_BYTES)
                states = await tx[PublishedCopies].lock_states(ids)
                if copied := [state.id for state in states if state.has_copy]:
                    await tx[PublishedCopies].write_documents(copied, (view,))
                after = ids[-1]
                await tx[JobStore].renew_lease(job, LEASE)

    async def _finish(self, tx: Tx, view: str) -> None:
        """Write the documents of transactions that began without the view, and let the licences' holders read the view."""
        await tx[CatalogueStore].lock_for_writing(merging=True)
        while ids := await tx[PublicationStore].list_products_without_view(view, MAX_PORTION_PRODUCTS):
            await tx[PublishedCopies].write_documents(ids, (view,))
        groups = next(
            (licence.groups for licence in await tx[LicenceStore].list_licences() if find_view(licence.groups) == view),
            None,
        )
        if groups is not None:
            await tx[LicenceStore].set_view(view, sorted(groups))


@dataclass(frozen=True, slots=True)
class SourceRefresher:
    """Handler of `publishing.refresh_source` jobs, which update the copies of products after a source's licence basis changed."""

    uow: UnitOfWork

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Update the copies of the source's products, and of all products merged with them."""
        source, after = str(job.args["source"]), ""
        while not lost.is_set():
            async with self.uow.begin(job.tenant, job.create_context()) as tx:
                await tx[CatalogueStore].lock_for_writing()
                ids = await tx[PublishedCopies].list_products_of_source(source, after, MAX_PORTION_PRODUCTS)
                if not ids:
                    await tx[JobStore].finish(job)
                    return
                ids = await limit_by_size(tx, ids, MAX_PORTION_BYTES)
                await tx[EventLog].append(await refresh_copies(tx, ids))
                after = ids[-1]
                await tx[JobStore].renew_lease(job, LEASE)


@dataclass(frozen=True, slots=True)
class CatalogueAssessor:
    """Handler of `publishing.assess` jobs, which assess the completeness of the catalogue."""

    uow: UnitOfWork

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Count the fields that products lack, and store the assessment."""
        missing, scores, products, after = Counter[str](), 0, 0, ""
        while not lost.is_set():
            async with self.uow.begin(job.tenant, job.create_context()) as tx:
                documents = await tx[PublicationStore].list_documents(after, _ASSESSED_DOCUMENTS)
                if not documents:
                    score = round(scores / products) if products else 0
                    await tx[PublicationStore].save_assessment(Assessment(products, score, dict(missing), tx.now))
                    await tx[JobStore].finish(job)
                    return
                await tx[JobStore].renew_lease(job, LEASE)
            after = max(documents)
            for found in await asyncio.to_thread(_list_missing, list(documents.values())):
                missing.update(found)
                scores += compute_score(found)
                products += 1


def _list_missing(documents: Collection[object]) -> list[list[str]]:
    return [list_missing_of_product(document) for document in documents]  # type: ignore[arg-type]
