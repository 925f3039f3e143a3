"""Data that one chunk of a run compares and writes: fingerprints, ranges of keys, and the batch of changes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from domain.catalogue.merged_view import MergedView
from domain.catalogue.model import Offer, Product, Stream, Variant

SLOT_COUNT = 1 << 31
"""Number of slots. The slot of a key is a number computed by hashing the key."""


@dataclass(frozen=True, slots=True)
class RowFingerprint:
    """Fingerprint of all rows that have the same key in a feed; rows with an unchanged fingerprint are not parsed.

    Attributes:
        slot: A hash of the key, below SLOT_COUNT; ranges of slots divide the keys into chunks.
        fingerprint: The digest; an empty one differs from every other.
        product_id: ID of the product to which the rows belong; empty before the rows are applied.
        problem_count: Number of values that could not be read.
    """

    slot: int
    key: str
    fingerprint: bytes
    product_id: str = ""
    problem_count: int = 0


@dataclass(frozen=True, slots=True)
class SlotRange:
    """Range of slots (hashes of keys) of one source and stream, from `low` (inclusive) to `high` (exclusive)."""

    source: str
    stream: Stream
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class FingerprintDiff:
    """Comparison of a feed's fingerprints with the stored ones in a range of slots.

    Attributes:
        changed: Keys that are new, or whose fingerprint differs.
        returned: Keys that were absent and are back with the same fingerprint.
        absent: Keys that were present before and are missing now.
        still_absent: Keys that were absent before and still are, for fewer than MIN_MISSED_RUNS complete runs.
        unchanged_count: Number of all other keys.
        problem_count_by_key: Number of problems of each unchanged key that has problems.
        reappeared: Changed keys that were absent before.
    """

    changed: frozenset[str]
    returned: frozenset[str]
    absent: frozenset[str]
    still_absent: frozenset[str]
    unchanged_count: int
    problem_count_by_key: Mapping[str, int] = field(default_factory=dict)
    reappeared: frozenset[str] = frozenset()


@dataclass(slots=True)
class Batch:
    """Changes of one chunk of a run; every list may be empty.

    Attributes:
        touched: Products whose documents must be written again.
        availabilities_by_product: Availabilities by product ID, only for products that are neither new nor changed
            themselves, but whose offers have other availabilities than before.
        invalidated_fingerprints: Fingerprints to invalidate, so that a later run does not treat equal rows as unchanged.
        absent_keys: Keys of products that the run does not list.
        merged_view: The merged view of merged products; it takes precedence over the other lists.
    """

    new_products: list[Product] = field(default_factory=list)
    changed_products: list[Product] = field(default_factory=list)
    new_variants: list[Variant] = field(default_factory=list)
    changed_variants: list[Variant] = field(default_factory=list)
    new_offers: list[Offer] = field(default_factory=list)
    changed_offers: list[Offer] = field(default_factory=list)
    touched: dict[str, Product] = field(default_factory=dict)
    availabilities_by_product: dict[str, frozenset[str]] = field(default_factory=dict)
    fingerprints: list[RowFingerprint] = field(default_factory=list)
    invalidated_fingerprints: list[RowFingerprint] = field(default_factory=list)
    absent_keys: list[str] = field(default_factory=list)
    merged_view: MergedView | None = None

    @property
    def merged_product_ids(self) -> Collection[str]:
        """IDs of products whose documents and search terms come from the merged view."""
        return self.merged_view.product_by_id.keys() if self.merged_view else ()
