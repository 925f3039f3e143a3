"""Products, variants and offers in store: read as documents, written by the batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from domain.catalogue.model import Document, Offer, OfferFilter, OfferLine, Product, ProductFilter, Variant
from domain.events.model import Event
from domain.kernel.paging import Cut, Page


@dataclass(frozen=True, slots=True)
class Mark:
    """What a source last stated under a key of a stream: a fingerprint, so that the unchanged is known unread.

    `slot` (0 to 2³¹−1) is a hash of the key: ranges of slots divide the keys into chunks. `product` is what it became.
    """

    slot: int
    key: str
    fingerprint: bytes
    product: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """The slots from `low` to below `high` of one source and stream."""

    source: str
    stream: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Compared:
    """Marks held against what is stored in a span.

    `changed`: keys that are new or whose fingerprint differs. `absent`: keys stored as present and not among the marks.
    `returned`: keys that were absent and are back with the same fingerprint. `unchanged` counts the rest.
    """

    changed: frozenset[str]
    returned: frozenset[str]
    absent: frozenset[str]
    unchanged: int


@dataclass(slots=True)
class Batch:
    """What one chunk of a run changes; every list may be empty. Products in `touched` get new documents."""

    new_products: list[Product] = field(default_factory=list)
    changed_products: list[Product] = field(default_factory=list)
    new_variants: list[Variant] = field(default_factory=list)
    changed_variants: list[Variant] = field(default_factory=list)
    new_offers: list[Offer] = field(default_factory=list)
    changed_offers: list[Offer] = field(default_factory=list)
    touched: dict[str, Product] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


class CatalogueReads(Protocol):
    """What the API reads. Lists run from newest to oldest by id."""

    async def products(self, filter: ProductFilter, cut: Cut) -> Page[Document]:
        """A page of the products that the tenant sees."""
        ...

    async def product(self, id: str) -> Document | None:
        """One product's document."""
        ...

    async def offers(self, filter: OfferFilter, cut: Cut) -> Page[OfferLine]:
        """A page of offers."""
        ...


class CatalogueStore(CatalogueReads, Protocol):
    """In a tenant's transaction: what runs read and write, set by set."""

    async def compare(self, span: Span, marks: Sequence[Mark]) -> Compared:
        """Hold marks against the store. Writes nothing that outlives the transaction."""
        ...

    async def load(self, source: str, keys: Sequence[str]) -> Mapping[str, Product]:
        """Whole products (variants and offers with them) by the source's product keys; locked for this transaction."""
        ...

    async def load_by_variant(self, source: str, keys: Sequence[str]) -> Mapping[str, Product]:
        """Whole products by a variant's key or SKU, as `load`; a key that two variants share is left out.

        Variants' and products' `data` may come packed (see Rendering): they are carried on, not read.
        """
        ...

    async def save(self, span: Span, batch: Batch, now: datetime) -> None:
        """Write the batch: rows, marks, documents and events, all or nothing with the transaction."""
        ...

    async def stated_offers(self, source: str, stream: str) -> int:
        """How many offers the stream states now."""
        ...

    async def stated_of(self, source: str, stream: str, keys: Sequence[str]) -> Mapping[str, frozenset[tuple[str, str]]]:
        """For each mark key, the (variant key, location) of the offers the stream states under it."""
        ...

    async def age_absent(self, source: str, now: datetime) -> Sequence[str]:
        """After a complete catalogue run: keys whose absence is due for the next rung of the ladder (decisions.md §3)."""
        ...


class Rendering(Protocol):
    """JSON of the catalogue, as every reader gets it."""

    def pack(self, data: Mapping[str, Any]) -> Any:
        """The data encoded once; a packed value stands wherever data is only carried on or answered."""
        ...

    def product(self, product: Product) -> bytes:
        """The product's document."""
        ...
