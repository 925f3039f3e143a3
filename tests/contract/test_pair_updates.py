"""Updates of pairs and merges from the matcher's results (domain/matching/usecases/pair_updates.py)."""

from typing import Any

import pytest
import pytest_asyncio

from domain.catalogue.model import Variant
from domain.kernel.errors import Conflict
from domain.kernel.paging import PageRequest
from domain.kernel.resource import require_found
from domain.kernel.tenancy import Tenant
from domain.matching import merge_plan
from domain.matching.judge_answers import JUDGING_JOB
from domain.matching.model import (
    DecidedBy,
    JudgeSettings,
    MatchPair,
    MergeFilter,
    PairEvidence,
    PairFilter,
    PairStatus,
    ScoredPair,
    build_pair_key,
)
from domain.matching.ports import MergeStore, PairStore
from domain.matching.scoring import convert_to_probability
from domain.matching.usecases.judge import load_judged_items
from domain.matching.usecases.pair_updates import PairUpdater
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.merged_catalogues import MERGING, MergedCatalogue

pytestmark = pytest.mark.asyncio
EVIDENCE = (
    PairEvidence("title", 3, 5.25, "nearly the same", "Oak", ["Oak", 1]),
    PairEvidence("rivals", 0, -0.5, "other"),
)


@pytest_asyncio.fixture
async def shop(uow: UnitOfWork, tenant: Tenant) -> MergedCatalogue:
    made = MergedCatalogue(uow, tenant)
    for _ in range(3):
        await made.create_source()
    return made


def build_scored_pair(
    shop: MergedCatalogue, one: Variant, other: Variant, probability: float, *conflicts: str
) -> ScoredPair:
    product_by_variant = {variant.id: product.id for product in shop.products for variant in product.variants}
    left, right = build_pair_key(one.id, other.id)
    return ScoredPair(
        left, product_by_variant[left], right, product_by_variant[right], probability, -2.0, EVIDENCE, conflicts
    )


async def store_scores(
    shop: MergedCatalogue, *pairs: ScoredPair, matched: tuple[Variant, ...] = ()
) -> dict[tuple[str, str], MatchPair]:
    """Store the scores and return all pairs by their variants."""
    ids = [variant.id for variant in matched] or [pair.left for pair in pairs]
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await PairUpdater().store_scores(tx, ids, pairs)
        page = await tx[PairStore].list_pairs(PairFilter(), PageRequest(limit=100))
    return {(pair.left, pair.right): pair for pair in page.items}


async def load_variants(shop: MergedCatalogue) -> tuple[Variant, Variant, Variant]:
    a, b, c = [
        (await shop.load_product(source, name, "red")).variants[0]
        for source, name in zip(shop.sources, "ABC", strict=True)
    ]
    return a, b, c


async def test_a_likely_pair_is_stored_with_its_evidence(shop: MergedCatalogue) -> None:
    a, b, _ = await load_variants(shop)
    found = await store_scores(shop, build_scored_pair(shop, a, b, 0.9))
    pair = found[build_pair_key(a.id, b.id)]
    assert (pair.status, pair.probability, pair.prior, pair.merge) == (PairStatus.OPEN, 0.9, -2.0, None)
    assert pair.evidence == EVIDENCE
    assert pair.created_at == pair.updated_at
    assert (await store_scores(shop, build_scored_pair(shop, a, b, 0.7, "colour")))[
        build_pair_key(a.id, b.id)
    ].conflicts == ("colour",)


async def test_a_certain_pair_is_merged_without_conflicts(shop: MergedCatalogue) -> None:
    a, b, c = await load_variants(shop)
    found = await store_scores(shop, build_scored_pair(shop, a, b, 0.999), build_scored_pair(shop, a, c, 0.999, "gtin"))
    merged, kept = found[build_pair_key(a.id, b.id)], found[build_pair_key(a.id, c.id)]
    assert (merged.status, kept.status) == (PairStatus.MERGED, PairStatus.OPEN)
    async with shop.uow.begin_reading(shop.tenant) as tx:
        page = await tx[MergeStore].list_merges(MergeFilter(), PageRequest(limit=9))
    assert {(merge.kind, merge.decided_by) for merge in page.items} == {("variant", "rules"), ("product", "rules")}
    assert len(await shop.list_documents()) == 2


async def test_certain_pairs_of_three_sources_are_merged(shop: MergedCatalogue) -> None:
    a, b, c = await load_variants(shop)
    found = await store_scores(
        shop,
        build_scored_pair(shop, a, b, 0.999),
        build_scored_pair(shop, b, c, 0.998),
        build_scored_pair(shop, a, c, 0.6),
    )
    assert [found[build_pair_key(*two)].status for two in ((a.id, b.id), (b.id, c.id), (a.id, c.id))] == [
        PairStatus.MERGED, PairStatus.MERGED, PairStatus.SUPERSEDED,
    ]  # fmt: skip
    [product] = (await shop.list_documents()).values()
    assert len(product["variants"][0]["offers"]) == 3


