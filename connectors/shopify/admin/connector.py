"""Connector for the Admin API of a Shopify shop. The snapshot of a run is the file of one bulk operation."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData
from connectors.sdk.responses import raise_for_status
from connectors.sdk.settings import NEUTRAL_SETTINGS, URL, build_config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched, StockCheckItem
from connectors.sdk.tables import Table
from connectors.shopify.admin import queries
from connectors.shopify.admin.bulk import start_operation, wait_for_operation
from connectors.shopify.admin.graphql import VERSION, find_api_version, find_shop_url
from connectors.shopify.admin.rows import SHOP_KEY, read_admin_tables
from connectors.shopify.admin.stock_levels import fetch_stock_lines

_TYPE = "application/jsonl"


class ShopifyAdminConnector:
    """Connector for the products or the stock of a Shopify shop, by the access token of an app in the shop."""

    @asynccontextmanager
    async def fetch(self, ctx: Context) -> AsyncIterator[Fetched]:
        """Fetch a line with the shop's currency, then the file of a bulk operation. Raises ConnectorError."""
        is_stock = ctx.stream == "stock"
        currency, operation = await start_operation(ctx, queries.STOCK if is_stock else queries.CATALOGUE)
        result = await wait_for_operation(ctx, operation)
        shop = {"currency": str(currency or "").lower() or None, "stream": ctx.stream, "objects": result.objects}
        head = json.dumps({SHOP_KEY: shop}).encode() + b"\n"
        if result.url is None:
            yield _build_fetched(ctx, _prepend(head, None))
            return
        # The file is on another host, at a signed address; the token is sent to the shop only.
        async with ctx.http.get(result.url, headers={"Accept": _TYPE}) as response:
            raise_for_status(response, ctx)
            yield _build_fetched(ctx, _prepend(head, response.chunks))

    @asynccontextmanager
    async def fetch_stock(self, ctx: Context, item: StockCheckItem) -> AsyncIterator[Fetched]:
        """Check the stock of one item: fetch the variant's stock by location, as a snapshot of the stock stream.

        Raises ConnectorError.
        """
        lines = await fetch_stock_lines(ctx, item.variant_key)
        shop = {"currency": None, "stream": "stock", "objects": len(lines)}
        content = b"".join(json.dumps(line).encode() + b"\n" for line in ({SHOP_KEY: shop}, *lines))
        yield _build_fetched(ctx, _prepend(content, None))

    def parse_tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield the only table of the snapshot. Raises BadData."""
        return read_admin_tables(ctx, path)


def _build_fetched(ctx: Context, chunks: AsyncIterator[bytes]) -> Fetched:
    return Fetched(
        status=200,
        chunks=chunks,
        final_url=find_shop_url(ctx),
        content_type=_TYPE,
        filename=f"{ctx.stream}.jsonl",
        served_by=f"admin/{find_api_version(ctx)}",
    )


async def _prepend(head: bytes, chunks: AsyncIterator[bytes] | None) -> AsyncIterator[bytes]:
    yield head
    if chunks is None:
        return
    has_started = False
    async for chunk in chunks:
        if not has_started and chunk.lstrip()[:1] == b"<":
            raise BadData("The shop returned a web page instead of its file.")
        has_started = True
        yield chunk


SPEC = ConnectorSpec(
    name="shopify-admin",
    title="Shopify Admin API",
    kinds=frozenset({"api"}),
    streams=frozenset({"catalogue", "stock"}),
    can_fetch=True,
    config_schema=build_config_schema(
        {
            "url": {**URL, "description": "The shop's URL; by default, that of the shop in the credentials."},
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
                "x-words": "the shop's myshopify.com domain in lower case, such as acme.myshopify.com",
                "description": "The shop's myshopify.com domain, such as acme.myshopify.com.",
            },
            "access_token": {
                "type": "string",
                "pattern": "^[!-~]{8,500}$",
                "x-words": "8 to 500 ASCII letters, digits and punctuation without spaces",
                "description": "An Admin API access token with read_products, read_inventory and read_locations.",
            },
        },
        "required": ["shop", "access_token"],
        "additionalProperties": False,
    },
    open=ShopifyAdminConnector,
    address_settings=frozenset({"url"}),
    neutral_settings=NEUTRAL_SETTINGS | {"api_version"},
    can_check_stock=True,
)
