"""Which items are worth comparing: those that share rare keys, looked up in lists and never pair by pair."""

from collections.abc import Iterable
from math import log2
from typing import Final, TypeVar

from domain.matching.facts import Facts

KEPT: Final = 10
"""Candidates of an item, at most, beside those that ask for it themselves."""

VISITED: Final = 1000
"""Entries of lists that are looked at for an item; the rarest keys go first."""

_STRONG: Final = 1.5

Id = TypeVar("Id", str, int)


def keys(item: Facts) -> list[str]:
    """What an item is found by. Codes and GTINs stand apart from words by their first letters."""
    made = {*item.words, *item.quantities, *item.brand, *item.colours}
    for found in (item.codes, item.stems, item.mentioned, item.joined):
        made.update(map(code_key, found))
    if item.gtin:
        made.add("=" + item.gtin)
    made.update(f"~{round(side)}" for side in item.sides if side)
    made.update(f"~{round(side)}" for size in item.sizes for side in size)
    return sorted(made)


def code_key(code: str) -> str:
    """What items that bear or name a code are found by."""
    return "#" + code


class Postings:
    """The items of one side by their keys."""

    def __init__(self) -> None:
        self._items: dict[str, dict[str, None]] = {}

    def add(self, item: Facts) -> None:
        """Enter an item under each of its keys."""
        for key in keys(item):
            self._items.setdefault(key, {})[item.id] = None

    def remove(self, item: Facts) -> None:
        """Take an item out of every list."""
        for key in keys(item):
            listed = self._items[key]
            del listed[item.id]
            if not listed:
                del self._items[key]

    def neighbours(self, item: Facts, items: int) -> list[str]:
        """The ids of those that share most with `item`, best first; `items` is how many there are on this side."""
        lists = [(len(found), key, found) for key in keys(item) if (found := self._items.get(key))]
        return nearest(lists, items)


def nearest(lists: Iterable[tuple[int, str, Iterable[Id]]], items: int, share: float = 0.0) -> list[Id]:
    """The ids that stand in most of the lists, best first; a list is its length, its key and its ids.

    The rarer a key among `items`, the more sharing it is worth. Rare keys are looked at first. `share`: whoever has less than
    that of what the best one has is left out.
    """
    scores: dict[Id, float] = {}
    left = VISITED
    for count, key, found in sorted(lists, key=_rarity):
        left -= count
        if left < 0:
            break
        worth = log2((items + 2) / (count + 1)) * (_STRONG if key[0] in "#=" else 1.0)
        for id in found:
            scores[id] = scores.get(id, 0.0) + worth
    kept = list(scores.items())
    if len(kept) > KEPT:
        least = sorted(scores.values())[-KEPT]
        kept = [entry for entry in kept if entry[1] >= least]
    best = sorted(kept, key=_order)[:KEPT]
    return [id for id, score in best if score >= share * best[0][1]] if share else [id for id, _ in best]


def _order(entry: tuple[Id, float]) -> tuple[float, Id]:
    return -entry[1], entry[0]


def _rarity(listed: tuple[int, str, object]) -> tuple[int, str]:
    return listed[:2]
