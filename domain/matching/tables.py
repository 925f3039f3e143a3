"""Two tables of items matched in memory: one item at a time, or all of them with weights learnt from them."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from domain.matching.comparisons import Levels, Rarity, compare
from domain.matching.features import MatchFeatures
from domain.matching.index import OWN, brand_key, code_key, key_marks, lookup_keys, nearest
from domain.matching.scoring import FEWEST, OFTEN, SAMPLE, SHIPPED, Compared, Scored, Weights, learn, scored

LEFT: Final = "left"
RIGHT: Final = "right"


@dataclass(slots=True)
class _Entry:
    """The items of a side that share a key; of a code's key also how many bear it themselves, or as the stem of one."""

    ids: dict[str, None]
    codes: int = 0
    stems: int = 0


_NONE: Final = _Entry({})


class MatchIndex:
    """The items of two sides with their keys and counts. Ids are unique within a side.

    `weights` are those that pairs are scored by; `learnt` makes them of what is in the index.
    """

    def __init__(self, weights: Weights = SHIPPED) -> None:
        self.weights = weights
        self.items: dict[str, dict[str, MatchFeatures]] = {LEFT: {}, RIGHT: {}}
        self._entries: dict[str, dict[str, _Entry]] = {LEFT: {}, RIGHT: {}}
        self._rarity: Rarity | None = None

    def add(self, side: str, item: MatchFeatures) -> None:
        """Enter an item, in place of one with its id."""
        self.remove(side, item.id)
        self.items[side][item.id] = item
        self._rarity = None
        entries = self._entries[side]
        for key, mark in key_marks(item).items():
            if (entry := entries.get(key)) is None:
                entry = entries[key] = _Entry({})
            entry.ids[item.id] = None
            entry.codes += mark & OWN
            entry.stems += mark >> 1

    def remove(self, side: str, id: str) -> None:
        """Take an item out; nothing happens if it is not there."""
        found = self.items[side].pop(id, None)
        if found is None:
            return
        self._rarity = None
        entries = self._entries[side]
        for key, mark in key_marks(found).items():
            entry = entries[key]
            del entry.ids[id]
            entry.codes -= mark & OWN
            entry.stems -= mark >> 1
            if not entry.ids:
                del entries[key]

    def _found(self, key: str) -> list[_Entry]:
        return [entries.get(key, _NONE) for entries in self._entries.values()]

    def knows_brand(self, item: MatchFeatures) -> bool:
        """Return whether both sides give several items this item's brand."""
        return all(len(entry.ids) >= OFTEN for entry in self._found(brand_key(item)))

    @property
    def rarity(self) -> Rarity:
        """Return how rare words and codes are in the index as it is now."""
        if self._rarity is None:
            self._rarity = Rarity(
                sum(map(len, self.items.values())),
                lambda key: sum(len(entry.ids) for entry in self._found(key)),
                lambda code: sum(entry.codes for entry in self._found(code_key(code))),
                lambda stem: sum(entry.stems for entry in self._found(code_key(stem))),
            )
        return self._rarity

    def neighbours(self, side: str, item: MatchFeatures) -> list[str]:
        """Return the ids on the other side that are worth comparing with an item of `side`, best first."""
        other = opposite(side)
        entries = self._entries[other]
        lists = [(len(found.ids), key, found.ids) for key in lookup_keys(item) if (found := entries.get(key))]
        return nearest(lists, len(self.items[other]))

    def levels(self, a: MatchFeatures, b: MatchFeatures) -> Levels:
        """Return how two items compare, given how common words and codes are in the index."""
        return compare(a, b, self.rarity)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield every pair of a left and a right item that is worth comparing, each once."""
        asked: dict[str, list[str]] = {}
        for id, item in self.items[RIGHT].items():
            for found in self.neighbours(RIGHT, item):
                asked.setdefault(found, []).append(id)
        for id, item in self.items[LEFT].items():
            for other in dict.fromkeys((*self.neighbours(LEFT, item), *asked.pop(id, ()))):
                yield id, other

    def score(self, a: MatchFeatures, b: MatchFeatures) -> Scored:
        """Return a left and a right item by themselves, as if neither had other candidates."""
        pairs = {(a.id, b.id): self.levels(a, b)}
        return next(scored({a.id: a}, {b.id: b}, pairs, self.weights, least=None, known=self.knows_brand))

    def candidates(self, side: str, id: str) -> list[Scored]:
        """Return the pairs of one item that is in the index, likeliest first, weighed against their nearest rivals.

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

    def _compare(self, found: Compared, side: str, mine: MatchFeatures, theirs: MatchFeatures) -> None:
        a, b = (mine, theirs) if side == LEFT else (theirs, mine)
        if (a.id, b.id) not in found:
            found[a.id, b.id] = self.levels(a, b)


def opposite(side: str) -> str:
    """Return the side that items of `side` are matched with."""
    return RIGHT if side == LEFT else LEFT


def compared(index: MatchIndex) -> Compared:
    """Return every pair that is worth it, with its levels."""
    left, right = index.items[LEFT], index.items[RIGHT]
    seen: dict[Levels, Levels] = {}  # few are different, so each is kept once
    found: Compared = {}
    for a, b in index.pairs():
        levels = index.levels(left[a], right[b])
        found[a, b] = seen.setdefault(levels, levels)
    return found


def learnt(pairs: Compared, start: Weights) -> Weights:
    """Return weights learnt from the candidates of a sample of the items, the same sample whatever their order."""
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
    """Yield every pair worth telling, in the order of their ids; the index's weights are learnt anew first, unless they shall stay."""
    pairs = compared(index)
    if learn_weights:
        index.weights = learnt(pairs, index.weights)
    return scored(index.items[LEFT], index.items[RIGHT], pairs, index.weights, known=index.knows_brand)
