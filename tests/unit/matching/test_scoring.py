"""Weights learned without labels, odds shared among competing candidates, and probabilities as sums of their parts."""

from math import inf
from random import Random

import pytest

from domain.matching.comparisons import COMPARISONS, Levels
from domain.matching.model import AUTO_MERGE_PROBABILITY
from domain.matching.scoring import (
    DEFAULT_WEIGHTS,
    MAX_CONFLICT_ODDS,
    MAX_CONTESTED_ODDS,
    MAX_DOUBTFUL_ODDS,
    MIN_CERTAIN_LOG2_ODDS,
    Weights,
    calibrate_odds,
    compute_competition_reductions,
    compute_odds,
    convert_to_probability,
    find_max_odds,
    fit_weights,
    is_contested,
)

NAMES = [c.name for c in COMPARISONS]


def build_levels(**given: int) -> Levels:
    return tuple(given.get(name, 0) for name in NAMES)


def generate_groups(random: Random, size: int) -> list[list[Levels]]:
    """Return groups of five candidates with one match: its colour mostly agrees, its price is no evidence."""
    groups = []
    for _ in range(size):
        match = build_levels(
            colour=1 if random.random() < 0.9 else 6, price=random.randint(1, 5), title=random.choice((1, 1, 2, 3))
        )
        others = [
            build_levels(
                colour=1 if random.random() < 0.1 else 6, price=random.randint(1, 5), title=random.choice((3, 4, 5, 6))
            )
            for _ in range(4)
        ]
        groups.append([match, *others])
    return groups


def test_weights_are_learned_from_candidates_only() -> None:
    random = Random(4)
    found = fit_weights(generate_groups(random, 400), generate_groups(random, 400), DEFAULT_WEIGHTS)
    colour, price = found.bits[NAMES.index("colour")], found.bits[NAMES.index("price")]
    assert colour[1] == pytest.approx(3.2, abs=0.5)
    assert colour[6] == pytest.approx(-3.2, abs=0.6)
    assert max(map(abs, price)) < 0.8
    assert found.prior > DEFAULT_WEIGHTS.prior


def test_a_better_level_never_weighs_less() -> None:
    random = Random(5)
    found = fit_weights(generate_groups(random, 50), generate_groups(random, 50), DEFAULT_WEIGHTS)
    for comparison, row in zip(COMPARISONS, found.bits, strict=True):
        assert row[0] == 0
        if comparison.is_ordered:
            assert list(row[1:]) == sorted(row[1:], reverse=True)


def test_competing_candidates_share_the_odds() -> None:
    alone = compute_competition_reductions({("a", "x"): 5.0})
    assert alone == {("a", "x"): 0.0}
    even = compute_competition_reductions({("a", "x"): 8.0, ("a", "y"): 8.0})
    assert convert_to_probability(8.0 + even["a", "x"]) == pytest.approx(0.5, abs=0.01)
    ahead = compute_competition_reductions({("a", "x"): 12.0, ("a", "y"): 4.0})
    assert (
        convert_to_probability(12.0 + ahead["a", "x"]) > 0.99 and convert_to_probability(4.0 + ahead["a", "y"]) < 0.01
    )


def test_a_competing_candidate_with_a_better_match_takes_little() -> None:
    contested = compute_competition_reductions({("a", "x"): 6.0, ("a", "y"): 6.0})
    resolved = compute_competition_reductions({("a", "x"): 6.0, ("a", "y"): 6.0, ("b", "y"): 14.0})
    assert resolved["a", "x"] > contested["a", "x"] + 3


def test_competition_does_not_depend_on_order_or_side() -> None:
    random = Random(7)
    given = {(f"a{random.randint(0, 9)}", f"b{random.randint(0, 9)}"): random.uniform(-6, 9) for _ in range(60)}
    found = compute_competition_reductions(given)
    shuffled = list(given.items())
    random.shuffle(shuffled)
    assert compute_competition_reductions(dict(shuffled)) == found
    swapped = compute_competition_reductions({(b, a): own for (a, b), own in given.items()})
    assert swapped == {(b, a): lost for (a, b), lost in found.items()}


