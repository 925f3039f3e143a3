"""Writing of merged and corrected products in PostgreSQL.

The rows contain the merged and corrected values, and the source's values where they differ.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from adapters.postgres.catalogue_batch import SQL as BATCH_SQL
from adapters.postgres.catalogue_batch import DocumentWriter
from adapters.postgres.catalogue_rows import OFFER_FIELDS, build_facet_row, encode_exactly
from adapters.postgres.corrections import CORRECTIONS
from adapters.postgres.corrections import SQL as CORRECTION_SQL
from adapters.postgres.session import encode_rows, encode_texts
from adapters.postgres.stores import load_statements
from domain.catalogue import search_terms
from domain.catalogue.corrections import PERSON_EDIT, Correction
from domain.catalogue.merged_statements import FieldOrigin
from domain.catalogue.merged_view import MergedView
from domain.catalogue.model import Offer, Product, Variant

SQL = load_statements("catalogue_merged_view")
_LOCATION_COLUMNS = ("id", "variant", "product", "home_product")


class MergedViewWriter(DocumentWriter):
    """Writer of the merged view of merge groups, which are products that are connected by merges."""

    _sql = SQL | BATCH_SQL | CORRECTION_SQL

    async def write(self, merged_view: MergedView, now: datetime) -> None:
        """Write rows, documents and search terms of all products that are in the merge groups or were in them before."""
        ids = encode_texts(merged_view.product_by_id)
        await self._session.create_temporary_tables(BATCH_SQL["create_staging_tables"])
        variants = list(self._build_variant_rows(merged_view))
        locations = ({name: row[name] for name in _LOCATION_COLUMNS} for row in variants)
        await self._run("update_merged_products", ids=ids, rows=encode_rows(self._build_product_rows(merged_view)))
        await self._run(
            "update_merged_variants",
            ids=encode_texts(merged_view.view.representatives_by_variant),
            rows=encode_rows(variants),
        )
        await self._run("update_merged_offers", ids=ids, rows=encode_rows(locations), now=now)
        if merged_view.corrected_offers:
            await self._run(
                "update_corrected_offers",
                ids=encode_texts(offer.id for offer, _ in merged_view.corrected_offers),
                rows=encode_rows(map(_build_offer_row, merged_view.corrected_offers)),
            )
        if merged_view.removed_corrections:
            await self._run("remove_all", ids=encode_texts(merged_view.removed_corrections))
        if merged_view.changed_corrections:
            await self._run("save_feed_values", rows=encode_rows(map(_build_feed_row, merged_view.changed_corrections)))
        await self._write_documents(merged_view)
        await self._write_terms(merged_view)

    def _build_product_rows(self, merged_view: MergedView) -> Iterator[Mapping[str, Any]]:
        for original in merged_view.product_by_id.values():
            merged = merged_view.view.products.get(original.id, original)
            brand = merged.data.get("brand")
            yield self._build_row(merged, original) | {
                "brand_key": search_terms.normalise_brand(brand) if brand else None,
                "merged_into": merged_view.find_representative(original.id),
                "family": merged_view.merge_group_by_product.get(original.id),
                "stated_at": original.stated_at,
            }

    def _build_variant_rows(self, merged_view: MergedView) -> Iterator[Mapping[str, Any]]:
        merged_variants = merged_view.view.map_variants()
        for product in merged_view.product_by_id.values():
            for original in product.variants:
                merged = merged_variants.get(original.id, original)
                variant, shown_product = merged_view.view.representatives_by_variant[original.id]
                changed = merged.updated_at != original.updated_at
                yield self._build_row(merged, original) | {
                    "variant": variant,
                    "product": shown_product,
                    "home_product": product.id,
                    **_build_codes(merged, original, merged_view.get_origins(original.id)),
                    "stated_at": original.stated_at or (original.updated_at if changed else None),
                }

    def _build_row(self, merged: Product | Variant, original: Product | Variant) -> dict[str, Any]:
        """Return the columns of a product or variant.

        Args:
            merged: The product or variant with the merged values.
            original: The same product or variant with its source's values, which are stored where they differ.
        """
        data = original_data = bytes(self._rendering.encode_data(original.data))
        if merged.data is not original.data:
            data = bytes(self._rendering.encode_data(merged.data))
        return {
            "id": original.id,
            "status": merged.status,
            "home_status": original.status if original.status != merged.status else None,
            "data": data,
            "home_data": original_data if original_data != data else None,
            "version": original.version,
            "updated_at": merged.updated_at,
        }

    async def _write_documents(self, merged_view: MergedView) -> None:
        products = merged_view.view.products
        bodies = ((id, self._rendering.render_merged_product(product, merged_view)) for id, product in products.items())
        await self.save_documents(bodies, products)
        if hidden := merged_view.product_by_id.keys() - merged_view.view.products.keys():
            await self._run("delete_documents", ids=encode_texts(hidden))
            await self._run("delete_facets", ids=encode_texts(hidden))
        await self.save_facets(
            build_facet_row(product, _find_sources(merged_view, id)) for id, product in products.items()
        )

    async def _write_terms(self, merged_view: MergedView) -> None:
        await self.fill_temporary_table("terms", _build_term_rows(merged_view), ("text", "text"))
        await self._run("delete_outdated_terms", ids=encode_texts(merged_view.product_by_id))
        await self._run("add_terms")


def _find_sources(merged_view: MergedView, id: str) -> set[str]:
    """Return the sources of a product and of the products that are merged into it."""
    return {merged_view.product_by_id[member].source for member in merged_view.ids_by_representative[id]}


def _build_codes(merged: Variant, original: Variant, origins: Mapping[str, FieldOrigin]) -> dict[str, str | None]:
    """Return the codes by which a variant is found: those of its source, or corrected ones."""
    mpn, gtin = (
        (merged if name in origins and origins[name].reason == PERSON_EDIT else original).data.get(name)
        for name in ("mpn", "gtin")
    )
    return {
        "mpn_code": search_terms.normalise_code(mpn) or None if mpn else None,
        "gtin_key": search_terms.normalise_gtin(gtin),
    }


def _build_offer_row(corrected_offer: tuple[Offer, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns of a corrected offer; its source's data is stored where it differs."""
    offer, stated = corrected_offer
    values = {name: offer.data.get(name) for name in OFFER_FIELDS}
    if values["incoming"] is not None:
        values["incoming"] = encode_exactly(values["incoming"])
    home_data = encode_exactly(stated) if stated != offer.data else None
    return {"id": offer.id, **values, "version": offer.version, "updated_at": offer.updated_at, "home_data": home_data}


