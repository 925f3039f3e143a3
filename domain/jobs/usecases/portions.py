"""Execution of a job in portions. Each portion is one transaction; another worker continues after the last one."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from domain.jobs.model import ClaimedJob
from domain.kernel.errors import DomainError, LeaseLost, PermissionDenied
from domain.kernel.tenancy import AuditContext
from ports.unit_of_work import Tx, UnitOfWork

_LOG = logging.getLogger("joinery.worker")
MAX_ATTEMPTS = 5
"""Number of attempts after which a job in portions fails."""


async def execute_portions(
    uow: UnitOfWork,
    job: ClaimedJob,
    lost: asyncio.Event,
    execute_portion: Callable[[Tx, ClaimedJob], Awaitable[bool]],
    end: Callable[[Tx, ClaimedJob, str], Awaitable[None]],
    *,
    context: AuditContext | None = None,
    permanent_errors: tuple[type[Exception], ...] = (PermissionDenied,),
    pause_ratio: float = 0,
    max_pause_seconds: float = 0,
) -> None:
    """Execute portions until the work has ended or the job is lost.

    Args:
        uow: Begins the transaction of each portion.
        job: The job.
        lost: Is set if the worker has lost the job.
        execute_portion: Executes the next portion; returns whether the work has ended.
        end: Stores the end of failed work, and its reason as a sentence; called after the last attempt or a permanent error.
        context: The audit context of the portions; None for that of the job.
        permanent_errors: Errors after which no further attempt is made.
        pause_ratio: Ratio of the pause after a portion to the time that the portion took.
        max_pause_seconds: The longest pause.
    """
    try:
        is_finished = False
        while not is_finished and not lost.is_set():
            started_at = time.monotonic()
            async with uow.begin(job.tenant, context or job.create_context()) as tx:
                is_finished = await execute_portion(tx, job)
            if pause_ratio and not is_finished:
                await asyncio.sleep(min(pause_ratio * (time.monotonic() - started_at), max_pause_seconds))
    except LeaseLost:
        raise
    except Exception as error:
        if job.attempt < MAX_ATTEMPTS and not isinstance(error, permanent_errors):
            raise
        if isinstance(error, DomainError):
            reason = error.detail
            _LOG.warning("job %s (%s): failed, not retried: %s", job.id, job.kind, reason)
        else:
            reason = f"An internal error occurred ({type(error).__name__}). Start again."
            _LOG.exception("job %s (%s): failed, not retried", job.id, job.kind)
        async with uow.begin(job.tenant, job.create_context()) as tx:
            await end(tx, job, reason)
