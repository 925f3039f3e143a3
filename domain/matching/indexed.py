"""What is kept of each item so that others find it: its facts, its keys with how many share them, and learnt weights."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from domain.matching.blocking import code_key, keys
from domain.matching.facts import Facts
from domain.matching.weights import Weights
from domain.matching.words import LONGEST

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
class StoredVariant:
    """A variant as its source states it: ProductData, VariantData, and one price in minor units of its currency."""

    variant: str
    product: str
    source: str
    product_data: Mapping[str, Any]
    variant_data: Mapping[str, Any]
    price: int | None = None
    currency: str | None = None


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
