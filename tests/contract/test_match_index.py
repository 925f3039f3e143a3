"""Storage of the match index (domain/matching/ports.py), and the matcher's results."""

from datetime import timedelta
from random import Random
from typing import Any

import pytest

from benchmarks.generated_furniture import generate_items, render_for_maker, render_for_vendor
from domain.catalogue.batch import Batch
from domain.catalogue.model import Product
from domain.catalogue.ports import CatalogueStore
from domain.kernel.tenancy import Tenant
from domain.matching.features import MatchFeatures, StoredVariant, compute_features
from domain.matching.index import (
    ALL_ITEMS_KEY,
    MAX_LISTED_ITEMS,
    IndexedItem,
    KeyChange,
    MatchModel,
    QueuedVariant,
    compute_key_changes,
)
from domain.matching.model import MIN_STORED_PROBABILITY, build_pair_key
from domain.matching.ports import MatchIndexStore
from domain.matching.scoring import DEFAULT_WEIGHTS, convert_to_probability
from domain.matching.usecases import matching_stage
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend
from tests.support.catalogues import add_products, full_key_range, store_batch
from tests.support.matching import PairRecorder, build_products, build_source_ids, match_queued_variants

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
A, B, C = build_source_ids(3)


def _build_chair(source: str, key: str, *colours: str, title: str = "Halden chair", **data: Any) -> Product:
    made = builders.product(source, "cat_0000000000000000000001", key, data={"title": title, **data})
    for colour in colours:
        builders.variant(made, f"{key}/{colour}", data={"sku": f"{key}{colour}", "colour": colour})
    return made


async def _list_queued(uow: UnitOfWork, tenant: Tenant) -> list[str]:
    async with uow.begin_reading(tenant) as tx:
        return [one.variant for one in await tx[MatchIndexStore].list_unindexed("", 100)]


async def _index_queued(uow: UnitOfWork, tenant: Tenant) -> list[IndexedItem]:
    """Index all queued variants as the matcher does and return the items."""
    async with uow.begin(tenant, CALL) as tx:
        queued = {one.variant: one.stamp for one in await tx[MatchIndexStore].list_unindexed("", 100)}
        before = await tx[MatchIndexStore].find_items_of_variants(list(queued))
        known = {item.variant: item.number for item in before}
        new = iter(await tx[MatchIndexStore].find_free_numbers(len(queued)))
        items = [
            IndexedItem(
                one.variant,
                one.product,
                one.source,
                queued[one.variant],
                compute_features(one),
                known.get(one.variant) or next(new),
            )
            for one in await tx[MatchIndexStore].load_variants(list(queued))
        ]
        await tx[MatchIndexStore].store_items(items, compute_key_changes(before, items))
    return items


async def test_written_variants_are_queued(uow: UnitOfWork, tenant: Tenant) -> None:
    [first, second] = await add_products(
        uow, tenant, _build_chair(A, "1", "white", "black"), _build_chair(A, "2", "white")
    )
    ids = sorted(variant.id for product in (first, second) for variant in product.variants)
    assert await _list_queued(uow, tenant) == ids
    async with uow.begin_reading(tenant) as tx:
        assert [one.variant for one in await tx[MatchIndexStore].list_unindexed(ids[0], 1)] == [ids[1]]
        assert not await tx[MatchIndexStore].is_queue_empty() and not await tx[MatchIndexStore].list_matchable("", 9)
    async with uow.begin(Tenant(tenant.org, not tenant.livemode), CALL) as tx:
        assert await tx[MatchIndexStore].is_queue_empty(), "the other mode has a queue of its own"


async def test_the_backlog_reports_the_number_of_waiting_items_and_their_age(
    backend: Backend, uow: UnitOfWork, tenant: Tenant
) -> None:
    [product] = await add_products(uow, tenant, _build_chair(A, "1", "white", "black"))
    await backend.pass_time(timedelta(milliseconds=300))
    await store_batch(
        uow, tenant, Batch(changed_variants=product.variants, touched={product.id: product}), full_key_range(A)
    )
    now = await backend.backlog.measure_backlog()
    assert now.variant_count >= 2 and now.max_age_seconds >= 0.2, "a variant that changes again keeps its waiting time"


