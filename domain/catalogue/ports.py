"""Stores of products, variants and offers: JSON documents for readers, and batches for runs."""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from domain.catalogue.batch import Batch, FingerprintDiff, RowFingerprint, SlotRange
from domain.catalogue.category_rules import CategoryPaths, ProductCategory
from domain.catalogue.completions import Completions
from domain.catalogue.filter_counts import FilterCounts, TotalCount
from domain.catalogue.licences import ReadableCatalogue
from domain.catalogue.merged_statements import ProductCluster
from domain.catalogue.merged_view import MergedView
from domain.catalogue.missed_runs import AbsentProduct
from domain.catalogue.model import (
    Document,
    OfferFilter,
    OfferLine,
    Product,
    ProductFilter,
    ProductSort,
    SourceItem,
    Stream,
    Variant,
    Visibility,
)
from domain.catalogue.publication import PublicationState
from domain.kernel.lines import Lines
from domain.kernel.paging import Page, PageRequest


class CatalogueReader(Protocol):
    """Read access for the API. Lists are ordered by ID, newest first."""

    async def list_products(
        self, filter: ProductFilter, page_request: PageRequest, sort: ProductSort = ProductSort.NEWEST
    ) -> Page[Document]:
        """Return a page of the products that the tenant can read; only pages in the default order can go backwards."""
        ...

    async def list_product_ids(self, filter: ProductFilter, limit: int) -> Sequence[str]:
        """Return the IDs of the newest products that match the filter, at most `limit`."""
        ...

    async def count_products(self, filter: ProductFilter) -> TotalCount:
        """Count the products that match the filter, up to MAX_COUNTED_PRODUCTS."""
        ...

    def stream_documents(self, updated_since: datetime | None = None) -> AsyncGenerator[Lines, None]:
        """Yield the documents of all products that the tenant can read, one per line, in portions of about two MiB.

        All documents are read in one transaction. A caller that stops early must close the generator before it uses the
        connection again.
        """
        ...

    async def get_product(self, id: str) -> Document | None:
        """Return the document of the product or, if it was merged, of the product that is shown for it; None if unknown."""
        ...

    async def count_filter_values(self, filter: ProductFilter) -> FilterCounts:
        """Count the newest products that match the filter, by the values of each filter."""
        ...

    async def find_completions(self, word: str, code: str) -> Completions:
        """Return words that begin with `word`, and variants whose SKU or MPN begins with `code`; none for an empty text.

        Both texts are normalised (domain.catalogue.search_terms).
        """
        ...

    async def find_existing_words(self, words: Collection[str]) -> Sequence[str]:
        """Return those of the words that a product has."""
        ...

    async def list_offers(self, filter: OfferFilter, page_request: PageRequest) -> Page[OfferLine]:
        """Return a page of offers."""
        ...


