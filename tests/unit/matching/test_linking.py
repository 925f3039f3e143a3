"""Batches matched with an index: what they come to is what all together do, and siblings are never merged."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.habits import Thing, metric, retold, things
from domain.matching.candidates import BatchMatcher, CandidateCache
from domain.matching.features import StoredVariant, features_of, read_features
from domain.matching.index import LISTED, Item, Listed, changes
from domain.matching.model import MERGED_AT
from domain.matching.scoring import SHIPPED, probability
from domain.matching.tables import LEFT, RIGHT, MatchIndex, matched
from tests.support.matching import products_of
from tests.unit.matching.linking_runs import Index, items, linked

pytestmark = pytest.mark.slow

MAKER, VENDOR = "src_1", "src_2"


def vendors(seed: int, count: int = 150) -> list[Item]:
    """A maker, and a vendor that sells most of it under other names, some in packs, some with siblings that the maker has not."""
    random = Random(seed)
    made = things(random, count)
    left = [(f"a{at}", one, metric(one)) for at, one in enumerate(made) if random.random() < 0.87]
    right = []
    for at, one in enumerate(made):
        chance = random.random()
        if chance > 0.12:
            right.append((f"b{at}", one, retold(random, one)))
        if chance > 0.9:
            right.append((f"pack{at}", pack := replace(one, pack=2), retold(random, pack)))
    return stored({MAKER: left, VENDOR: right})


def stored(told: dict[str, list[tuple[str, Thing, dict[str, str]]]]) -> list[Item]:
    """The items as they come out of a catalogue in which each family is one product."""
    found = {}
    for source, rows in told.items():
        found[source] = [
            features_of(
                StoredVariant(variant.key, product.id, source, product.data, variant.data, *_price(variant.offers))
            )
            for product in products_of(source, rows)
            for variant in product.variants
        ]
    return items(found)


def _price(offers: list[object]) -> tuple[int | None, str | None]:
    data = getattr(offers[0], "data", {}) if offers else {}
    return data.get("price"), data.get("currency")


def thing_of(id: str) -> str:
    return id.lstrip("abpck")


@pytest.mark.parametrize("seed", range(4))
def test_other_vendors_habits_are_seen_through(seed: int) -> None:
    found = vendors(seed)
    pairs = linked(found, 40, learn=True)
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
    for (left, right), pair in linked(vendors(seed, 60), 25, learn=learn).items():
        if thing_of(left) != thing_of(right) or "pack" in left + right:
            assert pair.probability < MERGED_AT or pair.conflicts, (left, right, pair)


def test_batches_come_to_what_all_together_do() -> None:
    random = Random(2)
    made = things(random, 120)
    left = [read_features(f"a{at}", metric(one)) for at, one in enumerate(made)]
    right = [read_features(f"b{at}", retold(random, one)) for at, one in enumerate(made)]
    index = MatchIndex()
    for side, found in ((LEFT, left), (RIGHT, right)):
        for item in found:
            index.add(side, item)
    whole = {(p.left, p.right): p.odds.probability for p in matched(index, learn_weights=False)}
    pairs = linked(items({MAKER: left, VENDOR: right}), 30)
    sure = {pair for pair, share in whole.items() if share > 0.7}
    assert len(sure & pairs.keys()) >= 0.98 * len(sure)
    assert all(abs(whole[pair] - told.probability) < 0.2 for pair, told in pairs.items() if pair in whole)
    assert all(pair in whole for pair in pairs)


def test_the_parts_are_the_probability() -> None:
    for pair in linked(vendors(7), 40, learn=True).values():
        assert abs(probability(pair.prior + sum(one.weight for one in pair.evidence)) - pair.probability) < 1e-9
        assert pair.left < pair.right
        told = {one.comparison: one for one in pair.evidence}
        assert told["title"].level > 0 and told["title"].left != "" and told["calibration"].level == 0


def test_items_of_one_source_are_never_paired() -> None:
    one = metric(things(Random(1), 1)[0])
    assert not linked(items({MAKER: [read_features("a1", one), read_features("a2", one)]}))
    assert (
        len(
            linked(
                items({MAKER: [read_features("a1", one), read_features("a2", one)], VENDOR: [read_features("b1", one)]})
            )
        )
        <= 2
    )


def test_known_brands_that_differ_forbid_merging() -> None:
    """Only where both sources know both brands: a retailer's own name contradicts nothing."""
    thing = things(Random(1), 1)[0]
    told = {**metric(thing), "title": f"{thing.name} chair 4711", "gtin": ""}
    others = [{"title": f"Lamp {word}", "brand": brand} for brand in ("Oldtown", "Nordlicht") for word in "uvwx"]
    known = [read_features(f"k{at}", one) for at, one in enumerate(others)]
    for own, conflict in (("Nordlicht", True), ("Haus Nord Retail", False)):
        left = [read_features("a", told | {"brand": "Oldtown"}), *known]
        right = [read_features("b", told | {"brand": own}), *(replace(one, id=f"r{one.id}") for one in known)]
        pair = linked(items({MAKER: left, VENDOR: right}))["a", "b"]
        assert ("brand" in pair.conflicts) is conflict
        assert pair.probability < MERGED_AT or not conflict


def test_hubs_are_not_walked_and_what_is_asked_is_bounded() -> None:
    """However many items a source has, an item looks at a few of them."""
    crowd = [read_features(f"b{at}", {"title": f"oak chair {at}"}) for at in range(3 * LISTED)]
    found = items({MAKER: [read_features("a", {"title": "oak chair 7"})], VENDOR: crowd})
    index, cache = Index(found), CandidateCache()
    index.keys = {
        key: {source: one if one.items <= LISTED else Listed(one.items) for source, one in sources.items()}
        for key, sources in index.keys.items()
    }
    linking = BatchMatcher(cache, SHIPPED)
    index.carried(linking.linked(found[:1], ()), cache)
    assert sum(len(wanted.numbers) for wanted in index.asked) <= 20


def test_what_changes_about_keys() -> None:
    [white] = items({MAKER: [read_features("a", {"title": "Halden chair", "colour": "white"})]})
    black = replace(white, facts=read_features("a", {"title": "Halden chair", "colour": "black"}))
    made = changes([white], [black])
    assert {key for key, _ in made} == {"white", "black"}
    assert (made["white", MAKER].items, made["white", MAKER].removed) == (-1, [1])
    assert (made["black", MAKER].items, made["black", MAKER].added) == (1, [1])
    assert not changes([white], [white])
