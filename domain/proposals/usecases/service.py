"""Use cases of proposals: list, accept, reject, and mark as stale when their subjects change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from domain.audit.model import AuditAct
from domain.audit.ports import AuditLog
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, Unprocessable
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import require_found
from domain.kernel.tenancy import Tenant
from domain.proposals.model import (
    Proposal,
    ProposalFilter,
    ProposalStatus,
    describe_creation,
    describe_decision,
)
from domain.proposals.ports import ProposalStore, ProposedChanges
from domain.proposals.staleness import save_stale
from ports.unit_of_work import Tx

RenderProposal = Callable[[Proposal, Tenant, datetime], Mapping[str, Any]]
"""Function that renders a proposal as a resource."""


@dataclass(frozen=True, slots=True)
class ProposalService:
    """Use cases of the proposals of a tenant.

    Attributes:
        changes: The operations that proposals stand for.
        render: Renders proposals for events.
    """

    changes: ProposedChanges
    render: RenderProposal

    async def page(self, tx: Tx, filter: ProposalFilter, page_request: PageRequest) -> Page[Proposal]:
        """Return a page of proposals, newest first."""
        return await tx[ProposalStore].page(page_request, filter)

    async def get(self, tx: Tx, id: str) -> Proposal:
        """Return a proposal. Raises NotFound."""
        return require_found(await tx[ProposalStore].get(id))

    async def accept(self, tx: Tx, id: str) -> Proposal:
        """Make the proposed change as the actor of the transaction, and return the applied proposal.

        Raises:
            NotFound: The proposal does not exist.
            Conflict: The proposal does not wait for a decision, proposes no change, or cannot be applied now.
            QuotaExceeded: The plan does not permit the change.
        """
        found = await self.get(tx, id)
        found.require_waiting(tx.now)
        if found.operation is None:
            raise Conflict("A note proposes no change, so it cannot be accepted. Reject the note to dismiss it.")
        # the subject first, as in all changes of the subject
        fingerprint = await self.changes.lock_subject(tx, found)
        before = require_found(await tx[ProposalStore].get(id, lock=True))
        before.require_waiting(tx.now)
        if fingerprint != before.fingerprint:
            raise Conflict("The data has changed since the proposal was tested. Wait for a new proposal.")
        after = before.decide(ProposalStatus.APPLIED, tx.now, tx.context.actor.responsible, None)
        await tx[ProposalStore].save(after)
        await tx[AuditLog].add(describe_decision(before, after))
        await self._apply(tx, after)
        return after

    async def reject(self, tx: Tx, id: str, reason: str | None) -> Proposal:
        """Dismiss a waiting proposal, and return it. Raises NotFound, Conflict."""
        before = require_found(await tx[ProposalStore].get(id, lock=True))
        before.require_waiting(tx.now)
        after = before.decide(ProposalStatus.DISMISSED, tx.now, tx.context.actor.responsible, reason)
        await tx[ProposalStore].save(after)
        await tx[AuditLog].add(describe_decision(before, after))
        return after

    async def undo_rejection(self, tx: Tx, act: AuditAct) -> None:
        """Restore the status that proposals had before an act dismissed them, or before that was undone.

        Raises NotFound; Conflict if a newer proposal waits, or the proposal has changed or expired.
        """
        for _, change in act.list_changes("proposal"):
            before = require_found(await tx[ProposalStore].get(change.id, lock=True))
            if before.status != change.after["status"] or before.expires_at <= tx.now:
                raise Conflict("The proposal has expired, or its status has changed since.")
            status, reason = ProposalStatus(change.before["status"]), change.before.get("reason")
            after = before.decide(status, tx.now, change.before.get("decided_by"), reason)
            if status == ProposalStatus.PROPOSED:
                after = replace(after, decided_at=None)
            await tx[ProposalStore].save(after)
            await tx[AuditLog].add(describe_decision(before, after))

    async def undo_acceptance(self, tx: Tx, act: AuditAct) -> None:
        """Undo the change that an accepted proposal made. The proposal stays applied."""
        await self.changes.undo(tx, find_accepted_operation(act), act)

    async def add(self, tx: Tx, proposal: Proposal) -> None:
        """Store a new proposal, in place of the agent's waiting proposal about the same subject; apply it if it is `applied`.

        Raises the errors of the operation if the change cannot be applied.
        """
        for waiting in await tx[ProposalStore].lock_waiting(proposal.subject.id):
            if (waiting.agent, waiting.subject) == (proposal.agent, proposal.subject):
                await save_stale(tx, waiting, "A newer proposal replaces this one.")
        await tx[ProposalStore].add(proposal)
        await tx[AuditLog].add(describe_creation(proposal))
        if proposal.status == ProposalStatus.APPLIED:
            await self._apply(tx, proposal)
        else:
            await self._append_event(tx, "proposal.created", proposal)

    async def _apply(self, tx: Tx, proposal: Proposal) -> None:
        try:
            await self.changes.apply(tx, proposal)
        except (InvalidRequest, NotFound, Unprocessable) as error:
            raise Conflict(f"The change can no longer be applied. {error.detail}") from error
        await self._append_event(tx, "proposal.applied", proposal)

    async def _append_event(self, tx: Tx, type: str, proposal: Proposal) -> None:
        data = self.render(proposal, tx.tenant, tx.now)
        await tx[EventLog].append([Event(type, proposal.id, proposal.version, data)])


def find_accepted_operation(act: AuditAct) -> str:
    """Return the ID of the operation that an act executed by accepting a proposal."""
    return str(act.original_entry.change.after["operation"])
