"""The end of a run, and its consequences for the source: health, schedule, events."""

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

    Its source is brought up to date, unless the run is cancelled: its health by the ladder, its schedule, and the events
    of both. Refusing to shrink, a full disk of ours, or reading once more says nothing against the source. A run that read
    again what was kept is no pull, so the next one is due when it was.

    Args:
        tx: the transaction.
        job: what carried the run out.
        run: as it is to be kept.
        status: how it ended.
        error: why it did not succeed.
        changed: whether it changed anything, if that is known: adaptive schedules go by it.
        ladder: how failures count against the source.
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
    # what was handed in is needed no more: the snapshot holds it, unless the run failed before there was one
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
    """End a run whose source may not run any more."""
    await end(tx, job, run, RunStatus.CANCELLED, RunError(RunErrorCode.SOURCE_NOT_ACTIVE, message))


def changed_anything(stats: Mapping[str, int]) -> bool:
    """Return whether a run with these counts changed anything."""
    return any(stats.get(name) for name in stats if name.endswith(("_created", "_changed")) or name == "withdrawn")


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
