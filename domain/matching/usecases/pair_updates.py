"""Pairs of changed variants: offered, merged by rules, or superseded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from domain.audit.ports import AuditLog
from domain.catalogue.ports import CatalogueStore
from domain.jobs.ports import JobStore
from domain.kernel.ids import new_id
from domain.kernel.resource import changed
from domain.matching.judging import judging
from domain.matching.merge_plan import FAMILY, CannotMerge, MergePlan, TooMany
from domain.matching.model import OFFERED_AT, PAIR_AUDITED, DecidedBy, MatchPair, Merge, PairStatus, ScoredPair, key_of
from domain.matching.ports import PairStore
from domain.matching.scoring import LEAST, probability
from domain.matching.usecases.judging import settings_of
from domain.matching.usecases.merging import Merging, planned, supersede
from ports.unit_of_work import Tx

WAITING = (PairStatus.OPEN, PairStatus.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class PairUpdater:
    """Update of pairs after matching."""

    merging: Merging = field(default_factory=Merging)

    async def offer(self, tx: Tx, matched: Sequence[str], scored: Sequence[ScoredPair]) -> None:
        """Bring the pairs of the variants that were matched to what was scored; merge what needs nobody's word.

        What somebody dismissed or merged stays. Sources are kept from writing only where something is merged, or is to be.
        """
        merged = await tx[CatalogueStore].merge_count()
        await tx[CatalogueStore].take_turn(merging=bool(merged) or any(one.is_certain for one in scored))
        if merged:
            await self.merging.settle(tx, matched)
        sought = {*matched, *(id for one in scored for id in (one.left, one.right))}
        known = {(pair.left, pair.right): pair for pair in await tx[PairStore].of_variants(sorted(sought), lock=True)}
        new: dict[str, MatchPair] = {}
        open_: list[MatchPair] = []
        for one in scored:
            pair = known.pop(key_of(one.left, one.right), None)
            if pair is None:
                id, now = new_id("mpr"), tx.now
                pair = MatchPair(id=id, status=PairStatus.OPEN, created_at=now, updated_at=now, **vars(one))
                new[pair.id] = pair
            elif pair.status in WAITING:
                pair = await _renewed(tx, pair, one)
            open_ += [pair] if pair.status == PairStatus.OPEN else []
        await _let_go(tx, set(matched), known.values())
        plan = await self._merge(tx, open_, new)
        await tx[PairStore].add_all([*new.values()])
        await _supersede(tx, open_, plan)
        if open_ and (await settings_of(tx)).enabled:
            await tx[JobStore].add(judging(tx.tenant, open_[0].id))

    async def _merge(self, tx: Tx, pairs: Sequence[MatchPair], new: dict[str, MatchPair]) -> MergePlan | None:
        """Merge what needs nobody's word, likeliest first; new pairs are not stored yet. Answers what is merged by now."""
        certain = sorted(
            (pair for pair in pairs if pair.merges_by_rules), key=lambda pair: (-pair.probability, pair.id)
        )
        if not certain:
            return None
        fresh, ends = [*new.values()], sorted({id for pair in pairs for id in (pair.left, pair.right)})
        merges, plan = await self.merging.merge_all(tx, certain, DecidedBy.RULES, new=fresh, beside=ends)
        for pair in certain:
            after = _decided(pair, merges[pair.id], tx.now)
            if pair.id in new:
                new[pair.id] = after
            elif after != pair:
                await _save(tx, pair, after)
        return plan


def _decided(pair: MatchPair, came: Merge | CannotMerge, now: datetime) -> MatchPair:
    """Return the pair as it stands after rules had their say; where too much would be tied together a person is asked."""
    if isinstance(came, Merge):
        return changed(pair, now, status=PairStatus.MERGED, merge=came.id)
    return changed(pair, now, conflicts=(*pair.conflicts, FAMILY)) if isinstance(came, TooMany) else pair


async def _let_go(tx: Tx, matched: set[str], pairs: Iterable[MatchPair]) -> None:
    """Supersede undecided pairs of matched variants that were not scored again."""
    for pair in pairs:
        if pair.status in WAITING and pair.evidence and not matched.isdisjoint((pair.left, pair.right)):
            nothing = {"probability": probability(LEAST), "prior": LEAST, "evidence": (), "conflicts": ()}
            await _save(tx, pair, changed(pair, tx.now, status=PairStatus.SUPERSEDED, **nothing))


async def _supersede(tx: Tx, pairs: Sequence[MatchPair], plan: MergePlan | None) -> None:
    """Supersede open pairs that merges now forbid: these, and others of the same variants."""
    if not pairs or not await tx[CatalogueStore].merge_count():
        return
    if plan is None:
        plan = await planned(tx, sorted({id for pair in pairs for id in (pair.left, pair.right)}))
    near = sorted({id for pair in pairs for end in (pair.left, pair.right) for id in plan.members(end)})
    await supersede(tx, plan, await tx[PairStore].open_of(near))


async def _renewed(tx: Tx, pair: MatchPair, one: ScoredPair) -> MatchPair:
    """Return the pair as it is scored now; one that nothing stood against but its score is open again."""
    again = pair.status == PairStatus.SUPERSEDED and pair.probability < OFFERED_AT
    facts = tuple(name for name in pair.conflicts if name != FAMILY)
    judgement = pair.judgement if (pair.evidence, facts) == (one.evidence, one.conflicts) else None
    status = PairStatus.OPEN if again else pair.status
    return await _save(tx, pair, changed(pair, tx.now, judgement=judgement, status=status, **vars(one)))


async def _save(tx: Tx, before: MatchPair, after: MatchPair) -> MatchPair:
    await tx[PairStore].save(after)
    if before.status != after.status:
        await tx[AuditLog].add(PAIR_AUDITED.updated(before, after))
    return after
