"""Invented items matched batch by batch, as the stage does, over an index that is a few dictionaries."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from domain.matching.candidates import BatchMatcher, CandidateCache, IndexRequest, IndexSteps
from domain.matching.features import MatchFeatures
from domain.matching.index import IndexedItem, KeyListing, compute_key_changes
from domain.matching.model import ScoredPair
from domain.matching.scoring import DEFAULT_WEIGHTS

R = TypeVar("R")


def items(by_source: Mapping[str, Sequence[MatchFeatures]]) -> list[IndexedItem]:
    """MatchFeatures as items of their sources; their ids are unique across sources."""
    made = [(source, facts) for source, found in by_source.items() for facts in found]
    return [
        IndexedItem(facts.id, f"p {facts.id}", source, 1, facts, number)
        for number, (source, facts) in enumerate(made, start=1)
    ]


class Index:
    """What a store would answer."""

    def __init__(self, found: Sequence[IndexedItem]) -> None:
        self.items = {item.number: item for item in found}
        self.keys: dict[str, dict[str, KeyListing]] = {}
        self.requests: list[IndexRequest] = []
        for (key, source), change in compute_key_changes((), found).items():
            self.keys.setdefault(key, {})[source] = KeyListing(change.item_difference, change.added_numbers)

    def carried(self, steps: IndexSteps[R], cache: CandidateCache) -> R:
        """What a linking comes to."""
        while True:
            try:
                wanted = next(steps)
            except StopIteration as end:
                made: R = end.value
                return made
            self.requests.append(wanted)
            listed = {key: self.keys[key] for key in wanted.keys if key in self.keys}
            cache.add(wanted.keys, listed, [self.items[number] for number in wanted.numbers])


def linked(
    found: Sequence[IndexedItem], batch: int = 1000, *, learn: bool = False
) -> dict[tuple[str, str], ScoredPair]:
    """Every pair that is offered, by its variants."""
    index, weights = Index(found), DEFAULT_WEIGHTS
    if learn:
        weights = (
            index.carried(
                BatchMatcher(seen := CandidateCache(), DEFAULT_WEIGHTS).learn_weights(found, DEFAULT_WEIGHTS), seen
            )
            or DEFAULT_WEIGHTS
        )
    pairs: dict[tuple[str, str], ScoredPair] = {}
    cache = CandidateCache()
    for at in range(0, len(found), batch):
        some = found[at : at + batch]
        result = index.carried(
            BatchMatcher(cache, weights, {item.number for item in found}).match_batch(some, ()), cache
        )
        pairs |= {(pair.left, pair.right): pair for pair in result.pairs}
        cache.evict()
    return pairs
