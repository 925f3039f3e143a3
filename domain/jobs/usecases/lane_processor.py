"""Processing of one lane (a group of jobs that run one after the other): claim jobs, run handlers, renew leases, retry failures."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta

from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobDispatcher
from domain.jobs.usecases.job_observer import JobObserver
from domain.kernel.clock import now
from domain.kernel.errors import LeaseLost

Handler = Callable[[ClaimedJob, asyncio.Event], Awaitable[None]]
"""Function that executes a job, and calls `JobStore.finish` in the same transaction as the job's effects.

If the lease is lost, the event is set and the handler is cancelled. It is also cancelled when the process stops.
"""

BATCH = 50
LEASE = timedelta(seconds=30)
TURN = timedelta(seconds=30)
LONGEST_DELAY = timedelta(minutes=10)

LOG = logging.getLogger("joinery.worker")


def compute_retry_delay(attempt: int) -> timedelta:
    """Return the delay after the failed attempt number `attempt` (from 1): 2^attempt seconds, at most 10 minutes."""
    return min(LONGEST_DELAY, timedelta(seconds=1 << min(attempt, 20)))


class LaneProcessor:
    """Executor of the jobs of lanes, one per process.

    Args:
        handlers: The handlers by kind of job.
        lease: The lease of a claimed job, which is renewed three times per lease.
        batch_size: The maximum number of jobs to claim at once.
        max_duration: The time after which `process_lane` claims no further jobs of a lane, so that other lanes have their turn.
    """

    def __init__(
        self,
        dispatch: JobDispatcher,
        handlers: Mapping[str, Handler],
        *,
        lease: timedelta = LEASE,
        batch_size: int = BATCH,
        max_duration: timedelta = TURN,
        observer: JobObserver | None = None,
    ) -> None:
        self._dispatch, self._handlers = dispatch, handlers
        self._lease, self._batch_size, self._max_duration = lease, batch_size, max_duration
        self._observer = observer
        self._stopping = False

    def stop(self) -> None:
        """Make `process_lane` return after the running jobs, and release the jobs that were not started."""
        self._stopping = True

    async def process_lane(self, lane: str) -> bool:
        """Execute the lane's due jobs one after the other; return whether more jobs may be due.

        After `max_duration` (of the constructor), no further jobs are claimed. On cancellation, the claimed jobs are released.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self._max_duration.total_seconds()
        while not self._stopping:
            jobs = await self._dispatch.claim(lane, self._batch_size, self._lease)
            if not jobs:
                return False
            await self._execute_batch(jobs)
            if loop.time() >= until:
                return not self._stopping
        return False

    async def _execute_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        batch = _Batch(jobs)
        async with _running_in_background(self._renew_leases(batch)):
            try:
                while not self._stopping and (job := batch.start_next()) is not None:
                    await self._execute_job(batch, job)
            finally:
                for job in batch.list_waiting():
                    await self._release(job, now())

    async def _execute_job(self, batch: "_Batch", job: ClaimedJob) -> None:
        handler = self._handlers.get(job.kind)
        if handler is None:
            LOG.error("job %s: no handler for kind %s", job.id, job.kind)
            return await self._release(job, now() + compute_retry_delay(job.attempt))
        work = asyncio.ensure_future(self._call_handler(handler, job, batch.lost))
        batch.work = work
        try:
            await work
        except LeaseLost:
            LOG.info("job %s (%s): another worker took the job over", job.id, job.kind)
        except asyncio.CancelledError:
            if batch.lost.is_set():
                LOG.info("job %s (%s): stopped, because its lease was lost", job.id, job.kind)
            else:
                await self._release(job, now())
                raise
        except Exception:
            if batch.lost.is_set():
                return LOG.info("job %s (%s): failed after its lease was lost", job.id, job.kind, exc_info=True)
            wait = compute_retry_delay(job.attempt)
            LOG.exception("job %s (%s): attempt %d failed, retrying in %s", job.id, job.kind, job.attempt, wait)
            await self._release(job, now() + wait)
        finally:
            batch.end_current()

    def _call_handler(self, handler: Handler, job: ClaimedJob, lost: asyncio.Event) -> Awaitable[None]:
        """Call the handler, inside the observer's span if there is an observer."""
        return handler(job, lost) if self._observer is None else _run_observed(self._observer, handler, job, lost)

    async def _release(self, job: ClaimedJob, run_at: datetime) -> None:
        try:
            await asyncio.shield(self._dispatch.release(job, run_at))
        except Exception:
            LOG.warning("job %s (%s): could not be released; its lease will expire", job.id, job.kind, exc_info=True)

    async def _renew_leases(self, batch: "_Batch") -> None:
        """Renew the leases of the claimed jobs three times per lease, and cancel a job whose lease was lost."""
        loop = asyncio.get_running_loop()
        lease = self._lease.total_seconds()
        leased_until = dict.fromkeys((job.id for job in batch.list_leased()), loop.time() + lease)
        while True:
            await asyncio.sleep(lease / 3)
            for job in batch.list_leased():
                requested_at = loop.time()
                try:
                    is_leased = await self._dispatch.renew_lease(job, self._lease)
                except Exception:
                    is_leased = loop.time() < leased_until[job.id]
                    LOG.warning("job %s (%s): lease could not be renewed", job.id, job.kind, exc_info=True)
                else:
                    leased_until[job.id] = requested_at + lease
                if not is_leased:
                    batch.remove_lost(job)


class _Batch:
    """Claimed jobs of one lane: the current job, and the jobs that wait."""

    def __init__(self, jobs: Sequence[ClaimedJob]) -> None:
        self._waiting = list(reversed(jobs))
        self._current: ClaimedJob | None = None
        self.lost = asyncio.Event()
        self.work: asyncio.Future[None] | None = None

    def start_next(self) -> ClaimedJob | None:
        """Return the next waiting job, after making it the current one; None if no job waits."""
        self._current = self._waiting.pop() if self._waiting else None
        self.lost = asyncio.Event()
        return self._current

    def end_current(self) -> None:
        """Clear the current job, which has ended."""
        self._current = self.work = None

    def list_leased(self) -> list[ClaimedJob]:
        """Return the jobs whose leases must be renewed: the current job and the waiting ones."""
        return [*([self._current] if self._current else []), *reversed(self._waiting)]

    def list_waiting(self) -> list[ClaimedJob]:
        """Return the jobs that were not started, oldest first."""
        return self._waiting[::-1]

    def remove_lost(self, job: ClaimedJob) -> None:
        """Remove a job whose lease was lost; if it is the current job, cancel its handler."""
        if self._current is not None and job.id == self._current.id:
            self.lost.set()
            if self.work is not None:
                self.work.cancel()
        self._waiting = [waiting for waiting in self._waiting if waiting.id != job.id]


async def _run_observed(observer: JobObserver, handler: Handler, job: ClaimedJob, lost: asyncio.Event) -> None:
    with observer.observe_attempt(job):
        await handler(job, lost)


@contextlib.asynccontextmanager
async def _running_in_background(work: Awaitable[None]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))
