"""Turning due schedules into queued runs."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from domain.catalogue.model import Stream
from domain.jobs.ports import JobStore
from domain.kernel.errors import Conflict
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.runs.model import RunTrigger
from domain.runs.ports import RunStore
from domain.runs.queueing import execution, queued
from domain.sources.ports import SourceSchedule, SourceStore
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

_CONTEXT: Final = AuditContext(Actor("service", "scheduler"), "runs.schedule")
_BATCH: Final = 100
_AGAIN: Final = timedelta(minutes=5)
"""When a source is looked at again whose run of the schedule is still open."""


@dataclass(frozen=True, slots=True)
class RunScheduler:
    """What the leading scheduler ticks."""

    uow: UnitOfWork
    schedule: SourceSchedule
    clock: Clock

    async def queue_due(self) -> datetime | None:
        """Queue a run for every due source; answers when the next one falls due."""
        while due := await self.schedule.due(self.clock.now(), _BATCH):
            for tenant, source, stream in due:
                await self._queue(tenant, source, Stream(stream))
        return await self.schedule.next_due()

    async def _queue(self, tenant: Tenant, id: str, stream: Stream) -> None:
        """One transaction a source: the run, its job, and the schedule moved on, so that a crash queues nothing twice."""
        async with self.uow.begin(tenant, _CONTEXT) as tx:
            source = await tx[SourceStore].get(id, lock=True)
            if source is None:
                return
            due, minutes = source.due(stream), source.interval(stream)
            if minutes is None or not source.runnable:
                await tx[SourceStore].save(source.next_due(stream, None))
            elif due is not None and due <= tx.now:
                wait = timedelta(minutes=minutes) if await self._started(tx, id, stream) else _AGAIN
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
