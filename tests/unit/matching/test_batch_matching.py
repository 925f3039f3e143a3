"""Matching in batches with an index gives the same result as matching all at once, and siblings are never merged."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.generated_furniture import FurnitureItem, generate_items, render_for_maker, render_for_vendor
from domain.matching.candidates import BatchMatcher, CandidateCache
from domain.matching.features import StoredVariant, compute_features, compute_features_from_texts
from domain.matching.index import MAX_LISTED_ITEMS, IndexedItem, KeyListing, compute_key_changes
from domain.matching.model import AUTO_MERGE_PROBABILITY
from domain.matching.scoring import DEFAULT_WEIGHTS, convert_to_probability
from domain.matching.tables import LEFT, RIGHT, MatchIndex, match_sides
from tests.support.matching import build_products
from tests.unit.matching.memory_index import MemoryIndex, create_items, match_items

pytestmark = pytest.mark.slow

MAKER, VENDOR = "src_1", "src_2"


def generate_sources(seed: int, count: int = 150) -> list[IndexedItem]:
    """Return the items of a maker and of a vendor that sells most of them under other names, some in packs, some with additional siblings."""
    random = Random(seed)
    items = generate_items(random, count)
    left = [(f"a{at}", one, render_for_maker(one)) for at, one in enumerate(items) if random.random() < 0.87]
    right = []
    for at, one in enumerate(items):
        chance = random.random()
        if chance > 0.12:
            right.append((f"b{at}", one, render_for_vendor(random, one)))
        if chance > 0.9:
            right.append((f"pack{at}", pack := replace(one, pack=2), render_for_vendor(random, pack)))
    return create_stored_items({MAKER: left, VENDOR: right})


def create_stored_items(
    rows_by_source: dict[str, list[tuple[str, FurnitureItem, dict[str, str]]]],
) -> list[IndexedItem]:
    """Return the items as stored in a catalogue in which each family is one product."""
    found = {}
    for source, rows in rows_by_source.items():
        found[source] = [
            compute_features(
                StoredVariant(variant.key, product.id, source, product.data, variant.data, *_get_price(variant.offers))
            )
            for product in build_products(source, rows)
            for variant in product.variants
        ]
    return create_items(found)


def _get_price(offers: list[object]) -> tuple[int | None, str | None]:
    data = getattr(offers[0], "data", {}) if offers else {}
    return data.get("price"), data.get("currency")


def get_item_number(id: str) -> str:
    return id.lstrip("abpck")


@pytest.mark.parametrize("seed", range(4))
def test_items_of_another_vendor_are_matched(seed: int) -> None:
    found = generate_sources(seed)
    pairs = match_items(found, 40, learn=True)
    there = {item.variant[1:] for item in found if item.source == MAKER} & {
        item.variant[1:] for item in found if item.variant.startswith("b")
    }
    right = {pair for pair in pairs if pair[0][1:] == pair[1][1:] and "pack" not in pair[1]}
    assert len(right) >= 0.93 * len(there)
    assert len(right) >= 0.97 * len(pairs)


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_sibling_and_no_pack_is_merged(seed: int, learn: bool) -> None:
    """Colours, sizes and packs of one family, some of which only one side has."""
    for (left, right), pair in match_items(generate_sources(seed, 60), 25, learn=learn).items():
        if get_item_number(left) != get_item_number(right) or "pack" in left + right:
            assert pair.probability < AUTO_MERGE_PROBABILITY or pair.conflicts, (left, right, pair)


def test_batches_give_the_same_result_as_one_run() -> None:
    random = Random(2)
    generated = generate_items(random, 120)
    left = [compute_features_from_texts(f"a{at}", render_for_maker(one)) for at, one in enumerate(generated)]
    right = [compute_features_from_texts(f"b{at}", render_for_vendor(random, one)) for at, one in enumerate(generated)]
    index = MatchIndex()
    for side, found in ((LEFT, left), (RIGHT, right)):
        for item in found:
            index.add(side, item)
    whole = {(p.left, p.right): p.odds.probability for p in match_sides(index, learn_weights=False)}
    pairs = match_items(create_items({MAKER: left, VENDOR: right}), 30)
    sure = {pair for pair, share in whole.items() if share > 0.7}
    assert len(sure & pairs.keys()) >= 0.98 * len(sure)
    assert all(abs(whole[pair] - scored.probability) < 0.2 for pair, scored in pairs.items() if pair in whole)
    assert all(pair in whole for pair in pairs)


def test_the_evidence_adds_up_to_the_probability() -> None:
    for pair in match_items(generate_sources(7), 40, learn=True).values():
        assert (
            abs(convert_to_probability(pair.prior + sum(one.weight for one in pair.evidence)) - pair.probability) < 1e-9
        )
        assert pair.left < pair.right
        evidence = {one.comparison: one for one in pair.evidence}
        assert evidence["title"].level > 0 and evidence["title"].left != "" and evidence["calibration"].level == 0


def test_items_of_one_source_are_never_paired() -> None:
    one = render_for_maker(generate_items(Random(1), 1)[0])
    assert not match_items(
        create_items({MAKER: [compute_features_from_texts("a1", one), compute_features_from_texts("a2", one)]})
    )
    assert (
        len(
            match_items(
                create_items(
                    {
                        MAKER: [compute_features_from_texts("a1", one), compute_features_from_texts("a2", one)],
                        VENDOR: [compute_features_from_texts("b1", one)],
                    }
                )
            )
        )
        <= 2
    )


def test_different_known_brands_prevent_merging() -> None:
    """Both sources must know both brands: a retailer's own name contradicts nothing."""
    thing = generate_items(Random(1), 1)[0]
    values = {**render_for_maker(thing), "title": f"{thing.name} chair 4711", "gtin": ""}
    others = [{"title": f"Lamp {word}", "brand": brand} for brand in ("Oldtown", "Nordlicht") for word in "uvwx"]
    known = [compute_features_from_texts(f"k{at}", one) for at, one in enumerate(others)]
    for own, conflict in (("Nordlicht", True), ("Haus Nord Retail", False)):
        left = [compute_features_from_texts("a", values | {"brand": "Oldtown"}), *known]
        right = [
            compute_features_from_texts("b", values | {"brand": own}),
            *(replace(one, id=f"r{one.id}") for one in known),
        ]
        pair = match_items(create_items({MAKER: left, VENDOR: right}))["a", "b"]
        assert ("brand" in pair.conflicts) is conflict
        assert pair.probability < AUTO_MERGE_PROBABILITY or not conflict


