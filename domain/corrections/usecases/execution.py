"""Background work of bulk corrections. Each portion is one transaction; another worker continues after the last one."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from domain.access.usecases import require_member_scope
from domain.catalogue.usecases.publication import limit_by_size
from domain.catalogue.usecases.writer import run_in_thread_if_large
from domain.corrections.model import (
    MAX_PROBLEMS,
    BatchAction,
    BatchProblem,
    BatchStatus,
    CorrectionBatch,
)
from domain.corrections.ports import CorrectionBatchStore, CorrectionStore
from domain.corrections.usecases.editing import CorrectionEditor
from domain.corrections.usecases.service import apply_action
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import LEASE
from domain.jobs.usecases.portions import execute_portions
from domain.kernel.bounds import MIB
from domain.kernel.errors import NotFound, Unprocessable
from ports.unit_of_work import Tx, UnitOfWork

MAX_PORTION_PRODUCTS = 50
"""Maximum number of products in one transaction."""
MAX_PORTION_BYTES = 2 * MIB
"""Maximum size of the documents of the products in one transaction, unless there is only one product."""
_PERSON_PREFIX = "usr_"
"""Prefix of the IDs of people; API keys and apps can undo bulk corrections."""
_PAUSE_RATIO = 1
"""Ratio of the pause after a portion to the time that the portion took, because a portion delays the runs of the organisation."""
_MAX_PAUSE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class BatchExecutor:
    """Handler of `corrections.execute` jobs, each of which executes one bulk correction."""

    uow: UnitOfWork

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Correct the products, portion by portion; `lost` is set if the worker has lost the job."""
        await execute_portions(
            self.uow, job, lost, _execute_portion, _end, pause_ratio=_PAUSE_RATIO, max_pause_seconds=_MAX_PAUSE_SECONDS
        )


async def _execute_portion(tx: Tx, job: ClaimedJob) -> bool:
    """Correct the next products; return whether the batch has ended."""
    batch = await tx[CorrectionBatchStore].get(str(job.args["batch"]), lock=True)
    if batch is None or not batch.is_open:
        await tx[JobStore].finish(job)
        return True
    next_products = batch.products[batch.done : batch.done + MAX_PORTION_PRODUCTS]
    products = await limit_by_size(tx, next_products, MAX_PORTION_BYTES)
    if not products:
        await _end(tx, job)
        return True
    if batch.made_by.startswith(_PERSON_PREFIX):
        await require_member_scope(tx, batch.made_by, "products:write")
    editor = await CorrectionEditor.load(tx, products, batch.made_by, batch.id)
    if batch.action == BatchAction.REVERSE:
        unchanged, problems = await _reverse(tx, editor, batch, products)
    else:
        unchanged, problems = await run_in_thread_if_large(editor.cluster.size, lambda: _apply(editor, batch, products))
    await editor.save()
    await tx[CorrectionStore].add_changes(batch.id, editor.changes)
    after = replace(
        batch,
        status=BatchStatus.RUNNING,
        done=batch.done + len(products),
        changed=batch.changed + len(editor.changes),
        unchanged=batch.unchanged + unchanged,
        problems=(*batch.problems, *problems)[:MAX_PROBLEMS],
        updated_at=tx.now,
    )
    await tx[CorrectionBatchStore].save(after)
    await tx[JobStore].renew_lease(job, LEASE)
    return False


def _apply(editor: CorrectionEditor, batch: CorrectionBatch, products: Sequence[str]) -> tuple[int, list[BatchProblem]]:
    """Correct the field of the products; return the number of unchanged values, and the problems."""
    unchanged, problems = 0, list[BatchProblem]()
    for product in products:
        for object in editor.list_objects(product, batch.level):
            current = editor.corrections.get(object).get(batch.field)
            if current is not None and current.batch == batch.id:  # products were merged meanwhile
                continue
            try:
                if not apply_action(editor, object, batch.field, batch.action, batch.value, product):
                    unchanged += 1
            except Unprocessable as error:
                problems.append(BatchProblem(object, error.detail))
    return unchanged, problems


async def _reverse(
    tx: Tx, editor: CorrectionEditor, batch: CorrectionBatch, products: Sequence[str]
) -> tuple[int, list[BatchProblem]]:
    """Restore the corrections before another batch, except those that have changed since; return as `_apply` does."""
    unchanged, problems = 0, list[BatchProblem]()
    for change in await tx[CorrectionStore].list_changes(str(batch.undoes), products):
        current = editor.corrections.get(change.object).get(change.field)
        if (current and (current.action, current.value)) != (
            change.after and (change.after.action, change.after.value)
        ):
            problems.append(BatchProblem(change.object, "The correction has changed since."))
            continue
        try:
            if not editor.restore(change.object, change.field, change.before, change.product):
                unchanged += 1
        except (Unprocessable, NotFound) as error:
            problems.append(BatchProblem(change.object, error.detail))
    return unchanged, problems


async def _end(tx: Tx, job: ClaimedJob, error: str | None = None) -> None:
    """Store the end of the batch, and the reason if it has failed, and finish the job."""
    batch = await tx[CorrectionBatchStore].get(str(job.args["batch"]), lock=True)
    if batch is not None and batch.is_open:
        status = BatchStatus.FAILED if error else BatchStatus.SUCCEEDED
        await tx[CorrectionBatchStore].save(replace(batch, status=status, error=error, updated_at=tx.now))
    await tx[JobStore].finish(job)
