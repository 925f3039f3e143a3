"""Products, variants and offers in store: read as documents, written by the batch."""

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
    """What the API reads. Lists run from newest to oldest by id."""

    async def products(self, filter: ProductFilter, page_request: PageRequest) -> Page[Document]:
        """Return a page of the products that the tenant can read."""
        ...

    def lines(self, updated_since: datetime | None = None) -> AsyncGenerator[Lines, None]:
        """All that `products` would list in one transaction, a document a line, in portions of about two MiB.

        Whoever does not read to the end closes it before the connection is used otherwise.
        """
        ...

    async def product(self, id: str) -> Document | None:
        """One product's document; of one that was merged, its survivor's."""
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
    """In a tenant's transaction: what runs read and write, set by set."""

    async def compare(self, key_range: KeyRange, fingerprints: Sequence[RowFingerprint]) -> FingerprintDiff:
        """Hold fingerprints against the store. Writes nothing that outlives the transaction."""
        ...

    async def load(self, source: str, keys: Sequence[str], variant_keys: Sequence[str] = ()) -> Mapping[str, Product]:
        """Whole products by the source's product keys, and those that own one of the variant keys.

        They come with variants and offers, locked for this transaction.
        """
        ...

    async def load_by_variant(self, source: str, keys: Sequence[str]) -> Mapping[str, tuple[Product, Variant]]:
        """For each key the variant that has it as key, or alone has it as SKU, and its whole product, as `load`.

        Variants' and products' `data` may come packed (see Rendering): they are carried on, not read.
        """
        ...

    async def item(self, variant: str) -> SourceItem | None:
        """One variant with the keys that its source knows it by, and its source's offers by id; nothing is locked."""
        ...

    async def items(self, variant: str) -> Sequence[SourceItem]:
        """Return the source items of a variant and of all variants merged into it; empty for an unknown variant."""
        ...

    async def save(self, key_range: KeyRange, batch: Batch, now: datetime) -> None:
        """Write the batch: rows, fingerprints and documents, all or nothing with the transaction; then lay what is `laid`."""
        ...

    async def merge_count(self) -> int:
        """How many times anything was merged or unmerged by now."""
        ...

    async def take_turn(self, *, merging: bool = False) -> int:
        """Before anything is loaded to be changed: answers the merge count, which stays until the transaction ends.

        Whoever merges has the catalogue alone. Where something was merged, all who write it take turns; where nothing ever
        was, they go on side by side.
        """
        ...

    async def tied(self, products: Sequence[str], also: Sequence[str] = ()) -> TiedProducts:
        """Those of the products that merges tie to others, with these others, as their sources state them.

        `also` are taken in besides, tied or not. With none that is tied, and none of these, there is nothing.
        """
        ...

    async def tied_of(self, source: str, after: str, limit: int) -> Sequence[str]:
        """Return up to `limit` IDs of the source's merged products, ordered, after the ID `after`."""
        ...

    async def lay(self, laid: Laid, now: datetime) -> None:
        """Have readers see it from now on, and count one more merge or its undoing."""
        ...

    async def homes(self, variants: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        """Return the product and source of each variant as its source states it; unknown variants are left out."""
        ...

    async def stated_offers(self, source: str, stream: Stream) -> int:
        """How many offers the stream states now."""
        ...

    async def stated_of(self, source: str, stream: Stream, keys: Sequence[str]) -> frozenset[tuple[str, str]]:
        """Return the (variant key, location) of every offer that the stream states for the fingerprints' keys.

        In the stock stream, where a key finds its variant by key or SKU, it stands for the variant's.
        """
        ...

    async def absences(self, source: str, since: datetime) -> Sequence[Absence]:
        """Products, not discontinued, that MISSED_RUNS complete catalogue runs did not list, absent since then or longer."""
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
        """How the source's products are filed: at most so many, by id, those behind the id `after`."""
        ...


class Rendering(Protocol):
    """JSON of the catalogue, as every reader gets it."""

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
