"""What a batch has seen of the index so far: who shares which key, and items by number. Asked for in bulk, kept within bounds."""

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from typing import Final

from domain.matching.blocking import code_key, nearest
from domain.matching.conflicts import OFTEN
from domain.matching.facts import Facts
from domain.matching.frequencies import bits, terms
from domain.matching.indexed import ALL, Item, Listed, brand_key, counted_keys, listed_keys

KEYS: Final = 60_000
"""Keys that are remembered from batch to batch, about."""

SHARE: Final = 0.45
"""What an item must have of the keys that the best candidate shares, to be one."""

_NOBODY: Final[Mapping[str, Listed]] = {}
_NONE: Final = Listed(0)


def telling_keys(item: Facts) -> set[str]:
    """The keys whose counts say how much a comparison with the item is worth: those of what it may not share as well.

    Codes are not among them: only shared ones count, which are the other item's as well.
    """
    return {*terms(item), *counted_keys(item)}


class Sight:
    """Keys and items that were read. It holds good while the index stays as it is: make another one when that changes."""

    def __init__(self) -> None:
        self._keys: dict[str, Mapping[str, Listed]] = {}
        self._items: dict[int, Item] = {}
        self._before: dict[int, Item] = {}
        self._keys_of: dict[int, list[str]] = {}
        self._rarities: dict[tuple[str, str], PairRarity] = {}

    def unseen(self, keys: Iterable[str]) -> set[str]:
        """Those of the keys that were not read yet."""
        return {key for key in keys if key not in self._keys}

    def unknown(self, numbers: Iterable[int]) -> set[int]:
        """Those of the items that were not read yet."""
        for number in (wanted := set(numbers)):
            if number not in self._items and number in self._before:
                self._items[number] = self._before[number]
        return {number for number in wanted if number not in self._items}

    def item(self, number: int) -> Item:
        """An item that was read. Raises KeyError."""
        return self._items[number]

    def keys_of(self, item: Item) -> list[str]:
        """The keys that an item is found by."""
        found = self._keys_of.get(item.number)
        if found is None:
            found = self._keys_of[item.number] = listed_keys(item.facts)
        return found

    def see(
        self, keys: Collection[str], listed: Mapping[str, Mapping[str, Listed]], items: Collection[Item] = ()
    ) -> None:
        """Take in what was asked for; keys that nobody has are remembered as such."""
        self._keys.update((key, listed.get(key, _NOBODY)) for key in keys)
        self._items.update((item.number, item) for item in items)

    def forget(self) -> None:
        """Between two batches: what has become too much is dropped; items stay for one batch after they were looked at."""
        if len(self._keys) > KEYS:
            self._keys.clear()
            self._rarities.clear()
        self._before, self._items = self._items, {}
        self._keys_of.clear()

    def bearers(self, key: str, source: str) -> int:
        """How many items of a source have a key."""
        return self.listed(key, source).items

    def listed(self, key: str, source: str) -> Listed:
        """Who of a source has a key."""
        return self._keys.get(key, _NOBODY).get(source, _NONE)

    @property
    def sources(self) -> list[str]:
        """Every source that has items; the key ALL must have been read."""
        return sorted(self._keys[ALL])

    def neighbours(self, item: Item, source: str, share: float = SHARE) -> list[int]:
        """The numbers of a source's items that share most with an item, best first; none with less than `share` of the best one's."""
        lists = []
        for key in self.keys_of(item):
            found = self._keys[key].get(source)
            if found is not None and found.numbers:
                lists.append((found.items, key, found.numbers))
        return nearest(lists, self.bearers(ALL, source), share)

    def rarity(self, one: str, other: str) -> "PairRarity":
        """How rare things are among the items of two sources."""
        pair = (one, other) if one < other else (other, one)
        found = self._rarities.get(pair)
        if found is None:
            found = self._rarities[pair] = PairRarity(self, pair)
        return found


class PairRarity:
    """`domain.matching.frequencies.Rarity` over two sources, of the keys that a Sight has read."""

    def __init__(self, sight: Sight, sources: tuple[str, str]) -> None:
        self._sight, self._sources = sight, sources
        self.codes, self.stems = _Counts(self, attrgetter("codes")), _Counts(self, attrgetter("stems"))
        self.information = _Information(self)

    def bearers(self, key: str) -> int:
        """How many items of both sources have a key."""
        return sum(self._sight.bearers(key, source) for source in self._sources)

    def listed(self, key: str) -> list[Listed]:
        """Who of either source has a key."""
        return [self._sight.listed(key, source) for source in self._sources]

    def knows_brand(self, item: Facts) -> bool:
        """Whether both sources give several items this item's brand."""
        key = brand_key(item)
        return all(self._sight.bearers(key, source) >= OFTEN for source in self._sources)


class _Counts(dict[str, int]):
    def __init__(self, rarity: PairRarity, counted: Callable[[Listed], int]) -> None:
        super().__init__()
        self._rarity, self._counted = rarity, counted

    def __missing__(self, one: str) -> int:
        found = self[one] = sum(map(self._counted, self._rarity.listed(code_key(one))))
        return found


class _Information(dict[str, float]):
    def __init__(self, rarity: PairRarity) -> None:
        super().__init__()
        self._rarity = rarity

    def __missing__(self, word: str) -> float:
        rarity = self._rarity
        found = self[word] = bits(rarity.bearers(ALL), rarity.bearers(word))
        return found
