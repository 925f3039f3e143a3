"""Rebuilding of documents whose images changed, in batches and without events."""

from datetime import timedelta

from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.tenancy import AuditContext
from domain.media.ports import MediaStore
from ports.unit_of_work import UnitOfWork

_AT_ONCE = 100


async def show(uow: UnitOfWork, job: ClaimedJob, context: AuditContext, lease: timedelta) -> None:
    """Rebuild all pending documents that are not locked, a hundred per transaction, fenced by the job. Raises LeaseLost."""
    shown = _AT_ONCE
    while shown == _AT_ONCE:
        async with uow.begin(job.tenant, context) as tx:
            shown = await tx[MediaStore].show(_AT_ONCE)
            await tx[JobStore].hold(job, lease)
