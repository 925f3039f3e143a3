"""Weights learnt without labels, odds shared among rivals, and probabilities that are the sum of their parts."""

from math import inf
from random import Random

import pytest

from domain.matching.comparisons import COMPARISONS, Levels
from domain.matching.model import MERGED_AT
from domain.matching.scoring import (
    CERTAIN,
    CONTESTED,
    DOUBTED,
    FORBIDDEN,
    SHIPPED,
    Weights,
    calibrated,
    contested,
    learn,
    most,
    odds,
    probability,
    taken,
)

NAMES = [c.name for c in COMPARISONS]


def levels(**given: int) -> Levels:
    return tuple(given.get(name, 0) for name in NAMES)


def groups(random: Random, size: int) -> list[list[Levels]]:
    """Of five candidates one matches: its colour is mostly the same, its price tells nothing."""
    made = []
    for _ in range(size):
        match = levels(
            colour=1 if random.random() < 0.9 else 6, price=random.randint(1, 5), title=random.choice((1, 1, 2, 3))
        )
        others = [
            levels(
                colour=1 if random.random() < 0.1 else 6, price=random.randint(1, 5), title=random.choice((3, 4, 5, 6))
            )
            for _ in range(4)
        ]
        made.append([match, *others])
    return made


def test_weights_are_learnt_from_candidates_alone() -> None:
    random = Random(4)
    found = learn(groups(random, 400), groups(random, 400), SHIPPED)
    colour, price = found.bits[NAMES.index("colour")], found.bits[NAMES.index("price")]
    assert colour[1] == pytest.approx(3.2, abs=0.5)
    assert colour[6] == pytest.approx(-3.2, abs=0.6)
    assert max(map(abs, price)) < 0.8
    assert found.prior > SHIPPED.prior


def test_a_better_level_never_weighs_less() -> None:
    random = Random(5)
    found = learn(groups(random, 50), groups(random, 50), SHIPPED)
    for comparison, row in zip(COMPARISONS, found.bits, strict=True):
        assert row[0] == 0
        if comparison.ordered:
            assert list(row[1:]) == sorted(row[1:], reverse=True)


def test_rivals_share_the_odds() -> None:
    alone = taken({("a", "x"): 5.0})
    assert alone == {("a", "x"): 0.0}
    even = taken({("a", "x"): 8.0, ("a", "y"): 8.0})
    assert probability(8.0 + even["a", "x"]) == pytest.approx(0.5, abs=0.01)
    ahead = taken({("a", "x"): 12.0, ("a", "y"): 4.0})
    assert probability(12.0 + ahead["a", "x"]) > 0.99 and probability(4.0 + ahead["a", "y"]) < 0.01


def test_a_rival_that_belongs_to_another_takes_little() -> None:
    contested = taken({("a", "x"): 6.0, ("a", "y"): 6.0})
    resolved = taken({("a", "x"): 6.0, ("a", "y"): 6.0, ("b", "y"): 14.0})
    assert resolved["a", "x"] > contested["a", "x"] + 3


def test_rivals_do_not_depend_on_order_or_side() -> None:
    random = Random(7)
    given = {(f"a{random.randint(0, 9)}", f"b{random.randint(0, 9)}"): random.uniform(-6, 9) for _ in range(60)}
    found = taken(given)
    shuffled = list(given.items())
    random.shuffle(shuffled)
    assert taken(dict(shuffled)) == found
    swapped = taken({(b, a): own for (a, b), own in given.items()})
    assert swapped == {(b, a): lost for (a, b), lost in found.items()}


@pytest.mark.parametrize(
    ("found", "given", "expected"),
    [
        ((), {}, inf),
        (("size",), {"size": 2}, FORBIDDEN),
        (("gtin",), {"gtin": 2}, DOUBTED),
        (("gtin", "size"), {"gtin": 2, "size": 2}, FORBIDDEN),
        (("pieces",), {"pieces": 2}, FORBIDDEN),
        (("pieces",), {"pieces": 3}, FORBIDDEN),
    ],
)
def test_conflicts_bound_the_odds(found: tuple[str, ...], given: dict[str, int], expected: float) -> None:
    assert most(found, levels(**given), SHIPPED) == expected


def test_packs_that_vendors_leave_out_at_will_are_a_doubt() -> None:
    often = [[levels(title=1, code=1, pieces=2), levels(title=6, code=6)]] * 300
    found = learn(often, often, SHIPPED)
    assert most(("pieces",), levels(pieces=2, code=1), found) == DOUBTED
    assert most(("pieces",), levels(pieces=2, price=2), found) == DOUBTED
    assert most(("pieces",), levels(pieces=2), found) == FORBIDDEN
    assert most(("pieces",), levels(pieces=3, code=1), found) == FORBIDDEN
    assert most(("pieces", "size"), levels(pieces=2, size=2), found) == FORBIDDEN


def test_one_conflict_of_a_certain_pair_is_left_to_people() -> None:
    assert contested(("colour",), levels(code=1, colour=6), CERTAIN)
    assert not contested(("colour",), levels(code=1, colour=6), CERTAIN - 0.1)
    assert not contested(("colour", "size"), levels(code=1), 60.0)
    assert not contested(("colour",), levels(gtin=1, code=7), 60.0)
    assert not contested(("pieces",), levels(code=1, pieces=3), 60.0)
    assert 0.5 < probability(CONTESTED) < 0.7 and probability(CERTAIN) == pytest.approx(MERGED_AT, abs=1e-4)


def test_conflicts_keep_below_the_line_whatever_speaks_for_the_pair() -> None:
    assert odds(60.0, 0.0, FORBIDDEN).probability == pytest.approx(probability(FORBIDDEN)) and FORBIDDEN < 0
    assert odds(60.0, 0.0, DOUBTED).probability == pytest.approx(probability(DOUBTED)) and probability(DOUBTED) < 0.9
    assert odds(-9.0, 0.0, FORBIDDEN).conflicts == 0.0
    assert odds(60.0, 0.0).probability > 0.999


def test_calibration_rises_with_the_sum() -> None:
    sums = [calibrated(x / 2) for x in range(-300, 300)]
    assert sums == sorted(sums)
    assert probability(-2000.0) == pytest.approx(0.0) and probability(2000.0) == 1.0


def test_weights_of_another_shape_do_not_fit() -> None:
    assert SHIPPED.fits
    short = tuple(row[:-1] for row in SHIPPED.bits)
    assert (
        not Weights(0.0, SHIPPED.m, SHIPPED.u, short).fits
        and not Weights(0.0, SHIPPED.m, SHIPPED.u[1:], SHIPPED.bits).fits
    )