async def test_a_persons_decision_is_kept(shop: MergedCatalogue) -> None:
    a, b, c = await load_variants(shop)
    found = await store_scores(shop, build_scored_pair(shop, a, b, 0.9), build_scored_pair(shop, a, c, 0.9))
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await MERGING.dismiss_pair(tx, found[build_pair_key(a.id, b.id)].id, DecidedBy.PERSON)
        merge = (await MERGING.merge_pair(tx, found[build_pair_key(a.id, c.id)].id, DecidedBy.PERSON)).merge
    again = await store_scores(shop, build_scored_pair(shop, a, b, 0.9999), build_scored_pair(shop, a, c, 0.4))
    assert again[build_pair_key(a.id, b.id)].status == PairStatus.DISMISSED
    assert again[build_pair_key(a.id, c.id)].merge == merge


async def test_an_undone_merge_waits_for_a_person(shop: MergedCatalogue) -> None:
    a, b, _ = await load_variants(shop)
    merge = str((await store_scores(shop, build_scored_pair(shop, a, b, 0.999)))[build_pair_key(a.id, b.id)].merge)
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await MERGING.undo_merge(tx, merge)
        assert list(await tx[PairStore].list_unjudged(10)) == []
    again = await store_scores(shop, build_scored_pair(shop, a, b, 0.9999))
    assert again[build_pair_key(a.id, b.id)].status == PairStatus.OPEN
    assert len(await shop.list_documents()) == 3


async def test_a_pair_without_evidence_is_superseded_and_returns(shop: MergedCatalogue) -> None:
    a, b, _ = await load_variants(shop)
    await store_scores(shop, build_scored_pair(shop, a, b, 0.9))
    assert (await store_scores(shop, matched=(a,)))[build_pair_key(a.id, b.id)].status == PairStatus.SUPERSEDED
    assert (await store_scores(shop, build_scored_pair(shop, a, b, 0.8)))[
        build_pair_key(a.id, b.id)
    ].status == PairStatus.OPEN


async def test_pairs_are_listed_by_filter(shop: MergedCatalogue) -> None:
    a, b, c = await load_variants(shop)
    await store_scores(shop, build_scored_pair(shop, a, b, 0.9), build_scored_pair(shop, a, c, 0.6, "size"))
    filters: dict[str, tuple[dict[str, Any], int]] = {
        "variant": ({"variant": a.id}, 2), "other": ({"variant": c.id}, 1), "product": ({"product": b.product}, 1),
        "status": ({"status": "open", "variant": b.id}, 1), "dismissed": ({"status": "dismissed"}, 0),
    }  # fmt: skip
    async with shop.uow.begin_reading(shop.tenant) as tx:
        for name, (filter, number) in filters.items():
            page = await tx[PairStore].list_pairs(PairFilter(**filter), PageRequest(limit=1))
            assert (len(page.items), page.has_more) == (min(number, 1), number > 1), name
        assert [pair.probability for pair in await tx[PairStore].list_unjudged(1)] == [0.9]


async def test_the_judge_is_used_where_it_is_enabled(shop: MergedCatalogue) -> None:
    a, b, c = await load_variants(shop)
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await PairUpdater().store_scores(tx, [a.id], [build_scored_pair(shop, a, b, 0.9)])
        assert not [job for job in tx.recorded.jobs if job.kind == JUDGING_JOB]
        await tx.store(JudgeSettings).add(JudgeSettings(enabled=True, created_at=tx.now, updated_at=tx.now))
        await PairUpdater().store_scores(tx, [c.id], [build_scored_pair(shop, b, c, 0.9)])
        assert [job.kind for job in tx.recorded.jobs if job.kind == JUDGING_JOB] == [JUDGING_JOB]
        items = await load_judged_items(tx, [a.id, b.id, "var_0000000000000000000000"])
    assert items[a.id]["title"] == "Title of A" and items[a.id]["price"] == 100 and items[b.id]["colour"] == "red"
    assert items.keys() == {a.id, b.id}


async def test_dismissed_pairs_are_not_merged_through_a_third_item(shop: MergedCatalogue) -> None:
    a, b, c = await load_variants(shop)
    dismissed = (await store_scores(shop, build_scored_pair(shop, a, b, 0.9)))[build_pair_key(a.id, b.id)]
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await MERGING.dismiss_pair(tx, dismissed.id, DecidedBy.PERSON)
    found = await store_scores(shop, build_scored_pair(shop, a, c, 0.9999), build_scored_pair(shop, b, c, 0.999))
    assert found[build_pair_key(a.id, c.id)].status == PairStatus.MERGED
    assert found[build_pair_key(b.id, c.id)].status == PairStatus.OPEN
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        with pytest.raises(Conflict, match=dismissed.id):
            await MERGING.merge_pair(tx, found[build_pair_key(b.id, c.id)].id, DecidedBy.PERSON)
        reopened = await MERGING.reopen_pair(tx, dismissed.id)
        assert reopened.status == PairStatus.OPEN
        await MERGING.merge_pair(tx, found[build_pair_key(b.id, c.id)].id, DecidedBy.PERSON)
        assert require_found(await tx[PairStore].get(dismissed.id)).status == PairStatus.SUPERSEDED


