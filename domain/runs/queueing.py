"""Queueing of runs: the row, its job, its audit entry, and the next pull of its source."""

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

EXECUTE = "runs.execute"
"""The kind of job that executes a run; its `args` are `{"run": id}`."""

CHECK = "runs.check"
"""The kind of job that executes a stock check; with the same `args`."""

REFILE = "runs.refile"
"""The kind of job that applies a source's category rules to its products; with the same `args`."""
COLLECT_IMAGES = "media.collect"
"""The kind of job that collects the images of the products that a run changed."""
_CLOCKS = timedelta(minutes=5)
"""Maximum clock difference between two processes."""
RUN_KINDS = (EXECUTE, CHECK, REFILE)
_KINDS = {RunTrigger.CATEGORY_RULES: REFILE, RunTrigger.STOCK_CHECK: CHECK}


def queued(
    source: str,
    trigger: RunTrigger,
    now: datetime,
    *,
    stream: Stream = Stream.CATALOGUE,
    input: UploadInput | PushInput | CheckInput | None = None,
    accept_shrink: bool = False,
) -> Run:
    """Return a new run that waits for a worker."""
    run = Run(new_id("run"), source, trigger, stream, RunStatus.QUEUED, now)
    return replace(run, input=input, accept_shrink=accept_shrink)


async def enqueue(tx: Tx, run: Run) -> Run:
    """Store a new run with its job and its audit entry. Raises Conflict while another run of the stream is open."""
    await tx[RunStore].add(run)
    await tx[JobStore].add(execution(run, tx.tenant))
    await tx[AuditLog].add(started(run))
    return run


async def refuse_open(tx: Tx, source: str, stream: Stream | None = None) -> None:
    """Raise Conflict while a run of the source is open, of the stream or, without one, of any stream."""
    if run := await tx[RunStore].open(source, stream):
        raise Conflict(f"The run {run.id} of this source is {run.status}; wait until it has ended.")


def rescheduled(source: Source, stream: Stream, now: datetime, *, changed: bool | None, jitter: float) -> Source:
    """Return the source with the next pull of the stream, one interval later times `jitter`.

    Adaptive intervals grow while runs find no changes; `changed` is None if the run did not find out, which keeps the interval.
    """
    minutes = source.interval(stream)
    if minutes is None or not source.runnable:
        return source.next_due(stream, None)
    factor = 1.0
    if source.schedule.adaptive:
        factor = source.interval_factor.get(stream, 1.0)
        if changed is not None:
            factor = max(0.5, factor / 2) if changed else min(4.0, factor * 2)
        source = replace(source, interval_factor={**source.interval_factor, stream.value: factor})
    return source.next_due(stream, now + timedelta(minutes=max(5.0, minutes * factor) * jitter))


def lane(source: str) -> str:
    """Return the lane of a source's runs, which execute one after another."""
    return f"source:{source}"


def execution(run: Run, tenant: Tenant) -> NewJob:
    """Return the job that executes the run."""
    return NewJob(_KINDS.get(run.trigger, EXECUTE), lane(run.source), tenant, {"run": run.id}, key=run.id)


def started(run: Run) -> Change:
    """Return the audited change of a run that was started."""
    after: dict[str, Any] = {"source": run.source, "trigger": run.trigger, "stream": run.stream, "status": run.status}
    if run.accept_shrink:
        after["accept_shrink"] = True
    return Change("run", run.id, "create", {}, after)


def image_collection(tenant: Tenant, source: str, run: str, began: datetime) -> NewJob:
    """Return the job that collects the images of products that the run changed; `began` is when the run was queued."""
    args = {"source": source, "run": run, "since": (began - _CLOCKS).isoformat()}
    return NewJob(COLLECT_IMAGES, f"media:{source}", tenant, args, key=run)
