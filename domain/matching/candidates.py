"""Matching of a batch of items with candidates from all other sources.

The functions are generators that yield the index reads they need (`IndexRequest`), so that the caller executes them.
"""

from collections import defaultdict
from collections.abc import Collection, Container, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final, TypeVar

from domain.matching.comparisons import FeatureFrequencies, Levels, compare_items
from domain.matching.features import MatchFeatures
from domain.matching.index import (
    ALL_ITEMS_KEY,
    IndexedItem,
    KeyListing,
    build_brand_key,
    build_code_key,
    build_count_only_keys,
    build_lookup_keys,
    collect_words,
    rank_candidates,
)
from domain.matching.model import MIN_STORED_PROBABILITY, ScoredPair
from domain.matching.scoring import (
    MIN_BRAND_ITEMS,
    MIN_GROUPS,
    LevelsByPair,
    ScoredCandidate,
    Weights,
    build_evidence,
    calibrate_odds,
    find_max_odds,
    fit_weights,
    score_candidates,
)


def build_scored_pair(
    candidate: ScoredCandidate, left: IndexedItem, right: IndexedItem, weights: Weights
) -> ScoredPair:
    """Return a scored candidate as a pair to store, with the IDs of its variants in ascending order.

    The prior and the weights of the evidence add up to the log2 odds of the probability.
    """
    found = build_evidence(candidate, left.features, right.features, weights)
    if left.variant > right.variant:
        left, right = right, left
        found = [replace(component, left=component.right, right=component.left) for component in found]
    ids = left.variant, left.product, right.variant, right.product
    return ScoredPair(*ids, candidate.odds.probability, weights.prior, tuple(found), candidate.conflicts)


SourcePair = tuple[str, str]
"""The IDs of two sources in ascending order."""
MAX_CACHED_KEYS = 60_000
"""Approximate number of keys that stay cached after a batch."""
MIN_SIMILARITY_SHARE = 0.45
"""Minimum similarity of a candidate, as a share of the best candidate's similarity."""
_NO_LISTINGS: Final[Mapping[str, KeyListing]] = {}
_EMPTY_LISTING = KeyListing(0)


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """Request to the match index for key listings and items.

    Attributes:
        keys: The keys whose listings to load.
        numbers: The numbers that identify the items to load (`IndexedItem.number`).
    """

    keys: Collection[str] = ()
    numbers: Collection[int] = ()


class CandidateCache:
    """Cache of key listings and items, which is valid as long as the match index is unchanged."""

    def __init__(self) -> None:
        self._keys: dict[str, Mapping[str, KeyListing]] = {}
        self._items: dict[int, IndexedItem] = {}
        self._previous_items: dict[int, IndexedItem] = {}
        self._keys_by_number: dict[int, list[str]] = {}
        self._frequencies: dict[SourcePair, FeatureFrequencies] = {}

    def build_missing_request(self, keys: Iterable[str], numbers: Iterable[int]) -> IndexRequest:
        """Return a request for the keys and items that are not cached yet."""
        uncached = {number for number in numbers if number not in self._items}
        self._items.update({number: self._previous_items[number] for number in uncached & self._previous_items.keys()})
        return IndexRequest(
            sorted({key for key in keys if key not in self._keys}), sorted(uncached - self._previous_items.keys())
        )

    def get_item(self, number: int) -> IndexedItem:
        """Return the cached item with this number. Raises KeyError if it is not cached."""
        return self._items[number]

    def get_lookup_keys(self, item: IndexedItem) -> list[str]:
        """Return the lookup keys of an item."""
        if item.number not in self._keys_by_number:
            self._keys_by_number[item.number] = build_lookup_keys(item.features)
        return self._keys_by_number[item.number]

    def add(
        self,
        keys: Collection[str],
        listings: Mapping[str, Mapping[str, KeyListing]],
        items: Collection[IndexedItem] = (),
    ) -> None:
        """Cache the response to a request; a requested key without listings is cached as having no items.

        Args:
            keys: The requested keys.
            listings: The listings by key and source.
            items: The loaded items.
        """
        self._keys.update((key, listings.get(key, _NO_LISTINGS)) for key in keys)
        self._items.update((item.number, item) for item in items)

    def evict(self) -> None:
        """Remove items that the last batch did not use, and all keys if there are too many."""
        if len(self._keys) > MAX_CACHED_KEYS:
            self._keys.clear()
            self._frequencies.clear()
        self._previous_items, self._items = self._items, {}
        self._keys_by_number.clear()

    def find_listing(self, key: str, source: str) -> KeyListing:
        """Return the listing of a key for a source; an empty listing if no item of the source has the key."""
        return self._keys.get(key, _NO_LISTINGS).get(source, _EMPTY_LISTING)

    @property
    def sources(self) -> list[str]:
        """The IDs of all sources with items, in ascending order. `ALL_ITEMS_KEY` must be cached."""
        return sorted(self._keys[ALL_ITEMS_KEY])

    def find_neighbours(self, item: IndexedItem, source: str, min_share: float = MIN_SIMILARITY_SHARE) -> list[int]:
        """Return the numbers of the items of a source that are most similar to an item, best first.

        Args:
            item: The item.
            source: The ID of the source.
            min_share: The minimum similarity, as a share of the most similar item's similarity.
        """
        lists = [
            (found.item_count, key, found.numbers)
            for key in self.get_lookup_keys(item)
            if (found := self._keys[key].get(source)) and found.numbers
        ]
        return rank_candidates(lists, self.find_listing(ALL_ITEMS_KEY, source).item_count, min_share)

    def get_frequencies(self, sources: SourcePair) -> FeatureFrequencies:
        """Return the frequencies of words and codes among the items of two sources."""
        if sources not in self._frequencies:

            def find_listings(key: str) -> list[KeyListing]:
                return [self.find_listing(key, source) for source in sources]

            self._frequencies[sources] = FeatureFrequencies(
                sum(entry.item_count for entry in find_listings(ALL_ITEMS_KEY)),
                lambda key: sum(entry.item_count for entry in find_listings(key)),
                lambda code: sum(entry.code_count for entry in find_listings(build_code_key(code))),
                lambda stem: sum(entry.stem_count for entry in find_listings(build_code_key(stem))),
            )
        return self._frequencies[sources]

    def is_brand_in_both(self, sources: SourcePair, item: MatchFeatures) -> bool:
        """Return whether each of the two sources has at least `MIN_BRAND_ITEMS` items of the item's brand."""
        key = build_brand_key(item)
        return all(self.find_listing(key, source).item_count >= MIN_BRAND_ITEMS for source in sources)


