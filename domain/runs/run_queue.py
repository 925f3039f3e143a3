"""Queueing of runs with their jobs and audit entries, and the times of next pulls."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.catalogue.model import Stream
from domain.jobs.model import NewJob
from domain.jobs.ports import JobStore
from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.runs.model import CheckInput, PushInput, Run, RunStatus, RunTrigger, UploadInput
from domain.runs.ports import RunStore
from domain.sources.model import Source
from ports.unit_of_work import Tx

EXECUTE_RUN = "runs.execute"
"""The kind of job that executes a run; its `args` are `{"run": id}`."""

CHECK_STOCK = "runs.check"
"""The kind of job that executes a stock check; its `args` are `{"run": id}`."""

REASSIGN_CATEGORIES = "runs.refile"  # an earlier name, which stored jobs contain
"""The kind of job that applies a source's category rules to its products; its `args` are `{"run": id}`."""
COLLECT_IMAGES = "media.collect"
"""The kind of job that collects the images of the products that a run changed (see `new_image_collection_job`)."""
_MAX_CLOCK_DIFFERENCE = timedelta(minutes=5)
"""Maximum clock difference between two processes."""
RUN_KINDS = (EXECUTE_RUN, CHECK_STOCK, REASSIGN_CATEGORIES)
"""All kinds of jobs that execute a run."""
_KINDS = {RunTrigger.CATEGORY_RULES: REASSIGN_CATEGORIES, RunTrigger.STOCK_CHECK: CHECK_STOCK}


def new_run(
    source: str,
    trigger: RunTrigger,
    now: datetime,
    *,
    stream: Stream = Stream.CATALOGUE,
    input: UploadInput | PushInput | CheckInput | None = None,
    accept_shrink: bool = False,
) -> Run:
    """Return a new run with the status queued; it is not stored."""
    run = Run(new_id("run"), source, trigger, stream, RunStatus.QUEUED, now)
    return replace(run, input=input, accept_shrink=accept_shrink)


async def enqueue_run(tx: Tx, run: Run) -> Run:
    """Store a new run with its job and audit entry, and return it.

    Raises Conflict if another run of the source and stream is open.
    """
    await tx[RunStore].add(run)
    await tx[JobStore].add(new_execution_job(run, tx.tenant))
    await tx[AuditLog].add(build_queued_run_change(run))
    return run


async def require_no_open_run(tx: Tx, source: str, stream: Stream | None = None) -> None:
    """Raise Conflict if a run of the source is open; `stream` None means any stream."""
    if run := await tx[RunStore].find_open(source, stream):
        raise Conflict(f"The run {run.id} of this source is {run.status}. Wait until it has ended.")


def with_next_pull(source: Source, stream: Stream, now: datetime, *, has_changes: bool | None, jitter: float) -> Source:
    """Return the source with the time of the stream's next pull: one interval from now, or the next clock time.

    A clock time that is already planned is preserved, because it does not depend on the ends of runs.

    Args:
        source: The source after the run.
        stream: The stream of the run.
        now: The current time.
        has_changes: Whether the run changed anything: adaptive intervals then become shorter, else longer; None if unknown.
        jitter: Factor by which the interval is multiplied, to spread pulls.
    """
    minutes, clock_time = source.get_interval_minutes(stream), source.schedule.find_next_clock_time(stream, now)
    if not source.is_runnable or (minutes is None and clock_time is None):
        return source.schedule_next_pull(stream, None)
    if minutes is None:
        return source.schedule_next_pull(stream, source.get_next_pull(stream) or clock_time)
    factor = 1.0
    if source.schedule.adaptive:
        factor = source.interval_factor.get(stream, 1.0)
        if has_changes is not None:
            factor = max(0.5, factor / 2) if has_changes else min(4.0, factor * 2)
        source = replace(source, interval_factor={**source.interval_factor, stream.value: factor})
    return source.schedule_next_pull(stream, now + timedelta(minutes=max(5.0, minutes * factor) * jitter))


def build_source_lane(source: str) -> str:
    """Return the lane of a source's runs. Jobs of a lane are executed one after the other."""
    return f"source:{source}"


def new_execution_job(run: Run, tenant: Tenant) -> NewJob:
    """Return the job that executes the run."""
    return NewJob(
        _KINDS.get(run.trigger, EXECUTE_RUN), build_source_lane(run.source), tenant, {"run": run.id}, key=run.id
    )


def build_queued_run_change(run: Run) -> Change:
    """Return the change that the audit log records when a run is queued."""
    after: dict[str, Any] = {"source": run.source, "trigger": run.trigger, "stream": run.stream, "status": run.status}
    if run.accept_shrink:
        after["accept_shrink"] = True
    return Change("run", run.id, "create", {}, after)


def new_image_collection_job(tenant: Tenant, source: str, run: str, queued_at: datetime) -> NewJob:
    """Return the job that collects the images of products changed by the run, which was queued at `queued_at`."""
    args = {"source": source, "run": run, "since": (queued_at - _MAX_CLOCK_DIFFERENCE).isoformat()}
    return NewJob(COLLECT_IMAGES, f"media:{source}", tenant, args, key=run)
