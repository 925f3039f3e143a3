"""From levels to probabilities: a set of pairs weighed together, and the evidence of each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from domain.matching.calibration import CONTESTED, FORBIDDEN, Odds, allowed, calibrated, odds
from domain.matching.comparisons import COMPARISONS, Levels
from domain.matching.conflicts import Known, conflicts, contested, most
from domain.matching.facts import Facts
from domain.matching.rivals import Pair, taken
from domain.matching.weights import Weights

WORTH: Final = -8.0
"""log2 odds below which a candidate is nobody's rival."""

Compared = dict[Pair, Levels]
"""Pairs of a left and a right id with their levels."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A pair with its levels, the parts of its odds and what contradicts it."""

    left: str
    right: str
    levels: Levels
    odds: Odds
    conflicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One part of a pair's log2 odds; all of them and the prior add up to it."""

    comparison: str
    level: str
    weight: float
    left: object = None
    right: object = None


def scored(
    left: Mapping[str, Facts],
    right: Mapping[str, Facts],
    pairs: Compared,
    weights: Weights,
    least: float | None = WORTH,
    *,
    known: Known,
) -> Iterator[Scored]:
    """Every pair with log2 odds over `least`, in the order of their ids; what rivals take is reckoned over all of these."""
    sums = {levels: weights.total(levels) for levels in set(pairs.values())}
    found: dict[Pair, tuple[str, ...]] = {}
    own: dict[Pair, float] = {}
    bound: dict[Pair, float | None] = {}
    for pair, levels in pairs.items():
        alone = calibrated(sums[levels])
        if least is None or alone > least:
            found[pair] = conflicts(left[pair[0]], right[pair[1]], levels, known)
            bound[pair] = most(found[pair], levels, weights)
            own[pair] = allowed(alone, bound[pair])
    lost = taken(own)
    for pair in sorted(own):
        levels, limit = pairs[pair], bound[pair]
        if limit == FORBIDDEN and contested(found[pair], levels, calibrated(sums[levels]) + lost[pair]):
            limit = CONTESTED
        yield Scored(*pair, levels, odds(sums[levels], lost[pair], limit), found[pair])


def evidence(pair: Scored, left: Facts, right: Facts, weights: Weights) -> list[Evidence]:
    """What speaks for and against a pair, in parts: with `weights.prior` they add up to the log2 odds."""
    told = [
        Evidence(comparison.name, comparison.levels[level], row[level], comparison.shown(left), comparison.shown(right))
        for comparison, level, row in zip(COMPARISONS, pair.levels, weights.bits, strict=True)
        if level
    ]
    told.append(Evidence("calibration", "facts that go together", pair.odds.calibration))
    told.append(Evidence("rivals", "other candidates of either item", pair.odds.rivals))
    if pair.conflicts:
        told.append(Evidence("conflicts", ", ".join(pair.conflicts), pair.odds.conflicts))
    return told
