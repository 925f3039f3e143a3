"""Writing of batches, and loading of the products with which a batch is compared.

Batches are written by COPY into temporary tables and one statement per table (architecture §5).
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, TypeVar

from adapters.postgres import catalogue_rows as rows
from adapters.postgres.nodes.connections import DatabaseRow
from adapters.postgres.session import TenantSession, encode_rows, encode_texts
from adapters.postgres.stores import TenantStore, load_statements
from domain.catalogue import search_terms
from domain.catalogue.batch import Batch, RowFingerprint, SlotRange
from domain.catalogue.missed_runs import MIN_MISSED_RUNS
from domain.catalogue.model import Offer, Product, Variant
from domain.catalogue.ports import CatalogueRenderer
from domain.search.facets import compute_offer_facets

SQL = load_statements("catalogue_batch")
_FINGERPRINT_COLUMN_TYPES = ("int4", "text", "bytea", "text", "int4")
_DOCUMENT_COLUMN_TYPES = ("text", "bytea", "text")
_TERM_COLUMN_TYPES = ("text", "text")
_THREAD_THRESHOLD = 200
"""Number of rows above which objects are built in a thread."""
_MATCHED_FIELDS = ("title", "brand", "collection")

CatalogueObject = TypeVar("CatalogueObject", Product, Variant, Offer)


def compute_etag(body: bytes) -> str:
    """Return the strong ETag of a product document."""
    return blake2b(body, digest_size=12).hexdigest()


def _exclude_new(changed: Iterable[CatalogueObject], new: Iterable[CatalogueObject]) -> list[CatalogueObject]:
    """Return the changed objects, each once and without those that are also in `new`."""
    new_ids = {entity.id for entity in new}
    return list({entity.id: entity for entity in changed if entity.id not in new_ids}.values())


async def fill_fingerprint_table(store: TenantStore, fingerprints: Iterable[RowFingerprint]) -> None:
    """Replace the rows of the temporary table `new_fingerprints` by these fingerprints."""
    rows = ((row.slot, row.key, row.fingerprint, row.product_id, row.problem_count) for row in fingerprints)
    await store.fill_temporary_table("fingerprints", rows, _FINGERPRINT_COLUMN_TYPES)


async def load_products(session: TenantSession, statement: str, decode: Any, **values: Any) -> dict[str, Product]:
    """Return the products that an SQL statement selects, by ID, with their unmerged variants and offers.

    Args:
        session: Session of the tenant.
        statement: Name of the statement.
        decode: `decode_data`, or `RawData` to leave the stored data encoded.
        **values: Parameters of the statement.
    """
    products = {row[0]: rows.build_product(row, decode) for row in await session.fetch_rows(SQL[statement], **values)}
    if not products:
        return products
    ids = encode_texts(products)
    variants = await session.fetch_rows(SQL["list_variants_of_products"], ids=ids)
    offers = await session.fetch_rows(SQL["list_offers_of_products"], ids=ids)
    if len(variants) + len(offers) > _THREAD_THRESHOLD:
        await asyncio.to_thread(_add_children, products, variants, offers, decode)
    else:
        _add_children(products, variants, offers, decode)
    return products


def _add_children(
    products: Mapping[str, Product], variant_rows: Sequence[DatabaseRow], offer_rows: Sequence[DatabaseRow], decode: Any
) -> None:
    variants: dict[str, Variant] = {}
    for row in variant_rows:
        variant = variants[row[0]] = rows.build_variant(row, decode)
        products[variant.product].variants.append(variant)
    for row in offer_rows:
        offer = rows.build_stated_offer(*row)
        variants[offer.variant].offers.append(offer)


async def load_images(session: TenantSession, products: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the IDs of stored images by product and URL; products without stored images are omitted."""
    images: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for product, url, image in await session.fetch_rows(SQL["list_images_of_products"], ids=encode_texts(products)):
        images[product][url] = image
    return images


