"""Loading of products to compare, and writing of batches: COPY into temporary tables, then one statement per table (architecture §5)."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, TypeVar

from adapters.postgres import catalogue_rows as rows
from adapters.postgres.nodes.connecting import Fetched
from adapters.postgres.session import Session, records, texts
from adapters.postgres.stores import TenantStore, statements
from domain.catalogue import search
from domain.catalogue.absence import MISSED_RUNS
from domain.catalogue.batch import Batch, KeyRange, RowFingerprint
from domain.catalogue.model import Offer, Product, Variant
from domain.catalogue.ports import Rendering

SQL = statements("catalogue_batch")
_FINGERPRINTS = ("int4", "text", "bytea", "text", "int4")
_DOCUMENTS = ("text", "bytea", "text")
_TERMS = ("text", "text")
_THREAD_THRESHOLD = 200
"""Number of rows above which the conversion runs in a thread."""
_NAMES = ("title", "brand", "collection")

Thing = TypeVar("Thing", Product, Variant, Offer)


def etag_of(body: bytes) -> str:
    """Return the strong validator of a document."""
    return blake2b(body, digest_size=12).hexdigest()


def _only(changed: Iterable[Thing], new: Iterable[Thing]) -> list[Thing]:
    """Return each changed object once, without those that are new."""
    new_ids = {entity.id for entity in new}
    return list({entity.id: entity for entity in changed if entity.id not in new_ids}.values())


async def fill_fingerprints(store: TenantStore, fingerprints: Iterable[RowFingerprint]) -> None:
    """Fill the temporary table `new_fingerprints`."""
    rows = ((row.slot, row.key, row.fingerprint, row.product, row.problems) for row in fingerprints)
    await store.fill("fingerprints", rows, _FINGERPRINTS)


async def load(session: Session, statement: str, decode: Any, **values: Any) -> dict[str, Product]:
    """Return the products of a statement by id, with the variants and offers that their sources state.

    `decode` is `rows.plain` or `rows.packed`.
    """
    products = {row[0]: rows.product_of(row, decode) for row in await session.all(SQL[statement], **values)}
    if not products:
        return products
    ids = texts(products)
    variants = await session.all(SQL["variants_of"], ids=ids)
    offers = await session.all(SQL["offers_of"], ids=ids)
    if len(variants) + len(offers) > _THREAD_THRESHOLD:
        await asyncio.to_thread(_fill, products, variants, offers, decode)
    else:
        _fill(products, variants, offers, decode)
    return products


def _fill(
    products: Mapping[str, Product], variant_rows: Sequence[Fetched], offer_rows: Sequence[Fetched], decode: Any
) -> None:
    variants: dict[str, Variant] = {}
    for row in variant_rows:
        variant = variants[row[0]] = rows.variant_of(row, decode)
        products[variant.product].variants.append(variant)
    for row in offer_rows:
        offer = rows.offer_of(*row)
        variants[offer.variant].offers.append(offer)


async def images_of(session: Session, products: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the ids of stored images by product and URL; products without images are omitted."""
    images: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for product, url, image in await session.all(SQL["images_of"], ids=texts(products)):
        images[product][url] = image
    return images


class DocumentWriter(TenantStore):
    """Writer of product documents in the session's transaction."""

    _sql = SQL

    def __init__(self, session: Session, rendering: Rendering) -> None:
        super().__init__(session)
        self._rendering = rendering
        self._packed: dict[str, Any] = {}

    async def save_documents(self, bodies: Iterable[tuple[str, bytes]], old: Iterable[str]) -> None:
        """Store documents by product id; `old` are existing products, which may have images."""
        images, render = await images_of(self._session, old), self._rendering.with_images
        rendered = ((id, render(body, images[id]) if id in images else body) for id, body in bodies)
        await self.fill("documents", ((id, body, etag_of(body)) for id, body in rendered), _DOCUMENTS)
        await self._run("save_documents")


