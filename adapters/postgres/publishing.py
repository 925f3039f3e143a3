"""Publication runs, licences, and a vendor's own catalogue in PostgreSQL."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from psycopg.types.json import Jsonb

from adapters.postgres.catalogue_rows import decode_data
from adapters.postgres.nodes.connections import DatabaseRow
from adapters.postgres.stores import (
    ReferenceTableStore,
    TenantStore,
    build_page,
    build_page_line_names,
    build_page_params,
    execute_count,
    execute_one,
    fetch_all,
    fetch_first,
    fetch_scalar,
    load_statements,
    render_statement,
)
from adapters.postgres.table import Table, TableStore
from domain.catalogue import search_terms
from domain.catalogue.licences import UNSHAREABLE_BASES, Licence, ReadableCatalogue
from domain.catalogue.model import Visibility
from domain.catalogue.ports import HeldLicences
from domain.kernel.paging import Page, PageRequest
from domain.publishing.completeness import list_missing_fields
from domain.publishing.model import (
    Assessment,
    CatalogueCounts,
    CatalogueImage,
    CatalogueVariant,
    PublicationKind,
    PublicationRun,
    VariantFilter,
)
from domain.publishing.ports import LicenceStore, PublicationStore

SQL = load_statements("publishing")
PUBLICATION_RUNS = Table(PublicationRun, "publication_runs")
_MAX_SCANNED_VARIANTS = 500
"""Maximum number of variants that are scanned for a page with filters."""


def _build_licence(catalogue: str, holder: str, groups: Sequence[str], *rest: Any) -> Licence:
    return Licence(catalogue, holder, frozenset(groups), *rest)


def _build_licence_params(licence: Licence) -> Mapping[str, Any]:
    return {name: getattr(licence, name) for name in ("catalogue", "holder", "view", "created_at", "withdrawn_at")} | {
        "groups": sorted(licence.groups)
    }


class PostgresLicenceStore(ReferenceTableStore, LicenceStore):
    """Licences to read the tenant's catalogue."""

    _sql = SQL
    list_licences = fetch_all(_build_licence)
    save_licence = execute_count(values=_build_licence_params)
    delete_licence = execute_one()
    set_view = execute_count()


class PostgresHeldLicences(TenantStore, HeldLicences):
    """Licences that the tenant holds."""

    _sql = SQL

    async def get_readable(self, catalogue: str) -> ReadableCatalogue:
        return await self._fetch_first(ReadableCatalogue, "get_readable", catalogue=catalogue) or ReadableCatalogue()


