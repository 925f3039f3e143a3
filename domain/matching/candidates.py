"""Candidates of a batch of items from every other source, compared and scored; what must be read of the index is requested step by step."""

from collections import defaultdict
from collections.abc import Collection, Container, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from operator import itemgetter
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
    allowed,
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
    return ScoredPair(
        left.variant,
        left.product,
        right.variant,
        right.product,
        pair.odds.probability,
        weights.prior,
        tuple(found),
        pair.conflicts,
    )


Sources = tuple[str, str]
"""Two sources, the lesser first."""
KEYS: Final = 60_000
"""Keys that are remembered from batch to batch, about."""
SHARE: Final = 0.45
"""What an item must have of the keys that the best candidate shares, to be one."""
_NOBODY: Final[Mapping[str, Listed]] = {}
_NONE: Final = Listed(0)


def telling_keys(item: MatchFeatures) -> set[str]:
    """Return the keys whose counts say how much a comparison with the item is worth: those of what it may not share as well.

    Codes are not among them: only shared ones count, which are the other item's as well.
    """
    return {*terms(item), *counted_keys(item)}


class CandidateCache:
    """Keys and items that were read. It holds good while the index stays as it is: make another one when that changes."""

    def __init__(self) -> None:
        self._keys: dict[str, Mapping[str, Listed]] = {}
        self._items: dict[int, Item] = {}
        self._before: dict[int, Item] = {}
        self._keys_of: dict[int, list[str]] = {}
        self._rarities: dict[Sources, Rarity] = {}

    def missing_keys(self, keys: Iterable[str]) -> set[str]:
        """Return those of the keys that were not read yet."""
        return {key for key in keys if key not in self._keys}

    def missing_numbers(self, numbers: Iterable[int]) -> set[int]:
        """Return those of the items that were not read yet."""
        for number in (wanted := set(numbers)):
            if number not in self._items and number in self._before:
                self._items[number] = self._before[number]
        return {number for number in wanted if number not in self._items}

    def item(self, number: int) -> Item:
        """Return an item that was read. Raises KeyError."""
        return self._items[number]

    def keys_of(self, item: Item) -> list[str]:
        """Return the keys that an item is found by."""
        found = self._keys_of.get(item.number)
        if found is None:
            found = self._keys_of[item.number] = lookup_keys(item.facts)
        return found

    def add(
        self, keys: Collection[str], listed: Mapping[str, Mapping[str, Listed]], items: Collection[Item] = ()
    ) -> None:
        """Take in what was asked for; keys that nobody has are remembered as such."""
        self._keys.update((key, listed.get(key, _NOBODY)) for key in keys)
        self._items.update((item.number, item) for item in items)

    def evict(self) -> None:
        """Between two batches: what has become too much is dropped; items stay for one batch after they were looked at."""
        if len(self._keys) > KEYS:
            self._keys.clear()
            self._rarities.clear()
        self._before, self._items = self._items, {}
        self._keys_of.clear()

    def listed(self, key: str, source: str) -> Listed:
        """Return who of a source has a key."""
        return self._keys.get(key, _NOBODY).get(source, _NONE)

    @property
    def sources(self) -> list[str]:
        """Every source that has items; the key ALL must have been read."""
        return sorted(self._keys[ALL])

    def neighbours(self, item: Item, source: str, share: float = SHARE) -> list[int]:
        """Return the numbers of a source's items that share most with an item, best first; none with less than `share` of the best one's."""
        lists = []
        for key in self.keys_of(item):
            found = self._keys[key].get(source)
            if found is not None and found.numbers:
                lists.append((found.items, key, found.numbers))
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
        """Return whether both sources give several items this item's brand."""
        key = brand_key(item)
        return all(self.listed(key, source).items >= OFTEN for source in sources)


_RIVALS: Final = -5.0
"""log2 odds below which a candidate is nobody's rival here."""
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What must be read next: who shares these keys, and these items."""

    keys: Collection[str] = ()
    numbers: Collection[int] = ()


Steps = Generator[Wanted, None, R]
_Neighbours = tuple[Item, str, list[Item]]
"""An item, another source, and its items that are worth comparing."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What came of a batch: the pairs that are offered, and items of other sources whose older pairs may be weaker now."""

    pairs: Sequence[ScoredPair]
    disturbed: Sequence[str]


@dataclass(slots=True)
class _Graph:
    """Pairs of two sources' items by their variants, the lesser source's first."""

    left: dict[str, MatchFeatures] = field(default_factory=dict)
    right: dict[str, MatchFeatures] = field(default_factory=dict)
    pairs: Compared = field(default_factory=dict)


