"""Stores of products, variants and offers: documents for readers, batches for runs."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from domain.catalogue.absence import Absence
from domain.catalogue.batch import Batch, FingerprintDiff, KeyRange, RowFingerprint
from domain.catalogue.category_rules import CategoryPaths, Filed
from domain.catalogue.completions import Completions
from domain.catalogue.filter_counts import FilterCounts
from domain.catalogue.laying import Laid
from domain.catalogue.model import Document, OfferFilter, OfferLine, Product, ProductFilter, SourceItem, Stream, Variant
from domain.catalogue.overlay import TiedProducts
from domain.kernel.lines import Lines
from domain.kernel.paging import Page, PageRequest


class CatalogueReads(Protocol):
    """Read access for the API. Lists run from newest to oldest by ID."""

    async def products(self, filter: ProductFilter, page_request: PageRequest) -> Page[Document]:
        """Return a page of the products that the tenant can read."""
        ...

    def lines(self, updated_since: datetime | None = None) -> AsyncGenerator[Lines, None]:
        """Yield all documents that `products` lists, one per line, in portions of about two MiB, from one transaction.

        A caller that stops early must close the generator before using the connection again.
        """
        ...

    async def product(self, id: str) -> Document | None:
        """Return a product's document, for a merged product that of its survivor; None if there is none."""
        ...

    async def filter_counts(self, filter: ProductFilter) -> FilterCounts:
        """Return the values, with counts, by which the newest products of the list can be filtered."""
        ...

    async def completions(self, word: str, code: str) -> Completions:
        """Return completions for a folded word and a code (domain.catalogue.search); none for empty ones."""
        ...

    async def offers(self, filter: OfferFilter, page_request: PageRequest) -> Page[OfferLine]:
        """Return a page of offers."""
        ...


class CatalogueStore(CatalogueReads, Protocol):
    """The catalogue within a tenant's transaction, as runs read and write it."""

    async def compare(self, key_range: KeyRange, fingerprints: Sequence[RowFingerprint]) -> FingerprintDiff:
        """Compare fingerprints with those stored in the range. Writes nothing that outlives the transaction."""
        ...

    async def load(self, source: str, keys: Sequence[str], variant_keys: Sequence[str] = ()) -> Mapping[str, Product]:
        """Return complete products by their source's keys, and those that own one of the variant keys.

        They include variants and offers, and are locked for this transaction.
        """
        ...

    async def load_by_variant(self, source: str, keys: Sequence[str]) -> Mapping[str, tuple[Product, Variant]]:
        """Return, by key, the variant with that key or, if unique, with that SKU, and its complete product, locked as by `load`.

        The `data` of variants and products may be packed (see Rendering): callers pass it on without reading it.
        """
        ...

    async def item(self, variant: str) -> SourceItem | None:
        """Return a variant with its source's keys and offers (ordered by ID), without locking; None if it is unknown."""
        ...

    async def items(self, variant: str) -> Sequence[SourceItem]:
        """Return the source items of a variant and of all variants merged into it; empty for an unknown variant."""
        ...

    async def save(self, key_range: KeyRange, batch: Batch, now: datetime) -> None:
        """Write the batch (rows, fingerprints and documents), then store the merged view in `laid`; atomic with the transaction."""
        ...

    async def merge_count(self) -> int:
        """Return the total number of merges and undone merges."""
        ...

    async def take_turn(self, *, merging: bool = False) -> int:
        """Lock the catalogue before loading objects to change. Return the merge count, which is stable until the transaction ends.

        Merging takes an exclusive lock. If the catalogue has ever had a merge, writers run one at a time; otherwise
        they run concurrently.
        """
        ...

    async def tied(self, products: Sequence[str], also: Sequence[str] = ()) -> TiedProducts:
        """Return those of the products that are merged, with all products they are merged with, as their sources state them.

        Products in `also` are included whether merged or not. The result is empty if no product qualifies.
        """
        ...

    async def tied_of(self, source: str, after: str, limit: int) -> Sequence[str]:
        """Return up to `limit` IDs of the source's merged products, ordered, after the ID `after`."""
        ...

    async def lay(self, laid: Laid, now: datetime) -> None:
        """Store the merged view that readers see from now on, and increment the merge count."""
        ...

    async def homes(self, variants: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        """Return the product and source of each variant as its source states it; unknown variants are left out."""
        ...

    async def stated_offers(self, source: str, stream: Stream) -> int:
        """Return the number of offers that the stream currently states."""
        ...

    async def stated_of(self, source: str, stream: Stream, keys: Sequence[str]) -> frozenset[tuple[str, str]]:
        """Return the (variant key, location) of every offer that the stream states for the fingerprints' keys.

        In the stock stream a key may be a SKU; the result has the variant's key as well.
        """
        ...

    async def absences(self, source: str, since: datetime) -> Sequence[Absence]:
        """Return products, not discontinued, that have been absent since the time or longer, after MISSED_RUNS complete runs."""
        ...

    async def category_paths(self, source: str, limit: int, chars: int) -> CategoryPaths:
        """Return the most frequent category paths of the source's products.

        Args:
            source: The ID of the source.
            limit: The maximum number of paths.
            chars: The maximum size of all paths as JSON, in characters.

        """
        ...

    async def filings(self, source: str, after: str, limit: int) -> Sequence[Filed]:
        """Return how up to `limit` of the source's products are filed, ordered by ID, after the ID `after`."""
        ...


class Rendering(Protocol):
    """Encoder of the catalogue's JSON for all readers."""

    def pack(self, data: Mapping[str, Any]) -> Any:
        """Encode the data once; packed values can be stored and returned without decoding."""
        ...

    def product(self, product: Product, packed: Mapping[str, Any]) -> bytes:
        """Return the document of a product; `packed` maps IDs of products and variants to packed data."""
        ...

    def merged(self, product: Product, laid: Laid) -> bytes:
        """Return the document of a merged product, including the merged objects and the origin of each field."""
        ...

    def with_images(self, document: bytes, images: Mapping[str, str]) -> bytes:
        """Return the document with the stored images of its media, by their URL, and no others."""
        ...
