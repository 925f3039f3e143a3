"""Connector for a shop's public products.json: fetches pages, gives one row a variant."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData
from connectors.sdk.pulling import page
from connectors.sdk.readers import json_records
from connectors.sdk.settings import HARMLESS, URL, config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched, Item
from connectors.sdk.tables import Table
from connectors.shopify.pages import first_page, stock_of, walk
from connectors.shopify.rows import table


class ShopifyConnector:
    """Connector for /products.json of a shop, or of one of its collections (config.url = …/collections/<handle>)."""

    @asynccontextmanager
    async def fetch(self, ctx: Context) -> AsyncIterator[Fetched]:
        """Fetch the pages, one JSON document a line.

        The request is unconditional, as page one does not validate the others.
        """
        address = products_url(str(ctx.config.get("url", "")))
        first = await first_page(ctx, address)
        yield Fetched(
            status=first.page.status,
            chunks=walk(ctx, address, first),
            final_url=first.page.final_url,
            content_type="application/jsonl",
            filename="products.jsonl",
            served_by="products.json",
        )

    @asynccontextmanager
    async def check(self, ctx: Context, item: Item) -> AsyncIterator[Fetched]:
        """Fetch one variant's availability, as the shop's own pages do; no quantity is public."""
        address = variant_url(str(ctx.config.get("url", "")), item.variant_key)
        answer = await page(ctx, address, {"Accept": "application/json"}, patient=False)
        line = json.dumps({"products": [await stock_of(answer, item)]}).encode() + b"\n"
        yield Fetched(
            status=answer.status,
            chunks=_line(line),
            final_url=answer.final_url,
            content_type="application/jsonl",
            filename="stock.jsonl",
            served_by="variants.js",
        )

    def tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield one table of all pages, with stock columns only for the stock stream of stock checks. Raises BadData."""
        if path.stat().st_size == 0:
            raise BadData("the file is empty")
        yield table(json_records.pages(path, "products", ctx.limits, ctx.report), ctx)


async def _line(line: bytes) -> AsyncIterator[bytes]:
    yield line


def variant_url(shop: str, variant: str) -> str:
    """Return the address of one variant. Raises BadData."""
    if not variant.isdecimal():
        raise BadData("The item's key is not a Shopify variant ID.")
    parts = urlsplit(products_url(shop))
    return urlunsplit((parts.scheme, parts.netloc, f"/variants/{variant}.js", "", ""))


def products_url(shop: str) -> str:
    """Return the address of the product list of a shop or of a collection. Raises BadData."""
    parts = urlsplit(shop if "://" in shop else f"https://{shop}")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadData("the source's settings name no shop address (config.url)")
    steps = [step for step in parts.path.split("/") if step]
    if "collections" in steps[:-1]:
        at = steps.index("collections")
        kept = steps[: at + 2]
    else:
        kept = []
    return urlunsplit((parts.scheme, parts.netloc, "/".join(["", *kept, "products.json"]), "", ""))


SPEC = ConnectorSpec(
    name="shopify",
    title="Shopify shop",
    kinds=frozenset({"url"}),
    streams=frozenset({"catalogue"}),
    fetches=True,
    config_schema=config_schema(
        {"url": {**URL, "description": "The shop's address, or that of one of its collections."}}, required=("url",)
    ),
    open=ShopifyConnector,
    addresses=frozenset({"url"}),
    harmless=HARMLESS,
    checks=True,
)
