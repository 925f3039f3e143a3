"""Merged products in PostgreSQL: loaded as their sources state them, stored as readers see them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.postgres import catalogue_rows as rows
from adapters.postgres.catalogue_batch import SQL as BATCH
from adapters.postgres.catalogue_batch import etag_of, stage
from adapters.postgres.catalogue_loading import fill
from adapters.postgres.images import images_of
from adapters.postgres.session import Session, lock_number, records, texts
from adapters.postgres.sqlfile import statements
from domain.catalogue import search
from domain.catalogue.laying import Laid
from domain.catalogue.model import Product
from domain.catalogue.overlay import Precedence, TiedProducts
from domain.catalogue.ports import Rendering

SQL = statements("catalogue_overlay")
_PLACE = ("id", "variant", "product", "home_product")


async def merge_count(session: Session) -> int:
    """How many times anything was merged or unmerged."""
    row = await session.one(SQL["merge_count"])
    return int(row[0]) if row else 0


async def take_turn(session: Session, *, merging: bool) -> int:
    """As CatalogueStore.take_turn has it, by advisory locks that end with the transaction.

    Whoever merges has the first one alone, others share it; where something is merged they take turns at the second one, which nobody
    asks for that does not have the first.
    """
    tenant = session.tenant
    await session.run(SQL["alone" if merging else "beside"], lock=lock_number("merges", tenant.org, tenant.livemode))
    count = await merge_count(session)
    if count and not merging:
        await session.run(SQL["alone"], lock=lock_number("merged", tenant.org, tenant.livemode))
    return count


async def tied(session: Session, products: Iterable[str], also: Sequence[str]) -> TiedProducts:
    """As CatalogueStore.tied has it."""
    found = await session.all(SQL["families"], ids=texts([*products, *also]))
    members = await session.all(SQL["members"], families=texts(family for (family,) in found)) if found else []
    ids = {id for (id,) in members} | set(also)
    if not ids:
        return TiedProducts()
    whole = await filled(session, ids)
    things = [*whole, *(variant.id for product in whole.values() for variant in product.variants)]
    sources = {product.source for product in whole.values()}
    return TiedProducts(whole, await applied(session, things), await words(session, sources))


async def applied(session: Session, ids: Iterable[str]) -> dict[str, str]:
    """What each of them was merged into, if it was."""
    return dict(await session.all(SQL["applied"], ids=texts(ids)))


async def words(session: Session, sources: Iterable[str]) -> dict[str, Precedence]:
    """How far the sources' words go."""
    found = await session.all(SQL["standing"], ids=texts(sources))
    return {id: Precedence.by(first_party=first, licence_basis=basis) for id, first, basis in found}


class OverlayWriter:
    """Stores what readers see of tied products, inside the transaction of `session`."""

    def __init__(self, session: Session, rendering: Rendering) -> None:
        self._session, self._rendering = session, rendering

    async def lay(self, laid: Laid, now: datetime) -> None:
        """Rows, documents and terms of all that is tied, or was."""
        session, ids = self._session, texts(laid.home)
        await session.stage(BATCH["staging"])
        variants = list(self._variant_rows(laid))
        places = ({name: row[name] for name in _PLACE} for row in variants)
        await session.run(SQL["lay_products"], ids=ids, rows=records(self._product_rows(laid)))
        await session.run(SQL["lay_variants"], ids=texts(laid.shown.places), rows=records(variants))
        await session.run(SQL["lay_offers"], ids=ids, rows=records(places), now=now)
        await self._documents(laid)
        await self._terms(laid)

    def _product_rows(self, laid: Laid) -> Iterator[Mapping[str, Any]]:
        for home in laid.home.values():
            seen = laid.shown.products.get(home.id, home)
            brand = seen.data.get("brand")
            data, home_data = self._packed(seen.data, home.data)
            yield {
                "id": home.id,
                "status": seen.status,
                "home_status": home.status if home.status != seen.status else None,
                "brand_key": search.brand_key(brand) if brand else None,
                "data": data,
                "home_data": home_data,
                "version": home.version,
                "merged_into": laid.survivor(home.id),
                "family": laid.families.get(home.id),
                "updated_at": seen.updated_at,
                "stated_at": home.stated_at,
            }

    def _variant_rows(self, laid: Laid) -> Iterator[Mapping[str, Any]]:
        shown = laid.shown.variants()
        for product in laid.home.values():
            for home in product.variants:
                seen = shown.get(home.id, home)
                variant, place = laid.shown.places[home.id]
                data, home_data = self._packed(seen.data, home.data)
                changed = seen.updated_at != home.updated_at
                yield {
                    "id": home.id,
                    "variant": variant,
                    "product": place,
                    "home_product": product.id,
                    "status": seen.status,
                    "home_status": home.status if home.status != seen.status else None,
                    "data": data,
                    "home_data": home_data,
                    "version": home.version,
                    "updated_at": seen.updated_at,
                    "stated_at": home.stated_at or (home.updated_at if changed else None),
                }

    def _packed(self, seen: Mapping[str, Any], home: Mapping[str, Any]) -> tuple[bytes, bytes | None]:
        """What is shown, and what the source has if that is something else."""
        stated = bytes(self._rendering.pack(home))
        if seen is home:
            return stated, None
        told = bytes(self._rendering.pack(seen))
        return told, stated if stated != told else None

    async def _documents(self, laid: Laid) -> None:
        images = await images_of(self._session, laid.shown.products)
        await stage(self._session, "documents", self._bodies(laid, images), ("text", "bytea", "text"))
        await self._session.run(BATCH["save_documents"])
        if gone := laid.home.keys() - laid.shown.products.keys():
            await self._session.run(SQL["drop_documents"], ids=texts(gone))

    def _bodies(self, laid: Laid, images: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[Any, ...]]:
        for id, product in laid.shown.products.items():
            body = self._rendering.merged(product, laid)
            if id in images:
                body = self._rendering.with_images(body, images[id])
            yield id, body, etag_of(body)

    async def _terms(self, laid: Laid) -> None:
        await stage(self._session, "terms", _term_rows(laid), ("text", "text"))
        await self._session.run(BATCH["drop_terms"], ids=texts(laid.home))
        await self._session.run(BATCH["add_terms"])


def _term_rows(laid: Laid) -> Iterator[tuple[str, str]]:
    for id, home in laid.home.items():
        yield from ((id, term) for term in terms_of(laid.shown.products.get(id), home))
    merged = [(root, laid.home[id].source) for root in laid.shown.products for id in laid.parts[root][1:]]
    yield from {(root, search.source_term(source)) for root, source in merged}


def terms_of(seen: Product | None, home: Product) -> set[str]:
    """What a tied product is found by: all that is shown of it, and the category path that its own source has."""
    own = {term for term in search.terms(home) if term.startswith(search.path_terms(home.source)[0])}
    if seen is None:
        return own
    return {term for term in search.terms(seen) if not term.startswith(search.path_terms(home.source)[0])} | own


async def filled(session: Session, ids: Iterable[str]) -> dict[str, Product]:
    """Whole products by id, as their sources state them, locked for this transaction."""
    sought = texts(ids)
    found = await session.all(BATCH["products_by_id"], ids=sought)
    products = {row[0]: rows.product_of(row, rows.plain) for row in found}
    await fill(session, products, rows.plain)
    return products
