"""Candidates of a batch of items from all other sources, compared and scored; index reads are requested step by step."""

from collections import defaultdict
from collections.abc import Collection, Container, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final, TypeVar

from domain.matching.comparisons import Levels, Rarity, compare
from domain.matching.features import MatchFeatures
from domain.matching.index import (
    ALL,
    Item,
    Listed,
    brand_key,
    code_key,
    counted_keys,
    lookup_keys,
    nearest,
    terms,
)
from domain.matching.model import OFFERED_AT, ScoredPair
from domain.matching.scoring import (
    FEWEST,
    OFTEN,
    Compared,
    Scored,
    Weights,
    calibrated,
    evidence,
    learn,
    most,
    scored,
)


def offered(pair: Scored, left: Item, right: Item, weights: Weights) -> ScoredPair:
    """Return the pair in the order of its variants' ids; prior and all weights add up to the log2 odds of its probability."""
    found = evidence(pair, left.facts, right.facts, weights)
    if left.variant > right.variant:
        left, right = right, left
        found = [replace(part, left=part.right, right=part.left) for part in found]
    ends = left.variant, left.product, right.variant, right.product
    return ScoredPair(*ends, pair.odds.probability, weights.prior, tuple(found), pair.conflicts)


Sources = tuple[str, str]
"""Two sources in ascending order."""
KEYS = 60_000
"""Approximate number of keys cached between batches."""
SHARE = 0.45
"""Minimum share of the best candidate's key information that another candidate must reach."""
_NOBODY: Final[Mapping[str, Listed]] = {}
_NONE = Listed(0)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request to the index: keys to list, and items to load."""

    keys: Collection[str] = ()
    numbers: Collection[int] = ()


class CandidateCache:
    """Cache of keys and items, valid as long as the index is unchanged."""

    def __init__(self) -> None:
        self._keys: dict[str, Mapping[str, Listed]] = {}
        self._items: dict[int, Item] = {}
        self._before: dict[int, Item] = {}
        self._keys_of: dict[int, list[str]] = {}
        self._rarities: dict[Sources, Rarity] = {}

    def missing(self, keys: Iterable[str], numbers: Iterable[int]) -> Wanted:
        """Return a request for those keys and items that are not cached."""
        unread = {number for number in numbers if number not in self._items}
        self._items.update({number: self._before[number] for number in unread & self._before.keys()})
        return Wanted(sorted({key for key in keys if key not in self._keys}), sorted(unread - self._before.keys()))

    def item(self, number: int) -> Item:
        """Return a cached item. Raises KeyError."""
        return self._items[number]

    def keys_of(self, item: Item) -> list[str]:
        """Return the keys that an item is found by."""
        if item.number not in self._keys_of:
            self._keys_of[item.number] = lookup_keys(item.facts)
        return self._keys_of[item.number]

    def add(
        self, keys: Collection[str], listed: Mapping[str, Mapping[str, Listed]], items: Collection[Item] = ()
    ) -> None:
        """Cache the response to a request; keys without items are cached as such."""
        self._keys.update((key, listed.get(key, _NOBODY)) for key in keys)
        self._items.update((item.number, item) for item in items)

    def evict(self) -> None:
        """Evict excess entries between two batches; items stay for one batch after their last use."""
        if len(self._keys) > KEYS:
            self._keys.clear()
            self._rarities.clear()
        self._before, self._items = self._items, {}
        self._keys_of.clear()

    def listed(self, key: str, source: str) -> Listed:
        """Return the listing of a key for a source."""
        return self._keys.get(key, _NOBODY).get(source, _NONE)

    @property
    def sources(self) -> list[str]:
        """Return every source with items; the key ALL must be cached."""
        return sorted(self._keys[ALL])

    def neighbours(self, item: Item, source: str, share: float = SHARE) -> list[int]:
        """Return the numbers of a source's items that share most with an item, best first; those below `share` of the best are left out."""
        lists = [
            (found.items, key, found.numbers)
            for key in self.keys_of(item)
            if (found := self._keys[key].get(source)) and found.numbers
        ]
        return nearest(lists, self.listed(ALL, source).items, share)

    def rarity(self, sources: Sources) -> Rarity:
        """Return how rare words and codes are among the items of two sources."""
        if sources not in self._rarities:

            def found(key: str) -> list[Listed]:
                return [self.listed(key, source) for source in sources]

            self._rarities[sources] = Rarity(
                sum(entry.items for entry in found(ALL)),
                lambda key: sum(entry.items for entry in found(key)),
                lambda code: sum(entry.codes for entry in found(code_key(code))),
                lambda stem: sum(entry.stems for entry in found(code_key(stem))),
            )
        return self._rarities[sources]

    def knows_brand(self, sources: Sources, item: MatchFeatures) -> bool:
        """Return whether each source has several items of this item's brand."""
        key = brand_key(item)
        return all(self.listed(key, source).items >= OFTEN for source in sources)


_FEWEST_SOURCES = 2
_MIN_RIVAL_ODDS = -5.0
"""Minimum log2 odds of a candidate to count as a rival."""
R = TypeVar("R")


Steps = Generator[Wanted, None, R]
_Neighbours = tuple[Item, str, list[Item]]
"""An item with its comparable items of another source."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of a batch: pairs to offer, and items of other sources whose earlier pairs must be matched again."""

    pairs: Sequence[ScoredPair]
    disturbed: Sequence[str]


