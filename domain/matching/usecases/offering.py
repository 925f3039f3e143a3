"""What the matcher says of changed variants becomes pairs: offered, merged by rules, or not worth a look any more."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from domain.kernel.ids import new_id
from domain.matching.judging import judging
from domain.matching.model import (
    OFFERED_AT,
    PAIR_AUDITED,
    DecidedBy,
    MatchPair,
    PairStatus,
    ScoredPair,
    key_of,
)
from domain.matching.usecases.judge_settings import settings_of
from domain.matching.usecases.merging import Merging, planned, supersede
from ports.unit_of_work import Tx

WAITING = (PairStatus.OPEN, PairStatus.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class Offering:
    """Keeps the pairs of what was matched."""

    merging: Merging = field(default_factory=Merging)

    async def offer(self, tx: Tx, matched: Sequence[str], scored: Sequence[ScoredPair]) -> None:
        """Bring the pairs of the variants that were matched to what was scored; merge what needs nobody's word.

        What somebody dismissed or merged stays. The transaction must hold the catalogue alone.
        """
        await tx.catalogue.take_turn(merging=True)
        sought = {*matched, *(id for one in scored for id in (one.left, one.right))}
        known = {(pair.left, pair.right): pair for pair in await tx.pairs.of_variants(sorted(sought), lock=True)}
        open_: list[MatchPair] = []
        for one in scored:
            pair = known.pop(key_of(one.left, one.right), None)
            if pair is None:
                pair = await _new(tx, one)
            elif pair.status in WAITING:
                pair = await _renewed(tx, pair, one)
            open_.append(pair)
        changed = set(matched)
        for pair in known.values():
            if pair.status == PairStatus.OPEN and not changed.isdisjoint((pair.left, pair.right)):
                await _save(tx, pair, pair.changed(tx.now, status=PairStatus.SUPERSEDED, probability=0.0))
        certain = [pair for pair in open_ if pair.status == PairStatus.OPEN and pair.merges_by_rules]
        if certain:
            likeliest = sorted(certain, key=lambda pair: (-pair.probability, pair.id))
            await self.merging.merge_all(tx, likeliest, DecidedBy.RULES)
        if open_ and await tx.catalogue.merge_count():
            ids = [id for pair in open_ for id in (pair.left, pair.right)]
            plan, wanted = await planned(tx, ids), {pair.id for pair in open_}
            now = [pair for pair in await tx.pairs.of_variants(ids) if pair.id in wanted]
            await supersede(tx, plan, now)
        if open_ and (await settings_of(tx)).enabled:
            await tx.jobs.add(judging(tx.tenant, open_[0].id))


async def _new(tx: Tx, one: ScoredPair) -> MatchPair:
    pair = MatchPair(
        new_id("mpr"), PairStatus.OPEN, one.left, one.left_product, one.right, one.right_product, one.probability,
        one.prior, tuple(one.evidence), tuple(one.conflicts), tx.now, tx.now,
    )  # fmt: skip
    await tx.pairs.add(pair)
    await tx.audit.add(PAIR_AUDITED.created(pair))
    return pair


async def _renewed(tx: Tx, pair: MatchPair, one: ScoredPair) -> MatchPair:
    """The pair as it is scored now; one that nothing stood against but its score is open again."""
    again = pair.status == PairStatus.SUPERSEDED and pair.probability < OFFERED_AT
    after = pair.changed(
        tx.now,
        status=PairStatus.OPEN if again else pair.status,
        left_product=one.left_product,
        right_product=one.right_product,
        probability=one.probability,
        prior=one.prior,
        evidence=tuple(one.evidence),
        conflicts=tuple(one.conflicts),
    )
    return await _save(tx, pair, after)


async def _save(tx: Tx, before: MatchPair, after: MatchPair) -> MatchPair:
    await tx.pairs.save(after)
    if before.status != after.status:
        await tx.audit.add(PAIR_AUDITED.updated(before, after))
    return after
