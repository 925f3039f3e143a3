"""Writing of merged products in PostgreSQL: the merged view beside the values of the sources."""

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
_PLACE_COLUMNS = ("id", "variant", "product", "home_product")


class OverlayWriter(DocumentWriter):
    """Writer of the merged view of product clusters."""

    _sql = SQL | BATCH

    async def lay(self, laid: Laid, now: datetime) -> None:
        """Write rows, documents and search terms of all products that belong or belonged to the clusters."""
        ids = texts(laid.home)
        await self._session.stage(BATCH["staging"])
        variants = list(self._variant_rows(laid))
        places = ({name: row[name] for name in _PLACE_COLUMNS} for row in variants)
        await self._run("lay_products", ids=ids, rows=records(self._product_rows(laid)))
        await self._run("lay_variants", ids=texts(laid.shown.places), rows=records(variants))
        await self._run("lay_offers", ids=ids, rows=records(places), now=now)
        await self._documents(laid)
        await self._terms(laid)

    def _product_rows(self, laid: Laid) -> Iterator[Mapping[str, Any]]:
        for home in laid.home.values():
            merged_view = laid.shown.products.get(home.id, home)
            brand = merged_view.data.get("brand")
            yield self._row(merged_view, home) | {
                "brand_key": search.brand_key(brand) if brand else None,
                "merged_into": laid.survivor(home.id),
                "family": laid.families.get(home.id),
                "stated_at": home.stated_at,
            }

    def _variant_rows(self, laid: Laid) -> Iterator[Mapping[str, Any]]:
        shown = laid.shown.variants()
        for product in laid.home.values():
            for home in product.variants:
                merged_view = shown.get(home.id, home)
                variant, place = laid.shown.places[home.id]
                changed = merged_view.updated_at != home.updated_at
                yield self._row(merged_view, home) | {
                    "variant": variant,
                    "product": place,
                    "home_product": product.id,
                    "stated_at": home.stated_at or (home.updated_at if changed else None),
                }

    def _row(self, merged_view: Product | Variant, home: Product | Variant) -> dict[str, Any]:
        """Return the merged values of an object, and those of its source where they differ."""
        data = stated = bytes(self._rendering.pack(home.data))
        if merged_view.data is not home.data:
            data = bytes(self._rendering.pack(merged_view.data))
        return {
            "id": home.id,
            "status": merged_view.status,
            "home_status": home.status if home.status != merged_view.status else None,
            "data": data,
            "home_data": stated if stated != data else None,
            "version": home.version,
            "updated_at": merged_view.updated_at,
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


def terms_of(merged_view: Product | None, home: Product) -> set[str]:
    """Return the search terms of the merged product with the category path of its own source; only the latter if it is not shown."""
    own_path = {term for term in search.terms(home) if term.startswith(search.path_terms(home.source)[0])}
    if merged_view is None:
        return own_path
    return {
        term for term in search.terms(merged_view) if not term.startswith(search.path_terms(home.source)[0])
    } | own_path
