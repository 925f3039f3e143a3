"""A batch of items matched with everything that other sources have: what must be read for it is asked for step by step.

A linking is a generator. It yields what it wants of the index and goes on once that is in its `Sight`, so that who answers
may wait for a store, and what is reckoned in between may run beside a loop.
"""

from collections import defaultdict
from collections.abc import Collection, Container, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from domain.matching.calibration import allowed, calibrated
from domain.matching.comparisons import Levels, compare
from domain.matching.conflicts import most
from domain.matching.facts import Facts
from domain.matching.indexed import ALL, Item, counted_keys
from domain.matching.model import OFFERED_AT, ScoredPair
from domain.matching.offering import offered
from domain.matching.scoring import Compared, Scored, scored
from domain.matching.sight import SHARE, Sight, telling_keys
from domain.matching.weights import FEWEST, Weights, learn

_RIVALS: Final = -5.0
"""log2 odds below which a candidate is nobody's rival here."""

Sources = tuple[str, str]
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What must be read next: who shares these keys, and these items."""

    keys: Collection[str] = ()
    numbers: Collection[int] = ()


Steps = Generator[Wanted, None, R]


@dataclass(frozen=True, slots=True)
class Linked:
    """What came of a batch: the pairs that are offered, and items of other sources whose older pairs may be weaker now."""

    pairs: Sequence[ScoredPair]
    disturbed: Sequence[str]


@dataclass(slots=True)
class _Graph:
    """Pairs of two sources' items by their variants, the lesser source's first."""

    left: dict[str, Facts] = field(default_factory=dict)
    right: dict[str, Facts] = field(default_factory=dict)
    pairs: Compared = field(default_factory=dict)


class Linking:
    """Matches batches of items that are in the index. `fresh` are the numbers of all that were read anew this time."""

    def __init__(self, sight: Sight, weights: Weights, fresh: Container[int] = ()) -> None:
        self._sight, self._weights, self._fresh = sight, weights, fresh
        self._graphs: dict[Sources, _Graph] = defaultdict(_Graph)
        self._of: dict[str, Item] = {}

    def linked(self, batch: Sequence[Item], moved: Container[str]) -> Steps[Linked]:
        """The pairs of the batch that are offered, weighed against what rivals them; `moved` are its variants that have changed."""
        if (yield from self._alone()):
            return Linked((), ())
        near = yield from self._candidates(batch)
        contended = self._contended(near)
        yield from self._rivals(contended)
        own = {item.variant for item in batch}
        made = self._scored()
        pairs = self._offered(made, own)
        return Linked(pairs, self._disturbed(made, pairs, own, moved))

    def learnt(self, sample: Sequence[Item], start: Weights) -> Steps[Weights | None]:
        """Weights that fit the candidates of a sample; None where there are too few."""
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
        """Whether there is no other source to match with."""
        yield from self._see(keys=(ALL,))
        return len(self._sight.sources) < 2

    def _candidates(self, batch: Sequence[Item], share: float = SHARE) -> Steps[list[tuple[Item, str, list[Item]]]]:
        """For each item and other source those that are worth comparing; all of them compared."""
        self._sight.see((), {}, batch)
        yield from self._see(keys={ALL, *self._keys_of(batch)})
        near = [
            (item, source, self._sight.neighbours(item, source, share))
            for item in batch
            for source in self._sight.sources
            if source != item.source
        ]
        yield from self._see(numbers={number for _, _, numbers in near for number in numbers})
        found = [(item, source, [self._sight.item(number) for number in numbers]) for item, source, numbers in near]
        yield from self._see(keys=_telling(other for _, _, others in found for other in others))
        for item, _, others in found:
            for other in others:
                self._compare(item, other)
        return found

    def _contended(self, near: Iterable[tuple[Item, str, list[Item]]]) -> dict[tuple[int, str], Item]:
        """Items that some of the batch may get, with the sources that they are candidates of."""
        found: dict[tuple[int, str], Item] = {}
        sums: dict[Levels, float] = {}
        for item, _, others in near:
            for other in others:
                levels = self._levels(item, other)
                alone = sums.get(levels)
                if alone is None:
                    alone = sums[levels] = calibrated(self._weights.total(levels))
                if alone > 0:
                    found[other.number, item.source] = other
        return found

    def _rivals(self, contended: dict[tuple[int, str], Item]) -> Steps[None]:
        """Compare what is contended with whatever else it may belong to."""
        yield from self._see(keys=self._keys_of(contended.values()))
        asked = [
            (item, self._sight.neighbours(item, source)) for (_, source), item in sorted(contended.items(), key=_place)
        ]
        yield from self._see(numbers={number for _, numbers in asked for number in numbers})
        rivals = [(item, [self._sight.item(number) for number in numbers]) for item, numbers in asked]
        yield from self._see(keys=_telling(rival for _, found in rivals for rival in found))
        for item, found in rivals:
            for rival in found:
                self._compare(rival, item)

    def _scored(self) -> list[Scored]:
        """Every pair that was compared and is worth it, weighed against its rivals."""
        made: list[Scored] = []
        for sources, graph in sorted(self._graphs.items()):
            known = self._sight.rarity(*sources).knows_brand
            made += scored(graph.left, graph.right, graph.pairs, self._weights, _RIVALS, known=known)
        return made

    def _offered(self, made: Iterable[Scored], own: set[str]) -> list[ScoredPair]:
        return [
            offered(pair, self._of[pair.left], self._of[pair.right], self._weights)
            for pair in made
            if pair.odds.probability >= OFFERED_AT and (pair.left in own or pair.right in own)
        ]

    def _disturbed(
        self, made: Iterable[Scored], pairs: Iterable[ScoredPair], own: set[str], moved: Container[str]
    ) -> list[str]:
        """Items that are offered to one that has moved, and that others may have been offered before."""
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
        """The log2 odds of a pair as if it had no rivals."""
        own = calibrated(self._weights.total(pair.levels))
        return allowed(own, most(pair.conflicts, pair.levels, self._weights))

    def _compare(self, one: Item, other: Item) -> None:
        left, right = (one, other) if one.source < other.source else (other, one)
        graph = self._graphs[left.source, right.source]
        pair = (left.variant, right.variant)
        if pair not in graph.pairs:
            rarity = self._sight.rarity(left.source, right.source)
            graph.pairs[pair] = compare(left.facts, right.facts, rarity)
            graph.left[left.variant], graph.right[right.variant] = left.facts, right.facts
            self._of[left.variant], self._of[right.variant] = left, right

    def _levels(self, one: Item, other: Item) -> Levels:
        left, right = (one, other) if one.source < other.source else (other, one)
        return self._graphs[left.source, right.source].pairs[left.variant, right.variant]

    def _keys_of(self, items: Iterable[Item]) -> set[str]:
        return {key for item in items for key in (*self._sight.keys_of(item), *counted_keys(item.facts))}

    def _see(self, keys: Iterable[str] = (), numbers: Iterable[int] = ()) -> Steps[None]:
        wanted = Wanted(sorted(self._sight.unseen(keys)), sorted(self._sight.unknown(numbers)))
        if wanted.keys or wanted.numbers:
            yield wanted


def _telling(items: Iterable[Item]) -> set[str]:
    return {key for item in {item.number: item for item in items}.values() for key in telling_keys(item.facts)}


def _place(entry: tuple[tuple[int, str], Item]) -> tuple[int, str]:
    return entry[0]
