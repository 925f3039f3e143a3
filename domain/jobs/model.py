"""Jobs, their lanes and leases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from domain.kernel.tenancy import Actor, AuditContext, Tenant

_SEPARATOR = "/"
_TRACE = "traceparent"
"""The name of the stored argument that holds a job's trace context; no kind of job has an argument of that name."""
LANES_OF_ONE = 16
"""Maximum number of lanes of one organisation in progress, so that others get their turn."""
MAX_DELAY = timedelta(days=31)
"""The longest delay of a job."""


def bounded_run_at(run_at: datetime, now: datetime) -> datetime:
    """Return `run_at`, but at most MAX_DELAY after `now`."""
    return min(run_at, now + MAX_DELAY)


def lane_of(org: str, lane: str) -> str:
    """Return the queue's name of an organisation's lane; it contains the organisation, which locates the jobs."""
    return f"{org}{_SEPARATOR}{lane}"


def parted(lane: str) -> tuple[str | None, str]:
    """Split the queue's name of a lane into organisation and lane.

    The organisation is None in names of older releases.
    """
    org, separator, name = lane.partition(_SEPARATOR)
    return (org, name) if separator else (None, lane)


@dataclass(frozen=True, slots=True)
class NewJob:
    """Work to queue. Jobs of one lane run one after the other; `key` (unique while open) makes queueing idempotent."""

    kind: str
    lane: str
    tenant: Tenant
    args: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    run_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job that this worker holds until its lease ends.

    `attempt` is the fencing token: each claim raises it. `lapsed`: the previous lease ran out, so that attempt may have
    ended without a result. `trace` is the trace context of what queued the job, if any.
    """

    id: str
    kind: str
    lane: str
    tenant: Tenant
    args: Mapping[str, Any]
    attempt: int
    lapsed: bool = False
    trace: str | None = None

    def context(self, actor: str = "worker") -> AuditContext:
        """Return the context of the units of work that carry this job out.

        Args:
            actor: The part of the service that acts.

        """
        return AuditContext(Actor("service", actor), self.kind, job_id=self.id)


@dataclass(frozen=True, slots=True)
class Backlog:
    """Open jobs in lanes of one kind (`source` of `source:<id>`): waiting, held, and when the oldest was due."""

    lanes: str
    waiting: int
    held: int
    oldest: datetime | None

    @classmethod
    def of(cls, parts: Sequence["Backlog"]) -> "Backlog":
        """Combine the backlogs of several databases."""
        oldest = min((part.oldest for part in parts if part.oldest is not None), default=None)
        return cls(parts[0].lanes, sum(part.waiting for part in parts), sum(part.held for part in parts), oldest)


def with_trace(args: Mapping[str, Any], trace: str | None) -> Mapping[str, Any]:
    """Return the arguments as they are stored."""
    return args if trace is None else {**args, _TRACE: trace}


def without_trace(args: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
    """Return the original arguments and the trace context."""
    if _TRACE not in args:
        return args, None
    return {name: value for name, value in args.items() if name != _TRACE}, args[_TRACE]
