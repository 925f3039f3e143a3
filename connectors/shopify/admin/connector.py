"""Connector for a shop's Admin API: one bulk operation a run, its file streamed unchanged."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from connectors.sdk.answers import check
from connectors.sdk.context import Context
from connectors.sdk.errors import BadData
from connectors.sdk.settings import HARMLESS, URL, config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched, Item
from connectors.sdk.tables import Table
from connectors.shopify.admin import queries
from connectors.shopify.admin.bulk import begin, finished
from connectors.shopify.admin.graphql import VERSION, base_url, version_of
from connectors.shopify.admin.levels import stock_lines
from connectors.shopify.admin.rows import SHOP, tables

_TYPE = "application/jsonl"


class ShopifyAdminConnector:
    """Connector that reads products, or stock by location, with an access token of an app installed in the shop."""

    @asynccontextmanager
    async def fetch(self, ctx: Context) -> AsyncIterator[Fetched]:
        """Fetch the file of the stream's bulk operation, after a line with the shop's currency. Raises ConnectorError."""
        stock = ctx.stream == "stock"
        currency, operation = await begin(ctx, queries.STOCK if stock else queries.CATALOGUE)
        written = await finished(ctx, operation)
        shop = {"currency": str(currency or "").lower() or None, "stream": ctx.stream, "objects": written.objects}
        head = json.dumps({SHOP: shop}).encode() + b"\n"
        if written.url is None:
            yield _fetched(ctx, _after(head, None))
            return
        # The file is on another host, at a signed address; the token is sent to the shop only.
        async with ctx.http.get(written.url, headers={"Accept": _TYPE}) as response:
            check(response, ctx)
            yield _fetched(ctx, _after(head, response.chunks))

    @asynccontextmanager
    async def check(self, ctx: Context, item: Item) -> AsyncIterator[Fetched]:
        """Fetch one variant's stock by location, in the lines of a bulk operation's file. Raises ConnectorError."""
        lines = await stock_lines(ctx, item.variant_key)
        shop = {"currency": None, "stream": "stock", "objects": len(lines)}
        content = b"".join(json.dumps(line).encode() + b"\n" for line in ({SHOP: shop}, *lines))
        yield _fetched(ctx, _after(content, None))

    def tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield one table of the file. Raises BadData."""
        return tables(ctx, path)


def _fetched(ctx: Context, chunks: AsyncIterator[bytes]) -> Fetched:
    return Fetched(
        status=200,
        chunks=chunks,
        final_url=base_url(ctx),
        content_type=_TYPE,
        filename=f"{ctx.stream}.jsonl",
        served_by=f"admin/{version_of(ctx)}",
    )


async def _after(head: bytes, chunks: AsyncIterator[bytes] | None) -> AsyncIterator[bytes]:
    yield head
    if chunks is None:
        return
    has_started = False
    async for chunk in chunks:
        if not has_started and chunk.lstrip()[:1] == b"<":
            raise BadData("The shop's file is a web page.")
        has_started = True
        yield chunk


SPEC = ConnectorSpec(
    name="shopify-admin",
    title="Shopify Admin API",
    kinds=frozenset({"api"}),
    streams=frozenset({"catalogue", "stock"}),
    fetches=True,
    config_schema=config_schema(
        {
            "url": {**URL, "description": "The shop's address; by default, that of the shop in the credentials."},
            "api_version": {
                "type": "string",
                "pattern": "^20(2[6-9]|[3-9][0-9])-(01|04|07|10)$",
                "x-words": "a year from 2026 on and the first month of a quarter, such as 2026-04",
                "default": VERSION,
                "description": "The quarterly version of the Admin API.",
            },
        }
    ),
    credentials_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "shop": {
                "type": "string",
                "pattern": "^[a-z0-9][a-z0-9-]{0,99}[.]myshopify[.]com$",
                "x-words": "the shop's own domain in lower case, such as acme.myshopify.com",
                "description": "The shop's own domain, such as acme.myshopify.com.",
            },
            "access_token": {
                "type": "string",
                "pattern": "^[!-~]{8,500}$",
                "x-words": "8 to 500 ASCII letters, digits and signs without spaces",
                "description": "An Admin API access token with read_products, read_inventory and read_locations.",
            },
        },
        "required": ["shop", "access_token"],
        "additionalProperties": False,
    },
    open=ShopifyAdminConnector,
    addresses=frozenset({"url"}),
    harmless=HARMLESS | {"api_version"},
    checks=True,
)
