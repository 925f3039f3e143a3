"""How often words and codes occur, which is how much it says when two items share one."""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import log2
from typing import Protocol

from domain.matching.facts import Facts


class Rarity(Protocol):
    """How rare what two items may share is among the items of both sides."""

    @property
    def codes(self) -> Mapping[str, int]:
        """How many items bear a code."""
        ...

    @property
    def stems(self) -> Mapping[str, int]:
        """How many items bear a code of that stem."""
        ...

    @property
    def information(self) -> Mapping[str, float]:
        """The bits that sharing a word is worth."""
        ...


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


def bits(items: int, bearers: int) -> float:
    """What it says that two items share a word that so many of all items bear."""
    return log2((items + 2) / (bearers + 1))


def terms(item: Facts) -> set[str]:
    """The words that an item's title or columns say of it, each counted once."""
    return {*item.words, *item.quantities, *item.brand, *item.colours}