async def test_only_changes_of_identifying_fields_queue_a_variant(uow: UnitOfWork, tenant: Tenant) -> None:
    [product] = await add_products(uow, tenant, _build_chair(A, "1", "white", "black", brand="Nordlicht"))
    await _index_queued(uow, tenant)
    async with uow.begin(tenant, CALL) as tx:
        await tx[MatchIndexStore].dequeue(await tx[MatchIndexStore].list_matchable("", 9))
        assert await tx[MatchIndexStore].is_queue_empty()
    product.data = {**product.data, "description": "for the hall"}
    await store_batch(uow, tenant, Batch(changed_products=[product], touched={product.id: product}), full_key_range(A))
    assert await _list_queued(uow, tenant) == []
    product.data = {**product.data, "brand": "Oldtown"}
    await store_batch(uow, tenant, Batch(changed_products=[product], touched={product.id: product}), full_key_range(A))
    assert await _list_queued(uow, tenant) == sorted(variant.id for variant in product.variants)


async def test_variants_that_change_during_matching_stay_queued(uow: UnitOfWork, tenant: Tenant) -> None:
    [product] = await add_products(uow, tenant, _build_chair(A, "1", "white"))
    [item] = await _index_queued(uow, tenant)
    async with uow.begin_reading(tenant) as tx:
        waiting = await tx[MatchIndexStore].list_matchable("", 9)
    assert waiting == [QueuedVariant(item.variant, item.stamp)]
    product.variants[0].data = {"colour": "black"}
    changed = Batch(changed_variants=product.variants, touched={product.id: product})
    await store_batch(uow, tenant, changed, full_key_range(A))
    async with uow.begin(tenant, CALL) as tx:
        await tx[MatchIndexStore].dequeue(waiting)
        assert not await tx[MatchIndexStore].is_queue_empty() and not await tx[MatchIndexStore].list_matchable("", 9)
    assert await _list_queued(uow, tenant) == [item.variant]


async def test_variants_are_stored_with_their_features(uow: UnitOfWork, tenant: Tenant) -> None:
    made = _build_chair(A, "1", "white", "black")
    for price, gone in ((52000, None), (49900, None), (100, builders.MOMENT)):
        data = {"currency": "usd", "price": price, "availability": "in_stock"}
        builders.offer(made.variants[0], location=f"at {price}", data=data, withdrawn_at=gone)
    builders.offer(made.variants[1], data={"currency": "eur", "msrp": 70000, "availability": "in_stock"})
    [product] = await add_products(uow, tenant, made)
    async with uow.begin_reading(tenant) as tx:
        found = {
            one.variant: one for one in await tx[MatchIndexStore].load_variants([one.id for one in product.variants])
        }
    white, black = (found[variant.id] for variant in made.variants)
    assert (white.product, white.source, white.price, white.currency) == (product.id, A, 49900, "usd")
    assert (black.price, black.currency) == (70000, "eur")
    assert white.product_data["title"] == "Halden chair" and black.variant_data["colour"] == "black"


async def test_items_are_found_by_their_keys(uow: UnitOfWork, tenant: Tenant) -> None:
    await add_products(uow, tenant, _build_chair(A, "1", "white", "black"))
    await add_products(uow, tenant, _build_chair(B, "X", "white", title="HALDEN chair in white"))
    items = await _index_queued(uow, tenant)
    numbers = sorted(item.number for item in items)
    of_b = next(item for item in items if item.source == B)
    async with uow.begin_reading(tenant) as tx:
        assert sorted(await tx[MatchIndexStore].find_items_by_number(numbers), key=_get_number) == sorted(
            items, key=_get_number
        )
        assert await tx[MatchIndexStore].find_items_of_variants([of_b.variant]) == [of_b]
        assert not set(await tx[MatchIndexStore].find_free_numbers(5)) & set(numbers)
        found = await tx[MatchIndexStore].find_listings(["halden", "white", "nobody", ALL_ITEMS_KEY])
    assert _simplify(found["halden"]) == {A: (2, [n for n in numbers if n != of_b.number]), B: (1, [of_b.number])}
    assert found["white"][A].item_count == 1 and "nobody" not in found
    assert _simplify(found[ALL_ITEMS_KEY]) == {A: (2, None), B: (1, None)}


