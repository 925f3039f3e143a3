"""Merged products in memory: what readers see beside what each source states."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from adapters.memory.image_uses import images_of
from adapters.memory.matching import MERGES
from adapters.memory.sources import SOURCES
from adapters.memory.table import Table, Transaction
from domain.catalogue import search
from domain.catalogue.laying import Laid
from domain.catalogue.model import Document, Offer, Product, Variant
from domain.catalogue.overlay import Precedence, TiedProducts, root_of
from domain.catalogue.ports import Rendering
from domain.matching.model import MergeStatus

PRODUCTS: Final = Table[Product]("products", lambda product: product.id)
"""As their sources state them."""
DOCUMENTS: Final = Table[Document]("product_documents", lambda document: document.id)


@dataclass(frozen=True, slots=True)
class SeenProduct:
    """A product of a family: as it is shown, or what it is shown as."""

    id: str
    family: str
    shown: Product | None
    survivor: str | None


@dataclass(frozen=True, slots=True)
class MergeCount:
    """How many times anything was merged or unmerged: one row."""

    count: int


SEEN: Final = Table[SeenProduct]("seen_products", lambda seen: seen.id)
COUNTS: Final = Table[MergeCount]("merge_counts", lambda _: "")


def copied(product: Product) -> Product:
    """The product with variants and offers of its own, by id; `data` is shared: it is replaced, never changed."""
    variants = [
        replace(entry, offers=[replace(offer) for offer in sorted(entry.offers, key=_id)])
        for entry in sorted(product.variants, key=_id)
    ]
    return replace(product, variants=variants)


def _id(thing: Variant | Offer) -> str:
    return thing.id


class MemoryOverlay:
    """What MemoryCatalogue asks of merged products."""

    def __init__(self, transaction: Transaction, rendering: Rendering | None) -> None:
        self._transaction, self._rendering = transaction, rendering
        self._products, self._documents = transaction.rows(PRODUCTS), transaction.rows(DOCUMENTS)
        self._seen, self._counts = transaction.rows(SEEN), transaction.rows(COUNTS)

    def merge_count(self) -> int:
        row = self._counts.get("")
        return row.count if row else 0

    async def count_merge(self) -> None:
        await self._counts.put(MergeCount(self.merge_count() + 1))

    def seen(self, products: Iterable[Product]) -> list[Product]:
        """Of products those that are shown, as they are shown."""
        known = {row.id: row for row in self._seen.where()}
        rows = ((product, known.get(product.id)) for product in products)
        made = (product if row is None else row.shown for product, row in rows)
        return [product for product in made if product is not None]

    def survivor(self, product: str) -> str | None:
        return survivor_of(self._transaction, product)

    def is_tied(self, product: str) -> bool:
        """Whether merges tie the product to others."""
        return self._seen.get(product) is not None

    def merged_into(self, product: str) -> search.Parts:
        """What is shown as parts of this product, as its sources state it."""
        row = self._seen.get(product)
        if row is None or row.shown is None:
            return search.NO_PARTS
        members = self._members(row.family)
        gone = [home for home in members if self.survivor(home.id) == product]
        places = {variant.id for variant in row.shown.variants}
        merged = self._merged()
        known = [variant for home in members for variant in home.variants if root_of(merged, variant.id) in places]
        return search.Parts(gone, known)

    def variants_of(self, product: str) -> Mapping[str, search.Parts]:
        """By variant of a product what is shown as it."""
        parts, merged = self.merged_into(product), self._merged()
        made: dict[str, list[Variant]] = {}
        for variant in parts.variants:
            made.setdefault(root_of(merged, variant.id), []).append(variant)
        return {root: search.Parts(parts.products, variants) for root, variants in made.items()}

    def variants_merged_into(self, variant: str) -> list[str]:
        """What a variant is shown for besides itself, by id."""
        merged = self._merged()
        return sorted(id for id in merged if root_of(merged, id) == variant)

    def _members(self, family: str) -> list[Product]:
        ids = [one.id for one in self._seen.where(lambda one: one.family == family)]
        return [home for id in sorted(ids) if (home := self._products.get(id)) is not None]

    def _merged(self) -> dict[str, str]:
        applied = self._transaction.rows(MERGES).where(lambda merge: merge.status == MergeStatus.APPLIED)
        return {merge.merged: merge.survivor for merge in applied}

    def homes(self, product: str) -> Mapping[str, tuple[Product, Variant]]:
        """By offer of a product of a family: the product and the variant that its source has it under."""
        row = self._seen.get(product)
        if row is None:
            return {}
        return {
            offer.id: (home, variant)
            for home in self._members(row.family)
            for variant in home.variants
            for offer in variant.offers
        }

    def tied(self, products: Sequence[str], also: Sequence[str]) -> TiedProducts:
        rows = (self._seen.get(id) for id in (*products, *also))
        families = {row.family for row in rows if row is not None}
        ids = {row.id for row in self._seen.where(lambda row: row.family in families)} | set(also)
        found = {id: copied(product) for id in sorted(ids) if (product := self._products.get(id))}
        things = {*found, *(variant.id for product in found.values() for variant in product.variants)}
        sources = self._transaction.rows(SOURCES).where()
        return TiedProducts(
            found,
            {gone: stays for gone, stays in self._merged().items() if gone in things},
            {
                source.id: Precedence.by(first_party=source.first_party, licence_basis=source.licence_basis)
                for source in sources
            },
        )

    async def lay(self, laid: Laid) -> None:
        """Rows and documents of all that is tied, or was."""
        for id, home in laid.home.items():
            shown = laid.shown.products.get(id)
            await self._products.put(_kept(home, shown))
            if family := laid.families.get(id):
                seen = copied(shown) if shown else None
                await self._seen.put(SeenProduct(id, family, seen, laid.survivor(id)))
            else:
                await self._seen.remove(id)
        for id in laid.home:
            shown = laid.shown.products.get(id)
            if shown is None:
                await self._documents.remove(id)
            else:
                await self._documents.put(self.document(shown, laid))

    def document(self, product: Product, laid: Laid | None = None) -> Document:
        """The product's document; with what merges tell of it, if it is laid."""
        if self._rendering is None:
            raise RuntimeError("The unit of work was made without a Rendering, which products' documents need.")
        body = self._rendering.merged(product, laid) if laid else self._rendering.product(product, {})
        if images := pictures_of(self._transaction, product.id):
            body = self._rendering.with_images(body, images)
        return Document(product.id, body, blake2b(body, digest_size=12).hexdigest())


def survivor_of(transaction: Transaction, product: str) -> str | None:
    """What a product is shown as, if it is merged."""
    row = transaction.rows(SEEN).get(product)
    return row.survivor if row else None


def pictures_of(transaction: Transaction, product: str) -> dict[str, str]:
    """The stored images by their address of a product, and of what is merged into it."""
    gone = [row.id for row in transaction.rows(SEEN).where(lambda row: row.survivor == product)]
    return {url: image for id in (*sorted(gone), product) for url, image in images_of(transaction, id).items()}


def _kept(home: Product, shown: Product | None) -> Product:
    """What the source states, with times of what is shown."""
    kept = copied(home)
    kept.updated_at = shown.updated_at if shown else home.updated_at
    times = {variant.id: variant.updated_at for variant in shown.variants} if shown else {}
    for variant in kept.variants:
        if (at := times.get(variant.id, variant.updated_at)) != variant.updated_at:
            variant.stated_at, variant.updated_at = variant.stated_at or variant.updated_at, at
    return kept
