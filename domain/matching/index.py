"""The index of items: the keys that an item is found by, how common they are, and what is stored of both."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import log2
from typing import Final, TypeVar

from domain.jobs.model import NewJob
from domain.kernel.tenancy import Tenant
from domain.matching.features import Facts
from domain.matching.scoring import Weights
from domain.matching.words import LONGEST

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


LISTED: Final = 400
"""A key that more items of a source share than this has no list: it is a hub, and never walked."""

ALL: Final = "*"
"""The key that counts a source's items."""

_BRAND: Final = "@"

_OWN: Final = 1

_STEM: Final = 2

COUNTED: Final = frozenset((ALL, _BRAND))
"""First letters of keys that are counted and have no list."""


@dataclass(frozen=True, slots=True)
class Queued:
    """A variant that waits to be matched. `stamp` is another one whenever it has changed again.

    `again`: it has not changed, but what rivals its pairs has. `since`: when it was queued, if that is told.
    """

    variant: str
    stamp: int
    again: bool = False
    since: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many variants wait to be matched, and for how many seconds the oldest has."""

    variants: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Item:
    """A variant that is in the index. `number` is short for it, within its tenant; `stamp` is that of what was read."""

    variant: str
    product: str
    source: str
    stamp: int
    facts: Facts
    number: int = 0


@dataclass(frozen=True, slots=True)
class Listed:
    """How many items of a source share a key, and their numbers; None where they are too many to be walked, or only counted.

    Of a code's key also how many of them bear it as a code of their own, and how many as the stem of one.
    """

    items: int
    numbers: Sequence[int] | None = None
    codes: int = 0
    stems: int = 0


@dataclass(slots=True)
class KeyChange:
    """What a batch changes about one key of one source."""

    items: int = 0
    added: list[int] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    codes: int = 0
    stems: int = 0


@dataclass(frozen=True, slots=True)
class MatchModel:
    """Weights that were learnt when the tenant had so many items."""

    items: int
    weights: Weights
    learnt_at: datetime


def listed_keys(item: Facts) -> list[str]:
    """The keys that an item is found by."""
    return keys(item)


def counted_keys(item: Facts) -> list[str]:
    """The keys that are only counted: every item's, and its brand's."""
    return [ALL, brand_key(item)] if item.brand else [ALL]


def brand_key(item: Facts) -> str:
    """What items of one brand are counted under."""
    return (_BRAND + " ".join(sorted(item.brand)))[:LONGEST]


def changes(before: Sequence[Item], after: Sequence[Item]) -> dict[tuple[str, str], KeyChange]:
    """What these items' being read anew changes, by key and source. Keys that stay as they are are not among them."""
    found: dict[tuple[str, str], KeyChange] = defaultdict(KeyChange)
    old = {item.number: item for item in before}
    for item in after:
        was, has = old.get(item.number), _marks(item)
        if was is not None and was.source == item.source:
            had = _marks(was)
            _take(found, was, {key: mark for key, mark in had.items() if has.get(key) != mark})
            has = {key: mark for key, mark in has.items() if had.get(key) != mark}
        elif was is not None:
            _take(found, was, _marks(was))
        _give(found, item, has)
    return dict(found)


def _marks(item: Item) -> dict[str, int]:
    """An item's keys; those of codes with whether it bears the code itself (1) or as the stem of one (2)."""
    facts = item.facts
    marks = dict.fromkeys((*listed_keys(facts), *counted_keys(facts)), 0)
    for code in facts.codes:
        marks[code_key(code)] = _OWN
    for stem in facts.stems:
        marks[code_key(stem)] |= _STEM
    return marks


def _give(found: dict[tuple[str, str], KeyChange], item: Item, marks: Mapping[str, int]) -> None:
    source, number = item.source, item.number
    for key, mark in marks.items():
        change = found[key, source]
        change.items += 1
        change.added.append(number)
        if mark:
            change.codes += mark & _OWN
            change.stems += mark >> 1


def _take(found: dict[tuple[str, str], KeyChange], item: Item, marks: Mapping[str, int]) -> None:
    for key, mark in marks.items():
        change = found[key, item.source]
        change.items -= 1
        change.removed.append(item.number)
        change.codes -= mark & _OWN
        change.stems -= mark >> 1


MATCH: Final = "matching.match"

LANE: Final = "match"


def matching(tenant: Tenant) -> NewJob:
    """Match what waits. One is open at a time, which also takes what is queued while it runs."""
    return NewJob(MATCH, LANE, tenant, {}, key=LANE)


def bits(items: int, bearers: int) -> float:
    """What it says that two items share a word that so many of all items bear."""
    return log2((items + 2) / (bearers + 1))


def terms(item: Facts) -> set[str]:
    """The words that an item's title or columns say of it, each counted once."""
    return {*item.words, *item.quantities, *item.brand, *item.colours}