async def test_items_codes_and_stems_are_counted_by_key(uow: UnitOfWork, tenant: Tenant) -> None:
    made = _build_chair(A, "1", "white", "black")
    for variant, mpn in zip(made.variants, ("RXV663BK", "RXV663"), strict=True):
        variant.data = {"mpn": mpn}
    [product] = await add_products(uow, tenant, made)
    await _index_queued(uow, tenant)
    async with uow.begin_reading(tenant) as tx:
        found = await tx[MatchIndexStore].find_listings(["#rxv663", "#rxv663bk"])
    counted = {key: (row[A].item_count, row[A].code_count, row[A].stem_count) for key, row in found.items()}
    assert counted == {"#rxv663": (2, 1, 2), "#rxv663bk": (1, 1, 0)}
    product.variants[1].data = {"description": "fits RXV663"}
    await store_batch(
        uow, tenant, Batch(changed_variants=product.variants[1:], touched={product.id: product}), full_key_range(A)
    )
    await _index_queued(uow, tenant)
    async with uow.begin_reading(tenant) as tx:
        [row] = (await tx[MatchIndexStore].find_listings(["#rxv663"])).values()
    assert (row[A].item_count, row[A].code_count, row[A].stem_count) == (1, 0, 1)


async def test_keys_follow_the_item_s_data(uow: UnitOfWork, tenant: Tenant) -> None:
    [product] = await add_products(uow, tenant, _build_chair(A, "1", "white", "black"))
    before = await _index_queued(uow, tenant)
    product.variants[0].data = {"colour": "green"}
    changed = product.variants[:1]
    await store_batch(uow, tenant, Batch(changed_variants=changed, touched={product.id: product}), full_key_range(A))
    [item] = await _index_queued(uow, tenant)
    [other] = [one for one in before if one.variant != item.variant]
    assert item.number == next(one.number for one in before if one.variant == item.variant)
    async with uow.begin_reading(tenant) as tx:
        found = await tx[MatchIndexStore].find_listings(["white", "green", "halden", "black"])
    shared = {name: _simplify(found.get(name, {})).get(A, (0, [])) for name in ("white", "green", "black", "halden")}
    [was] = next(one.features.colours for one in before if one.variant == item.variant)
    assert shared["green"] == (1, [item.number]) and shared[was] == (0, [])
    assert sorted(shared["halden"][1] or []) == sorted((item.number, other.number))


async def test_frequent_keys_have_no_item_list(uow: UnitOfWork, tenant: Tenant) -> None:
    def by(first: int, last: int) -> dict[tuple[str, str], KeyChange]:
        added = list(range(first, last + 1))
        return {("oak", A): KeyChange(len(added), added), ("#x1", A): KeyChange(len(added), added)}

    async with uow.begin(tenant, CALL) as tx:
        await tx[MatchIndexStore].store_items([], by(1, MAX_LISTED_ITEMS - 1))
        assert _simplify((await tx[MatchIndexStore].find_listings(["oak"]))["oak"])[A] == (
            MAX_LISTED_ITEMS - 1,
            list(range(1, MAX_LISTED_ITEMS)),
        )
        await tx[MatchIndexStore].store_items([], by(MAX_LISTED_ITEMS, MAX_LISTED_ITEMS))
        assert _simplify((await tx[MatchIndexStore].find_listings(["oak"]))["oak"])[A][1] == list(
            range(1, MAX_LISTED_ITEMS + 1)
        )
        await tx[MatchIndexStore].store_items([], by(MAX_LISTED_ITEMS + 1, MAX_LISTED_ITEMS + 1))
        assert _simplify((await tx[MatchIndexStore].find_listings(["oak"]))["oak"])[A] == (MAX_LISTED_ITEMS + 1, None)
        await tx[MatchIndexStore].store_items([], {("oak", A): KeyChange(-2, [], [1, 2])})
        assert _simplify((await tx[MatchIndexStore].find_listings(["oak"]))["oak"])[A] == (
            MAX_LISTED_ITEMS - 1,
            None,
        ), "the key stays frequent"


