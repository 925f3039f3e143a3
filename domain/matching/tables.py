"""Two tables of items matched in memory: one item at a time, or all of them with weights learnt from them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Final

from domain.matching.comparisons import Levels, compare
from domain.matching.features import Facts
from domain.matching.index import Postings, bits, terms
from domain.matching.scoring import FEWEST, OFTEN, SAMPLE, SHIPPED, Compared, Scored, Weights, learn, scored


class Frequencies:
    """Counts over all items of both sides.

    `information` has the bits that sharing a word is worth, the log2 of how rare it is: 0 for a word of every item.
    """

    def __init__(self, items: Iterable[Facts] = ()) -> None:
        self.items = 0
        self.words: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.stems: Counter[str] = Counter()
        self.information = Information(self)
        for item in items:
            self.add(item)

    def add(self, item: Facts) -> None:
        """Count an item in."""
        self._count(item, 1)

    def remove(self, item: Facts) -> None:
        """Take an item out again."""
        self._count(item, -1)

    def _count(self, item: Facts, by: int) -> None:
        self.items += by
        for kept, found in ((self.words, terms(item)), (self.codes, item.codes), (self.stems, item.stems)):
            for one in found:
                kept[one] += by
                if kept[one] <= 0:
                    del kept[one]
        self.information.clear()


class Information(dict[str, float]):
    """Bits by word, reckoned when first asked for after a change."""

    def __init__(self, frequencies: Frequencies) -> None:
        super().__init__()
        self._frequencies = frequencies

    def __missing__(self, word: str) -> float:
        counted = self._frequencies
        found = self[word] = bits(counted.items, counted.words.get(word, 0))
        return found


LEFT: Final = "left"

RIGHT: Final = "right"


class MatchIndex:
    """The items of two sides with their keys and counts. Ids are unique within a side.

    `weights` are those that pairs are scored by; `domain.matching.whole.learnt` makes them of what is in the index.
    """

    def __init__(self, weights: Weights = SHIPPED) -> None:
        self.weights = weights
        self.frequencies = Frequencies()
        self.items: dict[str, dict[str, Facts]] = {LEFT: {}, RIGHT: {}}
        self._brands: dict[str, Counter[frozenset[str]]] = {LEFT: Counter(), RIGHT: Counter()}
        self._postings = {LEFT: Postings(), RIGHT: Postings()}

    def add(self, side: str, item: Facts) -> None:
        """Enter an item, in place of one with its id."""
        self.remove(side, item.id)
        self.items[side][item.id] = item
        self._postings[side].add(item)
        self._brands[side][item.brand] += 1
        self.frequencies.add(item)

    def remove(self, side: str, id: str) -> None:
        """Take an item out; nothing happens if it is not there."""
        if found := self.items[side].pop(id, None):
            self._postings[side].remove(found)
            self._brands[side][found.brand] -= 1
            self.frequencies.remove(found)

    def knows_brand(self, item: Facts) -> bool:
        """Whether both sides give several items this item's brand."""
        return all(brands[item.brand] >= OFTEN for brands in self._brands.values())

    def neighbours(self, side: str, item: Facts) -> list[str]:
        """The ids on the other side that are worth comparing with an item of `side`, best first."""
        other = opposite(side)
        return self._postings[other].neighbours(item, len(self.items[other]))

    def levels(self, a: Facts, b: Facts) -> Levels:
        """How two items compare, given how common words and codes are in the index."""
        return compare(a, b, self.frequencies)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Every pair of a left and a right item that is worth comparing, each once."""
        asked: dict[str, list[str]] = {}
        for id, item in self.items[RIGHT].items():
            for found in self.neighbours(RIGHT, item):
                asked.setdefault(found, []).append(id)
        for id, item in self.items[LEFT].items():
            for other in dict.fromkeys((*self.neighbours(LEFT, item), *asked.pop(id, ()))):
                yield id, other

    def score(self, a: Facts, b: Facts) -> Scored:
        """A left and a right item by themselves, as if neither had other candidates."""
        pairs = {(a.id, b.id): self.levels(a, b)}
        return next(scored({a.id: a}, {b.id: b}, pairs, self.weights, least=None, known=self.knows_brand))

    def candidates(self, side: str, id: str) -> list[Scored]:
        """The pairs of one item that is in the index, likeliest first, weighed against their nearest rivals.

        Looked at are the item's neighbours and theirs, so it costs the same however many items there are.
        """
        other = opposite(side)
        mine = self.items[side][id]
        found: Compared = {}
        for near in self.neighbours(side, mine):
            theirs = self.items[other][near]
            self._compare(found, side, mine, theirs)
            for rival in self.neighbours(other, theirs):
                self._compare(found, side, self.items[side][rival], theirs)
        made = scored(self.items[LEFT], self.items[RIGHT], found, self.weights, known=self.knows_brand)
        of_mine = [pair for pair in made if (pair.left if side == LEFT else pair.right) == id]
        return sorted(of_mine, key=lambda pair: (-pair.odds.total, pair.left, pair.right))

    def _compare(self, found: Compared, side: str, mine: Facts, theirs: Facts) -> None:
        a, b = (mine, theirs) if side == LEFT else (theirs, mine)
        if (a.id, b.id) not in found:
            found[a.id, b.id] = self.levels(a, b)


def opposite(side: str) -> str:
    """The side that items of `side` are matched with."""
    return RIGHT if side == LEFT else LEFT


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
