"""A job: what to do, in which lane, when, and who holds it for how long."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from domain.kernel.tenancy import Actor, AuditContext, Tenant

_OF = "/"
_TRACE = "traceparent"
"""Under which name the arguments that are stored hold what a job follows from; kinds of jobs have none of that name."""
LANES_OF_ONE = 16
"""How many lanes of one organisation are under way at a time, so that it leaves room for others."""
MAX_DELAY = timedelta(days=31)
"""The longest time for which a job can be put off."""


def bounded_run_at(run_at: datetime, now: datetime) -> datetime:
    """Return `run_at`, but at most MAX_DELAY after `now`."""
    return min(run_at, now + MAX_DELAY)


def lane_of(org: str, lane: str) -> str:
    """Return the name of an organisation's lane in queue and workers; it contains the organisation, so that its node is known."""
    return f"{org}{_OF}{lane}"


def parted(lane: str) -> tuple[str | None, str]:
    """Whose lane it is, and what its jobs call it; None for whoever's, as a queue may still name it after an upgrade."""
    org, of, name = lane.partition(_OF)
    return (org, name) if of else (None, lane)


@dataclass(frozen=True, slots=True)
class NewJob:
    """Work to queue. Jobs of one lane run one after the other; `key` (unique while open) makes asking twice harmless."""

    kind: str
    lane: str
    tenant: Tenant
    args: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    run_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job that this worker holds until its lease ends. `attempt` fences it: who claims it next has a higher one.

    `lapsed`: whoever held it before let the lease run out, so that attempt may have ended without a word. `trace` is the
    context of what queued it, where that is traced.
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
    """What is open in lanes of one kind (`source` of `source:<id>`): due and in nobody's hands, in hand, and due since when."""

    lanes: str
    waiting: int
    held: int
    oldest: datetime | None

    @classmethod
    def of(cls, parts: Sequence["Backlog"]) -> "Backlog":
        """Of several places, as one."""
        oldest = min((part.oldest for part in parts if part.oldest is not None), default=None)
        return cls(parts[0].lanes, sum(part.waiting for part in parts), sum(part.held for part in parts), oldest)


def with_trace(args: Mapping[str, Any], trace: str | None) -> Mapping[str, Any]:
    """Return the arguments as they are stored, with the trace."""
    return args if trace is None else {**args, _TRACE: trace}


def without_trace(args: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
    """Return the original arguments and the trace."""
    if _TRACE not in args:
        return args, None
    return {name: value for name, value in args.items() if name != _TRACE}, args[_TRACE]