async def test_the_model_is_stored(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[MatchIndexStore].find_model() is None
        for items in (7, 9):
            await tx[MatchIndexStore].store_model(MatchModel(items, DEFAULT_WEIGHTS, builders.MOMENT))
    async with uow.begin_reading(tenant) as tx:
        assert await tx[MatchIndexStore].find_model() == MatchModel(9, DEFAULT_WEIGHTS, builders.MOMENT)


def _simplify(found: Any) -> dict[str, tuple[int, list[int] | None]]:
    return {
        source: (one.item_count, None if one.numbers is None else list(one.numbers)) for source, one in found.items()
    }


def _get_number(item: IndexedItem) -> int:
    return item.number


async def _add_vendors(backend: Backend, tenant: Tenant, count: int = 120, seed: int = 1) -> None:
    """Add a maker and a vendor that sells the maker's items."""
    random = Random(seed)
    made = generate_items(random, count)
    await add_products(
        backend.uow, tenant, *build_products(A, [(str(at), one, render_for_maker(one)) for at, one in enumerate(made)])
    )
    await add_products(
        backend.uow,
        tenant,
        *build_products(B, [(str(at), one, render_for_vendor(random, one)) for at, one in enumerate(made)]),
    )


async def _read_probabilities(backend: Backend, tenant: Tenant, recorder: PairRecorder) -> dict[tuple[str, str], float]:
    """Return the probability of each pair by the variants' keys in their sources."""
    ids = sorted({id for pair in recorder.pairs for id in pair})
    keys: dict[str, tuple[str, str]] = {}
    async with backend.uow.begin_reading(tenant) as tx:
        for id in ids:
            item = await tx[CatalogueStore].get_source_item(id)
            assert item is not None
            keys[id] = (item.source, item.variant_key)
    made = {}
    for pair, scored in recorder.pairs.items():
        (_, left), (_, right) = sorted(keys[id] for id in pair)
        made[left, right] = scored.probability
    return made


async def test_two_sources_are_matched(backend: Backend, tenant: Tenant) -> None:
    await _add_vendors(backend, tenant)
    recorder = await match_queued_variants(backend, tenant, index_batch_size=50, match_batch_size=40)
    found = await _read_probabilities(backend, tenant, recorder)
    right = [pair for pair in found if pair[0] == pair[1]]
    assert len(right) >= 0.9 * 120 and len(right) >= 0.97 * len(found)
    for (left, other), pair in recorder.pairs.items():
        assert build_pair_key(left, other) == (left, other) and pair.probability >= MIN_STORED_PROBABILITY
        assert (
            abs(convert_to_probability(pair.prior + sum(part.weight for part in pair.evidence)) - pair.probability)
            < 1e-9
        )
    assert sum(map(len, recorder.batches)) == 240 and max(map(len, recorder.batches)) <= 40
    assert await match_queued_variants(backend, tenant, recorder) is recorder and len(recorder.batches) == 6, (
        "nothing is matched twice"
    )


async def test_a_second_source_is_matched_with_existing_items(backend: Backend, tenant: Tenant) -> None:
    """Incremental matching finds the same pairs as a full run; only learned weights differ."""
    random = Random(3)
    made = generate_items(random, 90)
    first = build_products(A, [(str(at), one, render_for_maker(one)) for at, one in enumerate(made)])
    second = build_products(B, [(str(at), one, render_for_vendor(random, one)) for at, one in enumerate(made)])
    await add_products(backend.uow, tenant, *first)
    recorder = await match_queued_variants(backend, tenant)
    assert not recorder.pairs
    await add_products(backend.uow, tenant, *second)
    await match_queued_variants(backend, tenant, recorder)
    right = [pair for pair in await _read_probabilities(backend, tenant, recorder) if pair[0] == pair[1]]
    assert len(right) >= 0.9 * 90


async def test_a_changed_variant_is_matched_alone(backend: Backend, tenant: Tenant) -> None:
    [product] = await add_products(
        backend.uow, tenant, _build_chair(A, "1", "white", "black", title="Halden armchair XR-2214")
    )
    await add_products(backend.uow, tenant, _build_chair(B, "X", "green", title="Armchair Halden XR-2214"))
    recorder = await match_queued_variants(backend, tenant)
    assert not recorder.pairs, "no colour matches"
    green = product.variants[0]
    green.data = {**green.data, "colour": "green"}
    await store_batch(
        backend.uow, tenant, Batch(changed_variants=[green], touched={product.id: product}), full_key_range(A)
    )
    await match_queued_variants(backend, tenant, recorder)
    [pair] = recorder.pairs.values()
    assert green.id in (pair.left, pair.right) and not pair.conflicts
    assert recorder.batches[-1] == [green.id]
    assert {pair.left_product, pair.right_product} >= {product.id}


async def test_a_better_competing_candidate_lowers_an_older_pair(backend: Backend, tenant: Tenant) -> None:
    """An existing pair is scored again as soon as a better match exists."""
    sized = {"dimensions": {"width": {"hundredths_in": 3000, "given": {"value": 30, "unit": "in"}}}}
    await add_products(
        backend.uow, tenant, _build_product(A, "1", "Halden armchair", {"gtin": "4006381333931", **sized})
    )
    other = _build_product(B, "X", "Halden armchair", sized)
    [older] = await add_products(backend.uow, tenant, other)
    recorder = await match_queued_variants(backend, tenant)
    before = {pair: scored.probability for pair, scored in recorder.pairs.items()}
    assert any(older.variants[0].id in pair for pair in before)
    await add_products(
        backend.uow, tenant, _build_product(B, "Y", "Halden armchair", {"gtin": "4006381333931", **sized})
    )
    await match_queued_variants(backend, tenant, recorder)
    still = [pair.probability for ids, pair in recorder.pairs.items() if older.variants[0].id in ids]
    assert not still or max(still) < min(before.values())


def _build_product(source: str, key: str, title: str, data: dict[str, Any]) -> Product:
    made = builders.product(source, "cat_0000000000000000000001", key, data={"title": title})
    builders.variant(made, key, data=data)
    return made


async def test_items_of_one_source_are_never_paired(backend: Backend, tenant: Tenant) -> None:
    await add_products(backend.uow, tenant, _build_chair(A, "1", "white"), _build_chair(A, "2", "white"))
    assert not (await match_queued_variants(backend, tenant)).pairs


async def test_each_of_three_sources_is_matched_with_both_others(backend: Backend, tenant: Tenant) -> None:
    for source in (A, B, C):
        await add_products(
            backend.uow, tenant, _build_product(source, "1", "Halden armchair XR-2214", {"gtin": "4006381333931"})
        )
    assert len((await match_queued_variants(backend, tenant)).pairs) == 3


UNREADABLE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Rail " + "9" * 400 + " 1/3 in", {}),
    ("Rail " + "9" * 400 + " cm", {}),
    ("Bolt set " + " / ".join(map(str, range(1, 99))) + " drawer 5 cm", {}),
    ("Rail", {"axes": {"Pack": "9" * 21}}),
    ("Rail", {"components": [{"name": "x", "quantity": 10**20}]}),
)
"""Titles and data that cannot be parsed sensibly."""


