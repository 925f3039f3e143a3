"""Ports of proposals: their storage, and the changes that they stand for."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from domain.audit.model import AuditAct
from domain.kernel.tenancy import Tenant
from domain.proposals.model import Proposal, ProposalStatus
from ports.unit_of_work import Store, Tx


class ProposalStore(Store[Proposal], Protocol):
    """Proposals within a tenant's transaction.

    `add` raises Conflict if another proposal of the agent about the same subject waits for a decision.
    """

    async def lock_waiting(self, subject: str) -> Sequence[Proposal]:
        """Lock and return the waiting proposals about a subject, or about anything of the source with this ID."""
        ...

    async def lock_expired(self) -> Sequence[Proposal]:
        """Lock and return the waiting proposals that have expired."""
        ...

    async def list_latest(self, agent: str, subjects: Sequence[str]) -> Sequence[Proposal]:
        """Return an agent's latest proposal about each of these subjects; subjects without a proposal are omitted."""
        ...

    async def count_by_status(self) -> Sequence[tuple[str, ProposalStatus, int]]:
        """Return the number of proposals of each agent with each status."""
        ...


class ProposalUpkeep(Protocol):
    """Proposals of all tenants, for the scheduler. All methods raise Unavailable."""

    async def list_tenants_with_expired(self, now: datetime, limit: int) -> Sequence[Tenant]:
        """Return up to `limit` tenants with waiting proposals that have expired."""
        ...

    async def delete_decided(self, before: datetime) -> None:
        """Delete proposals that were decided before a time."""
        ...


class ProposedChanges(Protocol):
    """Operations that proposals stand for, executed by the use cases of their areas within the caller's transaction."""

    async def lock_subject(self, tx: Tx, proposal: Proposal) -> str | None:
        """Lock the subject of a proposal, and return the fingerprint of its state; None if it does not exist."""
        ...

    async def apply(self, tx: Tx, proposal: Proposal) -> None:
        """Execute the operation with the proposed change. Raises the errors of the operation."""
        ...

    async def undo(self, tx: Tx, operation: str, act: AuditAct) -> None:
        """Undo an act that executed the operation. Raises UndoUnavailable, and the errors of the use cases."""
        ...
