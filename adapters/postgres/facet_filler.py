"""Facets of stored products, computed from their documents, which contain what readers see."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from adapters.postgres.catalogue_batch import SQL as BATCH_SQL
from adapters.postgres.catalogue_batch import DocumentWriter
from adapters.postgres.catalogue_rows import build_facet_row, decode_data
from adapters.postgres.nodes.connections import DatabaseRow
from adapters.postgres.published_copies import SQL as PUBLISHED_SQL
from adapters.postgres.session import encode_texts
from adapters.postgres.stores import load_statements
from domain.catalogue import search_terms
from domain.catalogue.model import Offer, Product, ProductStatus, Variant, Visibility
from domain.search.ports import FacetStore

SQL = load_statements("facet_filler")
_STATEMENTS = {"write_facets": PUBLISHED_SQL["write_facets"], **BATCH_SQL, **SQL}


class PostgresFacetStore(DocumentWriter, FacetStore):
    """Facets of the tenant's catalogue, and those of its published copies."""

    _sql = _STATEMENTS

    async def fill_facets(self, after: str, limit: int) -> str | None:
        ids: list[str] = [id for (id,) in await self._fetch_rows("lock_products_after", after=after, limit=limit)]
        if not ids:
            return None
        rows = await self._fetch_rows("list_documents_with_sources", ids=encode_texts(ids))
        facet_rows, terms = await asyncio.to_thread(_compute, rows)
        await self._session.create_temporary_tables(BATCH_SQL["create_staging_tables"])
        await self.save_facets(facet_rows)
        await self.fill_temporary_table("terms", terms, ("text", "text"))
        await self._run("add_terms")
        await self._fill_published(ids, terms)
        return ids[-1]

    async def _fill_published(self, products: Sequence[str], terms: Sequence[tuple[str, str]]) -> None:
        async with self._session.as_owner():
            copies = await self._fetch_rows("list_catalogues_of_copies", products=list(products))
            if not copies:
                return
            catalogue_by_id: Mapping[str, str] = dict(copies)
            await self._run("write_facets", ids=encode_texts(catalogue_by_id))
            found = [(product, term) for product, term in terms if product in catalogue_by_id]
            await self._run(
                "add_terms_of_copies",
                kept=[product for product, _ in found],
                terms=[term for _, term in found],
                catalogues=[catalogue_by_id[product] for product, _ in found],
            )


def _compute(rows: Sequence[DatabaseRow]) -> tuple[list[DatabaseRow], list[tuple[str, str]]]:
    """Return the rows of facets, and the search terms of colours and finishes as pairs of product and term."""
    facet_rows, terms = [], []
    for _, body, source_terms in rows:
        product = _build_product(decode_data(body))
        prefix = search_terms.source_term("")
        facet_rows.append(build_facet_row(product, [term.removeprefix(prefix) for term in source_terms]))
        terms += [(product.id, term) for term in search_terms.compute_finish_terms(product)]
    return facet_rows, terms


def _build_product(document: Mapping[str, Any]) -> Product:
    """Build a product from its document, with the values on which facets depend."""
    id, updated_at = document["id"], document["updated_at"]
    status, visibility = ProductStatus(document["status"]), Visibility.UNLISTED
    product = Product(
        id, document["catalogue"], "", "", status, 1, visibility, document["data"], updated_at, updated_at
    )
    for entry in document["variants"]:
        variant = Variant(entry["id"], id, "", "", status, 1, entry["data"], updated_at)
        variant.offers = [
            Offer(offer["id"], variant.id, id, "", "", offer, 1, 0, updated_at, updated_at, offer.get("withdrawn_at"))
            for offer in entry["offers"]
        ]
        product.variants.append(variant)
    return product
