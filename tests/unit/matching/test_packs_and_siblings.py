"""Packs, siblings and number formats of vendors are matched correctly."""

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
SHARED_RATIO = 0.3
"""Share of one vendor's items that the other vendor also has."""


def match_catalogues(left: list[MatchFeatures], right: list[MatchFeatures]) -> list[ScoredCandidate]:
    index = MatchIndex()
    for side, items in ((LEFT, left), (RIGHT, right)):
        for item in items:
            index.add(side, item)
    return list(match_sides(index))


def generate_catalogues(
    random: Random, change: Callable[[Row], Row]
) -> tuple[list[MatchFeatures], list[MatchFeatures]]:
    """Return the items of two vendors who share few items; the second sells a quarter only in packs. Matching items have one ID."""
    left, right = [], []
    for at, thing in enumerate(generate_items(random, 400)):
        left.append(compute_features_from_texts(str(at), change(render_for_maker(thing))))
        chance = random.random()
        if chance < SHARED_RATIO:
            right.append(compute_features_from_texts(str(at), change(render_for_vendor(random, thing))))
        elif chance > 0.75:
            pack = replace(thing, pack=2, price=1.8 * thing.price)
            row = render_for_vendor(random, pack)
            if "price" not in row:  # otherwise indistinguishable from a single item whose vendor states its quantity
                row.pop("mpn", None)
            right.append(compute_features_from_texts(f"pack{at}", change(row)))
    return left, right


def keep_row(row: Row) -> Row:
    return row


def remove_codes(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in ("mpn", "gtin")}


@pytest.mark.parametrize("change", [keep_row, remove_codes])
@pytest.mark.parametrize("seed", range(2))
def test_a_pack_does_not_match_a_single_item(seed: int, change: Callable[[Row], Row]) -> None:
    left, right = generate_catalogues(Random(seed), change)
    pairs = match_catalogues(left, right)
    likely = {(p.left, p.right) for p in pairs if p.odds.probability >= 0.5}
    assert not [pair for pair in likely if pair[1].startswith("pack")]
    sure = [p for p in pairs if p.odds.probability >= AUTO_MERGE_PROBABILITY and not p.conflicts]
    assert all(p.left == p.right for p in sure)


@pytest.mark.parametrize("seed", range(3))
def test_siblings_with_other_numbers_are_improbable(seed: int) -> None:
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
    pairs = match_catalogues(left, right)
    at = [c.name for c in COMPARISONS].index("quantities")
    contradicting = [p for p in pairs if COMPARISONS[at].level_names[p.levels[at]] == "contradict"]
    assert contradicting and all(p.odds.probability < 0.5 for p in contradicting)


def test_a_pair_with_one_conflict_requires_a_decision() -> None:
    random = Random(5)
    rows = [(render_for_maker(thing), render_for_maker(thing)) for thing in generate_items(random, 200)]
    rows[7][1].update(colour="purple", title=rows[7][1]["title"].replace(f", {rows[7][0]['colour']},", ","))
    left, right = (
        [compute_features_from_texts(str(at), row) for at, row in enumerate(side)] for side in zip(*rows, strict=True)
    )
    pair = next(p for p in match_catalogues(left, right) if (p.left, p.right) == ("7", "7"))
    assert pair.conflicts == ("colour",)
    assert pair.odds.probability == pytest.approx(convert_to_probability(MAX_CONTESTED_ODDS))


NAMES = [
    first + last for first in ("Vel", "Tor", "Mun", "Kas", "Lir", "Dob", "Ran", "Fjo") for last in ("ana", "ido", "ex")
]


@pytest.mark.parametrize(
    ("kind", "other_kind"),
    [("sofa", "sofa cover"), ("rug", "rug pad"), ("sofa", "sofa leg"), ("dining set", "dining chair")],
)
def test_an_accessory_does_not_match_its_item(kind: str, other_kind: str) -> None:
    """One vendor has an item, the other only its accessory, with the same name and colour; all other items match."""
    random = Random(3)
    colours = [random.choice(("grey", "green", "blue")) for _ in NAMES]
    left = [
        compute_features_from_texts(name, {"title": f"{name} {kind}, {colour}"})
        for name, colour in zip(NAMES, colours, strict=True)
    ]
    right = [
        compute_features_from_texts(name, {"title": f"{colour} {other_kind if at % 6 == 0 else kind} {name}"})
        for at, (name, colour) in enumerate(zip(NAMES, colours, strict=True))
    ]
    likely = {p.left for p in match_catalogues(left, right) if p.odds.probability >= 0.5}
    assert likely == {name for at, name in enumerate(NAMES) if at % 6}


def test_both_listings_of_one_item_match() -> None:
    random = Random(6)
    things = generate_items(random, 200)
    left = [compute_features_from_texts(str(at), render_for_maker(thing)) for at, thing in enumerate(things)]
    right = [
        compute_features_from_texts(f"{at}-{copy}", render_for_maker(thing))
        for at, thing in enumerate(things)
        for copy in range(2 if at % 20 == 0 else 1)
    ]
    probability_by_pair = {(p.left, p.right): p.odds.probability for p in match_catalogues(left, right)}
    assert all(probability_by_pair[str(at), f"{at}-{copy}"] > 0.9 for at in range(0, 200, 20) for copy in range(2))
