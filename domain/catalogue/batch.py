"""What one chunk of a run compares and writes: fingerprints, ranges of keys, and the batch of changes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from domain.catalogue.laying import Laid
from domain.catalogue.model import Offer, Product, Stream, Variant

SLOTS = 1 << 31
"""How many slots there are; a key's slot is a hash of it."""


@dataclass(frozen=True, slots=True)
class RowFingerprint:
    """What a source last stated under a key of a stream: a fingerprint, so that the unchanged is known unread.

    `slot` (0 to 2³¹−1) is a hash of the key: ranges of slots divide the keys into chunks. `product` is what it became.
    `problems` counts what could not be read of it. An empty fingerprint is unlike any other.
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
    """Fingerprints held against what is stored in a range.

    `changed`: keys that are new or whose fingerprint differs. `returned`: keys that were absent and are back with the
    same fingerprint. `absent`: keys stored as present and not among them. `lingering`: keys that are absent still,
    for fewer than MISSED_RUNS complete runs. `unchanged` counts the rest of them; `troubled` are those of them that have
    problems, and how many. `resumed` are the changed keys that were absent.
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
    """What one chunk of a run changes; every list may be empty. Products in `touched` get new documents.

    `laid` is what is stored of those that merges tie together, over what is stored of the others.
    `availabilities`: those of the offers of each product that is only touched and whose offers' availabilities changed.
    `outdated`: fingerprints of keys whose rows, should they come again, must not pass for unchanged.
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
        """The products whose documents and terms are those that are laid."""
        return self.laid.home.keys() if self.laid else ()
