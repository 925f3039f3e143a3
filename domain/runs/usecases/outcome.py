"""How a run ends, and what that means for its source: health, schedule, events."""

from collections.abc import Mapping
from datetime import datetime
from random import uniform
from typing import Final

from domain.audit.ports import AuditLog
from domain.catalogue.model import Stream
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.matching.index import matching
from domain.runs.model import REREADING, PushInput, Run, RunError, RunErrorCode, RunStatus, UploadInput
from domain.runs.ports import PushStore, RunStore
from domain.runs.queueing import image_collection, rescheduled
from domain.sources.health import outcome_events
from domain.sources.model import AUDITED, Ladder, Source, StatusReason
from domain.sources.ports import SourceStore
from domain.storage.ports import StorageLedger
from domain.usage.meters import RECORDS
from domain.usage.ports import UsageMeters
from ports.unit_of_work import Tx

_NO_FAILURE: Final = frozenset(
    {
        RunErrorCode.SHRINK_REFUSED,
        RunErrorCode.MAPPING_REQUIRED,
        RunErrorCode.STORAGE_FULL,
        RunErrorCode.QUOTA_EXCEEDED,
        RunErrorCode.INTERNAL_ERROR,
    }
)


def _rescheduled(source: Source, run: Run, now: datetime, *, changed: bool | None) -> Source:
    """A run that read again what was kept is no pull, so the next one is due when it was."""
    if run.trigger in REREADING:
        return source
    jitter = uniform(0.9, 1.1)  # noqa: S311  no secret
    return rescheduled(source, run.stream, now, changed=changed, jitter=jitter)


async def _keep(tx: Tx, before: Source, after: Source, run: Run) -> None:
    """The source after a run, with what is heard and written down where it moved on the ladder."""
    await tx[SourceStore].save(after)
    if (after.status, after.status_reason) != (before.status, before.status_reason):
        await tx[AuditLog].add(AUDITED.updated(before, after))
    await tx[EventLog].append(outcome_events(before, after, run.id))


async def succeed(tx: Tx, job: ClaimedJob, run: Run, *, changed: bool) -> None:
    """The run ended well."""
    source = await tx[SourceStore].get(run.source, lock=True)
    await tx[RunStore].save(run.ended(RunStatus.SUCCEEDED, tx.now))
    if source is not None:
        seen, asked = run.fetched.at if run.fetched else None, run.trigger not in REREADING
        after = source.after_success(run.stream, tx.now, observed_at=seen, asked=asked)
        await _keep(tx, source, _rescheduled(after, run, tx.now, changed=changed), run)
    await _close(tx, job, run)


async def fail(tx: Tx, job: ClaimedJob, run: Run, error: RunError, ladder: Ladder) -> None:
    """The run failed; refusing to shrink, a full disk of ours, or reading once more says nothing against the source."""
    source = await tx[SourceStore].get(run.source, lock=True)
    await tx[RunStore].save(run.ended(RunStatus.FAILED, tx.now, error))
    if source is not None:
        after = source
        if error.code not in _NO_FAILURE and run.trigger not in REREADING:
            after = source.after_failure(StatusReason(error.code, error.message), tx.now, ladder)
        await _keep(tx, source, _rescheduled(after, run, tx.now, changed=None), run)
    await _close(tx, job, run)


async def ask_for_mapping(tx: Tx, job: ClaimedJob, run: Run, message: str) -> None:
    """The run stops until a person maps the columns; that is no failure."""
    source = await tx[SourceStore].get(run.source, lock=True)
    await tx[RunStore].save(
        run.ended(RunStatus.NEEDS_MAPPING, tx.now, RunError(RunErrorCode.MAPPING_REQUIRED, message))
    )
    if source is not None:
        await tx[SourceStore].save(_rescheduled(source, run, tx.now, changed=None))
    await _close(tx, job, run)


async def cancel(tx: Tx, job: ClaimedJob, run: Run, message: str) -> None:
    """The source may not run any more."""
    await tx[RunStore].save(run.ended(RunStatus.CANCELLED, tx.now, RunError(RunErrorCode.SOURCE_NOT_ACTIVE, message)))
    await _close(tx, job, run)


async def wait(tx: Tx, job: ClaimedJob, run: Run, until: datetime) -> None:
    """The run is put off until then."""
    await tx[RunStore].save(run)
    await tx[JobStore].put_off(job, until)


async def _close(tx: Tx, job: ClaimedJob, run: Run) -> None:
    """What was handed in is needed no more: the snapshot holds it, unless the run failed before there was one."""
    if isinstance(run.input, PushInput):
        await tx[PushStore].forget(run.id)
    elif isinstance(run.input, UploadInput):
        await tx[StorageLedger].free(run.input.key)
    if run.stream == Stream.CATALOGUE and changed_anything(run.stats):
        await tx[JobStore].add(image_collection(tx.tenant, run.source, run.id, run.created_at))
        await tx[JobStore].add(matching(tx.tenant))
    await tx[UsageMeters].release(RECORDS, run.id)
    await tx[JobStore].finish(job)


def changed_anything(stats: Mapping[str, int]) -> bool:
    """Whether the counts speak of any change."""
    return any(stats.get(name) for name in stats if name.endswith(("_created", "_changed")) or name == "withdrawn")
