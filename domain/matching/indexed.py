"""What is kept of each item so that others find it: its facts, its keys with how many share them, and learnt weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from domain.matching.blocking import keys
from domain.matching.facts import Facts
from domain.matching.weights import Weights
from domain.matching.words import LONGEST

LISTED: Final = 400
"""A key that more items of a source share than this has no list: it is a hub, and never walked."""
ALL: Final = "*"
"""The key that counts a source's items."""
_CODE: Final = "!"
_STEM: Final = "?"
_BRAND: Final = "@"
COUNTED: Final = frozenset((ALL, _CODE, _STEM, _BRAND))
"""First letters of keys that are counted and have no list."""


@dataclass(frozen=True, slots=True)
class Queued:
    """A variant that waits to be matched. `stamp` is another one whenever it has changed again.

    `again`: it has not changed, but what rivals its pairs has.
    """

    variant: str
    stamp: int
    again: bool = False


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
    """How many items of a source share a key, and their numbers; None where they are too many to be walked, or only counted."""

    items: int
    numbers: Sequence[int] | None = None


@dataclass(slots=True)
class KeyChange:
    """What a batch changes about one key of one source."""

    items: int = 0
    added: list[int] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)


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
    """The keys that are only counted: codes, their stems and the brand, each as what it is."""
    made = [ALL, *(_CODE + one for one in item.codes), *(_STEM + one for one in item.stems)]
    return [*made, brand_key(item)] if item.brand else made


def code_key(code: str) -> str:
    """What items that bear a code are counted under."""
    return _CODE + code


def stem_key(stem: str) -> str:
    """What items with a code of that stem are counted under."""
    return _STEM + stem


def brand_key(item: Facts) -> str:
    """What items of one brand are counted under."""
    return (_BRAND + " ".join(sorted(item.brand)))[:LONGEST]


def changes(before: Sequence[Item], after: Sequence[Item]) -> dict[tuple[str, str], KeyChange]:
    """What these items' being read anew changes, by key and source. Keys that stay are not among them."""
    found: dict[tuple[str, str], KeyChange] = {}
    old = {item.number: item for item in before}
    for item in after:
        was = old.get(item.number)
        had = _places(was) if was else set()
        has = _places(item)
        for key, source in had - has:
            _change(found, key, source, -1).removed.append(item.number)
        for key, source in has - had:
            _change(found, key, source, 1).added.append(item.number)
    return found


def _places(item: Item) -> set[tuple[str, str]]:
    return {(key, item.source) for key in (*listed_keys(item.facts), *counted_keys(item.facts))}


def _change(found: dict[tuple[str, str], KeyChange], key: str, source: str, by: int) -> KeyChange:
    change = found.get((key, source))
    if change is None:
        change = found[key, source] = KeyChange()
    change.items += by
    return change
