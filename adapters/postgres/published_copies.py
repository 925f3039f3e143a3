"""Copies of listed products in PostgreSQL, one document for each view of a licence in use."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from psycopg.types.json import Jsonb

from adapters.postgres.catalogue_batch import compute_etag
from adapters.postgres.catalogue_rows import decode_data
from adapters.postgres.session import TenantSession, encode_texts
from adapters.postgres.stores import TenantStore, execute_count, fetch_all, load_statements
from domain.catalogue.licences import HIDDEN_FIELDS_BY_VIEW, NETWORK_VIEW, UNSHAREABLE_BASES, find_view
from domain.catalogue.model import Visibility
from domain.catalogue.ports import CatalogueRenderer, PublishedCopies
from domain.catalogue.publication import PublicationState
from domain.catalogue.search_terms import catalogue_term
from domain.kernel.json_values import format_time

SQL = load_statements("published_copies")
_IMAGE_COLUMNS = ("product", "id", "content", "key", "bytes", "width", "height", "created_at")
_TABLES = ("documents", "facets", "terms", "variants", "offers", "images", "products")


def _build_state(*row: Any) -> PublicationState:
    id, source, catalogue, version, visibility, *rest = row
    return PublicationState(id, source, catalogue, version, Visibility(visibility), *rest)


class PostgresPublishedCopies(TenantStore, PublishedCopies):
    """Copies of the tenant's listed products, in tables that are written with the owner's privileges."""

    _sql = SQL
    set_visibility = execute_count()
    list_products_of_source = fetch_all(str)
    list_merge_groups = fetch_all(str)

    def __init__(self, session: TenantSession, rendering: CatalogueRenderer) -> None:
        super().__init__(session)
        self._rendering = rendering

    async def lock_states(self, products: Sequence[str]) -> Sequence[PublicationState]:
        if not products:
            return []
        async with self._session.as_owner():
            return await self._fetch_all(
                _build_state, "lock_states", ids=encode_texts(products), unshareable=sorted(UNSHAREABLE_BASES)
            )

    async def measure(self, products: Sequence[str]) -> Mapping[str, int]:
        return dict(await self._fetch_rows("measure", products=list(products)))

    async def advance_versions(self, products: Sequence[str]) -> None:
        ids, now = encode_texts(products), format_time(self._session.now)
        members = {
            id: {"version": version, "visibility": visibility, "updated_at": now}
            for id, version, visibility in await self._fetch_rows("advance_versions", ids=ids)
        }
        documents = await self._fetch_rows("list_documents", ids=ids)
        set_members = self._rendering.set_members

        def rewrite() -> tuple[list[bytes], list[str]]:
            bodies = [set_members(body, members[id]) for id, body in documents]
            return bodies, [compute_etag(body) for body in bodies]

        bodies, etags = await asyncio.to_thread(rewrite)
        await self._run("replace_documents", products=[id for id, _ in documents], bodies=bodies, etags=etags)

    async def write(self, products: Sequence[str]) -> None:
        ids, catalogue = encode_texts(products), await self._fetch_scalar("get_catalogue", id=products[0])
        kept = {
            name: [id for (id,) in await self._fetch_rows(f"list_{name}", ids=ids)] for name in ("variants", "offers")
        }
        terms = [*await self._fetch_rows("list_terms", ids=ids), *((id, catalogue_term(catalogue)) for id in products)]
        images = await self._fetch_rows("list_images", ids=ids)
        async with self._session.as_owner():
            await self._run("write_products", ids=ids)
            await self._run("write_facets", ids=ids)
            for name, ids_of_children in kept.items():
                await self._run(f"delete_outdated_{name}", products=list(products), kept=ids_of_children)
                await self._run(f"write_{name}", ids=ids)
            values = {"kept": [product for product, _ in terms], "terms": [term for _, term in terms]}
            await self._run("delete_outdated_terms", products=list(products), **values)
            await self._run("add_terms", catalogue=catalogue, **values)
            values = {"kept": [row[0] for row in images], "images": [row[1] for row in images]}
            await self._run("delete_outdated_images", products=list(products), **values)
            for *row, renditions in images:
                image = dict(zip(_IMAGE_COLUMNS, row, strict=True))
                await self._run("add_image", catalogue=catalogue, renditions=Jsonb(renditions), **image)
        # a licence that was extended keeps its former view until the documents of the new one are written
        licences = await self._fetch_rows("list_licensed_groups")
        views = {NETWORK_VIEW, *(view for groups, view in licences), *(find_view(groups) for groups, _ in licences)}
        await self.write_documents(products, views)

    async def write_documents(self, products: Sequence[str], views: Collection[str]) -> None:
        catalogue = await self._fetch_scalar("get_catalogue", id=products[0])
        rows = await self._fetch_rows("list_documents", ids=encode_texts(products))
        hide = self._rendering.hide_offer_fields

        def render() -> dict[str, list[Any]]:
            documents = [
                (id, view, hide(body, HIDDEN_FIELDS_BY_VIEW[view])) for id, body in rows for view in sorted(views)
            ]
            return {
                "products": [id for id, _, _ in documents],
                "views": [view for _, view, _ in documents],
                "bodies": [body for _, _, body in documents],
                "etags": [compute_etag(body) for _, _, body in documents],
            }

        values = await asyncio.to_thread(render)
        async with self._session.as_owner():
            await self._run("write_documents", catalogue=catalogue, **values)

    async def remove(self, products: Sequence[str], visible: Sequence[str] = ()) -> None:
        async with self._session.as_owner():
            for name in _TABLES:
                await self._run(f"delete_{name}", products=list(products))
            await self._run("add_references", ids=encode_texts(products), visible=encode_texts(visible))

    async def get_documents(self, products: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        rows = await self._fetch_rows("list_documents", ids=encode_texts(products))
        return await asyncio.to_thread(lambda: {id: decode_data(body) for id, body in rows})
