"""The match index: the lookup keys of items, and the items of each source that have a key."""

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
from domain.matching.words import MAX_WORD_CHARS

MAX_CANDIDATES = 10
"""Maximum number of candidates from one source for an item."""
MAX_SCANNED_ENTRIES = 1000
"""Maximum number of entries of key listings that are read for an item and a source."""
_CODE_WEIGHT = 1.5
Id = TypeVar("Id", str, int)


def build_lookup_keys(item: MatchFeatures) -> list[str]:
    """Return the keys under which the index lists an item: words, codes, the GTIN and rounded lengths.

    The first character states the kind of a key: `#` for codes, `=` for the GTIN, `~` for lengths; words have no sign.
    """
    keys = collect_words(item)
    for found in (item.codes, item.stems, item.mentioned, item.joined):
        keys.update(map(build_code_key, found))
    if item.gtin:
        keys.add("=" + item.gtin)
    keys.update(f"~{round(side)}" for side in item.sides if side)
    keys.update(f"~{round(side)}" for size in item.sizes for side in size)
    return sorted(keys)


def collect_words(item: MatchFeatures) -> set[str]:
    """Return the words and quantities of the title, the brand and the colours of an item, without duplicates."""
    return {*item.words, *item.quantities, *item.brand, *item.colours}


def build_code_key(code: str) -> str:
    """Return the lookup key of a code: the code after the sign `#`."""
    return "#" + code


def rank_candidates(
    listings: Iterable[tuple[int, str, Iterable[Id]]], item_count: int, min_share: float = 0.0
) -> list[Id]:
    """Return the IDs of the items that share the most keys with an item, best first; rare keys weigh more.

    Args:
        listings: For each key of the item: how many items have the key, the key, and the IDs of these items.
        item_count: The total number of items.
        min_share: The minimum score of a result, as a share of the best score.
    """
    scores: dict[Id, float] = {}
    remaining = MAX_SCANNED_ENTRIES
    for count, key, found in sorted(listings, key=itemgetter(0, 1)):
        remaining -= count
        if remaining < 0:
            break
        weight = log2((item_count + 2) / (count + 1)) * (_CODE_WEIGHT if key[0] in "#=" else 1.0)
        for id in found:
            scores[id] = scores.get(id, 0.0) + weight
    scored = list(scores.items())
    if len(scored) > MAX_CANDIDATES:
        min_score = sorted(scores.values())[-MAX_CANDIDATES]
        scored = [entry for entry in scored if entry[1] >= min_score]
    best = sorted(scored, key=lambda entry: (-entry[1], entry[0]))[:MAX_CANDIDATES]
    return [id for id, score in best if score >= min_share * best[0][1]] if min_share else [id for id, _ in best]


MAX_LISTED_ITEMS = 400
"""Maximum number of items of a source in the listing of a key; more frequent keys have only a count."""
ALL_ITEMS_KEY = "*"
"""The key that every item has, under which the items of a source are counted."""
_BRAND = "@"
CODE_FLAG = 1
"""Flag of a key that is one of the item's codes."""
_STEM_FLAG = 2
"""Flag of a key that is the stem of one of the item's codes."""
COUNT_ONLY_PREFIXES = frozenset((ALL_ITEMS_KEY, _BRAND))
"""First characters of keys for which only the number of items is stored, not the items."""


@dataclass(frozen=True, slots=True)
class QueuedVariant:
    """Variant in the match queue.

    Attributes:
        stamp: The version stamp of the variant, which changes with every change of the variant.
        only_competitors_changed: Whether the variant is unchanged and was queued only because competing candidates in its
            pairs have changed.
        queued_at: When the variant was queued, or None if unknown.
    """

    variant: str
    stamp: int
    only_competitors_changed: bool = False
    queued_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class MatchingBacklog:
    """Number of variants in the match queue, and the age in seconds of the oldest entry."""

    variant_count: int
    max_age_seconds: float


