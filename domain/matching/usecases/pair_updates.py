"""Updates of pairs after matching: new pairs, merges by rules, and superseded pairs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from domain.audit.ports import AuditLog
from domain.catalogue.ports import CatalogueStore
from domain.jobs.ports import JobStore
from domain.kernel.ids import new_id
from domain.kernel.resource import with_changes
from domain.matching.judge_answers import create_judging_job
from domain.matching.merge_plan import GROUP_SIZE_CONFLICT, CannotMerge, ClusterTooLarge, MergePlan
from domain.matching.model import (
    AUDITED_PAIR_FIELDS,
    MIN_STORED_PROBABILITY,
    DecidedBy,
    MatchPair,
    Merge,
    PairStatus,
    ScoredPair,
    build_pair_key,
)
from domain.matching.ports import PairStore
from domain.matching.scoring import MIN_ODDS, convert_to_probability
from domain.matching.usecases.judge import load_judge_settings
from domain.matching.usecases.merges import MergeService, load_plan, supersede_unmergeable
from ports.unit_of_work import Tx

UNDECIDED_STATUSES = (PairStatus.OPEN, PairStatus.SUPERSEDED)
"""Statuses of pairs without a decision."""
_SUPERSEDED: Final[Mapping[str, Any]] = {
    "status": PairStatus.SUPERSEDED,
    "probability": convert_to_probability(MIN_ODDS),
    "prior": MIN_ODDS,
    "evidence": (),
    "conflicts": (),
}
"""Status and score of an undecided pair without a current comparison."""


@dataclass(frozen=True, slots=True)
class PairUpdater:
    """Use case that updates pairs after their variants were matched."""

    merge_service: MergeService = field(default_factory=MergeService)

    async def store_scores(self, tx: Tx, matched_variants: Sequence[str], scored_pairs: Sequence[ScoredPair]) -> None:
        """Store the new scores of the pairs of matched variants, and merge the pairs that need no review.

        Dismissed and merged pairs stay unchanged. The lock for merging is acquired only if merges exist or will be
        made.

        Args:
            tx: The transaction.
            matched_variants: The IDs of the matched variants.
            scored_pairs: All pairs of these variants with a probability of at least MIN_STORED_PROBABILITY.
        """
        merged = await tx[CatalogueStore].get_merge_revision()
        await tx[CatalogueStore].lock_for_writing(merging=bool(merged) or any(one.is_certain for one in scored_pairs))
        if merged:
            await self.merge_service.undo_unsupported_merges(tx, matched_variants)
        variants = {*matched_variants, *(id for one in scored_pairs for id in (one.left, one.right))}
        stored_pairs = {
            (pair.left, pair.right): pair
            for pair in await tx[PairStore].find_pairs_of_variants(sorted(variants), lock=True)
        }
        new_pairs: dict[str, MatchPair] = {}
        open_: list[MatchPair] = []
        for one in scored_pairs:
            pair = stored_pairs.pop(build_pair_key(one.left, one.right), None)
            if pair is None:
                id, now = new_id("mpr"), tx.now
                pair = MatchPair(id=id, status=PairStatus.OPEN, created_at=now, updated_at=now, **vars(one))
                new_pairs[pair.id] = pair
            elif pair.status in UNDECIDED_STATUSES:
                pair = await _update_score(tx, pair, one)
            open_ += [pair] if pair.status == PairStatus.OPEN else []
        await _supersede_unscored(tx, set(matched_variants), stored_pairs.values())
        plan = await self._merge_certain_pairs(tx, open_, new_pairs)
        await tx[PairStore].add_all([*new_pairs.values()])
        await _supersede_unmergeable(tx, open_, plan)
        if open_ and (await load_judge_settings(tx)).enabled:
            await tx[JobStore].add(create_judging_job(tx.tenant, open_[0].id))

    async def _merge_certain_pairs(
        self, tx: Tx, pairs: Sequence[MatchPair], new_pairs: dict[str, MatchPair]
    ) -> MergePlan | None:
        """Merge the pairs that rules may merge, most probable first; return the plan, or None without such pairs.

        Args:
            tx: The transaction.
            pairs: The open pairs.
            new_pairs: The pairs among `pairs` that are not stored yet, by ID; updated with the results.
        """
        certain = sorted(
            (pair for pair in pairs if pair.can_merge_by_rules), key=lambda pair: (-pair.probability, pair.id)
        )
        if not certain:
            return None
        unstored, variants = [*new_pairs.values()], sorted({id for pair in pairs for id in (pair.left, pair.right)})
        merges, plan = await self.merge_service.merge_pairs(
            tx, certain, DecidedBy.RULES, unstored_pairs=unstored, further_variants=variants
        )
        for pair in certain:
            after = _apply_merge_result(pair, merges[pair.id], tx.now)
            if pair.id in new_pairs:
                new_pairs[pair.id] = after
            elif after != pair:
                await _save_pair(tx, pair, after)
        return plan


def _apply_merge_result(pair: MatchPair, result: Merge | CannotMerge, now: datetime) -> MatchPair:
    """Return the pair after rules have tried to merge it.

    If the merge group would become too large, the pair gets a conflict, so that a person must decide.

    Args:
        pair: The pair.
        result: The merge, or the error that prevents it.
        now: The current time.
    """
    if isinstance(result, Merge):
        return with_changes(pair, now, status=PairStatus.MERGED, merge=result.id)
    return (
        with_changes(pair, now, conflicts=(*pair.conflicts, GROUP_SIZE_CONFLICT))
        if isinstance(result, ClusterTooLarge)
        else pair
    )


async def _supersede_unscored(tx: Tx, matched_variants: set[str], pairs: Iterable[MatchPair]) -> None:
    """Mark the undecided pairs of matched variants that were not scored again as superseded, with the minimum probability.

    Args:
        tx: The transaction.
        matched_variants: The IDs of the matched variants.
        pairs: The stored pairs that were not scored again; pairs without a matched variant stay unchanged.
    """
    for pair in pairs:
        if (
            pair.status in UNDECIDED_STATUSES
            and pair.evidence
            and not matched_variants.isdisjoint((pair.left, pair.right))
        ):
            await _save_pair(tx, pair, with_changes(pair, tx.now, **_SUPERSEDED))


async def erase_compared_values(tx: Tx, variants: Sequence[str]) -> None:
    """Remove the evidence and the judgements, which contain data of the items, from the pairs of variants that lost all data.

    Undecided pairs become superseded; decided pairs keep their probability.

    Args:
        tx: The transaction, with `lock_for_writing`.
        variants: The IDs of the variants.
    """
    for pair in await tx[PairStore].find_pairs_of_variants(sorted(set(variants)), lock=True):
        if pair.evidence or pair.judgement:
            changes = _SUPERSEDED
            if pair.status not in UNDECIDED_STATUSES:
                # the weights move into the prior, so the probability stays the same
                prior = pair.prior + sum(component.weight for component in pair.evidence)
                changes = {"prior": prior, "evidence": (), "conflicts": ()}
            await _save_pair(tx, pair, with_changes(pair, tx.now, judgement=None, **changes))


async def _supersede_unmergeable(tx: Tx, pairs: Sequence[MatchPair], plan: MergePlan | None) -> None:
    """Mark open pairs that can no longer be merged as superseded.

    All open pairs of the variants of `pairs`, and of the variants merged with these, are checked.

    Args:
        tx: The transaction.
        pairs: The open pairs after matching.
        plan: The plan with the merges by rules; None if rules had no pair to merge.
    """
    if not pairs or not await tx[CatalogueStore].get_merge_revision():
        return
    if plan is None:
        plan = await load_plan(tx, sorted({id for pair in pairs for id in (pair.left, pair.right)}))
    group_members = sorted({id for pair in pairs for end in (pair.left, pair.right) for id in plan.list_members(end)})
    await supersede_unmergeable(tx, plan, await tx[PairStore].lock_open_pairs(group_members))


async def _update_score(tx: Tx, pair: MatchPair, scored: ScoredPair) -> MatchPair:
    """Store the new probability of a pair; reopen the pair if it was superseded only because of a low one."""
    is_probable_again = pair.status == PairStatus.SUPERSEDED and pair.probability < MIN_STORED_PROBABILITY
    conflicts = tuple(name for name in pair.conflicts if name != GROUP_SIZE_CONFLICT)
    judgement = pair.judgement if (pair.evidence, conflicts) == (scored.evidence, scored.conflicts) else None
    status = PairStatus.OPEN if is_probable_again else pair.status
    return await _save_pair(tx, pair, with_changes(pair, tx.now, judgement=judgement, status=status, **vars(scored)))


async def _save_pair(tx: Tx, before: MatchPair, after: MatchPair) -> MatchPair:
    """Store a changed pair; record the change in the audit log if the status changed."""
    await tx[PairStore].save(after)
    if before.status != after.status:
        await tx[AuditLog].add(AUDITED_PAIR_FIELDS.describe_update(before, after))
    return after
