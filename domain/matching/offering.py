"""A scored pair of items as it is offered, with the evidence that adds up to its probability."""

from domain.matching.comparisons import COMPARISONS
from domain.matching.indexed import Item
from domain.matching.model import PairEvidence, ScoredPair
from domain.matching.scoring import Scored, evidence
from domain.matching.weights import Weights

_LEVELS = {comparison.name: comparison.levels for comparison in COMPARISONS}


def offered(pair: Scored, left: Item, right: Item, weights: Weights) -> ScoredPair:
    """The pair in the order of its variants' ids; prior and all weights add up to the log2 odds of its probability."""
    turned = left.variant > right.variant
    told = []
    for one in evidence(pair, left.facts, right.facts, weights):
        levels = _LEVELS.get(one.comparison, ())
        level = levels.index(one.level) if one.level in levels else 0
        values = (one.right, one.left) if turned else (one.left, one.right)
        told.append(PairEvidence(one.comparison, level, one.weight, one.level, *values))
    first, second = (right, left) if turned else (left, right)
    return ScoredPair(
        first.variant,
        first.product,
        second.variant,
        second.product,
        pair.odds.probability,
        weights.prior,
        tuple(told),
        pair.conflicts,
    )
