"""Connector for BigCommerce stores: products with variants and images, brands and categories by ID."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from connectors.bigcommerce.rows import tables
from connectors.sdk.context import Context
from connectors.sdk.credentials import with_query
from connectors.sdk.errors import BadData, Refused, Unreachable
from connectors.sdk.pulling import Page, page
from connectors.sdk.settings import HARMLESS, URL, config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched, Item
from connectors.sdk.tables import Table
from connectors.sdk.walking import Leaf, Listing, leaves, read, rest, wrapped

_HOST = "https://api.bigcommerce.com"
_SIZE = 128
"""Items a page; a power of two, so that a halved page begins at the same item. At most 250 are allowed."""
_INCLUDED = "variants,images,custom_fields"
_STOCK_FIELDS = "id,sku,inventory_level,inventory_tracking,availability"


class BigCommerceConnector:
    """Connector that reads a store's catalogue, by an API token that may read products and store information."""

    @asynccontextmanager
    async def fetch(self, ctx: Context) -> AsyncIterator[Fetched]:
        """Fetch the pages, one a line: the store's units, brands, categories, then products."""
        walk = leaves(ctx, _products(ctx), first=True)
        first = await anext(walk)
        yield Fetched(
            status=first.answer.status,
            chunks=_chunks(ctx, first, walk),
            final_url=_url(ctx, "v3/catalog/products", {}),
            content_type="application/jsonl",
            filename="products.jsonl",
            served_by="v3",
        )

    @asynccontextmanager
    async def check(self, ctx: Context, item: Item) -> AsyncIterator[Fetched]:
        """Fetch the item's product with its variants, as a page of the list."""
        if not item.product_key.isdecimal():
            raise BadData("The item's key is not a BigCommerce product ID.")
        query = {"id": item.product_key, "include": "variants", "include_fields": _STOCK_FIELDS}
        answer = await page(ctx, _url(ctx, "v3/catalog/products", query), _headers(ctx), patient=False)
        found = _items(await read(answer))
        if not isinstance(found, list):
            raise BadData("The store's answer lists no products.")
        if not found:
            raise Unreachable("The store no longer has this product.")
        yield Fetched(
            status=answer.status,
            chunks=_line(wrapped("products", answer)),
            final_url=_url(ctx, "v3/catalog/products", {}),
            content_type="application/jsonl",
            filename="stock.jsonl",
            served_by="v3",
        )

    def tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield one table of the snapshot. Raises BadData."""
        return tables(ctx, path)


async def _chunks(ctx: Context, first: Leaf, walk: AsyncIterator[Leaf]) -> AsyncIterator[bytes]:
    if ctx.stream == "catalogue":
        answer = await page(ctx, _url(ctx, "v2/store", {}), _headers(ctx), patient=True)
        store = await read(answer)
        store = store if isinstance(store, dict) else {}
        units = {name: store.get(name) for name in ("currency", "weight_units", "dimension_units")}
        yield json.dumps({"kind": "store", **units}).encode() + b"\n"
        await rest(ctx, answer)
        for kind, path in (("brands", "v3/catalog/brands"), ("categories", "v3/catalog/trees/categories")):
            async for leaf in leaves(ctx, _listing(ctx, kind, path, {})):
                yield leaf.line
    yield first.line
    async for leaf in walk:
        yield leaf.line


async def _line(line: bytes) -> AsyncIterator[bytes]:
    yield line


def _products(ctx: Context) -> Listing:
    query = {"is_visible": "true", "sort": "id", "direction": "asc", "include": _INCLUDED}
    if ctx.stream == "stock":
        query |= {"include": "variants", "include_fields": _STOCK_FIELDS}
    return _listing(ctx, "products", "v3/catalog/products", query)


def _listing(ctx: Context, kind: str, path: str, query: Mapping[str, str]) -> Listing:
    def request(offset: int, size: int) -> tuple[str, Mapping[str, str]]:
        number = offset // size + 1
        return _url(ctx, path, {**query, "limit": str(size), "page": str(number)}), _headers(ctx)

    return Listing(kind, request, _items, _total, _SIZE)


def _items(document: Any) -> Any:
    return document.get("data") if isinstance(document, dict) else None


def _total(_: Page, document: Any) -> int | None:
    """Return the number of all items by `meta.pagination`, or None."""
    meta = document.get("meta") if isinstance(document, dict) else None
    pagination = meta.get("pagination") if isinstance(meta, dict) else None
    total = pagination.get("total") if isinstance(pagination, dict) else None
    return total if isinstance(total, int) and not isinstance(total, bool) else None


def _url(ctx: Context, path: str, query: Mapping[str, str]) -> str:
    store = (ctx.credentials or {}).get("store", "")
    base = str(ctx.config.get("url", _HOST)).rstrip("/")
    return with_query(f"{base}/stores/{store}/{path}", query)


def _headers(ctx: Context) -> dict[str, str]:
    token = (ctx.credentials or {}).get("access_token")
    if not token:
        raise Refused("BigCommerce requires a store and an access token.", credentials=True)
    return {"Accept": "application/json", "X-Auth-Token": str(token)}


SPEC = ConnectorSpec(
    name="bigcommerce",
    title="BigCommerce",
    kinds=frozenset({"api"}),
    streams=frozenset({"catalogue", "stock"}),
    fetches=True,
    config_schema=config_schema({"url": {**URL, "description": f"The address of the API; {_HOST} by default."}}),
    credentials_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "store": {
                "type": "string",
                "pattern": "^[a-z0-9]{4,40}$",
                "x-words": "4 to 40 lower-case letters and digits",
                "description": "The store's hash, as in store-<hash>.mybigcommerce.com.",
            },
            "access_token": {
                "type": "string",
                "pattern": "^[!-~]{8,200}$",
                "x-words": "8 to 200 ASCII letters, digits and signs without spaces",
                "description": "The token of an API account that may read products and store information.",
            },
        },
        "required": ["store", "access_token"],
        "additionalProperties": False,
    },
    open=BigCommerceConnector,
    addresses=frozenset({"url"}),
    harmless=HARMLESS,
    checks=True,
)
