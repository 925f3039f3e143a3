"""All items of two sides matched: candidates, weights learnt from them, odds with rivals, probabilities."""

from collections import defaultdict
from collections.abc import Iterator
from hashlib import blake2b

from domain.matching.comparisons import Levels
from domain.matching.index import LEFT, RIGHT, MatchIndex
from domain.matching.scoring import Compared, Scored, scored
from domain.matching.weights import FEWEST, SAMPLE, Weights, learn


def compared(index: MatchIndex) -> Compared:
    """Every pair that is worth it, with its levels."""
    left, right = index.items[LEFT], index.items[RIGHT]
    seen: dict[Levels, Levels] = {}  # few are different, so each is kept once
    found: Compared = {}
    for a, b in index.pairs():
        levels = index.levels(left[a], right[b])
        found[a, b] = seen.setdefault(levels, levels)
    return found


def learnt(pairs: Compared, start: Weights) -> Weights:
    """Weights learnt from the candidates of a sample of the items, the same sample whatever their order."""
    left: dict[str, list[tuple[str, Levels]]] = defaultdict(list)
    right: dict[str, list[tuple[str, Levels]]] = defaultdict(list)
    for (a, b), levels in pairs.items():
        left[a].append((b, levels))
        right[b].append((a, levels))
    if max(len(left), len(right)) < FEWEST:
        return start
    return learn(_sample(left), _sample(right), start)


def _sample(groups: dict[str, list[tuple[str, Levels]]]) -> list[list[Levels]]:
    chosen = sorted(groups, key=_lot)[:SAMPLE]
    return [[levels for _, levels in sorted(groups[id])] for id in chosen]


def _lot(id: str) -> tuple[bytes, str]:
    return blake2b(id.encode(), digest_size=8).digest(), id


def matched(index: MatchIndex, *, learn_weights: bool = True) -> Iterator[Scored]:
    """Every pair worth telling, in the order of their ids; the index's weights are learnt anew first, unless they shall stay."""
    pairs = compared(index)
    if learn_weights:
        index.weights = learnt(pairs, index.weights)
    return scored(index.items[LEFT], index.items[RIGHT], pairs, index.weights, known=index.knows_brand)
