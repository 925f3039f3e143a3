"""Staleness of proposals whose subjects have changed."""

from collections.abc import Collection
from typing import Final

from domain.audit.ports import AuditLog
from domain.proposals.model import Proposal, ProposalKind, ProposalStatus, describe_decision
from domain.proposals.ports import ProposalStore
from ports.unit_of_work import Tx

ALL_KINDS: Final = frozenset(ProposalKind)


async def mark_stale(tx: Tx, subject: str, reason: str, kinds: Collection[ProposalKind] = ALL_KINDS) -> None:
    """Mark the waiting proposals about an object as stale, in the transaction that changes the object.

    Args:
        tx: The transaction.
        subject: ID of the object, or of a source, which includes the proposals about its mappings.
        reason: What has changed, as a sentence.
        kinds: The kinds of proposals.
    """
    for waiting in await tx[ProposalStore].lock_waiting(subject):
        if waiting.kind in kinds:
            await save_stale(tx, waiting, reason)


async def save_stale(tx: Tx, before: Proposal, reason: str) -> None:
    """Store a waiting proposal as stale, with an audit entry; `reason` is a sentence."""
    after = before.decide(ProposalStatus.STALE, tx.now, None, reason)
    await tx[ProposalStore].save(after)
    await tx[AuditLog].add(describe_decision(before, after))
