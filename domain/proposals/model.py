"""Proposals: changes that an agent has tested on stored data, and that a person accepts or rejects (docs/agents.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from domain.audit.model import Change
from domain.jobs.model import NewJob
from domain.kernel.enums import StoredEnum
from domain.kernel.errors import Conflict
from domain.kernel.paging import Filter
from domain.kernel.tenancy import Tenant

PROPOSING_JOB = "agents.propose"
"""The kind of job in which agents examine a run, a mapping or a website check, and propose changes."""
VALIDITY = timedelta(days=30)
"""Time after which a waiting proposal becomes stale."""
MAX_SAMPLES = 10
"""Maximum number of changed values in a proof."""
MAX_SUMMARY_CHARS = 4_000


class ProposalStatus(StoredEnum):
    """Status of a proposal: it waits for a decision (`proposed`), was applied or dismissed, or has become outdated (`stale`)."""

    PROPOSED = "proposed"
    APPLIED = "applied"
    DISMISSED = "dismissed"
    STALE = "stale"


class ProposalKind(StoredEnum):
    """Kind of a proposal: the change that it proposes, or a note without a change."""

    MAPPING = "mapping"
    CATEGORY_RULES = "category_rules"
    SOURCE = "source"
    TRIAGE_NOTE = "triage_note"
    VARIANT_GROUP = "variant_group"


class Risk(StoredEnum):
    """Risk of a proposal; proposals with low risk may be applied without a person (docs/agents.md#risk)."""

    LOW = "low"
    NORMAL = "normal"


@dataclass(frozen=True, slots=True)
class Subject:
    """Object that a proposal is about: its type and ID."""

    object: str
    id: str


@dataclass(frozen=True, slots=True)
class ProofCounts:
    """Counts before or after the proposed change: rows read, products with a usable result, and problems."""

    rows: int = 0
    products: int = 0
    problems: int = 0


@dataclass(frozen=True, slots=True)
class ProofSample:
    """Value that the change sets: its path, the old and the new value (None if there is none)."""

    path: str
    old: Any = None
    new: Any = None


@dataclass(frozen=True, slots=True)
class Proof:
    """Result of testing a change on stored data.

    Attributes:
        snapshot: ID of the run or website check whose stored data was used; None without one.
    """

    snapshot: str | None = None
    before: ProofCounts = ProofCounts()
    after: ProofCounts = ProofCounts()
    samples: tuple[ProofSample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Proposal of an agent.

    Attributes:
        agent: ID of the agent.
        source: ID of the source to which the subject belongs; None for a source that does not exist yet.
        summary: What the change does and why, or the text of a note.
        change: Body of the operation `operation` that makes the change; empty for a note.
        operation: ID of the operation; None for a note.
        reason: Why the proposal is stale or was dismissed.
        decided_by: ID of the actor who applied or dismissed the proposal.
        decided_at: When the proposal was applied, dismissed or became stale.
        fingerprint: State of the subject on which the proof is based.
    """

    id: str
    agent: str
    kind: ProposalKind
    status: ProposalStatus = ProposalStatus.PROPOSED
    subject: Subject
    source: str | None = None
    summary: str
    change: Mapping[str, Any]
    operation: str | None = None
    proof: Proof
    risk: Risk = Risk.NORMAL
    reason: str | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None
    expires_at: datetime
    fingerprint: str = ""
    version: int = 1
    created_at: datetime
    updated_at: datetime

    def require_waiting(self, now: datetime) -> None:
        """Raise Conflict if the proposal does not wait for a decision."""
        if self.status != ProposalStatus.PROPOSED:
            raise Conflict(f"The proposal is {self.status}, so it can no longer be accepted or rejected.")
        if now >= self.expires_at:
            raise Conflict("The proposal has expired. Wait for a new one.")

    def decide(self, status: ProposalStatus, now: datetime, decided_by: str | None, reason: str | None) -> "Proposal":
        """Return the proposal with another status.

        Args:
            status: The status.
            now: The time of the decision.
            decided_by: ID of the actor who decides; None if the proposal becomes stale.
            reason: Why the proposal is stale or dismissed; None for no reason.
        """
        decision = {"status": status, "decided_by": decided_by, "decided_at": now, "reason": reason}
        return replace(self, version=self.version + 1, updated_at=now, **decision)  # type: ignore[arg-type]

    def repeats(self, other: "Proposal") -> bool:
        """Return whether both proposals make the same change, or are notes with the same text."""
        names = ("kind", "operation", "change") if self.operation else ("kind", "operation", "summary")
        return all(getattr(self, name) == getattr(other, name) for name in names)


@dataclass(frozen=True, slots=True)
class ProposalFilter(Filter):
    """Filter of a list of proposals; `subject` and `agent` are IDs, None means any."""

    status: ProposalStatus | None = None
    kind: ProposalKind | None = None
    subject: str | None = None
    agent: str | None = None


def describe_creation(proposal: Proposal) -> Change:
    """Return the change that the audit log records for a new proposal."""
    values = {name: getattr(proposal, name) for name in ("agent", "kind", "risk", "summary")}
    return Change("proposal", proposal.id, "create", {}, {**values, **_describe_state(proposal)})


def describe_decision(before: Proposal, after: Proposal) -> Change:
    """Return the change that the audit log records for a decision about a proposal, with the operation that it stands for."""
    old = {name: value for name, value in _describe_state(before).items() if name != "operation"}
    return Change("proposal", after.id, "update", old, _describe_state(after))


def _describe_state(proposal: Proposal) -> dict[str, Any]:
    values = {name: getattr(proposal, name) for name in ("status", "operation", "reason", "decided_by")}
    return {name: value for name, value in values.items() if value is not None}


def create_proposing_job(tenant: Tenant, **subject: str) -> NewJob:
    """Return the job in which agents examine one object, given as `run`, `mapping` or `probe`.

    The jobs of an organisation and mode run one after another, so that agents keep to their budgets.
    """
    [id] = subject.values()
    return NewJob(PROPOSING_JOB, f"agents:{tenant.mode}", tenant, subject, key=f"propose:{id}")
