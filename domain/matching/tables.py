"""In-memory matching of two tables of items, with weights learned from them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from itertools import count

from domain.matching.candidates import CandidateCache
from domain.matching.comparisons import Levels, Rarity, compare
from domain.matching.features import MatchFeatures
from domain.matching.index import Item, Listed, changes
from domain.matching.scoring import FEWEST, SAMPLE, SHIPPED, Compared, Scored, Weights, learn, scored

LEFT = "left"
RIGHT = "right"
_SIDES = (LEFT, RIGHT)


class MatchIndex:
    """The items of two sides. IDs are unique within a side. `weights` are those for scoring."""

    def __init__(self, weights: Weights = SHIPPED) -> None:
        self.weights = weights
        self.items: dict[str, dict[str, MatchFeatures]] = {LEFT: {}, RIGHT: {}}

    def add(self, side: str, item: MatchFeatures) -> None:
        """Add an item, replacing one with its ID; all items must be added before matching."""
        self.items[side][item.id] = item

    @cached_property
    def _numbered(self) -> dict[int, Item]:
        """Return the items by number, in the order of their sides and IDs."""
        numbers = count(1)
        items = [
            Item(id, id, side, 0, self.items[side][id], next(numbers))
            for side in _SIDES
            for id in sorted(self.items[side])
        ]
        return {item.number: item for item in items}

    @cached_property
    def _cache(self) -> CandidateCache:
        listed: dict[str, dict[str, Listed]] = defaultdict(dict)
        for (key, side), change in changes((), [*self._numbered.values()]).items():
            listed[key][side] = Listed(change.items, change.added, change.codes, change.stems)
        cache = CandidateCache()
        cache.add(listed.keys(), listed)
        return cache

    @property
    def rarity(self) -> Rarity:
        """Return how rare words and codes are among the items."""
        return self._cache.rarity(_SIDES)

    def knows_brand(self, item: MatchFeatures) -> bool:
        """Return whether both sides give several items this item's brand."""
        return self._cache.knows_brand(_SIDES, item)

    def compared(self) -> Compared:
        """Return every pair that is worth comparing, with its levels."""
        seen: dict[Levels, Levels] = {}  # few are different, so each is kept once
        found: Compared = {}
        for item in self._numbered.values():
            for number in self._cache.neighbours(item, RIGHT if item.source == LEFT else LEFT, share=0.0):
                other = self._numbered[number]
                left, right = (item, other) if item.source == LEFT else (other, item)
                if (pair := (left.variant, right.variant)) not in found:
                    levels = compare(left.facts, right.facts, self.rarity)
                    found[pair] = seen.setdefault(levels, levels)
        return found


def matched(index: MatchIndex, *, learn_weights: bool = True) -> Iterator[Scored]:
    """Yield every pair worth telling, in the order of their ids; the index's weights are learnt anew first, unless they shall stay."""
    pairs = index.compared()
    if learn_weights:
        index.weights = _learnt(pairs, index.weights)
    return scored(index.items[LEFT], index.items[RIGHT], pairs, index.weights, known=index.knows_brand)


def _learnt(pairs: Compared, start: Weights) -> Weights:
    """Return weights learnt from the candidates of a sample of the items, the same sample whatever their order."""
    sides: tuple[dict[str, list[Levels]], dict[str, list[Levels]]] = defaultdict(list), defaultdict(list)
    for pair, levels in sorted(pairs.items()):
        for groups, id in zip(sides, pair, strict=True):
            groups[id].append(levels)
    left, right = map(_sample, sides)
    return learn(left, right, start) if max(len(left), len(right)) >= FEWEST else start


def _sample(groups: Mapping[str, list[Levels]]) -> list[list[Levels]]:
    lots = sorted((blake2b(id.encode(), digest_size=8).digest(), id) for id in groups)
    return [groups[id] for _, id in lots[:SAMPLE]]
