"""How a run comes to be: the row, the job that carries it out, and what the audit log says of it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from domain.audit.model import Change
from domain.jobs.model import NewJob
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.runs.model import Run

EXECUTE: Final = "runs.execute"
"""The kind of job that carries out a run; its `args` are `{"run": id}`."""


def queued(
    source: str,
    trigger: str,
    now: datetime,
    *,
    stream: str = "catalogue",
    input: Mapping[str, Any] | None = None,
    accept_shrink: bool = False,
) -> Run:
    """A new run that waits for a worker."""
    return Run(
        id=new_id("run"),
        source=source,
        trigger=trigger,
        stream=stream,
        status="queued",
        created_at=now,
        input=input or {},
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
