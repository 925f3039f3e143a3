"""The end of a run, and its consequences for the source: health, schedule and events."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from random import uniform

from domain.audit.ports import AuditLog
from domain.catalogue.model import Stream
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.draining import Handler
from domain.matching.index import matching
from domain.runs.model import REREADING, PushInput, Run, RunError, RunErrorCode, RunStatus, UploadInput
from domain.runs.ports import PushStore, RunStore
from domain.runs.queueing import image_collection, rescheduled
from domain.sources.health import outcome_events
from domain.sources.model import AUDITED, Ladder, StatusReason
from domain.sources.ports import SourceStore
from domain.storage.ports import StorageLedger
from domain.usage.meters import RECORDS
from domain.usage.ports import UsageMeters
from ports.telemetry import WorkMetrics
from ports.unit_of_work import Tx, UnitOfWork

_NO_FAILURE = frozenset(
    {
        RunErrorCode.SHRINK_REFUSED,
        RunErrorCode.MAPPING_REQUIRED,
        RunErrorCode.STORAGE_FULL,
        RunErrorCode.QUOTA_EXCEEDED,
        RunErrorCode.INTERNAL_ERROR,
    }
)


async def end(
    tx: Tx,
    job: ClaimedJob,
    run: Run,
    status: RunStatus,
    error: RunError | None = None,
    *,
    changed: bool | None = None,
    ladder: Ladder | None = None,
) -> None:
    """End the run and its job.

    Unless the run is cancelled, its source is updated: health, schedule, and their events. A removal limit, full storage
    or a replay does not affect the source's health. A replay does not move the next pull.

    Args:
        tx: the transaction.
        job: the job that executed the run.
        run: the run to store.
        status: the final status.
        error: the error of a run that did not succeed.
        changed: whether the run changed anything, for adaptive schedules; None if unknown.
        ladder: the thresholds of consecutive failures.
    """
    source = None if status == RunStatus.CANCELLED else await tx[SourceStore].get(run.source, lock=True)
    await tx[RunStore].save(run.ended(status, tx.now, error))
    if source is not None:
        after, asked = source, run.trigger not in REREADING
        if error is None:
            seen = run.fetched.at if run.fetched else None
            after = source.after_success(run.stream, tx.now, observed_at=seen, asked=asked)
        elif asked and error.code not in _NO_FAILURE:
            after = source.after_failure(StatusReason(error.code, error.message), tx.now, ladder or Ladder())
        if asked:
            jitter = uniform(0.9, 1.1)  # noqa: S311  no secret
            after = rescheduled(after, run.stream, tx.now, changed=changed, jitter=jitter)
        await tx[SourceStore].save(after)
        if (after.status, after.status_reason) != (source.status, source.status_reason):
            await tx[AuditLog].add(AUDITED.updated(source, after))
        await tx[EventLog].append(outcome_events(source, after, run.id))
    # the input is no longer needed: the snapshot contains it, unless the run failed before there was one
    if isinstance(run.input, PushInput):
        await tx[PushStore].forget(run.id)
    elif isinstance(run.input, UploadInput):
        await tx[StorageLedger].free(run.input.key)
    if run.stream == Stream.CATALOGUE and changed_anything(run.stats):
        await tx[JobStore].add(image_collection(tx.tenant, run.source, run.id, run.created_at))
        await tx[JobStore].add(matching(tx.tenant))
    await tx[UsageMeters].release(RECORDS, run.id)
    await tx[JobStore].finish(job)


async def cancel(tx: Tx, job: ClaimedJob, run: Run, message: str) -> None:
    """End a run whose source may no longer run."""
    await end(tx, job, run, RunStatus.CANCELLED, RunError(RunErrorCode.SOURCE_NOT_ACTIVE, message))


def changed_anything(stats: Mapping[str, int]) -> bool:
    """Return whether a run with these counts changed anything."""
    return any(stats.get(name) for name in stats if name.endswith(("_created", "_changed")) or name == "withdrawn")


@dataclass(frozen=True, slots=True)
class CountedRuns:
    """A wrapper of run handlers that counts finished runs; it costs one more read per attempt."""

    handler: Handler
    uow: UnitOfWork
    metrics: WorkMetrics

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Call the handler, then count the run if it has ended."""
        await self.handler(job, lost)
        async with self.uow.read(job.tenant) as tx:
            run = await tx[RunStore].get(str(job.args["run"]))
        if run is not None and run.finished_at is not None:
            began = run.started_at or run.created_at
            self.metrics.run_ended(run.stream.value, run.status.value, (run.finished_at - began).total_seconds())
