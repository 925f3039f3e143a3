"""Candidates of one item rival each other: how much of a pair's odds is left when each item has one match at most, mostly.

The odds of all pairs are weighed against each other by belief propagation over the graph of candidates: a rival
that is likelier to belong to someone else takes less.
"""

from collections import defaultdict
from collections.abc import Mapping
from math import fsum, log2
from typing import Final

ROUNDS: Final = 16
_MOST: Final = 60.0

Pair = tuple[str, str]


def taken(odds: Mapping[Pair, float]) -> dict[Pair, float]:
    """What rivals take of each pair's log2 odds: 0 or less. `odds` are those of every pair by itself."""
    plain = {pair: 2.0 ** min(own, _MOST) for pair, own in odds.items()}
    of_left: dict[str, list[Pair]] = defaultdict(list)
    of_right: dict[str, list[Pair]] = defaultdict(list)
    for pair in odds:
        of_left[pair[0]].append(pair)
        of_right[pair[1]].append(pair)
    free_right = dict.fromkeys(odds, 1.0)
    free_left = free_right
    for _ in range(ROUNDS):
        # both at once, so that neither side comes first
        before = free_left, free_right
        free_left, free_right = _free(of_left, plain, free_right), _free(of_right, plain, free_left)
        if (free_left, free_right) == before:
            break
    return {pair: log2(free_left[pair]) + log2(free_right[pair]) for pair in odds}


def _free(
    groups: Mapping[str, list[Pair]], odds: Mapping[Pair, float], other: Mapping[Pair, float]
) -> dict[Pair, float]:
    """For each pair how likely its item of this side is to be free of every other pair."""
    found: dict[Pair, float] = {}
    for pairs in groups.values():
        if len(pairs) == 1:
            found[pairs[0]] = 1.0
            continue
        shares = [odds[pair] * other[pair] for pair in pairs]
        for at, pair in enumerate(pairs):
            found[pair] = 1.0 / (1.0 + fsum(shares[:at] + shares[at + 1 :]))
    return found
