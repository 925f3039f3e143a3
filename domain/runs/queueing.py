"""How a run comes to be: the row, the job that carries it out, and what the audit log says of it."""

from datetime import datetime
from typing import Any, Final

from domain.audit.model import Change
from domain.catalogue.model import Stream
from domain.jobs.model import NewJob
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.runs.model import PushInput, Run, RunStatus, RunTrigger, UploadInput

EXECUTE: Final = "runs.execute"
"""The kind of job that carries out a run; its `args` are `{"run": id}`."""


def queued(
    source: str,
    trigger: RunTrigger,
    now: datetime,
    *,
    stream: Stream = Stream.CATALOGUE,
    input: UploadInput | PushInput | None = None,
    accept_shrink: bool = False,
) -> Run:
    """A new run that waits for a worker."""
    return Run(
        id=new_id("run"),
        source=source,
        trigger=trigger,
        stream=stream,
        status=RunStatus.QUEUED,
        created_at=now,
        input=input,
        accept_shrink=accept_shrink,
    )


def lane(source: str) -> str:
    """The lane of a source's runs: they are carried out one after the other."""
    return f"source:{source}"


def execution(run: Run, tenant: Tenant) -> NewJob:
    """The job that carries out the run."""
    return NewJob(EXECUTE, lane(run.source), tenant, {"run": run.id}, key=run.id)


def started(run: Run) -> Change:
    """The audit entry of a run that somebody started."""
    after: dict[str, Any] = {"source": run.source, "trigger": run.trigger, "stream": run.stream, "status": run.status}
    if run.accept_shrink:
        after["accept_shrink"] = True
    return Change("run", run.id, "create", {}, after)
