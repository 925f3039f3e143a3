"""The index of items: the keys that an item is found by, how common they are, and what is stored of both."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import log2
from operator import itemgetter
from typing import TypeVar

from domain.jobs.model import NewJob
from domain.kernel.tenancy import Tenant
from domain.matching.features import MatchFeatures
from domain.matching.scoring import Weights
from domain.matching.words import LONGEST

KEPT = 10
"""Candidates of an item, at most, beside those that ask for it themselves."""
VISITED = 1000
"""Entries of lists that are looked at for an item; the rarest keys go first."""
_STRONG = 1.5
Id = TypeVar("Id", str, int)


def lookup_keys(item: MatchFeatures) -> list[str]:
    """Return what an item is found by. Codes and GTINs stand apart from words by their first letters."""
    made = terms(item)
    for found in (item.codes, item.stems, item.mentioned, item.joined):
        made.update(map(code_key, found))
    if item.gtin:
        made.add("=" + item.gtin)
    made.update(f"~{round(side)}" for side in item.sides if side)
    made.update(f"~{round(side)}" for size in item.sizes for side in size)
    return sorted(made)


def terms(item: MatchFeatures) -> set[str]:
    """Return the words that an item's title or columns say of it, each once."""
    return {*item.words, *item.quantities, *item.brand, *item.colours}


def code_key(code: str) -> str:
    """Return what items that bear or name a code are found by."""
    return "#" + code


def nearest(lists: Iterable[tuple[int, str, Iterable[Id]]], items: int, share: float = 0.0) -> list[Id]:
    """Return the ids that stand in most of the lists, best first; a list is its length, its key and its ids.

    The rarer a key among `items`, the more sharing it is worth. Rare keys are looked at first. `share`: whoever has less than
    that of what the best one has is left out.
    """
    scores: dict[Id, float] = {}
    left = VISITED
    for count, key, found in sorted(lists, key=itemgetter(0, 1)):
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
    best = sorted(kept, key=lambda entry: (-entry[1], entry[0]))[:KEPT]
    return [id for id, score in best if score >= share * best[0][1]] if share else [id for id, _ in best]


LISTED = 400
"""A key that more items of a source share than this has no list: it is a hub, and never walked."""
ALL = "*"
"""The key that counts a source's items."""
_BRAND = "@"
OWN = 1
_STEM = 2
COUNTED = frozenset((ALL, _BRAND))
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
    facts: MatchFeatures
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


def counted_keys(item: MatchFeatures) -> list[str]:
    """Return the keys that are only counted: every item's, and its brand's."""
    return [ALL, brand_key(item)] if item.brand else [ALL]


def brand_key(item: MatchFeatures) -> str:
    """Return what items of one brand are counted under."""
    return (_BRAND + " ".join(sorted(item.brand)))[:LONGEST]


def changes(before: Sequence[Item], after: Sequence[Item]) -> dict[tuple[str, str], KeyChange]:
    """Return what reading these items anew changes, by key and source; keys that stay as they are are left out."""
    found: dict[tuple[str, str], KeyChange] = defaultdict(KeyChange)
    old = {item.number: item for item in before}
    for item in after:
        was, now = (
            {(key, one.source): mark for key, mark in key_marks(one.facts).items()} if one else {}
            for one in (old.get(item.number), item)
        )
        for sign, marks, others in ((-1, was, now), (1, now, was)):
            for entry, mark in marks.items():
                if others.get(entry) == mark:
                    continue
                change = found[entry]
                change.items += sign
                (change.added if sign > 0 else change.removed).append(item.number)
                change.codes += sign * (mark & OWN)
                change.stems += sign * (mark >> 1)
    return dict(found)


def key_marks(item: MatchFeatures) -> dict[str, int]:
    """Return an item's keys; those of codes with whether it bears the code itself (1), as the stem of one (2), or both (3)."""
    marks = dict.fromkeys((*lookup_keys(item), *counted_keys(item)), 0)
    for code in item.codes:
        marks[code_key(code)] = OWN
    for stem in item.stems:
        marks[code_key(stem)] |= _STEM
    return marks


MATCH = "matching.match"
LANE = "match"


def matching(tenant: Tenant) -> NewJob:
    """Match what waits. One is open at a time, which also takes what is queued while it runs."""
    return NewJob(MATCH, LANE, tenant, {}, key=LANE)