@pytest.mark.parametrize(
    ("found", "given", "expected"),
    [
        ((), {}, inf),
        (("size",), {"size": 2}, MAX_CONFLICT_ODDS),
        (("gtin",), {"gtin": 2}, MAX_DOUBTFUL_ODDS),
        (("gtin", "size"), {"gtin": 2, "size": 2}, MAX_CONFLICT_ODDS),
        (("pieces",), {"pieces": 2}, MAX_CONFLICT_ODDS),
        (("pieces",), {"pieces": 3}, MAX_CONFLICT_ODDS),
    ],
)
def test_conflicts_bound_the_odds(found: tuple[str, ...], given: dict[str, int], expected: float) -> None:
    assert find_max_odds(found, build_levels(**given), DEFAULT_WEIGHTS) == expected


def test_conflicts_of_often_unstated_packs_bound_the_odds() -> None:
    often = [[build_levels(title=1, code=1, pieces=2), build_levels(title=6, code=6)]] * 300
    found = fit_weights(often, often, DEFAULT_WEIGHTS)
    assert find_max_odds(("pieces",), build_levels(pieces=2, code=1), found) == MAX_DOUBTFUL_ODDS
    assert find_max_odds(("pieces",), build_levels(pieces=2, price=2), found) == MAX_DOUBTFUL_ODDS
    assert find_max_odds(("pieces",), build_levels(pieces=2), found) == MAX_CONFLICT_ODDS
    assert find_max_odds(("pieces",), build_levels(pieces=3, code=1), found) == MAX_CONFLICT_ODDS
    assert find_max_odds(("pieces", "size"), build_levels(pieces=2, size=2), found) == MAX_CONFLICT_ODDS


def test_a_certain_pair_with_one_conflict_is_contested() -> None:
    assert is_contested(("colour",), build_levels(code=1, colour=6), MIN_CERTAIN_LOG2_ODDS)
    assert not is_contested(("colour",), build_levels(code=1, colour=6), MIN_CERTAIN_LOG2_ODDS - 0.1)
    assert not is_contested(("colour", "size"), build_levels(code=1), 60.0)
    assert not is_contested(("colour",), build_levels(gtin=1, code=7), 60.0)
    assert not is_contested(("pieces",), build_levels(code=1, pieces=3), 60.0)
    assert 0.5 < convert_to_probability(MAX_CONTESTED_ODDS) < 0.7 and convert_to_probability(
        MIN_CERTAIN_LOG2_ODDS
    ) == pytest.approx(AUTO_MERGE_PROBABILITY, abs=1e-4)


def test_pairs_with_conflicts_stay_below_the_threshold() -> None:
    assert (
        compute_odds(60.0, 0.0, MAX_CONFLICT_ODDS).probability
        == pytest.approx(convert_to_probability(MAX_CONFLICT_ODDS))
        and MAX_CONFLICT_ODDS < 0
    )
    assert (
        compute_odds(60.0, 0.0, MAX_DOUBTFUL_ODDS).probability
        == pytest.approx(convert_to_probability(MAX_DOUBTFUL_ODDS))
        and convert_to_probability(MAX_DOUBTFUL_ODDS) < 0.9
    )
    assert compute_odds(-9.0, 0.0, MAX_CONFLICT_ODDS).conflicts == 0.0
    assert compute_odds(60.0, 0.0).probability > 0.999


def test_calibration_is_monotonic() -> None:
    sums = [calibrate_odds(x / 2) for x in range(-300, 300)]
    assert sums == sorted(sums)
    assert convert_to_probability(-2000.0) == pytest.approx(0.0) and convert_to_probability(2000.0) == 1.0


def test_weights_of_another_shape_lack_levels() -> None:
    assert DEFAULT_WEIGHTS.has_all_levels
    short = tuple(row[:-1] for row in DEFAULT_WEIGHTS.bits)
    assert (
        not Weights(0.0, DEFAULT_WEIGHTS.m, DEFAULT_WEIGHTS.u, short).has_all_levels
        and not Weights(0.0, DEFAULT_WEIGHTS.m, DEFAULT_WEIGHTS.u[1:], DEFAULT_WEIGHTS.bits).has_all_levels
    )
