"""Connector for the public list of products of a Shopify shop (products.json)."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData
from connectors.sdk.fetching import fetch_page
from connectors.sdk.readers import json_records
from connectors.sdk.settings import NEUTRAL_SETTINGS, URL, build_config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched, StockCheckItem
from connectors.sdk.tables import Table
from connectors.shopify.pages import fetch_first_page, iterate_product_pages, parse_variant_stock
from connectors.shopify.rows import build_shopify_table


class ShopifyConnector:
    """Connector for the public products of a Shopify shop, or of the collection to which the setting `url` leads."""

    @asynccontextmanager
    async def fetch(self, ctx: Context) -> AsyncIterator[Fetched]:
        """Fetch all pages of products as a snapshot with one page per line. Raises ConnectorError."""
        # The request is unconditional, because the ETag of the first page does not cover the others.
        products_url = build_products_url(str(ctx.config.get("url", "")))
        first = await fetch_first_page(ctx, products_url)
        yield Fetched(
            status=first.page.status,
            chunks=iterate_product_pages(ctx, products_url, first),
            final_url=first.page.final_url,
            content_type="application/jsonl",
            filename="products.jsonl",
            served_by="products.json",
        )

    @asynccontextmanager
    async def fetch_stock(self, ctx: Context, item: StockCheckItem) -> AsyncIterator[Fetched]:
        """Check the stock of one item: fetch the variant's availability. The quantity is not public.

        Raises ConnectorError.
        """
        variant_url = build_variant_url(str(ctx.config.get("url", "")), item.variant_key)
        answer = await fetch_page(ctx, variant_url, {"Accept": "application/json"}, can_wait=False)
        line = json.dumps({"products": [await parse_variant_stock(answer, item)]}).encode() + b"\n"
        yield Fetched(
            status=answer.status,
            chunks=_yield_line(line),
            final_url=answer.final_url,
            content_type="application/jsonl",
            filename="stock.jsonl",
            served_by="variants.js",
        )

    def parse_tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield the only table of the snapshot; for the stock stream, with the stock columns only. Raises BadData."""
        if path.stat().st_size == 0:
            raise BadData("the file is empty")
        yield build_shopify_table(json_records.iterate_pages_file(path, "products", ctx.limits, ctx.report), ctx)


async def _yield_line(line: bytes) -> AsyncIterator[bytes]:
    yield line


def build_variant_url(shop: str, variant: str) -> str:
    """Return the URL of the JSON of one variant in a shop. Raises BadData."""
    if not variant.isdecimal():
        raise BadData("The item's key is not a Shopify variant ID.")
    parts = urlsplit(build_products_url(shop))
    return urlunsplit((parts.scheme, parts.netloc, f"/variants/{variant}.js", "", ""))


def build_products_url(shop: str) -> str:
    """Return the URL of products.json for the URL of a shop or of a collection. Raises BadData."""
    parts = urlsplit(shop if "://" in shop else f"https://{shop}")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadData("the source has no shop URL (config.url)")
    segments = [segment for segment in parts.path.split("/") if segment]
    collection = []
    if "collections" in segments[:-1]:
        collection = segments[: segments.index("collections") + 2]
    return urlunsplit((parts.scheme, parts.netloc, "/".join(["", *collection, "products.json"]), "", ""))


SPEC = ConnectorSpec(
    name="shopify",
    title="Shopify shop",
    kinds=frozenset({"url"}),
    streams=frozenset({"catalogue"}),
    can_fetch=True,
    config_schema=build_config_schema(
        {"url": {**URL, "description": "The URL of the shop or of one of its collections."}}, required=("url",)
    ),
    open=ShopifyConnector,
    address_settings=frozenset({"url"}),
    neutral_settings=NEUTRAL_SETTINGS,
    can_check_stock=True,
)