def test_common_keys_are_not_expanded_and_requests_are_bounded() -> None:
    """An item is compared with few items of a source, whatever the size of the source."""
    crowd = [compute_features_from_texts(f"b{at}", {"title": f"oak chair {at}"}) for at in range(3 * MAX_LISTED_ITEMS)]
    found = create_items({MAKER: [compute_features_from_texts("a", {"title": "oak chair 7"})], VENDOR: crowd})
    index, cache = MemoryIndex(found), CandidateCache()
    index.keys = {
        key: {
            source: one if one.item_count <= MAX_LISTED_ITEMS else KeyListing(one.item_count)
            for source, one in sources.items()
        }
        for key, sources in index.keys.items()
    }
    linking = BatchMatcher(cache, DEFAULT_WEIGHTS)
    index.run_steps(linking.match_batch(found[:1], ()), cache)
    assert sum(len(wanted.numbers) for wanted in index.requests) <= 20


def test_key_changes_are_computed() -> None:
    [white] = create_items({MAKER: [compute_features_from_texts("a", {"title": "Halden chair", "colour": "white"})]})
    black = replace(white, features=compute_features_from_texts("a", {"title": "Halden chair", "colour": "black"}))
    changes = compute_key_changes([white], [black])
    assert {key for key, _ in changes} == {"white", "black"}
    assert (changes["white", MAKER].item_difference, changes["white", MAKER].removed_numbers) == (-1, [1])
    assert (changes["black", MAKER].item_difference, changes["black", MAKER].added_numbers) == (1, [1])
    assert not compute_key_changes([white], [white])
