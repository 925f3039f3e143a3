"""Rebuilding of documents whose images have changed, in batches and without events."""

from datetime import timedelta

from domain.catalogue.usecases.publication import refresh_copies
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.tenancy import AuditContext
from domain.media.ports import MediaStore
from ports.unit_of_work import UnitOfWork

_BATCH_SIZE = 100


async def rebuild_pending_documents(uow: UnitOfWork, job: ClaimedJob, context: AuditContext, lease: timedelta) -> None:
    """Rebuild the documents of all products whose images changed, unless another transaction has locked the product.

    Each transaction rebuilds up to a hundred documents and renews the lease of the job. Raises LeaseLost if another
    worker has taken over the job.
    """
    is_last = False
    while not is_last:
        async with uow.begin(job.tenant, context) as tx:
            rebuilt = await tx[MediaStore].rebuild_documents(_BATCH_SIZE)
            await tx[EventLog].append(await refresh_copies(tx, set(rebuilt)))
            is_last = len(rebuilt) < _BATCH_SIZE
            await tx[JobStore].renew_lease(job, lease)