class BatchMatcher:
    """Matches batches of items that are in the index. `fresh` are the numbers of all that were read anew this time."""

    def __init__(self, cache: CandidateCache, weights: Weights, fresh: Container[int] = ()) -> None:
        self._cache, self._weights, self._fresh = cache, weights, fresh
        self._graphs: dict[Sources, _Graph] = defaultdict(_Graph)
        self._of: dict[str, Item] = {}

    def linked(self, batch: Sequence[Item], moved: Container[str]) -> Steps[BatchResult]:
        """Return the pairs of the batch that are offered, weighed against what rivals them; `moved` are its variants that have changed."""
        if (yield from self._alone()):
            return BatchResult((), ())
        near = yield from self._candidates(batch)
        contended = self._contended(near)
        yield from self._require(keys=self._keys_of(contended.values()))
        yield from self._compared(
            [(item, source) for (_, source), item in sorted(contended.items(), key=itemgetter(0))]
        )
        own = {item.variant for item in batch}
        made = self._scored()
        pairs = [
            offered(pair, self._of[pair.left], self._of[pair.right], self._weights)
            for pair in made
            if pair.odds.probability >= OFFERED_AT and (pair.left in own or pair.right in own)
        ]
        return BatchResult(pairs, self._disturbed(made, pairs, own, moved))

    def learnt(self, sample: Sequence[Item], start: Weights) -> Steps[Weights | None]:
        """Return weights that fit the candidates of a sample; None where there are too few."""
        if (yield from self._alone()):
            return None
        # also from those that are hopeless: what coincidence means shows in them
        near = yield from self._candidates(sample, share=0.0)
        sides: tuple[list[list[Levels]], list[list[Levels]]] = ([], [])
        for item, source, others in near:
            if others:
                sides[item.source > source].append([self._levels(item, other) for other in others])
        groups = [*sides[0], *sides[1]]
        if len(groups) < FEWEST:
            return None
        return learn(*sides, start) if min(map(len, sides)) >= FEWEST else learn(groups, groups, start)

    def _alone(self) -> Steps[bool]:
        """Return whether there is no other source to match with."""
        yield from self._require(keys=(ALL,))
        return len(self._cache.sources) < 2

    def _candidates(self, batch: Sequence[Item], share: float = SHARE) -> Steps[list[_Neighbours]]:
        """Compare each item with those of every other source that are worth it."""
        self._cache.add((), {}, batch)
        yield from self._require(keys={ALL, *self._keys_of(batch)})
        pairs = [(item, source) for item in batch for source in self._cache.sources if source != item.source]
        return (yield from self._compared(pairs, share))

    def _compared(self, pairs: Iterable[tuple[Item, str]], share: float = SHARE) -> Steps[list[_Neighbours]]:
        """Compare items with their neighbours of a source."""
        near = [(item, source, self._cache.neighbours(item, source, share)) for item, source in pairs]
        yield from self._require(numbers={number for _, _, numbers in near for number in numbers})
        found = [(item, source, [self._cache.item(number) for number in numbers]) for item, source, numbers in near]
        others = {other.number: other for _, _, neighbours in found for other in neighbours}
        yield from self._require(keys={key for other in others.values() for key in telling_keys(other.facts)})
        for item, _, neighbours in found:
            for other in neighbours:
                self._compare(item, other)
        return found

    def _contended(self, near: Iterable[_Neighbours]) -> dict[tuple[int, str], Item]:
        """Return items that some of the batch may get, with the sources that they are candidates of."""
        found: dict[tuple[int, str], Item] = {}
        total = cache(self._weights.total)
        for item, _, others in near:
            for other in others:
                if calibrated(total(self._levels(item, other))) > 0:
                    found[other.number, item.source] = other
        return found

    def _scored(self) -> list[Scored]:
        """Return every pair that was compared and is worth it, weighed against its rivals."""
        made: list[Scored] = []
        for sources, graph in sorted(self._graphs.items()):
            known = partial(self._cache.knows_brand, sources)
            made += scored(graph.left, graph.right, graph.pairs, self._weights, _RIVALS, known=known)
        return made

    def _disturbed(
        self, made: Iterable[Scored], pairs: Iterable[ScoredPair], own: set[str], moved: Container[str]
    ) -> list[str]:
        """Return items that are offered to one that has moved, and that others may have been offered before."""
        ends = [(pair.left, pair.right) for pair in pairs] + [(pair.right, pair.left) for pair in pairs]
        taken = {other for one, other in ends if one in moved} - own
        found = set()
        for pair in made:
            for item, rival in ((pair.left, pair.right), (pair.right, pair.left)):
                stood = item in taken and rival not in own and self._of[rival].number not in self._fresh
                if stood and self._alone_odds(pair) > 0:
                    found.add(item)
        return sorted(found)

    def _alone_odds(self, pair: Scored) -> float:
        """Return the log2 odds of a pair as if it had no rivals."""
        own = calibrated(self._weights.total(pair.levels))
        return allowed(own, most(pair.conflicts, pair.levels, self._weights))

    def _compare(self, one: Item, other: Item) -> None:
        left, right = (one, other) if one.source < other.source else (other, one)
        graph = self._graphs[left.source, right.source]
        pair = (left.variant, right.variant)
        if pair not in graph.pairs:
            graph.pairs[pair] = compare(left.facts, right.facts, self._cache.rarity((left.source, right.source)))
            graph.left[left.variant], graph.right[right.variant] = left.facts, right.facts
            self._of[left.variant], self._of[right.variant] = left, right

    def _levels(self, one: Item, other: Item) -> Levels:
        left, right = (one, other) if one.source < other.source else (other, one)
        return self._graphs[left.source, right.source].pairs[left.variant, right.variant]

    def _keys_of(self, items: Iterable[Item]) -> set[str]:
        return {key for item in items for key in (*self._cache.keys_of(item), *counted_keys(item.facts))}

    def _require(self, keys: Iterable[str] = (), numbers: Iterable[int] = ()) -> Steps[None]:
        wanted = Wanted(sorted(self._cache.missing_keys(keys)), sorted(self._cache.missing_numbers(numbers)))
        if wanted.keys or wanted.numbers:
            yield wanted
