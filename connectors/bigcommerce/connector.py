"""Connector for BigCommerce stores, which fetches units, brands, categories and products by the catalogue API (V3)."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from connectors.bigcommerce.rows import read_bigcommerce_tables
from connectors.sdk.context import Context
from connectors.sdk.credentials import set_query_parameters
from connectors.sdk.errors import BadData, Refused, Unreachable
from connectors.sdk.fetching import FetchedPage, fetch_page
from connectors.sdk.listing_pages import (
    Listing,
    ListingPage,
    decode_response,
    encode_page,
    iterate_pages,
    wait_for_rate_limit,
)
from connectors.sdk.settings import NEUTRAL_SETTINGS, URL, build_config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched, StockCheckItem
from connectors.sdk.tables import Table

_API_HOST = "https://api.bigcommerce.com"
_PAGE_SIZE = 128
"""Items per page; the API permits 250.

If a page is too large, `iterate_pages` halves the number. As a power of two, the number can be halved repeatedly, and a
smaller page always begins at the item at which the larger one began.
"""
_INCLUDED_PARTS = "variants,images,custom_fields"
_STOCK_FIELDS = "id,sku,inventory_level,inventory_tracking,availability"


class BigCommerceConnector:
    """Connector for BigCommerce stores, by an API token with read access to products and store information."""

    @asynccontextmanager
    async def fetch(self, ctx: Context) -> AsyncIterator[Fetched]:
        """Fetch a snapshot with one page per line: units, brands, categories, then products. Raises ConnectorError."""
        pages = iterate_pages(ctx, _build_products_listing(ctx), starts_fetch=True)
        first = await anext(pages)
        yield Fetched(
            status=first.response.status,
            chunks=_iterate_chunks(ctx, first, pages),
            final_url=_build_url(ctx, "v3/catalog/products", {}),
            content_type="application/jsonl",
            filename="products.jsonl",
            served_by="v3",
        )

    @asynccontextmanager
    async def fetch_stock(self, ctx: Context, item: StockCheckItem) -> AsyncIterator[Fetched]:
        """Check the stock of one item: fetch its product with all variants, as one page. Raises ConnectorError."""
        if not item.product_key.isdecimal():
            raise BadData("The item's key is not a BigCommerce product ID.")
        query = {"id": item.product_key, "include": "variants", "include_fields": _STOCK_FIELDS}
        answer = await fetch_page(
            ctx, _build_url(ctx, "v3/catalog/products", query), _build_headers(ctx), can_wait=False
        )
        found = _read_items(await decode_response(answer))
        if not isinstance(found, list):
            raise BadData("The store's response contains no list of products.")
        if not found:
            raise Unreachable("The store no longer has this product.")
        yield Fetched(
            status=answer.status,
            chunks=_yield_line(encode_page("products", answer)),
            final_url=_build_url(ctx, "v3/catalog/products", {}),
            content_type="application/jsonl",
            filename="stock.jsonl",
            served_by="v3",
        )

    def parse_tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield the only table of the snapshot. Raises BadData."""
        return read_bigcommerce_tables(ctx, path)


async def _iterate_chunks(ctx: Context, first: ListingPage, pages: AsyncIterator[ListingPage]) -> AsyncIterator[bytes]:
    if ctx.stream == "catalogue":
        answer = await fetch_page(ctx, _build_url(ctx, "v2/store", {}), _build_headers(ctx), can_wait=True)
        store = await decode_response(answer)
        store = store if isinstance(store, dict) else {}
        units = {name: store.get(name) for name in ("currency", "weight_units", "dimension_units")}
        yield json.dumps({"kind": "store", **units}).encode() + b"\n"
        await wait_for_rate_limit(ctx, answer)
        for kind, path in (("brands", "v3/catalog/brands"), ("categories", "v3/catalog/trees/categories")):
            async for page in iterate_pages(ctx, _build_listing(ctx, kind, path, {})):
                yield page.line
    yield first.line
    async for page in pages:
        yield page.line


async def _yield_line(line: bytes) -> AsyncIterator[bytes]:
    yield line


def _build_products_listing(ctx: Context) -> Listing:
    query = {"is_visible": "true", "sort": "id", "direction": "asc", "include": _INCLUDED_PARTS}
    if ctx.stream == "stock":
        query |= {"include": "variants", "include_fields": _STOCK_FIELDS}
    return _build_listing(ctx, "products", "v3/catalog/products", query)


def _build_listing(ctx: Context, kind: str, path: str, query: Mapping[str, str]) -> Listing:
    def build_request(offset: int, size: int) -> tuple[str, Mapping[str, str]]:
        number = offset // size + 1
        return _build_url(ctx, path, {**query, "limit": str(size), "page": str(number)}), _build_headers(ctx)

    return Listing(kind, build_request, _read_items, _read_total, _PAGE_SIZE)


def _read_items(document: Any) -> Any:
    return document.get("data") if isinstance(document, dict) else None


def _read_total(_: FetchedPage, document: Any) -> int | None:
    """Return the number of items in the whole list from `meta.pagination` of a response, or None."""
    meta = document.get("meta") if isinstance(document, dict) else None
    pagination = meta.get("pagination") if isinstance(meta, dict) else None
    total = pagination.get("total") if isinstance(pagination, dict) else None
    return total if isinstance(total, int) and not isinstance(total, bool) else None


def _build_url(ctx: Context, path: str, query: Mapping[str, str]) -> str:
    store = (ctx.credentials or {}).get("store", "")
    base = str(ctx.config.get("url", _API_HOST)).rstrip("/")
    return set_query_parameters(f"{base}/stores/{store}/{path}", query)


def _build_headers(ctx: Context) -> dict[str, str]:
    token = (ctx.credentials or {}).get("access_token")
    if not token:
        raise Refused("BigCommerce requires a store and an access token.", is_credentials_error=True)
    return {"Accept": "application/json", "X-Auth-Token": str(token)}


SPEC = ConnectorSpec(
    name="bigcommerce",
    title="BigCommerce",
    kinds=frozenset({"api"}),
    streams=frozenset({"catalogue", "stock"}),
    can_fetch=True,
    config_schema=build_config_schema({"url": {**URL, "description": f"The URL of the API; {_API_HOST} by default."}}),
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
                "x-words": "8 to 200 ASCII letters, digits and punctuation without spaces",
                "description": "The token of an API account with read access to products and store information.",
            },
        },
        "required": ["store", "access_token"],
        "additionalProperties": False,
    },
    open=BigCommerceConnector,
    address_settings=frozenset({"url"}),
    neutral_settings=NEUTRAL_SETTINGS,
    can_check_stock=True,
)
