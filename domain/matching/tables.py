"""Matching of the items of two vendors in memory, with weights that are learned from these items."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import blake2b
from itertools import count

from domain.matching.candidates import CandidateCache
from domain.matching.comparisons import FeatureFrequencies, Levels, compare_items
from domain.matching.features import MatchFeatures
from domain.matching.index import IndexedItem, KeyListing, compute_key_changes
from domain.matching.scoring import (
    DEFAULT_WEIGHTS,
    MIN_GROUPS,
    SAMPLE_SIZE,
    LevelsByPair,
    ScoredCandidate,
    Weights,
    fit_weights,
    score_candidates,
)

LEFT = "left"
RIGHT = "right"
_SIDES = (LEFT, RIGHT)


class MatchIndex:
    """In-memory index of the items of two vendors, the left and the right side.

    IDs are unique within a side.

    Attributes:
        weights: The weights for scores.
        items: The items by side (LEFT or RIGHT) and ID.
    """

    def __init__(self, weights: Weights = DEFAULT_WEIGHTS) -> None:
        self.weights = weights
        self.items: dict[str, dict[str, MatchFeatures]] = {LEFT: {}, RIGHT: {}}

    def add(self, side: str, item: MatchFeatures) -> None:
        """Add an item to a side, replacing the item with the same ID. All items must be added before matching."""
        self.items[side][item.id] = item

    @cached_property
    def _item_by_number(self) -> dict[int, IndexedItem]:
        """All items by number; the numbers follow the order of sides and IDs."""
        numbers = count(1)
        items = [
            IndexedItem(id, id, side, 0, self.items[side][id], next(numbers))
            for side in _SIDES
            for id in sorted(self.items[side])
        ]
        return {item.number: item for item in items}

    @cached_property
    def _candidate_cache(self) -> CandidateCache:
        """A cache with the key listings of all items of both sides, in which candidates are searched."""
        listed: dict[str, dict[str, KeyListing]] = defaultdict(dict)
        for (key, side), change in compute_key_changes((), [*self._item_by_number.values()]).items():
            listed[key][side] = KeyListing(
                change.item_difference, change.added_numbers, change.code_difference, change.stem_difference
            )
        cache = CandidateCache()
        cache.add(listed.keys(), listed)
        return cache

    @property
    def frequencies(self) -> FeatureFrequencies:
        """The frequencies of words and codes among all items."""
        return self._candidate_cache.get_frequencies(_SIDES)

    def is_brand_on_both_sides(self, item: MatchFeatures) -> bool:
        """Return whether each side has several items of the item's brand."""
        return self._candidate_cache.is_brand_in_both(_SIDES, item)

    def compare_candidates(self) -> LevelsByPair:
        """Compare every item with its candidates on the other side; return the levels of each pair."""
        seen: dict[Levels, Levels] = {}  # few levels are distinct, so each is stored once
        levels_by_pair: LevelsByPair = {}
        for item in self._item_by_number.values():
            for number in self._candidate_cache.find_neighbours(
                item, RIGHT if item.source == LEFT else LEFT, min_share=0.0
            ):
                other = self._item_by_number[number]
                left, right = (item, other) if item.source == LEFT else (other, item)
                if (pair := (left.variant, right.variant)) not in levels_by_pair:
                    levels = compare_items(left.features, right.features, self.frequencies)
                    levels_by_pair[pair] = seen.setdefault(levels, levels)
        return levels_by_pair


def match_sides(index: MatchIndex, *, learn_weights: bool = True) -> Iterator[ScoredCandidate]:
    """Yield the scored pairs of the two sides, ordered by the IDs of their items.

    Args:
        index: The items of both sides.
        learn_weights: Whether to learn new weights from the items before scoring.
    """
    pairs = index.compare_candidates()
    if learn_weights:
        index.weights = _learn_from_sample(pairs, index.weights)
    return score_candidates(
        index.items[LEFT],
        index.items[RIGHT],
        pairs,
        index.weights,
        frequencies=index.frequencies,
        is_brand_in_both=index.is_brand_on_both_sides,
    )


def _learn_from_sample(pairs: LevelsByPair, initial: Weights) -> Weights:
    """Return weights learned from the candidates of a sample of the items, or `initial` if there is too little data."""
    sides: tuple[dict[str, list[Levels]], dict[str, list[Levels]]] = defaultdict(list), defaultdict(list)
    for pair, levels in sorted(pairs.items()):
        for levels_by_item, id in zip(sides, pair, strict=True):
            levels_by_item[id].append(levels)
    left, right = map(_draw_sample, sides)
    return fit_weights(left, right, initial) if max(len(left), len(right)) >= MIN_GROUPS else initial


def _draw_sample(levels_by_item: Mapping[str, list[Levels]]) -> list[list[Levels]]:
    """Return the levels of a sample of items, one list per item. The items are chosen by hashes of their IDs."""
    ranked = sorted((blake2b(id.encode(), digest_size=8).digest(), id) for id in levels_by_item)
    return [levels_by_item[id] for _, id in ranked[:SAMPLE_SIZE]]
