"""Merged products in PostgreSQL: loaded as their sources state them, stored as readers see them."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from adapters.postgres.catalogue_batch import SQL as BATCH
from adapters.postgres.catalogue_batch import DocumentWriter
from adapters.postgres.session import records, texts
from adapters.postgres.stores import statements
from domain.catalogue import search
from domain.catalogue.laying import Laid
from domain.catalogue.model import Product, Variant

SQL = statements("catalogue_overlay")
_PLACE = ("id", "variant", "product", "home_product")


class OverlayWriter(DocumentWriter):
    """Stores what readers see of tied products."""

    _sql = SQL | BATCH

    async def lay(self, laid: Laid, now: datetime) -> None:
        """Rows, documents and terms of all that is tied, or was."""
        ids = texts(laid.home)
        await self._session.stage(BATCH["staging"])
        variants = list(self._variant_rows(laid))
        places = ({name: row[name] for name in _PLACE} for row in variants)
        await self._run("lay_products", ids=ids, rows=records(self._product_rows(laid)))
        await self._run("lay_variants", ids=texts(laid.shown.places), rows=records(variants))
        await self._run("lay_offers", ids=ids, rows=records(places), now=now)
        await self._documents(laid)
        await self._terms(laid)

    def _product_rows(self, laid: Laid) -> Iterator[Mapping[str, Any]]:
        for home in laid.home.values():
            seen = laid.shown.products.get(home.id, home)
            brand = seen.data.get("brand")
            yield self._row(seen, home) | {
                "brand_key": search.brand_key(brand) if brand else None,
                "merged_into": laid.survivor(home.id),
                "family": laid.families.get(home.id),
                "stated_at": home.stated_at,
            }

    def _variant_rows(self, laid: Laid) -> Iterator[Mapping[str, Any]]:
        shown = laid.shown.variants()
        for product in laid.home.values():
            for home in product.variants:
                seen = shown.get(home.id, home)
                variant, place = laid.shown.places[home.id]
                changed = seen.updated_at != home.updated_at
                yield self._row(seen, home) | {
                    "variant": variant,
                    "product": place,
                    "home_product": product.id,
                    "stated_at": home.stated_at or (home.updated_at if changed else None),
                }

    def _row(self, seen: Product | Variant, home: Product | Variant) -> dict[str, Any]:
        """Return what is shown of a thing, and what its source has if that is something else."""
        data = stated = bytes(self._rendering.pack(home.data))
        if seen.data is not home.data:
            data = bytes(self._rendering.pack(seen.data))
        return {
            "id": home.id,
            "status": seen.status,
            "home_status": home.status if home.status != seen.status else None,
            "data": data,
            "home_data": stated if stated != data else None,
            "version": home.version,
            "updated_at": seen.updated_at,
        }

    async def _documents(self, laid: Laid) -> None:
        products = laid.shown.products
        bodies = ((id, self._rendering.merged(product, laid)) for id, product in products.items())
        await self.save_documents(bodies, products)
        if gone := laid.home.keys() - laid.shown.products.keys():
            await self._run("drop_documents", ids=texts(gone))

    async def _terms(self, laid: Laid) -> None:
        await self.fill("terms", _term_rows(laid), ("text", "text"))
        await self._run("drop_terms", ids=texts(laid.home))
        await self._run("add_terms")


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