class BatchWriter(DocumentWriter):
    """Writer of one batch."""

    async def write(self, key_range: KeyRange, batch: Batch, now: datetime) -> None:
        await self._products(key_range, batch, now)
        await self._variants(key_range, batch, now)
        await self._offers(key_range, batch, now)
        await self._documents(batch)
        await self._fingerprints(key_range, batch, now)

    async def _products(self, key_range: KeyRange, batch: Batch, now: datetime) -> None:
        changed = _only(batch.changed_products, batch.new_products)
        stated = [*batch.new_products, *changed]
        whole = {product.id: search.terms(product) for product in stated if product.id not in batch.tied}
        if stated:
            await self.fill("products", map(self._product_row, stated), rows.PRODUCT_TYPES)
            if changed:
                await self._queue_renamed(changed)
            await self._run("save_products", source=key_range.source, now=now)
        touched = [id_ for id_ in batch.touched if id_ not in whole and id_ not in batch.tied]
        if touched:
            await self._run("touch_products", ids=texts(touched), now=now)
        others = {id_: values for id_, values in batch.availabilities.items() if id_ not in batch.tied}
        await self._terms(whole, {product.id for product in changed if product.id in whole}, others)

    async def _queue_renamed(self, changed: Iterable[Product]) -> None:
        """Queue for matching the variants whose product's title, brand or collection changes."""
        products = list(changed)
        names = records({"id": product.id, **{name: product.data.get(name) for name in _NAMES}} for product in products)
        renamed = await self._rows("renamed", ids=texts(product.id for product in products), names=names)
        if renamed:
            await self._run("queue_renamed", ids=texts(id for (id,) in renamed))

    async def _terms(
        self, whole: Mapping[str, set[str]], changed: set[str], availabilities: Mapping[str, frozenset[str]]
    ) -> None:
        if not whole and not availabilities:
            return
        pairs = [(id_, term) for id_, terms in whole.items() for term in terms]
        pairs += [(id_, search.availability_term(value)) for id_, values in availabilities.items() for value in values]
        await self.fill("terms", pairs, _TERMS)
        if changed:
            await self._run("drop_terms", ids=texts(changed))
        if availabilities:
            low, high = search.AVAILABILITY_TERMS
            await self._run("drop_availabilities", ids=texts(availabilities), low=low, high=high)
        await self._run("add_terms")

    async def _variants(self, key_range: KeyRange, batch: Batch, now: datetime) -> None:
        stated = [*batch.new_variants, *_only(batch.changed_variants, batch.new_variants)]
        if stated:
            await self.fill("variants", map(self._variant_row, stated), rows.VARIANT_TYPES)
            await self._run("save_variants", source=key_range.source, now=now)
            await self._run("queue_variants")

    async def _offers(self, key_range: KeyRange, batch: Batch, now: datetime) -> None:
        stated = [*batch.new_offers, *_only(batch.changed_offers, batch.new_offers)]
        if stated:
            await self.fill("offers", map(rows.offer_row, stated), rows.OFFER_TYPES)
            await self._run("save_offers", source=key_range.source, now=now)

    async def _documents(self, batch: Batch) -> None:
        touched = [product for id_, product in batch.touched.items() if id_ not in batch.tied]
        if touched:
            new = {product.id for product in batch.new_products}
            bodies = ((product.id, self._rendering.product(product, self._packed)) for product in touched)
            old = [product.id for product in touched if product.id not in new]
            await self.save_documents(bodies, old)

    async def _fingerprints(self, key_range: KeyRange, batch: Batch, now: datetime) -> None:
        where = {"source": key_range.source, "stream": key_range.stream}
        if batch.fingerprints:
            await fill_fingerprints(self, batch.fingerprints)
            await self._run("save_fingerprints", **where)
        if batch.outdated:
            keys, slots = texts(row.key for row in batch.outdated), texts(str(row.slot) for row in batch.outdated)
            await self._run("outdate_fingerprints", **where, keys=keys, slots=slots)
        if batch.absent:
            bounds = {"low": key_range.low, "high": key_range.high, "keys": texts(batch.absent)}
            await self._run("save_absent", **where, **bounds, now=now, missed_runs=MISSED_RUNS)

    def _product_row(self, product: Product) -> Fetched:
        packed = self._packed[product.id] = self._rendering.pack(product.data)
        return rows.product_row(product, bytes(packed))

    def _variant_row(self, variant: Variant) -> Fetched:
        packed = self._packed[variant.id] = self._rendering.pack(variant.data)
        return rows.variant_row(variant, bytes(packed))