async def test_rules_do_not_merge_conflicting_items_through_a_third_item(shop: MergedCatalogue) -> None:
    a, b, c = await load_variants(shop)
    pairs = [
        build_scored_pair(shop, a, b, 0.89, "gtin"),
        build_scored_pair(shop, a, c, 0.9999),
        build_scored_pair(shop, b, c, 0.999),
    ]
    found = await store_scores(shop, *pairs)
    assert found[build_pair_key(a.id, c.id)].status == PairStatus.MERGED
    assert [found[build_pair_key(*two)].status for two in ((a.id, b.id), (b.id, c.id))] == [PairStatus.OPEN] * 2
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await MERGING.merge_pair(tx, found[build_pair_key(b.id, c.id)].id, DecidedBy.PERSON)


async def test_pairs_that_cannot_be_merged_are_not_open(shop: MergedCatalogue) -> None:
    a, b, c = await load_variants(shop)
    d = (await shop.load_product(shop.sources[2], "D", "red")).variants[0]
    found = await store_scores(
        shop, build_scored_pair(shop, a, d, 0.8), build_scored_pair(shop, b, c, 0.8), build_scored_pair(shop, a, b, 0.8)
    )
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await MERGING.merge_pair(tx, found[build_pair_key(a.id, b.id)].id, DecidedBy.PERSON)
        await MERGING.merge_pair(tx, found[build_pair_key(b.id, c.id)].id, DecidedBy.PERSON)
        assert (
            require_found(await tx[PairStore].get(found[build_pair_key(a.id, d.id)].id)).status == PairStatus.SUPERSEDED
        )


async def test_an_undo_opens_no_pair_without_evidence(shop: MergedCatalogue) -> None:
    a, b, _c = await load_variants(shop)
    d = (await shop.load_product(shop.sources[1], "D", "red")).variants[0]
    found = await store_scores(shop, build_scored_pair(shop, a, b, 0.9), build_scored_pair(shop, a, d, 0.8))
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        merge = str((await MERGING.merge_pair(tx, found[build_pair_key(a.id, b.id)].id, DecidedBy.PERSON)).merge)
    await store_scores(shop, matched=(d,))
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        await MERGING.undo_merge(tx, merge)
        rival = require_found(await tx[PairStore].get(found[build_pair_key(a.id, d.id)].id))
        assert (rival.status, rival.evidence) == (PairStatus.SUPERSEDED, ())
        assert rival.probability == convert_to_probability(rival.prior)


async def test_rules_do_not_create_merge_groups_above_the_limit(
    shop: MergedCatalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_plan, "AUTOMATIC_LIMIT", merge_plan.MergeGroupSize(2, 9))
    a, b, c = await load_variants(shop)
    pairs = build_scored_pair(shop, a, b, 0.999), build_scored_pair(shop, b, c, 0.998)
    for _ in "12":
        found = await store_scores(shop, *pairs)
        left = found[build_pair_key(b.id, c.id)]
        assert (left.status, left.conflicts) == (PairStatus.OPEN, (merge_plan.GROUP_SIZE_CONFLICT,))
        assert found[build_pair_key(a.id, b.id)].status == PairStatus.MERGED
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        with pytest.raises(Conflict, match="3 products with 3 variants"):
            await MERGING.merge_pair(tx, left.id, DecidedBy.JUDGE)
        assert (await MERGING.merge_pair(tx, left.id, DecidedBy.PERSON)).status == PairStatus.MERGED


async def test_a_person_cannot_create_merge_groups_above_the_limit(
    shop: MergedCatalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_plan, "MANUAL_LIMIT", merge_plan.MergeGroupSize(9, 3))
    [one, other] = [
        await shop.load_product(source, name, "red", "blue") for source, name in zip(shop.sources, "AB", strict=False)
    ]
    pair = await shop.create_pair(one.variants[0], other.variants[0])
    async with shop.uow.begin(shop.tenant, builders.CALL) as tx:
        with pytest.raises(Conflict, match=r"2 products with 4 variants. At most 9 products with 3 variants"):
            await MERGING.merge_pair(tx, pair.id, DecidedBy.PERSON)
        assert (await tx[PairStore].lock_open_pairs([pair.left])) == [pair]
