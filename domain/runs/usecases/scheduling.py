"""Duties of the leading scheduler: queue due runs, and expire batches without further parts."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.catalogue.model import Stream
from domain.jobs.ports import JobStore
from domain.kernel import retention
from domain.kernel.errors import Conflict
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.runs.model import OPEN, PushInput, Run, RunError, RunErrorCode, RunStatus, RunTrigger
from domain.runs.ports import PushStore, RunStore
from domain.runs.queueing import execution, queued
from domain.sources.ports import SourceSchedule, SourceStore
from domain.storage.model import StoredKind
from domain.storage.ports import StorageLedger, StorageUpkeep
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

_AT_ONCE = 100
_RETRY_DELAY = timedelta(minutes=5)
"""Delay before a source is considered again whose scheduled run is still open."""


def _context(action: str) -> AuditContext:
    return AuditContext(Actor("service", "scheduler"), action)


@dataclass(frozen=True, slots=True)
class RunScheduler:
    """Queue the pulls of due sources."""

    uow: UnitOfWork
    schedule: SourceSchedule
    clock: Clock

    async def queue_due(self) -> datetime | None:
        """Queue a run for every due source; return when the next one falls due."""
        while due := await self.schedule.due(self.clock.now(), _AT_ONCE):
            for tenant, source, stream in due:
                await self._queue(tenant, source, Stream(stream))
        return await self.schedule.next_due()

    async def _queue(self, tenant: Tenant, id: str, stream: Stream) -> None:
        """Queue a run and move the schedule on in one transaction per source, so that a crash queues nothing twice."""
        async with self.uow.begin(tenant, _context("runs.schedule")) as tx:
            source = await tx[SourceStore].get(id, lock=True)
            if source is None:
                return
            due, minutes = source.due(stream), source.interval(stream)
            if minutes is None or not source.runnable:
                await tx[SourceStore].save(source.next_due(stream, None))
            elif due is not None and due <= tx.now:
                wait = timedelta(minutes=minutes) if await self._started(tx, id, stream) else _RETRY_DELAY
                await tx[SourceStore].save(source.next_due(stream, tx.now + wait))

    async def _started(self, tx: Tx, id: str, stream: Stream) -> bool:
        """Queue a run, unless one of the stream is open."""
        if await tx[RunStore].open(id, stream):
            return False
        run = queued(id, RunTrigger.SCHEDULE, tx.now, stream=stream)
        try:
            async with tx.savepoint():
                await tx[RunStore].add(run)
        except Conflict:
            return False
        await tx[JobStore].add(execution(run, tx.tenant))
        return True


@dataclass(frozen=True, slots=True)
class BatchExpiry:
    """Expiry of pushed batches that wait for more parts, which frees their storage (docs/conventions.md#pushed-records)."""

    uow: UnitOfWork
    upkeep: StorageUpkeep
    clock: Clock

    async def expire(self) -> int:
        """Expire every open batch whose last part is too old, each in its own transaction; return their number."""
        given_up = 0
        while due := await self.upkeep.due({StoredKind.PUSH}, self.clock.now(), _AT_ONCE):
            for tenant, key in due:
                given_up += await self._expire(tenant, key)
        return given_up

    async def _expire(self, tenant: Tenant, key: str) -> bool:
        """Give up an expired batch under the source's lock, so that a concurrent part either keeps the batch open or finds it expired."""
        async with self.uow.begin(tenant, _context("runs.expire")) as tx:
            id = key.rpartition("/")[2]
            run = await tx[RunStore].get(id)
            if run is not None:
                await tx[SourceStore].get(run.source, lock=True)
                run = await tx[RunStore].get(id)
            entry = await tx[StorageLedger].get(key)
            if entry is None or entry.free_after > tx.now:
                return False
            waits = run and run.status == RunStatus.QUEUED and isinstance(run.input, PushInput) and run.input.open
            if run is not None and run.status in OPEN and not waits:
                await tx[StorageLedger].free_due([key], tx.now + retention.OPEN_BATCHES)
                return False
            if run is not None and waits:
                error = RunError(RunErrorCode.BATCH_EXPIRED, _EXPIRED)
                await tx[RunStore].save(run.ended(RunStatus.CANCELLED, tx.now, error))
            await tx[PushStore].forget(id)
            return bool(waits)


_EXPIRED = (
    f"The batch got no further part for {retention.OPEN_BATCHES // timedelta(hours=1)} hours and was given up; nothing of "
    "it was stored. Push it anew, from its first part and under another name."
)


def refuse_expired(newest: Run | None, now: datetime) -> None:
    """Refuse a late part, because a batch of its own would be incomplete.

    `newest` is the newest run of the batch's name. Raises Conflict if it expired within the retention of batches.
    """
    if newest is None or newest.error is None or newest.error.code != RunErrorCode.BATCH_EXPIRED:
        return
    if newest.finished_at is not None and now < newest.finished_at + retention.EXPIRED_BATCHES:
        raise Conflict(f"The batch expired, see {newest.id}; push it anew, from its first part and under another name.")
