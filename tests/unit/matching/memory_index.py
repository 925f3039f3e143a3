"""Generated items matched batch by batch as in the matching stage, with an index in memory."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from domain.matching.candidates import BatchMatcher, CandidateCache, IndexRequest, IndexSteps
from domain.matching.features import MatchFeatures
from domain.matching.index import IndexedItem, KeyListing, compute_key_changes
from domain.matching.model import ScoredPair
from domain.matching.scoring import DEFAULT_WEIGHTS

R = TypeVar("R")


def create_items(by_source: Mapping[str, Sequence[MatchFeatures]]) -> list[IndexedItem]:
    """Return the features as items of their sources, with IDs that are unique across sources."""
    features_by_source = [(source, facts) for source, found in by_source.items() for facts in found]
    return [
        IndexedItem(facts.id, f"p {facts.id}", source, 1, facts, number)
        for number, (source, facts) in enumerate(features_by_source, start=1)
    ]


class MemoryIndex:
    """Index of items in memory with the answers of a store."""

    def __init__(self, found: Sequence[IndexedItem]) -> None:
        self.items = {item.number: item for item in found}
        self.keys: dict[str, dict[str, KeyListing]] = {}
        self.requests: list[IndexRequest] = []
        for (key, source), change in compute_key_changes((), found).items():
            self.keys.setdefault(key, {})[source] = KeyListing(change.item_difference, change.added_numbers)

    def run_steps(self, steps: IndexSteps[R], cache: CandidateCache) -> R:
        """Answer the requests of the steps; return their result."""
        while True:
            try:
                request = next(steps)
            except StopIteration as end:
                result: R = end.value
                return result
            self.requests.append(request)
            listed = {key: self.keys[key] for key in request.keys if key in self.keys}
            cache.add(request.keys, listed, [self.items[number] for number in request.numbers])


def match_items(
    found: Sequence[IndexedItem], batch: int = 1000, *, learn: bool = False
) -> dict[tuple[str, str], ScoredPair]:
    """Return every matched pair by its variants."""
    index, weights = MemoryIndex(found), DEFAULT_WEIGHTS
    if learn:
        weights = (
            index.run_steps(
                BatchMatcher(seen := CandidateCache(), DEFAULT_WEIGHTS).learn_weights(found, DEFAULT_WEIGHTS), seen
            )
            or DEFAULT_WEIGHTS
        )
    pairs: dict[tuple[str, str], ScoredPair] = {}
    cache = CandidateCache()
    for at in range(0, len(found), batch):
        some = found[at : at + batch]
        result = index.run_steps(
            BatchMatcher(cache, weights, {item.number for item in found}).match_batch(some, ()), cache
        )
        pairs |= {(pair.left, pair.right): pair for pair in result.pairs}
        cache.evict()
    return pairs