_MIN_SOURCES = 2
_MIN_COMPETING_ODDS = -5.0
"""Log2 odds up to which another candidate of an item does not compete with a pair."""
R = TypeVar("R")


IndexSteps = Generator[IndexRequest, None, R]
"""A computation that yields requests to the match index, receives the data in the cache, and returns a result."""
_Neighbours = tuple[IndexedItem, str, list[IndexedItem]]
"""An item, the ID of another source, and the most similar items of that source."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Result of matching a batch.

    Attributes:
        pairs: The pairs to store.
        variants_to_recheck: The variants of other sources whose earlier pairs must be matched again.
    """

    pairs: Sequence[ScoredPair]
    variants_to_recheck: Sequence[str]


class BatchMatcher:
    """Matcher of batches of indexed items.

    Args:
        cache: The cached part of the match index.
        weights: The weights for scores.
        reindexed_numbers: The numbers of all items that the current job has indexed.
    """

    def __init__(self, cache: CandidateCache, weights: Weights, reindexed_numbers: Container[int] = ()) -> None:
        self._cache, self._weights, self._fresh = cache, weights, reindexed_numbers
        self._pairs: dict[SourcePair, LevelsByPair] = defaultdict(dict)
        self._item_by_variant: dict[str, IndexedItem] = {}

    def match_batch(self, items: Sequence[IndexedItem], changed_variants: Container[str]) -> IndexSteps[BatchResult]:
        """Return the pairs of a batch of items that are probable enough to be stored, and the variants to match again.

        Args:
            items: The items to match.
            changed_variants: The variants of the batch that have changed.
        """
        neighbours = yield from self._find_neighbours(items)
        total = cache(self._weights.sum_weights)
        contended = {
            (other.number, item.source): other
            for item, _, others in neighbours
            for other in others
            if calibrate_odds(total(self._get_levels(item, other))) > 0
        }
        yield from self._request_missing(keys=self._collect_keys(contended.values()))
        yield from self._compare_neighbours(
            [(contended[number, source], source) for number, source in sorted(contended)]
        )
        batch_variants = {item.variant for item in items}
        scored = self._score_pairs()
        pairs = [
            build_scored_pair(pair, self._item_by_variant[pair.left], self._item_by_variant[pair.right], self._weights)
            for pair in scored
            if pair.odds.probability >= MIN_STORED_PROBABILITY
            and not batch_variants.isdisjoint((pair.left, pair.right))
        ]
        return BatchResult(pairs, self._find_affected_variants(scored, pairs, batch_variants, changed_variants))

    def learn_weights(self, sample: Sequence[IndexedItem], initial: Weights) -> IndexSteps[Weights | None]:
        """Return weights that are fitted to the candidates of a sample of items; None if there are too few candidates.

        Args:
            sample: The items.
            initial: The initial weights.
        """
        # including hopeless ones, which show how often features agree by coincidence
        neighbours = yield from self._find_neighbours(sample, min_share=0.0)
        sides: tuple[list[list[Levels]], list[list[Levels]]] = ([], [])
        for item, source, others in neighbours:
            if others:
                sides[item.source > source].append([self._get_levels(item, other) for other in others])
        groups = [*sides[0], *sides[1]]
        if len(groups) < MIN_GROUPS:
            return None
        return (
            fit_weights(*sides, initial) if min(map(len, sides)) >= MIN_GROUPS else fit_weights(groups, groups, initial)
        )

    def _find_neighbours(
        self, batch: Sequence[IndexedItem], min_share: float = MIN_SIMILARITY_SHARE
    ) -> IndexSteps[list[_Neighbours]]:
        """Find the most similar items of every other source for each item, and compare the item with them.

        Args:
            batch: The items.
            min_share: The minimum similarity, as a share of the most similar item's similarity.
        """
        yield from self._request_missing(keys=(ALL_ITEMS_KEY,))
        if len(self._cache.sources) < _MIN_SOURCES:
            return []
        self._cache.add((), {}, batch)
        yield from self._request_missing(keys=self._collect_keys(batch))
        pairs = [(item, source) for item in batch for source in self._cache.sources if source != item.source]
        return (yield from self._compare_neighbours(pairs, min_share))

    def _compare_neighbours(
        self, pairs: Iterable[tuple[IndexedItem, str]], min_share: float = MIN_SIMILARITY_SHARE
    ) -> IndexSteps[list[_Neighbours]]:
        """Find the source's most similar items for each pair of an item and a source, and compare the item with them.

        Args:
            pairs: Pairs of an item and the ID of a source.
            min_share: The minimum similarity, as a share of the most similar item's similarity.
        """
        near = [(item, source, self._cache.find_neighbours(item, source, min_share)) for item, source in pairs]
        yield from self._request_missing(numbers={number for _, _, numbers in near for number in numbers})
        found = [(item, source, [self._cache.get_item(number) for number in numbers]) for item, source, numbers in near]
        others = {other.number: other.features for _, _, neighbours in found for other in neighbours}
        # all words count; codes count only if shared, and shared codes were loaded with the item
        yield from self._request_missing(
            keys={key for facts in others.values() for key in (*collect_words(facts), *build_count_only_keys(facts))}
        )
        for item, _, neighbours in found:
            for other in neighbours:
                left, right = _order_by_source(item, other)
                sources, pair = (left.source, right.source), (left.variant, right.variant)
                if pair not in self._pairs[sources]:
                    self._pairs[sources][pair] = compare_items(
                        left.features, right.features, self._cache.get_frequencies(sources)
                    )
                    self._item_by_variant[left.variant], self._item_by_variant[right.variant] = left, right
        return found

    def _score_pairs(self) -> list[ScoredCandidate]:
        """Return the compared pairs with their scores, which include the reductions by competing candidates.

        Pairs with log2 odds up to `_MIN_COMPETING_ODDS` before these reductions are omitted.
        """
        facts = {variant: item.features for variant, item in self._item_by_variant.items()}
        scored: list[ScoredCandidate] = []
        for sources, pairs in sorted(self._pairs.items()):
            known = partial(self._cache.is_brand_in_both, sources)
            scored += score_candidates(
                facts,
                facts,
                pairs,
                self._weights,
                _MIN_COMPETING_ODDS,
                frequencies=self._cache.get_frequencies(sources),
                is_brand_in_both=known,
            )
        return scored

    def _find_affected_variants(
        self,
        scored: Iterable[ScoredCandidate],
        pairs: Iterable[ScoredPair],
        batch_variants: set[str],
        changed: Container[str],
    ) -> list[str]:
        """Return the variants of other sources whose earlier pairs must be matched again.

        Each of these variants is in a pair to store with a changed variant, which competes in its earlier pairs.

        Args:
            scored: All scored pairs.
            pairs: The pairs to store.
            batch_variants: The variants of the batch.
            changed: The variants of the batch that have changed.
        """
        new_partners = {
            other for pair in pairs for one, other in _list_both_orders(pair) if one in changed
        } - batch_variants
        return sorted(
            {
                item
                for pair in scored
                for item, rival in _list_both_orders(pair)
                if item in new_partners and rival not in batch_variants and self._item_by_variant[rival].number not in self._fresh
                and min(calibrate_odds(self._weights.sum_weights(pair.levels)), find_max_odds(pair.conflicts, pair.levels, self._weights)) > 0
            }
        )  # fmt: skip

    def _get_levels(self, first: IndexedItem, second: IndexedItem) -> Levels:
        """Return the levels of a pair of items that were compared before."""
        left, right = _order_by_source(first, second)
        return self._pairs[left.source, right.source][left.variant, right.variant]

    def _collect_keys(self, items: Iterable[IndexedItem]) -> set[str]:
        """Return the keys by which candidates of the items are found, and the keys that only count how many items have a value."""
        return {
            key for item in items for key in (*self._cache.get_lookup_keys(item), *build_count_only_keys(item.features))
        }

    def _request_missing(self, keys: Iterable[str] = (), numbers: Iterable[int] = ()) -> IndexSteps[None]:
        """Request the keys and items that are not cached yet."""
        request = self._cache.build_missing_request(keys, numbers)
        if request.keys or request.numbers:
            yield request


def _order_by_source(first: IndexedItem, second: IndexedItem) -> tuple[IndexedItem, IndexedItem]:
    """Return the two items in ascending order of their source IDs."""
    return (first, second) if first.source < second.source else (second, first)


def _list_both_orders(pair: ScoredCandidate | ScoredPair) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the variants of a pair as (left, right) and as (right, left)."""
    return (pair.left, pair.right), (pair.right, pair.left)
