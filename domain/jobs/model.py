"""Jobs, lanes (groups of jobs that run one after the other) and leases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from domain.kernel.tenancy import Actor, AuditContext, Tenant

_SEPARATOR = "/"
_TRACE_ARG = "traceparent"
"""Name of the argument with which a job's trace context is stored; no kind of job has an argument of this name."""
MAX_LANES_PER_ORG = 16
"""Maximum number of lanes of one organisation that are executed concurrently, so that others need not wait."""
MAX_DELAY = timedelta(days=31)
"""Maximum time until a job is due, from when it is added or rescheduled."""


def limit_run_at(run_at: datetime, now: datetime) -> datetime:
    """Return the earlier of `run_at` and the time MAX_DELAY after `now`."""
    return min(run_at, now + MAX_DELAY)


def build_lane_name(org: str, lane: str) -> str:
    """Return the full name of an organisation's lane: the organisation's ID, a slash, and the lane."""
    return f"{org}{_SEPARATOR}{lane}"


def split_lane_name(lane: str) -> tuple[str | None, str]:
    """Split the full name of a lane into the organisation's ID and the lane.

    The ID is None for names that older releases stored.
    """
    org, separator, name = lane.partition(_SEPARATOR)
    return (org, name) if separator else (None, lane)


@dataclass(frozen=True, slots=True)
class NewJob:
    """Job to add to the jobs table.

    Attributes:
        lane: Jobs of the same lane run one after the other.
        key: While a job with this key is open, no other job with the key is added; None for no such restriction.
        run_at: The earliest start; None for now.
    """

    kind: str
    lane: str
    tenant: Tenant
    args: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    run_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """Job that a worker has claimed, so that no other worker executes the job until the lease expires.

    Attributes:
        attempt: Number of claims of the job so far, by which writes of earlier attempts are refused.
        has_expired_lease: Whether the lease of the previous attempt expired, so that the attempt may have ended without a result.
        trace: Trace context of the operation that added the job, or None.
    """

    id: str
    kind: str
    lane: str
    tenant: Tenant
    args: Mapping[str, Any]
    attempt: int
    has_expired_lease: bool = False
    trace: str | None = None

    def create_context(self, actor: str = "worker") -> AuditContext:
        """Return the audit context of the transactions that execute the job.

        Args:
            actor: The ID of the part of the service that executes the job, such as `judge`.
        """
        return AuditContext(Actor("service", actor), self.kind, job_id=self.id)


@dataclass(frozen=True, slots=True)
class Backlog:
    """Numbers of open jobs in the lanes of one kind.

    Attributes:
        lane_kind: The kind of the lanes, such as `source` for the lanes `source:<id>`.
        waiting_count: Number of due jobs that no worker executes.
        running_count: Number of jobs that workers execute.
        oldest_due_at: When the oldest waiting job was due; None if no job waits.
    """

    lane_kind: str
    waiting_count: int
    running_count: int
    oldest_due_at: datetime | None

    @classmethod
    def combine(cls, parts: Sequence["Backlog"]) -> "Backlog":
        """Return the sum of the backlogs of several databases for the same kind of lane."""
        oldest = min((part.oldest_due_at for part in parts if part.oldest_due_at is not None), default=None)
        return cls(
            parts[0].lane_kind,
            sum(part.waiting_count for part in parts),
            sum(part.running_count for part in parts),
            oldest,
        )


def with_trace(args: Mapping[str, Any], trace: str | None) -> Mapping[str, Any]:
    """Return the job's arguments with the trace context added, as they are stored."""
    return args if trace is None else {**args, _TRACE_ARG: trace}


def split_trace(args: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
    """Split stored arguments into the job's arguments and the trace context, which may be None."""
    if _TRACE_ARG not in args:
        return args, None
    return {name: value for name, value in args.items() if name != _TRACE_ARG}, args[_TRACE_ARG]
