"""Habits of vendors that shares of matches, packs and ways to write numbers must not be confused by."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from benchmarks.generated_furniture import generate_items, render_for_maker, render_for_vendor
from domain.matching.comparisons import COMPARISONS
from domain.matching.features import MatchFeatures, compute_features_from_texts
from domain.matching.model import AUTO_MERGE_PROBABILITY
from domain.matching.scoring import MAX_CONTESTED_ODDS, ScoredCandidate, convert_to_probability
from domain.matching.tables import LEFT, RIGHT, MatchIndex, match_sides

Row = dict[str, str]
SIZES = ("16 GB", "32 GB", "64 GB", "0.5 kg", "2 kg", "18 V", "4 drawers", "6 drawers", "18 cu. ft.", "22 cu. ft.")
SHARED = 0.3
"""How many of one vendor's items the other has, where few are."""


def found(left: list[MatchFeatures], right: list[MatchFeatures]) -> list[ScoredCandidate]:
    index = MatchIndex()
    for side, items in ((LEFT, left), (RIGHT, right)):
        for item in items:
            index.add(side, item)
    return list(match_sides(index))


def few_and_packs(random: Random, change: Callable[[Row], Row]) -> tuple[list[MatchFeatures], list[MatchFeatures]]:
    """Two vendors who share few items; of every fourth the other has a pack alone, which costs more. Those of one thing have one id."""
    left, right = [], []
    for at, thing in enumerate(generate_items(random, 400)):
        left.append(compute_features_from_texts(str(at), change(render_for_maker(thing))))
        chance = random.random()
        if chance < SHARED:
            right.append(compute_features_from_texts(str(at), change(render_for_vendor(random, thing))))
        elif chance > 0.75:
            pack = replace(thing, pack=2, price=1.8 * thing.price)
            row = render_for_vendor(random, pack)
            if "price" not in row:  # nothing would tell it from a piece whose vendor says how many there are
                row.pop("mpn", None)
            right.append(compute_features_from_texts(f"pack{at}", change(row)))
    return left, right


def as_it_is(row: Row) -> Row:
    return row


def without_codes(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in ("mpn", "gtin")}


@pytest.mark.parametrize("change", [as_it_is, without_codes])
@pytest.mark.parametrize("seed", range(2))
def test_a_pack_is_no_piece_even_where_few_items_are_shared(seed: int, change: Callable[[Row], Row]) -> None:
    left, right = few_and_packs(Random(seed), change)
    pairs = found(left, right)
    likely = {(p.left, p.right) for p in pairs if p.odds.probability >= 0.5}
    assert not [pair for pair in likely if pair[1].startswith("pack")]
    sure = [p for p in pairs if p.odds.probability >= AUTO_MERGE_PROBABILITY and not p.conflicts]
    assert all(p.left == p.right for p in sure)


@pytest.mark.parametrize("seed", range(3))
def test_siblings_of_other_numbers_are_never_likelier_than_not(seed: int) -> None:
    random = Random(seed)
    names = [
        first + last for first in ("Vel", "Tor", "Mun", "Kas", "Lir", "Dob") for last in ("ana", "ido", "ex", "ulo")
    ]
    wares = [(name, size) for name in names for size in random.sample(SIZES, 4)]
    left = [compute_features_from_texts(str(at), {"title": f"{name} {size}"}) for at, (name, size) in enumerate(wares)]
    right = [
        compute_features_from_texts(str(at), {"title": f"{size.replace(' ', random.choice(('', '-', ' ')))} {name}"})
        for at, (name, size) in enumerate(wares)
    ]
    pairs = found(left, right)
    at = [c.name for c in COMPARISONS].index("quantities")
    apart = [p for p in pairs if COMPARISONS[at].level_names[p.levels[at]] == "contradict"]
    assert apart and all(p.odds.probability < 0.5 for p in apart)


def test_what_rules_would_merge_but_for_one_fact_is_offered_to_people() -> None:
    random = Random(5)
    rows = [(render_for_maker(thing), render_for_maker(thing)) for thing in generate_items(random, 200)]
    rows[7][1].update(colour="purple", title=rows[7][1]["title"].replace(f", {rows[7][0]['colour']},", ","))
    left, right = (
        [compute_features_from_texts(str(at), row) for at, row in enumerate(side)] for side in zip(*rows, strict=True)
    )
    pair = next(p for p in found(left, right) if (p.left, p.right) == ("7", "7"))
    assert pair.conflicts == ("colour",)
    assert pair.odds.probability == pytest.approx(convert_to_probability(MAX_CONTESTED_ODDS))