def _build_feed_row(correction: Correction) -> dict[str, Any]:
    """Return the columns of a correction that a run or a merge has changed."""
    values = CORRECTIONS.build_params(correction)
    return {
        name: values[name] for name in ("id", "product", "feed_value", "feed_state", "feed_changed_at", "updated_at")
    }


def _build_term_rows(merged_view: MergedView) -> Iterator[tuple[str, str]]:
    for id, home in merged_view.product_by_id.items():
        yield from ((id, term) for term in build_search_terms(merged_view.view.products.get(id), home))
    merged = [
        (root, merged_view.product_by_id[id].source)
        for root in merged_view.view.products
        for id in merged_view.ids_by_representative[root][1:]
    ]
    yield from {(root, search_terms.source_term(source)) for root, source in merged}


def build_search_terms(merged_product: Product | None, original: Product) -> set[str]:
    """Return the search terms of a product: those of the merged product, and the category path in the product's source.

    Args:
        merged_product: The merged product; None if the product is hidden because it was merged into another one.
        original: The product with its source's values.
    """
    path_terms = {
        term
        for term in search_terms.compute_terms(original)
        if term.startswith(search_terms.path_term_range(original.source)[0])
    }
    if merged_product is None:
        return path_terms
    return {
        term
        for term in search_terms.compute_terms(merged_product)
        if not term.startswith(search_terms.path_term_range(original.source)[0])
    } | path_terms
