"""Runs as operators count them: by stream and how they end, once the end is committed."""

import asyncio
from dataclasses import dataclass

from domain.jobs.model import ClaimedJob
from domain.jobs.usecases.draining import Handler
from domain.runs.ports import RunStore
from ports.telemetry import WorkMetrics
from ports.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class CountedRuns:
    """A handler of jobs that carry out runs, around another one; one read more for each attempt."""

    handler: Handler
    uow: UnitOfWork
    metrics: WorkMetrics

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Do what the handler does, then count the run if it has ended."""
        await self.handler(job, lost)
        async with self.uow.read(job.tenant) as tx:
            run = await tx[RunStore].get(str(job.args["run"]))
        if run is not None and run.finished_at is not None:
            began = run.started_at or run.created_at
            self.metrics.run_ended(run.stream.value, run.status.value, (run.finished_at - began).total_seconds())
