"""Processing of one lane: claims jobs in batches, runs their handlers, renews leases and reschedules failures."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta

from domain.jobs.model import ClaimedJob
from domain.jobs.ports import Dispatch
from domain.jobs.usecases.observing import JobObserver
from domain.kernel.clock import now
from domain.kernel.errors import LeaseLost

Handler = Callable[[ClaimedJob, asyncio.Event], Awaitable[None]]
"""Does one job and finishes it (`JobStore.finish`) in the transaction of its effects. The event is set when the lease
is lost, and the handler is cancelled; it is also cancelled when the process has to stop."""

BATCH = 50
LEASE = timedelta(seconds=30)
TURN = timedelta(seconds=30)
LONGEST_DELAY = timedelta(minutes=10)

LOG = logging.getLogger("joinery.worker")


def delay(attempt: int) -> timedelta:
    """Return the delay after the `attempt`-th failed attempt (from 1): 1 s · 2^attempt, at most 10 minutes."""
    return min(LONGEST_DELAY, timedelta(seconds=1 << min(attempt, 20)))


class Drain:
    """Processor of lanes; one instance serves all lanes of a process."""

    def __init__(
        self,
        dispatch: Dispatch,
        handlers: Mapping[str, Handler],
        *,
        lease: timedelta = LEASE,
        batch: int = BATCH,
        turn: timedelta = TURN,
        observer: JobObserver | None = None,
    ) -> None:
        self._dispatch, self._handlers = dispatch, handlers
        self._lease, self._batch, self._turn = lease, batch, turn
        self._observer = observer
        self._stopping = False

    def stop(self) -> None:
        """Stop before the next job; `drain` then returns and releases the jobs that it has not begun."""
        self._stopping = True

    async def drain(self, lane: str) -> bool:
        """Run the lane's due jobs one after the other; return whether more may wait because the turn is over.

        On cancellation, release the held jobs.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self._turn.total_seconds()
        while not self._stopping:
            jobs = await self._dispatch.claim(lane, self._batch, self._lease)
            if not jobs:
                return False
            await self._run(jobs)
            if loop.time() >= until:
                return not self._stopping
        return False

    async def _run(self, jobs: Sequence[ClaimedJob]) -> None:
        batch = _Batch(jobs)
        async with _alongside(self._renewing(batch)):
            try:
                while not self._stopping and (job := batch.next()) is not None:
                    await self._attempt(batch, job)
            finally:
                for job in batch.not_begun():
                    await self._release(job, now())

    async def _attempt(self, batch: "_Batch", job: ClaimedJob) -> None:
        handler = self._handlers.get(job.kind)
        if handler is None:
            LOG.error("job %s: no handler for kind %s", job.id, job.kind)
            return await self._release(job, now() + delay(job.attempt))
        work = asyncio.ensure_future(self._observed(handler, job, batch.lost))
        batch.work = work
        try:
            await work
        except LeaseLost:
            LOG.info("job %s (%s): another worker took it over", job.id, job.kind)
        except asyncio.CancelledError:
            if batch.lost.is_set():
                LOG.info("job %s (%s): lost its lease and was stopped", job.id, job.kind)
            else:
                await self._release(job, now())
                raise
        except Exception:
            if batch.lost.is_set():
                return LOG.info("job %s (%s): lost its lease and failed", job.id, job.kind, exc_info=True)
            wait = delay(job.attempt)
            LOG.exception("job %s (%s): attempt %d failed, again in %s", job.id, job.kind, job.attempt, wait)
            await self._release(job, now() + wait)
        finally:
            batch.done()

    def _observed(self, handler: Handler, job: ClaimedJob, lost: asyncio.Event) -> Awaitable[None]:
        """Run the handler, within the observer's span if there is an observer."""
        return handler(job, lost) if self._observer is None else _within(self._observer, handler, job, lost)

    async def _release(self, job: ClaimedJob, run_at: datetime) -> None:
        try:
            await asyncio.shield(self._dispatch.release(job, run_at))
        except Exception:
            LOG.warning("job %s (%s): could not be given back; its lease will lapse", job.id, job.kind, exc_info=True)

    async def _renewing(self, batch: "_Batch") -> None:
        """Renew the leases of claimed jobs every third of a lease; stop the work on lost ones."""
        loop = asyncio.get_running_loop()
        lease = self._lease.total_seconds()
        held_until = dict.fromkeys((job.id for job in batch.held()), loop.time() + lease)
        while True:
            await asyncio.sleep(lease / 3)
            for job in batch.held():
                requested_at = loop.time()
                try:
                    held = await self._dispatch.renew(job, self._lease)
                except Exception:
                    held = loop.time() < held_until[job.id]
                    LOG.warning("job %s (%s): its lease could not be renewed", job.id, job.kind, exc_info=True)
                else:
                    held_until[job.id] = requested_at + lease
                if not held:
                    batch.lose(job)


class _Batch:
    """The claimed jobs of one lane: the current one and those that wait."""

    def __init__(self, jobs: Sequence[ClaimedJob]) -> None:
        self._waiting = list(reversed(jobs))
        self._current: ClaimedJob | None = None
        self.lost = asyncio.Event()
        self.work: asyncio.Future[None] | None = None

    def next(self) -> ClaimedJob | None:
        """Return the next job and make it the current one."""
        self._current = self._waiting.pop() if self._waiting else None
        self.lost = asyncio.Event()
        return self._current

    def done(self) -> None:
        """Clear the current job."""
        self._current = self.work = None

    def held(self) -> list[ClaimedJob]:
        """Return all jobs whose leases must be renewed."""
        return [*([self._current] if self._current else []), *reversed(self._waiting)]

    def not_begun(self) -> list[ClaimedJob]:
        """Return the jobs that were not begun, oldest first."""
        return self._waiting[::-1]

    def lose(self, job: ClaimedJob) -> None:
        """Drop a job that another worker holds, and cancel its work."""
        if self._current is not None and job.id == self._current.id:
            self.lost.set()
            if self.work is not None:
                self.work.cancel()
        self._waiting = [waiting for waiting in self._waiting if waiting.id != job.id]


async def _within(observer: JobObserver, handler: Handler, job: ClaimedJob, lost: asyncio.Event) -> None:
    with observer.attempt(job):
        await handler(job, lost)


@contextlib.asynccontextmanager
async def _alongside(work: Awaitable[None]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))