@dataclass(frozen=True, slots=True)
class IndexedItem:
    """Variant in the match index.

    Attributes:
        stamp: The version stamp that the variant had when it was indexed.
        number: The number of the variant in the tenant's index, a shorter form of its ID.
    """

    variant: str
    product: str
    source: str
    stamp: int
    features: MatchFeatures
    number: int = 0


@dataclass(frozen=True, slots=True)
class KeyListing:
    """Items of one source that have one lookup key.

    Attributes:
        item_count: How many items have the key.
        numbers: The numbers of these items; None if there are too many, or if only the count is stored.
        code_count: How many items have the key as one of their codes.
        stem_count: How many items have the key as the stem of one of their codes.
    """

    item_count: int
    numbers: Sequence[int] | None = None
    code_count: int = 0
    stem_count: int = 0


@dataclass(slots=True)
class KeyChange:
    """Change that a batch makes to the listing of one key for one source.

    Attributes:
        item_difference: The change of the number of items.
        added_numbers: The numbers of the items that gain the key.
        removed_numbers: The numbers of the items that lose the key.
        code_difference: The change of the number of items that have the key as a code.
        stem_difference: The change of the number of items that have the key as the stem of a code.
    """

    item_difference: int = 0
    added_numbers: list[int] = field(default_factory=list)
    removed_numbers: list[int] = field(default_factory=list)
    code_difference: int = 0
    stem_difference: int = 0


@dataclass(frozen=True, slots=True)
class MatchModel:
    """Weights learned from a tenant's items, with the number of items and the time at which they were learned."""

    item_count: int
    weights: Weights
    learnt_at: datetime


def build_count_only_keys(item: MatchFeatures) -> list[str]:
    """Return the keys of an item for which only the number of items is stored, not the items.

    These are the key that all items share, and the key of the item's brand.
    """
    return [ALL_ITEMS_KEY, build_brand_key(item)] if item.brand else [ALL_ITEMS_KEY]


def build_brand_key(item: MatchFeatures) -> str:
    """Return the key under which the items of the item's brand are counted."""
    return (_BRAND + " ".join(sorted(item.brand)))[:MAX_WORD_CHARS]


def compute_key_changes(
    before: Sequence[IndexedItem], after: Sequence[IndexedItem]
) -> dict[tuple[str, str], KeyChange]:
    """Return how indexing items again changes the key listings, by key and source.

    Args:
        before: The index entries before the change.
        after: The index entries after the change. An item that is not in `before` is new.
    """
    changes: dict[tuple[str, str], KeyChange] = defaultdict(KeyChange)
    item_by_number = {item.number: item for item in before}
    for item in after:
        flags_before, flags_after = (
            {(key, one.source): key_flags for key, key_flags in compute_key_flags(one.features).items()} if one else {}
            for one in (item_by_number.get(item.number), item)
        )
        for sign, flags, other_flags in ((-1, flags_before, flags_after), (1, flags_after, flags_before)):
            for entry, key_flags in flags.items():
                if other_flags.get(entry) == key_flags:
                    continue
                change = changes[entry]
                change.item_difference += sign
                (change.added_numbers if sign > 0 else change.removed_numbers).append(item.number)
                change.code_difference += sign * (key_flags & CODE_FLAG)
                change.stem_difference += sign * (key_flags >> 1)
    return dict(changes)


def compute_key_flags(item: MatchFeatures) -> dict[str, int]:
    """Return the keys of an item with the sum of their flags: 1 for a code of the item, 2 for the stem of a code."""
    flags = dict.fromkeys((*build_lookup_keys(item), *build_count_only_keys(item)), 0)
    for code in item.codes:
        flags[build_code_key(code)] = CODE_FLAG
    for stem in item.stems:
        flags[build_code_key(stem)] |= _STEM_FLAG
    return flags


MATCHING_JOB = "matching.match"
MATCHING_LANE = "match"


def create_matching_job(tenant: Tenant) -> NewJob:
    """Return the job that matches the queued variants of a tenant.

    A tenant has at most one open job, which also processes variants that are queued while the job runs.
    """
    return NewJob(MATCHING_JOB, MATCHING_LANE, tenant, {}, key=MATCHING_LANE)