class CatalogueStore(CatalogueReader, Protocol):
    """Access to the catalogue in a tenant's transaction, for runs."""

    async def compare_fingerprints(self, slots: SlotRange, fingerprints: Sequence[RowFingerprint]) -> FingerprintDiff:
        """Compare a feed's fingerprints with the stored ones in a range of slots (hashes of keys).

        The stored fingerprints do not change; `save_batch` replaces them.
        """
        ...

    async def load_products(
        self, source: str, keys: Sequence[str], variant_keys: Sequence[str] = ()
    ) -> Mapping[str, Product]:
        """Return the products that have one of `keys`, or a variant with one of `variant_keys`, by product key.

        The products are complete, with variants and offers, and are locked until the transaction ends.
        """
        ...

    async def load_variants(self, source: str, keys: Sequence[str]) -> Mapping[str, tuple[Product, Variant]]:
        """Return the variant for each key, with its complete product, which is locked until the transaction ends.

        The key is the variant's key or, if unique, its SKU. The `data` of products and variants may be encoded (see
        CatalogueRenderer): callers must pass it on without reading it.
        """
        ...

    async def get_source_item(self, variant: str) -> SourceItem | None:
        """Return a variant with its source's keys and its offers (ordered by ID), without a lock; None if it does not exist."""
        ...

    async def list_source_items(self, variant: str) -> Sequence[SourceItem]:
        """Return the variant, and all variants merged into it, as source items; empty if the variant does not exist."""
        ...

    async def save_batch(self, slots: SlotRange, batch: Batch, now: datetime) -> None:
        """Write the batch (rows, fingerprints and documents) and then the merged view, in this transaction."""
        ...

    async def get_merge_revision(self) -> int:
        """Return the merge revision: a counter that is 0 before the catalogue's first merge or correction, and never decreases.

        The counter increases when merges are made or undone, when corrections change, and when other sources take precedence in
        merged data.
        """
        ...

    async def lock_for_writing(self, *, merging: bool = False) -> int:
        """Lock the catalogue before objects are loaded and changed; return the merge revision (see `get_merge_revision`).

        The merge revision cannot change until the transaction ends. With `merging`, the lock is exclusive. Other writers
        run concurrently, unless the catalogue has ever had a merge or a correction.
        """
        ...

    async def load_cluster(self, products: Sequence[str], unmerged_products: Sequence[str] = ()) -> ProductCluster:
        """Return the merge groups that contain the given products, with the data of the sources and the corrections.

        A corrected product is a merge group. Products in `unmerged_products` are included even if they are neither merged nor
        corrected. The cluster may be empty.
        """
        ...

    async def list_merged_products(self, source: str, after: str, limit: int) -> Sequence[str]:
        """Return up to `limit` IDs of the source's merged products that come after the ID `after`, in order."""
        ...

    async def save_merged_view(self, merged_view: MergedView, now: datetime) -> None:
        """Store the merged view that readers will see, and increment the merge revision."""
        ...

    async def find_source_products(self, variants: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        """Return the product to which each variant's source assigns it, and the source; unknown variants are omitted."""
        ...

    async def count_stated_offers(self, source: str, stream: Stream) -> int:
        """Return the number of the source's offers that the last complete run of the stream listed."""
        ...

    async def find_stated_offers(self, source: str, stream: Stream, keys: Sequence[str]) -> frozenset[tuple[str, str]]:
        """Return the key and the location of every offer that the stream lists under these keys.

        In the catalogue stream, `keys` are product keys, and the result has variant keys. In the stock stream, `keys`
        are variant keys or SKUs, and the result has the same keys.
        """
        ...

    async def find_absent_products(self, source: str, since: datetime) -> Sequence[AbsentProduct]:
        """Return the source's products that the last MIN_MISSED_RUNS complete runs did not list.

        Omitted are discontinued products, and products whose absence began after `since`.
        """
        ...

    async def list_category_paths(self, source: str, limit: int, max_chars: int) -> CategoryPaths:
        """Return the most frequent category paths of the source's products.

        Args:
            source: The ID of the source.
            limit: The maximum number of paths.
            max_chars: The maximum size of all paths as JSON, in characters.

        """
        ...

    async def list_product_categories(self, source: str, after: str, limit: int) -> Sequence[ProductCategory]:
        """Return the categories of up to `limit` of the source's products that come after the ID `after`, in order of IDs."""
        ...


class PublishedCopies(Protocol):
    """Copies of the tenant's listed products, which other organisations read according to their licences."""

    async def lock_states(self, products: Sequence[str]) -> Sequence[PublicationState]:
        """Lock these products until the transaction ends, and return what determines whether they have copies."""
        ...

    async def measure(self, products: Sequence[str]) -> Mapping[str, int]:
        """Return the size of each product's document in bytes; products without a document are omitted."""
        ...

    async def set_visibility(self, products: Sequence[str], visibility: Visibility) -> None:
        """Set the visibility of products; the documents change with `advance_versions`."""
        ...

    async def advance_versions(self, products: Sequence[str]) -> None:
        """Increment the versions of products, and write version, visibility and time into their documents."""
        ...

    async def write(self, products: Sequence[str]) -> None:
        """Write the copies of these products, which must be visible and not merged into others, as they are now."""
        ...

    async def write_documents(self, products: Sequence[str], views: Collection[str]) -> None:
        """Write the documents of these products for the views (domain/catalogue/licences.py)."""
        ...

    async def remove(self, products: Sequence[str], visible: Sequence[str] = ()) -> None:
        """Delete the copies of these products; those merged into one of the visible products get a reference to it."""
        ...

    async def get_documents(self, products: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Return the decoded documents of products by ID."""
        ...

    async def list_merge_groups(self, products: Sequence[str]) -> Sequence[str]:
        """Return the IDs of these products and of all products that merges connect with them."""
        ...

    async def list_products_of_source(self, source: str, after: str, limit: int) -> Sequence[str]:
        """Return up to `limit` IDs of the source's products that come after the ID `after`, in order."""
        ...


class HeldLicences(Protocol):
    """Licences by which the tenant reads catalogues of other organisations."""

    async def get_readable(self, catalogue: str) -> ReadableCatalogue:
        """Return publisher and view of a catalogue, which is not readable without a licence or if it does not exist."""
        ...


class CatalogueRenderer(Protocol):
    """Rendering of the catalogue as JSON, the same for all readers."""

    def encode_data(self, data: Mapping[str, Any]) -> Any:
        """Encode the data of a product or variant; the result can be stored and returned without decoding."""
        ...

    def render_product(self, product: Product, encoded_data_by_id: Mapping[str, Any]) -> bytes:
        """Return the document of a product; `encoded_data_by_id` has the encoded data of the product and its variants, by ID."""
        ...

    def render_merged_product(self, product: Product, merged_view: MergedView) -> bytes:
        """Return the document of a product that represents several, with their IDs and the origin of each field."""
        ...

    def set_members(self, document: bytes, members: Mapping[str, Any]) -> bytes:
        """Return the document of a product with these members of the product replaced."""
        ...

    def hide_offer_fields(self, document: bytes, names: Collection[str]) -> bytes:
        """Return the document of a product without these fields of its offers."""
        ...

    def set_images(self, document: bytes, image_id_by_url: Mapping[str, str]) -> bytes:
        """Return the document with links from its media to these stored images, and without links to other images.

        Args:
            document: The document of a product.
            image_id_by_url: IDs of the stored images by the URL of the media.
        """
        ...
