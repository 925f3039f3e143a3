"""Use cases of bulk actions, and their execution, portion by portion. Another worker continues after the last portion."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from domain.access.usecases import require_member_scope
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.bulk_actions.model import (
    MAX_PRODUCTS,
    MAX_STORED_ACTIONS,
    BulkAction,
    BulkActionKind,
    BulkActionStatus,
    create_bulk_action_job,
)
from domain.catalogue.model import Visibility
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import LEASE
from domain.jobs.usecases.portions import execute_portions
from domain.kernel.errors import DomainError, InvalidRequest
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.resource import with_changes
from domain.kernel.tenancy import Actor, AuditContext
from domain.matching.index import create_matching_job
from domain.matching.ports import MatchIndexStore
from domain.orgs.usecases.service import require_person
from domain.publishing.usecases.service import PublishingService
from ports.unit_of_work import Tx, UnitOfWork

PORTION_PRODUCTS = 200
"""Number of products in one transaction."""
SET_VISIBILITY: Final = "publishing.set_visibility"
"""Operation that the audit log records for a change of visibility, by which each portion can be undone."""
_SCOPES: Final = {
    BulkActionKind.LIST: "catalogue:write",
    BulkActionKind.HIDE: "catalogue:write",
    BulkActionKind.REMATCH: "products:write",
}
"""Scope that the role of the person must include."""
_VISIBILITIES: Final = {BulkActionKind.LIST: Visibility.LISTED, BulkActionKind.HIDE: Visibility.HIDDEN}


async def start_bulk_action(tx: Tx, kind: BulkActionKind, products: Sequence[str]) -> BulkAction:
    """Queue an action of the caller on the products, and return it. Older actions than MAX_STORED_ACTIONS are deleted.

    Raises InvalidRequest if there are no products or more than MAX_PRODUCTS.
    """
    if not 0 < len(products) <= MAX_PRODUCTS:
        raise InvalidRequest.for_field("products", "invalid_value", f"Select 1 to {MAX_PRODUCTS:,} products.")
    action = BulkAction(
        id=new_id("blk"),
        person=require_person(tx),
        kind=kind,
        products=tuple(products),
        total=len(products),
        created_at=tx.now,
        updated_at=tx.now,
    )
    store = tx.store(BulkAction)
    newest = await store.page(PageRequest(MAX_STORED_ACTIONS - 1))
    if newest.has_more:
        older = await store.page(PageRequest(MAX_STORED_ACTIONS, newest.next_key))
        for one in older.items:
            if not one.is_open:
                await store.remove(one.id)
    await store.add(action)
    await tx[JobStore].add(create_bulk_action_job(action, tx.tenant))
    return action


@dataclass(frozen=True, slots=True)
class BulkActionExecutor:
    """Handler of `bulk_actions.execute` jobs."""

    uow: UnitOfWork

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Execute the action, portion by portion; `lost` is set if the worker has lost the job."""
        async with self.uow.begin_reading(job.tenant) as tx:
            action: BulkAction | None = await tx.store(BulkAction).get(str(job.args["action"]))
        context = job.create_context()
        if action is not None:
            is_reversible = action.kind in _VISIBILITIES
            operation = SET_VISIBILITY if is_reversible else f"bulk_actions.{action.kind}"
            context = AuditContext(Actor("user", action.person), operation, is_reversible=is_reversible, job_id=job.id)
        await execute_portions(
            self.uow, job, lost, _execute_portion, _end, context=context, permanent_errors=(DomainError,)
        )


async def _execute_portion(tx: Tx, job: ClaimedJob) -> bool:
    """Apply the action to the next products; return whether it has ended. Raises the errors of the use cases."""
    action: BulkAction | None = await tx.store(BulkAction).get(str(job.args["action"]), lock=True)
    if action is None or not action.is_open:
        await tx[JobStore].finish(job)
        return True
    products = action.products[action.position : action.position + PORTION_PRODUCTS]
    if not products:
        await _end(tx, job)
        return True
    await require_member_scope(tx, action.person, _SCOPES[action.kind])
    changed = await _apply(tx, action.kind, products)
    position = action.position + len(products)
    values = {"status": BulkActionStatus.RUNNING, "position": position, "changed": action.changed + changed}
    await tx.store(BulkAction).save(with_changes(action, tx.now, **values))
    await tx[JobStore].renew_lease(job, LEASE)
    return False


async def _apply(tx: Tx, kind: BulkActionKind, products: Sequence[str]) -> int:
    """Apply an action to products, and return how many it changed."""
    if kind == BulkActionKind.REMATCH:
        queued = await tx[MatchIndexStore].requeue_products(products)
        await tx[JobStore].add(create_matching_job(tx.tenant))
        await tx[AuditLog].add(Change("organisation", tx.tenant.org, "update", {}, {"rematched": queued}))
        return queued
    change = await PublishingService().set_visibility(tx, {"visibility": _VISIBILITIES[kind], "products": [*products]})
    return change.changed


async def _end(tx: Tx, job: ClaimedJob, error: str | None = None) -> None:
    """Store the end of the action, and the reason if it has failed, and finish the job."""
    action: BulkAction | None = await tx.store(BulkAction).get(str(job.args["action"]), lock=True)
    if action is not None and action.is_open:
        status = BulkActionStatus.FAILED if error else BulkActionStatus.SUCCEEDED
        await tx.store(BulkAction).save(with_changes(action, tx.now, status=status, error=error, products=()))
    await tx[JobStore].finish(job)