class DocumentWriter(TenantStore):
    """Writer of product documents in the tenant's transaction."""

    _sql = SQL

    def __init__(self, session: TenantSession, rendering: CatalogueRenderer) -> None:
        super().__init__(session)
        self._rendering = rendering
        self._encoded_data: dict[str, Any] = {}
        """Encoded data of products and variants by ID, which documents embed."""

    async def save_documents(self, documents: Iterable[tuple[str, bytes]], existing_ids: Iterable[str]) -> None:
        """Store documents, which are passed as pairs of product ID and JSON.

        `existing_ids` are the IDs of products that existed before and may therefore have stored images.
        """
        images, render = await load_images(self._session, existing_ids), self._rendering.set_images
        rendered = ((id, render(body, images[id]) if id in images else body) for id, body in documents)
        await self.fill_temporary_table(
            "documents", ((id, body, compute_etag(body)) for id, body in rendered), _DOCUMENT_COLUMN_TYPES
        )
        await self._run("save_documents")

    async def save_facets(self, facet_rows: Iterable[DatabaseRow]) -> None:
        """Store the facets of products."""
        await self.fill_temporary_table("facets", facet_rows, rows.FACET_COLUMN_TYPES)
        await self._run("save_facets")


class BatchWriter(DocumentWriter):
    """Writer of all changes of a batch: products, variants, offers, documents, search terms and fingerprints."""

    async def write(self, key_range: SlotRange, batch: Batch, now: datetime) -> None:
        await self._write_products(key_range, batch, now)
        await self._write_variants(key_range, batch, now)
        await self._write_offers(key_range, batch, now)
        await self._write_documents(batch)
        await self._write_fingerprints(key_range, batch, now)

    async def _write_products(self, key_range: SlotRange, batch: Batch, now: datetime) -> None:
        changed = _exclude_new(batch.changed_products, batch.new_products)
        written = [*batch.new_products, *changed]
        with_changed_variants = {
            product.id: product
            for variant in (*batch.new_variants, *batch.changed_variants)
            if (product := batch.touched.get(variant.product)) and isinstance(product.data, dict)
        }
        described = {product.id: product for product in written} | with_changed_variants
        terms_by_product = {
            id_: search_terms.compute_terms(product)
            for id_, product in described.items()
            if id_ not in batch.merged_product_ids
        }
        if written:
            await self.fill_temporary_table(
                "products", map(self._build_product_row, written), rows.PRODUCT_COLUMN_TYPES
            )
            if changed:
                await self._queue_renamed(changed)
            await self._run("save_products", source=key_range.source, now=now)
        saved = {product.id for product in written}
        touched = [id_ for id_ in batch.touched if id_ not in saved and id_ not in batch.merged_product_ids]
        if touched:
            await self._run("touch_products", ids=encode_texts(touched), now=now)
        others = {
            id_: values
            for id_, values in batch.availabilities_by_product.items()
            if id_ not in batch.merged_product_ids
        }
        new_ids = {product.id for product in batch.new_products}
        await self._write_terms(terms_by_product, terms_by_product.keys() - new_ids, others)
        await self._write_facets(batch)

    async def _write_facets(self, batch: Batch) -> None:
        """Write the facets of the touched products; encoded products of a stock run only have changed offers."""
        touched = [product for id_, product in batch.touched.items() if id_ not in batch.merged_product_ids]
        decoded = [product for product in touched if isinstance(product.data, dict)]
        if decoded:
            await self.save_facets(rows.build_facet_row(product, (product.source,)) for product in decoded)
        offer_facets = {
            product.id: compute_offer_facets(product) for product in touched if not isinstance(product.data, dict)
        }
        if offer_facets:
            facet_rows = encode_rows({"product": id, **found._asdict()} for id, found in offer_facets.items())
            await self._run("update_offer_facets", ids=encode_texts(offer_facets), rows=facet_rows)

    async def _queue_renamed(self, changed: Iterable[Product]) -> None:
        """Add the variants of products whose title, brand or collection has changed to the match queue."""
        products = list(changed)
        names = encode_rows(
            {"id": product.id, **{name: product.data.get(name) for name in _MATCHED_FIELDS}} for product in products
        )
        renamed = await self._fetch_rows(
            "find_renamed_products", ids=encode_texts(product.id for product in products), names=names
        )
        if renamed:
            await self._run("queue_variants_of_products", ids=encode_texts(id for (id,) in renamed))

    async def _write_terms(
        self,
        terms_by_product: Mapping[str, set[str]],
        changed: Collection[str],
        availabilities: Mapping[str, frozenset[str]],
    ) -> None:
        if not terms_by_product and not availabilities:
            return
        pairs = [(id_, term) for id_, terms in terms_by_product.items() for term in terms]
        pairs += [
            (id_, search_terms.availability_term(value)) for id_, values in availabilities.items() for value in values
        ]
        await self.fill_temporary_table("terms", pairs, _TERM_COLUMN_TYPES)
        if changed:
            await self._run("delete_outdated_terms", ids=encode_texts(changed))
        if availabilities:
            low, high = search_terms.AVAILABILITY_TERMS
            await self._run("delete_outdated_availabilities", ids=encode_texts(availabilities), low=low, high=high)
        await self._run("add_terms")

    async def _write_variants(self, key_range: SlotRange, batch: Batch, now: datetime) -> None:
        written = [*batch.new_variants, *_exclude_new(batch.changed_variants, batch.new_variants)]
        if written:
            await self.fill_temporary_table(
                "variants", map(self._build_variant_row, written), rows.VARIANT_COLUMN_TYPES
            )
            await self._run("save_variants", source=key_range.source, now=now)
            await self._run("queue_variants")

    async def _write_offers(self, key_range: SlotRange, batch: Batch, now: datetime) -> None:
        written = [*batch.new_offers, *_exclude_new(batch.changed_offers, batch.new_offers)]
        if written:
            await self.fill_temporary_table("offers", map(rows.build_offer_row, written), rows.OFFER_COLUMN_TYPES)
            await self._run("save_offers", source=key_range.source, now=now)

    async def _write_documents(self, batch: Batch) -> None:
        touched = [product for id_, product in batch.touched.items() if id_ not in batch.merged_product_ids]
        if touched:
            new = {product.id for product in batch.new_products}
            bodies = ((product.id, self._rendering.render_product(product, self._encoded_data)) for product in touched)
            old = [product.id for product in touched if product.id not in new]
            await self.save_documents(bodies, old)

    async def _write_fingerprints(self, key_range: SlotRange, batch: Batch, now: datetime) -> None:
        stream_params = {"source": key_range.source, "stream": key_range.stream}
        if batch.fingerprints:
            await fill_fingerprint_table(self, batch.fingerprints)
            await self._run("save_fingerprints", **stream_params)
        if batch.invalidated_fingerprints:
            keys, slots = (
                encode_texts(row.key for row in batch.invalidated_fingerprints),
                encode_texts(str(row.slot) for row in batch.invalidated_fingerprints),
            )
            await self._run("invalidate_fingerprints", **stream_params, keys=keys, slots=slots)
        if batch.absent_keys:
            bounds = {"low": key_range.low, "high": key_range.high, "keys": encode_texts(batch.absent_keys)}
            await self._run("record_absences", **stream_params, **bounds, now=now, missed_runs=MIN_MISSED_RUNS)

    def _build_product_row(self, product: Product) -> DatabaseRow:
        encoded = self._encoded_data[product.id] = self._rendering.encode_data(product.data)
        return rows.build_product_row(product, bytes(encoded))

    def _build_variant_row(self, variant: Variant) -> DatabaseRow:
        encoded = self._encoded_data[variant.id] = self._rendering.encode_data(variant.data)
        return rows.build_variant_row(variant, bytes(encoded))
