"""The end of a run, with the effects on the health, schedule and events of its source."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import uniform

from domain.audit.ports import AuditLog
from domain.catalogue.model import Stream
from domain.catalogue.publication import create_assessment_job
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import Handler
from domain.kernel.resource import require_found
from domain.matching.index import create_matching_job
from domain.orgs.ports import OrgStore
from domain.proposals.model import ProposalKind, create_proposing_job
from domain.proposals.staleness import mark_stale
from domain.runs.model import REPLAY_TRIGGERS, PushInput, Run, RunError, RunErrorCode, RunStatus, UploadInput
from domain.runs.ports import PushStore, RunStore
from domain.runs.run_queue import new_image_collection_job, with_next_pull
from domain.sources.health import create_health_events
from domain.sources.model import AUDITED, HealthThresholds, StatusReason
from domain.sources.ports import SourceStore
from domain.storage.ports import StorageLedger
from domain.usage.meters import RECORDS
from domain.usage.ports import UsageMeters
from ports.telemetry import WorkMetrics
from ports.unit_of_work import Tx, UnitOfWork

_CODES_WITHOUT_FAULT = frozenset(
    {
        RunErrorCode.SHRINK_REFUSED,
        RunErrorCode.MAPPING_REQUIRED,
        RunErrorCode.STORAGE_FULL,
        RunErrorCode.QUOTA_EXCEEDED,
        RunErrorCode.INTERNAL_ERROR,
    }
)
"""Errors that do not affect the source's health, because the source did not cause them."""


async def end_run(
    tx: Tx,
    job: ClaimedJob,
    run: Run,
    status: RunStatus,
    error: RunError | None = None,
    *,
    has_changes: bool | None = None,
    health_thresholds: HealthThresholds | None = None,
) -> None:
    """End the run and its job, and update its source (unless the run is cancelled).

    A failed replay does not affect the source's health, and no replay changes the time of the next pull.

    Args:
        tx: The transaction.
        job: The job that executed the run.
        run: The run to store.
        status: The final status.
        error: The error of a run that did not succeed.
        has_changes: Whether the run changed anything, for adaptive schedules; None if unknown.
        health_thresholds: Numbers of consecutive failures after which a source is degraded or blocked.
    """
    await _record_unconfirmed_changes(tx, run, error)
    if run.problems and status == RunStatus.SUCCEEDED:
        previous = await tx[RunStore].find_last_successful(run.source, run.stream)
        run = run.with_ignored_problems({one.identity for one in previous.problems if one.ignored} if previous else ())
    source = None if status == RunStatus.CANCELLED else await tx[SourceStore].get(run.source, lock=True)
    await tx[RunStore].save(run.with_end(status, tx.now, error))
    if source is not None:
        after, is_pull = source, run.trigger not in REPLAY_TRIGGERS
        if error is None:
            fetched_at = run.fetched.at if run.fetched else None
            after = source.with_success(run.stream, tx.now, observed_at=fetched_at, is_pull=is_pull)
        elif is_pull and error.code not in _CODES_WITHOUT_FAULT:
            after = source.with_failure(
                StatusReason(error.code, error.message), tx.now, health_thresholds or HealthThresholds()
            )
        if is_pull:
            jitter = uniform(0.9, 1.1)  # noqa: S311  no secret
            after = with_next_pull(after, run.stream, tx.now, has_changes=has_changes, jitter=jitter)
        await tx[SourceStore].save(after)
        if (after.status, after.status_reason) != (source.status, source.status_reason):
            await tx[AuditLog].add(AUDITED.describe_update(source, after))
        await tx[EventLog].append(create_health_events(source, after, run.id))
    # the input is no longer needed: the snapshot contains it, unless the run failed before there was one
    if isinstance(run.input, PushInput):
        await tx[PushStore].delete_parts(run.id)
    elif isinstance(run.input, UploadInput):
        await tx[StorageLedger].free(run.input.key)
    await _queue_further_work(tx, run, status, error)
    await tx[UsageMeters].release(RECORDS, run.id)
    await tx[JobStore].finish(job)


async def _queue_further_work(tx: Tx, run: Run, status: RunStatus, error: RunError | None) -> None:
    """Queue the jobs that process what the run has changed or reported."""
    if run.stream == Stream.CATALOGUE and has_changed_catalogue(run.stats):
        await tx[JobStore].add(new_image_collection_job(tx.tenant, run.source, run.id, run.created_at))
        await tx[JobStore].add(create_matching_job(tx.tenant))
        if (await tx[OrgStore].get_organisation()).is_vendor:
            await tx[JobStore].add(create_assessment_job(tx.tenant))
    if status == RunStatus.SUCCEEDED:
        await mark_stale(tx, run.source, "A later run of the source has succeeded.", [ProposalKind.TRIAGE_NOTE])
    is_relevant = error is not None or run.mappings or run.stats.get("problems") or has_changed_catalogue(run.stats)
    if status != RunStatus.CANCELLED and is_relevant:
        await tx[JobStore].add(create_proposing_job(tx.tenant, run=run.id))


async def _record_unconfirmed_changes(tx: Tx, run: Run, error: RunError | None) -> None:
    """Record if the run changed items of the source, but did not succeed or has no stored snapshot.

    The next run must then process the feed even if the feed equals that of the last successful run with a snapshot.
    """
    if run.checkpoint is not None and (error is not None or run.snapshot is None):
        source = require_found(await tx[SourceStore].get(run.source, lock=True))
        await tx[SourceStore].save(replace(source, checked_at=tx.now))


async def cancel_run(tx: Tx, job: ClaimedJob, run: Run, message: str) -> None:
    """End the run as cancelled, because its source is not active; `message` is for users."""
    await end_run(tx, job, run, RunStatus.CANCELLED, RunError(RunErrorCode.SOURCE_NOT_ACTIVE, message))


def has_changed_catalogue(stats: Mapping[str, int]) -> bool:
    """Return whether the counts in `Run.stats` show that the run changed the catalogue."""
    return any(stats.get(name) for name in stats if name.endswith(("_created", "_changed")) or name == "withdrawn")


@dataclass(frozen=True, slots=True)
class RunMetricsHandler:
    """Wrapper around a handler of runs, which counts finished runs in the metrics."""

    handler: Handler
    uow: UnitOfWork
    metrics: WorkMetrics

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Call the handler, then count the run if it has ended.

        Args:
            job: The job of the run.
            lost: Is set when the job's lease is lost.
        """
        await self.handler(job, lost)
        async with self.uow.begin_reading(job.tenant) as tx:
            run = await tx[RunStore].get(str(job.args["run"]))
        if run is not None and run.finished_at is not None:
            began = run.started_at or run.created_at
            self.metrics.record_run(run.stream.value, run.status.value, (run.finished_at - began).total_seconds())
