"""The index of items: lookup keys, their frequencies, and the stored form of both."""

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
"""Maximum number of candidates of an item, not counting items that have it as their candidate."""
VISITED = 1000
"""Maximum number of list entries that are visited for an item, rarest keys first."""
_STRONG = 1.5
Id = TypeVar("Id", str, int)


def lookup_keys(item: MatchFeatures) -> list[str]:
    """Return the lookup keys of an item. Codes and GTINs differ from words by their first letters."""
    made = terms(item)
    for found in (item.codes, item.stems, item.mentioned, item.joined):
        made.update(map(code_key, found))
    if item.gtin:
        made.add("=" + item.gtin)
    made.update(f"~{round(side)}" for side in item.sides if side)
    made.update(f"~{round(side)}" for size in item.sizes for side in size)
    return sorted(made)


def terms(item: MatchFeatures) -> set[str]:
    """Return the distinct words of an item's title and columns."""
    return {*item.words, *item.quantities, *item.brand, *item.colours}


def code_key(code: str) -> str:
    """Return the lookup key of a code."""
    return "#" + code


def nearest(lists: Iterable[tuple[int, str, Iterable[Id]]], items: int, share: float = 0.0) -> list[Id]:
    """Return the IDs that occur in most of the lists, best first; a list is its length, its key and its IDs.

    Rare keys among `items` weigh more and are visited first. IDs below `share` of the best score are left out.
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
"""Maximum items of a source with a listed key; more frequent keys are hubs without a list."""
ALL = "*"
"""The key that counts a source's items."""
_BRAND = "@"
OWN = 1
_STEM = 2
COUNTED = frozenset((ALL, _BRAND))
"""First letters of keys that have counts but no lists."""


@dataclass(frozen=True, slots=True)
class Queued:
    """A variant in the matching queue. `stamp` changes whenever the variant changes.

    `again`: only rivals of its pairs have changed. `since`: when it was queued, if known.
    """

    variant: str
    stamp: int
    again: bool = False
    since: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of queued variants, and the age of the oldest in seconds."""

    variants: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Item:
    """A variant in the index. `number` is its short ID within the tenant; `stamp` that of the indexed version."""

    variant: str
    product: str
    source: str
    stamp: int
    facts: MatchFeatures
    number: int = 0


@dataclass(frozen=True, slots=True)
class Listed:
    """The number of items of a source with a key, and their numbers; None if there are too many or the key is only counted.

    For a code's key, also the numbers of items with it as their code and as the stem of one.
    """

    items: int
    numbers: Sequence[int] | None = None
    codes: int = 0
    stems: int = 0


@dataclass(slots=True)
class KeyChange:
    """The change of one key of one source by a batch."""

    items: int = 0
    added: list[int] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    codes: int = 0
    stems: int = 0


@dataclass(frozen=True, slots=True)
class MatchModel:
    """Learned weights, with the tenant's number of items at that time."""

    items: int
    weights: Weights
    learnt_at: datetime


def counted_keys(item: MatchFeatures) -> list[str]:
    """Return the keys that are only counted: every item's, and its brand's."""
    return [ALL, brand_key(item)] if item.brand else [ALL]


def brand_key(item: MatchFeatures) -> str:
    """Return the key under which items of the brand are counted."""
    return (_BRAND + " ".join(sorted(item.brand)))[:LONGEST]


def changes(before: Sequence[Item], after: Sequence[Item]) -> dict[tuple[str, str], KeyChange]:
    """Return the changes of keys by key and source when items are indexed again; unchanged keys are left out."""
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
    """Return an item's keys with marks for codes: its own code (1), the stem of one (2), or both (3)."""
    marks = dict.fromkeys((*lookup_keys(item), *counted_keys(item)), 0)
    for code in item.codes:
        marks[code_key(code)] = OWN
    for stem in item.stems:
        marks[code_key(stem)] |= _STEM
    return marks


MATCH = "matching.match"
LANE = "match"


def matching(tenant: Tenant) -> NewJob:
    """Return the job that matches the queue. One is open at a time, and also takes variants queued while it runs."""
    return NewJob(MATCH, LANE, tenant, {}, key=LANE)