class PostgresPublicationStore(TableStore[PublicationRun], PublicationStore):
    """Publication runs and the catalogue of the tenant."""

    _sql, _table = SQL, PUBLICATION_RUNS
    find_open_run = fetch_scalar()
    count_catalogue = fetch_first(CatalogueCounts)
    get_assessment = fetch_first(Assessment)

    async def lock_creation(self) -> None:
        await self._session.acquire_lock("publication runs")

    async def count_candidates(self, kind: PublicationKind, products: Sequence[str] | None) -> int:
        [(count,)] = await self._fetch_candidates("count_candidates", kind, products)
        return int(count)

    async def list_candidates(
        self, kind: PublicationKind, products: Sequence[str] | None, after: str, limit: int
    ) -> Sequence[str]:
        rows = await self._fetch_candidates("list_candidates", kind, products, after=after, limit=limit)
        return [id for (id,) in rows]

    async def _fetch_candidates(
        self, statement: str, kind: PublicationKind, products: Sequence[str] | None, **values: Any
    ) -> list[DatabaseRow]:
        visibility = Visibility.UNLISTED if kind == PublicationKind.PUBLISH else Visibility.LISTED
        values |= {"visibility": visibility, "products": None if products is None else list(products)}
        return await self._session.fetch_rows(_render_products(statement, products), **values)

    async def count_unshareable(self, products: Sequence[str] | None) -> int:
        values = {
            "products": None if products is None else list(products),
            "unshareable": sorted(UNSHAREABLE_BASES),
        }
        [(count,)] = await self._session.fetch_rows(_render_products("count_unshareable", products), **values)
        return int(count)

    async def save_assessment(self, assessment: Assessment) -> None:
        values = {name: getattr(assessment, name) for name in ("products", "score", "assessed_at")}
        await self._run("save_assessment", missing=Jsonb(assessment.missing), **values)

    async def list_documents(self, after: str, limit: int) -> Mapping[str, Mapping[str, Any]]:
        rows = await self._fetch_rows("list_documents", after=after, limit=limit)
        return {id: decode_data(body) for id, body in rows}

    async def list_listed_products(self, after: str, limit: int) -> Sequence[str]:
        return [id for (id,) in await self._fetch_rows("list_listed_products", after=after, limit=limit)]

    async def list_products_without_view(self, view: str, limit: int) -> Sequence[str]:
        async with self._session.as_owner():  # the owner's role does not see its own copies
            return [id for (id,) in await self._fetch_rows("list_products_without_view", view=view, limit=limit)]

    async def list_variants(self, filter: VariantFilter, page_request: PageRequest) -> Page[CatalogueVariant]:
        names = {name for name in ("visibility", "q") if getattr(filter, name) is not None}
        is_filtered = bool(names) or filter.missing is not None
        limit = _MAX_SCANNED_VARIANTS if is_filtered else page_request.limit + 1
        statement = render_statement(SQL["list_variants"], build_page_line_names(page_request) | names, limit)
        values: dict[str, Any] = {"visibility": filter.visibility, **build_page_params(page_request)}
        if filter.q is not None:
            words = search_terms.split_query(filter.q)
            values |= {
                "code": search_terms.normalise_code(filter.q),
                "terms": [search_terms.word_term(word) for word in words] or ["w:"],
            }
        rows = await self._session.fetch_rows(statement, **values)
        products = sorted({row[1] for row in rows if row[-1]})
        data: dict[str, bytes] = dict(await self._fetch_rows("list_product_data", products=products))
        found = await asyncio.to_thread(_build_variants, [row for row in rows if row[-1]], data, filter.missing)
        scan_end = rows[-1][0] if is_filtered and len(rows) == limit else None
        return build_page(found[: page_request.limit + 1], page_request, scan_end=scan_end)

    async def list_images(self, page_request: PageRequest) -> Page[CatalogueImage]:
        rows = await self._fetch_page_rows("list_images", page_request, ())
        page = build_page(rows, page_request, lambda row: str(row[0]))
        products = sorted({product for *_, product in page.items if product is not None})
        documents = {
            id: decode_data(body) for id, body in await self._fetch_rows("list_documents_by_id", products=products)
        }
        images = [
            CatalogueImage(id, product, *found, width, height)
            for id, width, height, product in page.items
            if product in documents and (found := _find_image(documents[product], id)) is not None
        ]
        return Page(tuple(images), page.has_more, page.next_key)


def _render_products(statement: str, products: Sequence[str] | None) -> Any:
    return render_statement(SQL[statement], frozenset() if products is None else frozenset({"products"}))


def _build_variants(
    rows: Sequence[DatabaseRow], data_by_product: Mapping[str, bytes], missing: str | None
) -> list[CatalogueVariant]:
    """Build variants from rows; with `missing`, only those that lack the field."""
    owners = {id: decode_data(data) for id, data in data_by_product.items()}
    variants = []
    for id, product, data, visibility, updated_at, has_price, _ in rows:
        variant, owner = decode_data(data), owners[product]
        lacks = list_missing_fields(owner, variant, [{"price": 0}] if has_price else [])
        title = variant.get("title") or owner.get("title")
        if missing is None or missing in lacks:
            variants.append(
                CatalogueVariant(
                    id,
                    product,
                    title,
                    variant.get("sku"),
                    variant.get("gtin"),
                    Visibility(visibility),
                    lacks,
                    updated_at,
                )
            )
    return variants


def _list_media(document: Mapping[str, Any]) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """Yield the variant (None for the product) and the entry of each image of a document."""
    yield from ((None, entry) for entry in document["data"].get("media", ()))
    for variant in document["variants"]:
        yield from ((variant["id"], entry) for entry in variant["data"].get("media", ()))


def _find_image(document: Mapping[str, Any], id: str) -> tuple[list[str], str | None, int | None, str] | None:
    """Return the variants that use an image, and its role, position and URL in the document; None if nothing uses it."""
    found = [(variant, entry) for variant, entry in _list_media(document) if entry.get("id") == id]
    if not found:
        return None
    _, first = found[0]
    variants = [variant for variant, _ in found if variant is not None]
    return variants, first.get("role"), first.get("position"), first["stored_url"]