async def test_an_invalid_row_does_not_stop_the_others(backend: Backend, tenant: Tenant) -> None:
    for source in (A, B):
        await add_products(
            backend.uow, tenant, _build_product(source, "good", "Halden armchair XR-2214", {"gtin": "4006381333931"})
        )
        for at, (title, data) in enumerate(UNREADABLE):
            await add_products(backend.uow, tenant, _build_product(source, f"bad {at}", title, data))
    recorder = await match_queued_variants(backend, tenant)
    assert ("good", "good") in await _list_pairs(backend, tenant, recorder)


async def test_a_variant_whose_features_cannot_be_computed_is_skipped(
    backend: Backend, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(stored: StoredVariant) -> MatchFeatures:
        if "secret" in stored.product_data["title"]:
            raise OverflowError(stored.product_data["title"])
        return compute_features(stored)

    monkeypatch.setattr(matching_stage, "compute_features", failing)
    for source in (A, B):
        for key, title in (("good", "Halden armchair XR-2214"), ("bad", "secret Halden armchair XR-2214")):
            await add_products(backend.uow, tenant, _build_product(source, key, title, {"gtin": "4006381333931"}))
    recorder = await match_queued_variants(backend, tenant)
    assert await _list_pairs(backend, tenant, recorder) == {("good", "good")}
    logged = [record for record in caplog.records if record.name == "joinery.matching"]
    assert len(logged) == 2 and {vars(record)["error"] for record in logged} == {"OverflowError"}
    assert all(vars(record)["variant"].startswith("var_") for record in logged)
    assert not any("secret" in str(vars(record)) for record in logged)


async def _list_pairs(backend: Backend, tenant: Tenant, recorder: PairRecorder) -> set[tuple[str, str]]:
    """Return the pairs by their variants' keys."""
    return {(left, right) for left, right in await _read_probabilities(backend, tenant, recorder)}


class _FailingRecorder(PairRecorder):
    """Pair recorder that fails at the third batch before storing anything."""

    async def store_scores(self, *args: Any) -> None:
        if len(self.batches) == 2:
            self.batches.append([])
            raise ConnectionError("gone")
        await super().store_scores(*args)


async def test_an_interrupted_job_is_resumed_with_the_same_result(backend: Backend, tenant: Tenant) -> None:
    await _add_vendors(backend, tenant, 60)
    other = await backend.tenant()
    await _add_vendors(backend, other, 60)
    whole_ = await _read_probabilities(backend, other, await match_queued_variants(backend, other, match_batch_size=25))
    dying = _FailingRecorder()
    with pytest.raises(AssertionError):
        await match_queued_variants(backend, tenant, dying, match_batch_size=25)
    await backend.pass_time(timedelta(seconds=3))
    await match_queued_variants(backend, tenant, dying, match_batch_size=25)
    found = await _read_probabilities(backend, tenant, dying)
    assert found.keys() == whole_.keys()
    assert all(abs(found[pair] - whole_[pair]) < 1e-6 for pair in found)


async def test_variants_queued_during_the_job_are_matched(backend: Backend, tenant: Tenant) -> None:
    late = _build_chair(B, "X", "white", title="Halden chair XR-2214")

    class AddingRecorder(PairRecorder):
        async def store_scores(self, *args: Any) -> None:
            if not self.batches:
                await add_products(backend.uow, tenant, late)
            await super().store_scores(*args)

    await add_products(backend.uow, tenant, _build_chair(A, "1", "white", title="Halden chair XR-2214"))
    recorder = await match_queued_variants(backend, tenant, AddingRecorder())
    assert len(recorder.pairs) == 1


async def test_a_whole_catalogue_is_matched_again(backend: Backend, tenant: Tenant) -> None:
    """Weights are learned again, the pairs stay the same, and no item waits afterwards."""
    await _add_vendors(backend, tenant)
    first = await _read_probabilities(backend, tenant, await match_queued_variants(backend, tenant))
    async with backend.uow.begin(tenant, CALL) as tx:
        assert (
            await tx[MatchIndexStore].delete_model_and_requeue() == 240
            and await tx[MatchIndexStore].find_model() is None
        )
        assert await tx[MatchIndexStore].delete_model_and_requeue() == 0, "waiting variants are queued once"
    again = await match_queued_variants(backend, tenant)
    assert sum(map(len, again.batches)) == 240
    assert (await _read_probabilities(backend, tenant, again)).keys() == first.keys()
