"""Products, variants and offers in memory: whole products as rows, their documents beside them."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from adapters.memory.catalogue_overlay import DOCUMENTS, PRODUCTS, MemoryOverlay, copied
from adapters.memory.match_queue import queue_changed
from adapters.memory.orgs import ORGS
from adapters.memory.row_fingerprints import MemoryFingerprints
from adapters.memory.table import EVERYWHERE, Transaction, page_of
from domain.catalogue import search
from domain.catalogue.absence import Absence
from domain.catalogue.batch import Batch, FingerprintDiff, KeyRange, RowFingerprint
from domain.catalogue.category_rules import CategoryPaths, Filed, most
from domain.catalogue.completions import ITEMS, Completions, beginning
from domain.catalogue.filter_counts import LOOKED, FilterCounts, counted
from domain.catalogue.laying import Laid
from domain.catalogue.model import (
    STREAM_BITS,
    Document,
    Offer,
    OfferFilter,
    OfferLine,
    Product,
    ProductFilter,
    ProductStatus,
    SourceItem,
    Stream,
    Variant,
)
from domain.catalogue.overlay import TiedProducts
from domain.catalogue.ports import Rendering
from domain.kernel.lines import Lines
from domain.kernel.paging import Page, PageRequest

_PORTION: Final = 1_000
"""Documents that are read at a time."""


class MemoryCatalogue:
    """CatalogueStore."""

    def __init__(
        self, transaction: Transaction, rendering: Rendering | None, below: Callable[[str], frozenset[str]]
    ) -> None:
        self._transaction, self._rendering, self._below = transaction, rendering, below
        self._products, self._documents = transaction.rows(PRODUCTS), transaction.rows(DOCUMENTS)
        self._fingerprints = MemoryFingerprints(transaction)
        self._overlay = MemoryOverlay(transaction, rendering)

    async def products(self, filter: ProductFilter, page_request: PageRequest) -> Page[Document]:
        if filter.catalogue not in (None, self._own_catalogue()):
            return Page((), False, None)
        seen = self._overlay.seen(self._products.where())
        chosen = {one.id for one in seen if search.matches(one, filter, self._below, self._overlay.merged_into(one.id))}
        return self._documents.page(page_request, lambda document: document.id in chosen)

    async def filter_counts(self, filter: ProductFilter) -> FilterCounts:
        page = await self.products(filter, PageRequest(limit=LOOKED))
        seen = {one.id: one for one in self._overlay.seen(self._products.where())}

        def sources(product: Product) -> Iterable[str]:
            return (part.source for part in self._overlay.merged_into(product.id).products)

        return counted([seen[document.id] for document in page.items], sources, whole=not page.has_more)

    async def completions(self, word: str, code: str) -> Completions:
        seen = list(self._overlay.seen(self._products.where()))
        words = {one for each in seen for one in search.words(each.data.get("title"), each.data.get("brand"))}
        coded = sorted(
            (known, variant.id)
            for each in seen
            for variant in each.variants
            for known in search.variant_codes(variant.data)
            if code and known.startswith(code)
        )
        return Completions(beginning(words, word) if word else (), list(dict.fromkeys(id for _, id in coded))[:ITEMS])

    async def lines(self, updated_since: datetime | None = None) -> AsyncGenerator[Lines, None]:
        page_request, filter = PageRequest(limit=_PORTION), ProductFilter(updated_since=updated_since)
        while (page := await self.products(filter, page_request)).items:
            yield Lines(len(page.items), b"".join([document.body + b"\n" for document in page.items]))
            if page.next_key is None:
                return
            page_request = PageRequest(limit=_PORTION, key=page.next_key)

    async def product(self, id: str) -> Document | None:
        return self._documents.get(id) or self._documents.get(self._overlay.survivor(id) or id)

    async def offers(self, filter: OfferFilter, page_request: PageRequest) -> Page[OfferLine]:
        lines = [
            line for product in self._overlay.seen(self._products.where()) for line in self._lines(product, filter)
        ]
        return page_of(lines, page_request, _line_key)

    def _lines(self, product: Product, filter: OfferFilter) -> Iterator[OfferLine]:
        """The offers of what is shown, under the keys that their own sources have."""
        title, homes = product.data.get("title"), self._overlay.homes(product.id)
        merged, whole = self._overlay.variants_of(product.id), self._overlay.merged_into(product.id)
        for variant in product.variants:
            parts = merged.get(variant.id, search.Parts(whole.products))
            for offer in variant.offers:
                if search.offer_matches(offer, variant, product, filter, parts):
                    of, own = homes.get(offer.id, (product, variant))
                    yield OfferLine(offer, product.catalogue, title, variant.data.get("sku"), of.key, own.key)

    def _own_catalogue(self) -> str | None:
        tenant = self._transaction.tenant
        org = self._transaction.rows(ORGS, EVERYWHERE).get(tenant.org)
        return org.catalogue(tenant.livemode) if org else None

    async def compare(self, key_range: KeyRange, fingerprints: Sequence[RowFingerprint]) -> FingerprintDiff:
        return self._fingerprints.compare(key_range, fingerprints)

    async def load(self, source: str, keys: Sequence[str], variant_keys: Sequence[str] = ()) -> Mapping[str, Product]:
        await self._transaction.hold()
        sought, owned = set(keys), set(variant_keys)
        found = (
            product
            for product in self._of(source)
            if product.key in sought or any(variant.key in owned for variant in product.variants)
        )
        return {product.key: copied(product) for product in found}

    async def load_by_variant(self, source: str, keys: Sequence[str]) -> Mapping[str, tuple[Product, Variant]]:
        await self._transaction.hold()
        keyed: dict[str, tuple[str, int]] = {}
        coded: dict[str, list[tuple[str, int]]] = {}
        for product in self._of(source):
            for index, variant in enumerate(product.variants):
                keyed[variant.key] = (product.id, index)
                coded.setdefault(search.code(variant.data.get("sku") or ""), []).append((product.id, index))
        found = {key: place for key in keys if (place := keyed.get(key) or _alone(coded, search.code(key)))}
        wanted = {id for id, _ in found.values()}
        loaded = {product.id: copied(product) for product in self._products.where(lambda one: one.id in wanted)}
        return {key: (loaded[id], loaded[id].variants[index]) for key, (id, index) in found.items()}

    async def item(self, variant: str) -> SourceItem | None:
        for product in self._products.where(lambda one: any(own.id == variant for own in one.variants)):
            [own] = [one for one in copied(product).variants if one.id == variant]
            return SourceItem(own.id, own.source, product.key, own.key, own.data.get("sku"), own.offers)
        return None

    async def items(self, variant: str) -> Sequence[SourceItem]:
        found = [await self.item(id) for id in (variant, *self._overlay.variants_merged_into(variant))]
        return [item for item in found if item is not None]

    async def save(self, key_range: KeyRange, batch: Batch, now: datetime) -> None:
        touched = {product.id: product for product in (*batch.new_products, *batch.changed_products)} | batch.touched
        written = {thing.id for thing in (*batch.new_variants, *batch.changed_variants)}
        written |= {thing.id for thing in (*batch.new_offers, *batch.changed_offers)}
        await queue_changed(self._transaction, batch, self._products.get)
        for product in touched.values():
            await self._products.put(_stamped(copied(product), written, now))
        for product in batch.touched.values():
            await self._documents.put(self._overlay.document(product))
        await self._fingerprints.save(key_range, batch, now)
        if batch.laid is not None:
            await self._overlay.lay(batch.laid)

    async def merge_count(self) -> int:
        return self._overlay.merge_count()

    async def take_turn(self, *, merging: bool = False) -> int:
        await self._transaction.lock()
        return self._overlay.merge_count()

    async def tied(self, products: Sequence[str], also: Sequence[str] = ()) -> TiedProducts:
        return self._overlay.tied(products, also)

    async def tied_of(self, source: str, after: str, limit: int) -> Sequence[str]:
        ids = sorted(product.id for product in self._of(source) if product.id > after)
        return [id for id in ids if self._overlay.is_tied(id)][:limit]

    async def lay(self, laid: Laid, now: datetime) -> None:
        await self._overlay.lay(laid)
        await self._overlay.count_merge()

    async def homes(self, variants: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        sought = set(variants)
        found = ((product, one) for product in self._products.where() for one in product.variants if one.id in sought)
        return {one.id: (product.id, one.source) for product, one in found}

    async def stated_offers(self, source: str, stream: Stream) -> int:
        return sum(1 for product in self._products.where() for _ in _stated(product.variants, source, stream))

    async def stated_of(self, source: str, stream: Stream, keys: Sequence[str]) -> frozenset[tuple[str, str]]:
        if stream == Stream.CATALOGUE:
            sought = set(keys)
            variants = [
                variant for product in self._of(source) if product.key in sought for variant in product.variants
            ]
            return frozenset((variant.key, offer.location) for variant, offer in _stated(variants, source, stream))
        variants = [variant for product in self._of(source) for variant in product.variants]
        stated = list(_stated(variants, source, stream))
        return frozenset(
            (key, offer.location) for key in keys for variant, offer in stated if _answers_to(variant, key)
        )

    async def absences(self, source: str, since: datetime) -> Sequence[Absence]:
        return [
            Absence(fingerprint.key, found.status, absent_since)
            for fingerprint, absent_since in self._fingerprints.absent(source, since)
            if (found := self._products.get(fingerprint.product)) and found.status != ProductStatus.DISCONTINUED
        ]

    async def category_paths(self, source: str, limit: int, chars: int) -> CategoryPaths:
        paths = [tuple(path) for product in self._of(source) if (path := product.data.get("category_path"))]
        return most(Counter(paths), limit, chars)

    async def filings(self, source: str, after: str, limit: int) -> Sequence[Filed]:
        behind = sorted((product for product in self._of(source) if product.id > after), key=lambda one: one.id)
        return [
            Filed(
                one.id, one.key, tuple(one.data.get("category_path", ())), one.data.get("category"), one.stated_category
            )
            for one in behind[:limit]
        ]

    def _of(self, source: str) -> list[Product]:
        return self._products.where(lambda product: product.source == source)


def _stamped(product: Product, written: set[str], now: datetime) -> Product:
    """The product as changed now, and so those of its variants and offers that were written."""
    product.updated_at = now
    for variant in product.variants:
        if variant.id in written:
            variant.updated_at, variant.stated_at = now, None
        for offer in variant.offers:
            if offer.id in written:
                offer.updated_at = now
    return product


def _line_key(line: OfferLine) -> str:
    return line.offer.id


def _alone(coded: Mapping[str, list[tuple[str, int]]], code: str) -> tuple[str, int] | None:
    places = coded.get(code, []) if code else []
    return places[0] if len(places) == 1 else None


def _stated(variants: Iterable[Variant], source: str, stream: Stream) -> Iterator[tuple[Variant, Offer]]:
    bit = STREAM_BITS[stream]
    for variant in variants:
        yield from ((variant, offer) for offer in variant.offers if offer.source == source and offer.stated & bit)


def _answers_to(variant: Variant, key: str) -> bool:
    code = search.code(key)
    return variant.key == key or (bool(code) and search.code(variant.data.get("sku") or "") == code)