class BatchMatcher:
    """Matcher of batches of indexed items. `fresh` are the numbers of all items that were indexed again this time."""

    def __init__(self, cache: CandidateCache, weights: Weights, fresh: Container[int] = ()) -> None:
        self._cache, self._weights, self._fresh = cache, weights, fresh
        self._pairs: dict[Sources, Compared] = defaultdict(dict)
        self._of: dict[str, Item] = {}

    def linked(self, batch: Sequence[Item], moved: Container[str]) -> Steps[BatchResult]:
        """Return the pairs of the batch to offer, scored against rivals; `moved` are its changed variants."""
        near = yield from self._candidates(batch)
        total = cache(self._weights.total)
        contended = {
            (other.number, item.source): other
            for item, _, others in near
            for other in others
            if calibrated(total(self._levels(item, other))) > 0
        }
        yield from self._require(keys=self._keys_of(contended.values()))
        yield from self._compare_all([(contended[number, source], source) for number, source in sorted(contended)])
        own = {item.variant for item in batch}
        made = self._score_pairs()
        pairs = [
            offered(pair, self._of[pair.left], self._of[pair.right], self._weights)
            for pair in made
            if pair.odds.probability >= OFFERED_AT and not own.isdisjoint((pair.left, pair.right))
        ]
        return BatchResult(pairs, self._find_affected(made, pairs, own, moved))

    def learnt(self, sample: Sequence[Item], start: Weights) -> Steps[Weights | None]:
        """Return weights fitted to the candidates of a sample; None if there are too few."""
        # including hopeless ones, which show how often features agree by coincidence
        near = yield from self._candidates(sample, share=0.0)
        sides: tuple[list[list[Levels]], list[list[Levels]]] = ([], [])
        for item, source, others in near:
            if others:
                sides[item.source > source].append([self._levels(item, other) for other in others])
        groups = [*sides[0], *sides[1]]
        if len(groups) < FEWEST:
            return None
        return learn(*sides, start) if min(map(len, sides)) >= FEWEST else learn(groups, groups, start)

    def _candidates(self, batch: Sequence[Item], share: float = SHARE) -> Steps[list[_Neighbours]]:
        """Compare each item with its neighbours of every other source."""
        yield from self._require(keys=(ALL,))
        if len(self._cache.sources) < _FEWEST_SOURCES:
            return []
        self._cache.add((), {}, batch)
        yield from self._require(keys=self._keys_of(batch))
        pairs = [(item, source) for item in batch for source in self._cache.sources if source != item.source]
        return (yield from self._compare_all(pairs, share))

    def _compare_all(self, pairs: Iterable[tuple[Item, str]], share: float = SHARE) -> Steps[list[_Neighbours]]:
        """Compare items with their neighbours of a source."""
        near = [(item, source, self._cache.neighbours(item, source, share)) for item, source in pairs]
        yield from self._require(numbers={number for _, _, numbers in near for number in numbers})
        found = [(item, source, [self._cache.item(number) for number in numbers]) for item, source, numbers in near]
        others = {other.number: other.facts for _, _, neighbours in found for other in neighbours}
        # unshared words count as well; of codes only shared ones, which were read with the item
        yield from self._require(
            keys={key for facts in others.values() for key in (*terms(facts), *counted_keys(facts))}
        )
        for item, _, neighbours in found:
            for other in neighbours:
                left, right = _ordered(item, other)
                sources, pair = (left.source, right.source), (left.variant, right.variant)
                if pair not in self._pairs[sources]:
                    self._pairs[sources][pair] = compare(left.facts, right.facts, self._cache.rarity(sources))
                    self._of[left.variant], self._of[right.variant] = left, right
        return found

    def _score_pairs(self) -> list[Scored]:
        """Return all compared pairs worth offering, scored against their rivals."""
        facts = {variant: item.facts for variant, item in self._of.items()}
        made: list[Scored] = []
        for sources, pairs in sorted(self._pairs.items()):
            known = partial(self._cache.knows_brand, sources)
            made += scored(facts, facts, pairs, self._weights, _MIN_RIVAL_ODDS, known=known)
        return made

    def _find_affected(
        self, made: Iterable[Scored], pairs: Iterable[ScoredPair], own: set[str], moved: Container[str]
    ) -> list[str]:
        """Return the items of pairs with changed variants, whose earlier pairs may be affected."""
        taken = {other for pair in pairs for one, other in _both_ways(pair) if one in moved} - own
        return sorted(
            {
                item
                for pair in made
                for item, rival in _both_ways(pair)
                if item in taken and rival not in own and self._of[rival].number not in self._fresh
                and min(calibrated(self._weights.total(pair.levels)), most(pair.conflicts, pair.levels, self._weights)) > 0
            }
        )  # fmt: skip

    def _levels(self, one: Item, other: Item) -> Levels:
        left, right = _ordered(one, other)
        return self._pairs[left.source, right.source][left.variant, right.variant]

    def _keys_of(self, items: Iterable[Item]) -> set[str]:
        return {key for item in items for key in (*self._cache.keys_of(item), *counted_keys(item.facts))}

    def _require(self, keys: Iterable[str] = (), numbers: Iterable[int] = ()) -> Steps[None]:
        wanted = self._cache.missing(keys, numbers)
        if wanted.keys or wanted.numbers:
            yield wanted


def _ordered(one: Item, other: Item) -> tuple[Item, Item]:
    return (one, other) if one.source < other.source else (other, one)


def _both_ways(pair: Scored | ScoredPair) -> tuple[tuple[str, str], tuple[str, str]]:
    return (pair.left, pair.right), (pair.right, pair.left)
