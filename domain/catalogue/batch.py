"""Data that one chunk of a run compares and writes: fingerprints, key ranges and the batch of changes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from domain.catalogue.laying import Laid
from domain.catalogue.model import Offer, Product, Stream, Variant

SLOTS = 1 << 31
"""Number of slots; the slot of a key is a hash of the key."""


@dataclass(frozen=True, slots=True)
class RowFingerprint:
    """The fingerprint of a source's last statement under a key of a stream; equal fingerprints need not be parsed again.

    `slot` (0 to 2³¹−1) is a hash of the key: ranges of slots divide the keys into chunks. `product` is the ID of its product.
    `problems` counts the values that could not be read. An empty fingerprint differs from every other.
    """

    slot: int
    key: str
    fingerprint: bytes
    product: str = ""
    problems: int = 0


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The slots from `low` to below `high` of one source and stream."""

    source: str
    stream: Stream
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class FingerprintDiff:
    """The result of comparing fingerprints with those stored in a range.

    `changed`: keys that are new or whose fingerprint differs. `returned`: keys that were absent and are back with the
    same fingerprint. `absent`: keys stored as present that are missing now. `lingering`: keys that are still absent,
    for fewer than MISSED_RUNS complete runs. `unchanged` counts all other fingerprints; `troubled` maps the keys among
    them that have problems to the number of problems. `resumed`: changed keys that were absent.
    """

    changed: frozenset[str]
    returned: frozenset[str]
    absent: frozenset[str]
    lingering: frozenset[str]
    unchanged: int
    troubled: Mapping[str, int] = field(default_factory=dict)
    resumed: frozenset[str] = frozenset()


@dataclass(slots=True)
class Batch:
    """The changes of one chunk of a run; every list may be empty. Products in `touched` get new documents.

    `laid` is the merged view of the products that are merged; it takes precedence over the other lists.
    `availabilities`: the offers' availabilities of each product that is only touched and whose availabilities changed.
    `outdated`: fingerprints to invalidate, so that equal rows of a later run are not treated as unchanged.
    """

    new_products: list[Product] = field(default_factory=list)
    changed_products: list[Product] = field(default_factory=list)
    new_variants: list[Variant] = field(default_factory=list)
    changed_variants: list[Variant] = field(default_factory=list)
    new_offers: list[Offer] = field(default_factory=list)
    changed_offers: list[Offer] = field(default_factory=list)
    touched: dict[str, Product] = field(default_factory=dict)
    availabilities: dict[str, frozenset[str]] = field(default_factory=dict)
    fingerprints: list[RowFingerprint] = field(default_factory=list)
    outdated: list[RowFingerprint] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    laid: Laid | None = None

    @property
    def tied(self) -> Collection[str]:
        """IDs of the products whose documents and terms come from the merged view."""
        return self.laid.home.keys() if self.laid else ()
