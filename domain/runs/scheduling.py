"""Turning due schedules into queued runs."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from domain.kernel.errors import Conflict
from domain.kernel.tenancy import Actor, Call, Tenant
from domain.runs.queueing import execution, queued
from ports.clock import Clock
from ports.sources import SourceSchedule
from ports.unit_of_work import UnitOfWork

_CALL: Final = Call(Actor("service", "scheduler"), "runs.schedule")
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
                await self._queue(tenant, source, stream)
        return await self.schedule.next_due()

    async def _queue(self, tenant: Tenant, id: str, stream: str) -> None:
        """One transaction a source: the run, its job, and the schedule moved on, so that a crash queues nothing twice."""
        async with self.uow.begin(tenant, _CALL) as tx:
            source = await tx.sources.get(id, lock=True)
            if source is None:
                return
            field = "next_stock_pull" if stream == "stock" else "next_pull"
            schedule = source.schedule
            minutes = schedule.stock_interval_minutes if stream == "stock" else schedule.interval_minutes
            due = getattr(source, field)
            if minutes is None or not source.runnable:
                await tx.sources.save(replace(source, **{field: None}))
                return
            if due is None or due > tx.now:
                return
            if await tx.runs.open(id, stream):
                await tx.sources.save(replace(source, **{field: tx.now + _AGAIN}))
                return
            run = queued(id, "schedule", tx.now, stream=stream)
            try:
                async with self.uow.attempt(tx):
                    await tx.runs.add(run)
            except Conflict:
                await tx.sources.save(replace(source, **{field: tx.now + _AGAIN}))
                return
            await tx.jobs.add(execution(run, tx.tenant))
            await tx.sources.save(replace(source, **{field: tx.now + timedelta(minutes=minutes)}))
