"""Generated catalogues, matched completely and item by item."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.generated_furniture import generate_items, render_for_maker, render_for_vendor
from domain.matching.comparisons import COMPARISONS, compare_items
from domain.matching.features import MatchFeatures, compute_features_from_texts
from domain.matching.scoring import ScoredCandidate, build_evidence, convert_to_probability
from domain.matching.tables import LEFT, RIGHT, MatchIndex, match_sides

Sides = tuple[list[MatchFeatures], list[MatchFeatures]]


def generate_catalogues(seed: int, count: int = 300) -> Sides:
    """Return the items of two vendors; matching items have one ID. Some are sold by one vendor only, some by the second in packs."""
    random = Random(seed)
    left, right = [], []
    for at, thing in enumerate(generate_items(random, count)):
        chance = random.random()
        if chance < 0.87:
            left.append(compute_features_from_texts(str(at), render_for_maker(thing)))
        if chance > 0.12:
            right.append(compute_features_from_texts(str(at), render_for_vendor(random, thing)))
        if chance > 0.95:
            right.append(compute_features_from_texts(f"pack{at}", render_for_vendor(random, replace(thing, pack=2))))
    return left, right


def build_index(sides: Sides) -> MatchIndex:
    index = MatchIndex()
    for side, items in zip((LEFT, RIGHT), sides, strict=True):
        for item in items:
            index.add(side, item)
    return index


def list_pairs(pairs: list[ScoredCandidate]) -> list[tuple[str, str, float]]:
    return [(pair.left, pair.right, pair.odds.probability) for pair in pairs]


@pytest.mark.parametrize("seed", range(4))
def test_items_of_another_vendor_are_matched(seed: int) -> None:
    left, right = generate_catalogues(seed)
    index = build_index((left, right))
    found = {(p.left, p.right) for p in match_sides(index) if p.odds.probability >= 0.5}
    there = {item.id for item in left} & {item.id for item in right}
    right_ones = {pair for pair in found if pair[0] == pair[1]}
    assert len(right_ones) >= 0.93 * len(there)
    assert len(right_ones) >= 0.97 * len(found)
    assert not [pair for pair in found if pair[1].startswith("pack")]


def test_weights_and_prior_add_up_to_the_probability() -> None:
    index = build_index(generate_catalogues(11))
    pairs = list(match_sides(index))
    assert len(pairs) > 200
    for pair in pairs:
        parts = build_evidence(pair, index.items[LEFT][pair.left], index.items[RIGHT][pair.right], index.weights)
        assert convert_to_probability(index.weights.prior + sum(part.weight for part in parts)) == pytest.approx(
            pair.odds.probability, abs=1e-9
        )


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6), order=st.randoms(use_true_random=False))
def test_order_and_side_do_not_matter(seed: int, order: Random) -> None:
    left, right = generate_catalogues(seed, 40)
    expected = list_pairs(list(match_sides(build_index((left, right)))))
    order.shuffle(left)
    order.shuffle(right)
    assert list_pairs(list(match_sides(build_index((left, right))))) == expected
    turned = list_pairs(list(match_sides(build_index((right, left)))))
    assert {(a, b): p for b, a, p in turned} == pytest.approx({(a, b): p for a, b, p in expected}, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_comparisons_are_symmetric(seed: int) -> None:
    left, right = generate_catalogues(seed, 6)
    index = build_index((left, right))
    for a in left:
        for b in right:
            levels = compare_items(a, b, index.frequencies)
            assert levels == compare_items(b, a, index.frequencies)
            assert all(0 <= level < len(c.level_names) for level, c in zip(levels, COMPARISONS, strict=True))


def test_a_changed_item_replaces_itself() -> None:
    index = MatchIndex()
    index.add(LEFT, compute_features_from_texts("1", {"title": "Fjord sofa", "mpn": "AB1234"}))
    index.add(RIGHT, compute_features_from_texts("1", {"title": "Unrelated"}))
    index.add(RIGHT, compute_features_from_texts("1", {"title": "Sofa Fjord", "mpn": "AB-1234"}))
    [alone] = match_sides(index)
    assert sum(map(len, index.items.values())) == 2
    assert alone.odds.competition == 0 and alone.odds.probability > 0.5


def test_empty_sides_have_no_pairs() -> None:
    assert list(match_sides(MatchIndex())) == []
    index = build_index(
        ([compute_features_from_texts("1", {"title": ""})], [compute_features_from_texts("1", {"title": ""})])
    )
    assert list(match_sides(index)) == []


@settings(max_examples=200, deadline=None)
@given(
    title=st.text(max_size=80),
    rest=st.dictionaries(
        st.sampled_from(("brand", "mpn", "gtin", "price", "width", "weight", "pack", "colour", "description")),
        st.text(max_size=30),
    ),
)
def test_any_text_is_accepted(title: str, rest: dict[str, str]) -> None:
    facts = compute_features_from_texts("1", {"title": title, **rest})
    assert compare_items(facts, facts, build_index(([facts], [facts])).frequencies)
