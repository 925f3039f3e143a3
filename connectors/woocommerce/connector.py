"""Connector for WooCommerce shops: products, variations of variable products, and units from the shop's settings."""

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from connectors.sdk.context import Context
from connectors.sdk.credentials import with_query
from connectors.sdk.errors import BadData, Refused
from connectors.sdk.notes import note
from connectors.sdk.pulling import Page, page
from connectors.sdk.settings import HARMLESS, URL, config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched, Item
from connectors.sdk.tables import Table
from connectors.sdk.walking import Leaf, Listing, leaves, one, read
from connectors.woocommerce.rows import tables

_API = "/wp-json/wc/v3"
_SIZE = 100
_STOCK_FIELDS = "id,sku,type,parent_id,stock_status,stock_quantity,manage_stock,backorders"
_UNITS = {
    "currency": "general/woocommerce_currency",
    "weight_unit": "products/woocommerce_weight_unit",
    "dimension_unit": "products/woocommerce_dimension_unit",
}
_HIDDEN = frozenset({401, 403, 404})
_TOKEN = {
    "type": "string",
    "minLength": 8,
    "maxLength": 200,
    "pattern": "^[!-~]+$",
    "x-words": "ASCII letters, digits and signs without spaces",
}


class WooCommerceConnector:
    """Connector that reads wc/v3 with a consumer key with read permission."""

    @asynccontextmanager
    async def fetch(self, ctx: Context) -> AsyncIterator[Fetched]:
        """Fetch the pages, one a line: a hundred products each, followed by the variations of its variable products."""
        walk = leaves(ctx, _products(ctx), first=True)
        first = await anext(walk)
        yield Fetched(
            status=first.answer.status,
            chunks=_chunks(ctx, first, walk),
            final_url=_base(ctx),
            content_type="application/jsonl",
            filename="products.jsonl",
            served_by="wc/v3",
        )

    @asynccontextmanager
    async def check(self, ctx: Context, item: Item) -> AsyncIterator[Fetched]:
        """Fetch one product, or one variation of it, as a page of its own."""
        parent, own = item.product_key, item.variant_key
        if not (parent.isdecimal() and own.isdecimal()):
            raise BadData("The item's keys are not WooCommerce product IDs.")
        alone = parent == own
        path = f"/products/{parent}" if alone else f"/products/{parent}/variations/{own}"
        url, headers = _signed(ctx, path, {"_fields": _STOCK_FIELDS})
        answer = await page(ctx, url, headers, patient=False)
        if not isinstance(await read(answer), dict):
            raise BadData("The shop's response is not a product.")
        yield Fetched(
            status=answer.status,
            chunks=_line(
                one("products" if alone else "variations", answer, None if alone else {"parent": int(parent)})
            ),
            final_url=_base(ctx),
            content_type="application/jsonl",
            filename="stock.jsonl",
            served_by="wc/v3",
        )

    def tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield one table of the snapshot. Raises BadData."""
        return tables(ctx, path)


async def _chunks(ctx: Context, first: Leaf, walk: AsyncIterator[Leaf]) -> AsyncIterator[bytes]:
    if ctx.stream == "catalogue":
        async for line in _about(ctx):
            yield line
    leaf: Leaf | None = first
    while leaf is not None:
        yield leaf.line
        for item in leaf.items:
            if isinstance(item, dict) and item.get("type") == "variable" and isinstance(item.get("id"), int):
                async for variations in leaves(ctx, _variations(ctx, item["id"]), about={"parent": item["id"]}):
                    yield variations.line
        leaf = await anext(walk, None)


async def _line(line: bytes) -> AsyncIterator[bytes]:
    yield line


async def _about(ctx: Context) -> AsyncIterator[bytes]:
    """Yield the shop's currency and units, and its categories, which define the category paths of products."""
    found: dict[str, Any] = {}
    for name, path in _UNITS.items():
        url, headers = _signed(ctx, f"/settings/{path}", {})
        answer = await page(ctx, url, headers, patient=True, ends=_HIDDEN)
        value = (await read(answer)).get("value") if answer.status not in _HIDDEN else None
        found[name] = ctx.config.get(name) or value
    yield json.dumps({"kind": "settings", **found}).encode() + b"\n"
    if not found["weight_unit"] or not found["dimension_unit"]:
        yield note("the shop does not show its units (its settings need a key that may read them): name them in config")
    async for leaf in leaves(
        ctx, _listing(ctx, "categories", "/products/categories", {"orderby": "id", "order": "asc"})
    ):
        yield leaf.line


def _products(ctx: Context) -> Listing:
    query = {"status": "publish", "orderby": "id", "order": "asc"}
    return _listing(ctx, "products", "/products", _narrowed(ctx, query))


def _variations(ctx: Context, parent: int) -> Listing:
    query = {"status": "publish", "orderby": "id", "order": "asc"}
    return _listing(ctx, "variations", f"/products/{parent}/variations", _narrowed(ctx, query))


def _narrowed(ctx: Context, query: dict[str, str]) -> dict[str, str]:
    return {**query, "_fields": _STOCK_FIELDS} if ctx.stream == "stock" else query


def _listing(ctx: Context, kind: str, path: str, query: Mapping[str, str]) -> Listing:
    def request(offset: int, size: int) -> tuple[str, Mapping[str, str]]:
        return _signed(ctx, path, {**query, "per_page": str(size), "offset": str(offset)})

    return Listing(kind, request, lambda document: document, _total, _SIZE)


def _total(answer: Page, _: Any) -> int | None:
    stated = (answer.headers.get("X-WP-Total") or "").strip()
    return int(stated) if stated.isdecimal() and len(stated) < 12 else None


def _base(ctx: Context) -> str:
    url = str(ctx.config.get("url", "")).rstrip("/")
    if not urlsplit(url).hostname:
        raise BadData("the source's settings name no shop address (config.url)")
    return url if url.endswith(_API) else f"{url}{_API}"


def _signed(ctx: Context, path: str, query: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return URL and headers with the consumer key, by basic authentication, or in the query if config says so."""
    credentials = ctx.credentials
    if not credentials:
        raise Refused("WooCommerce requires a consumer key and its secret.", credentials=True)
    url = with_query(f"{_base(ctx)}{path}", query)
    headers = {"Accept": "application/json"}
    if ctx.config.get("auth") == "query":
        return with_query(url, dict(credentials)), headers
    pair = f"{credentials['consumer_key']}:{credentials['consumer_secret']}".encode()
    return url, {**headers, "Authorization": f"Basic {b64encode(pair).decode('ascii')}"}


SPEC = ConnectorSpec(
    name="woocommerce",
    title="WooCommerce",
    kinds=frozenset({"api"}),
    streams=frozenset({"catalogue", "stock"}),
    fetches=True,
    config_schema=config_schema(
        {
            "url": {
                **URL,
                "description": "The shop's address, such as https://shop.example; https, for the key travels with it.",
            },
            "auth": {
                "enum": ["basic", "query"],
                "default": "basic",
                "description": "How the key is sent: query for servers that drop the Authorization header.",
            },
            "weight_unit": {
                "enum": ["kg", "g", "lbs", "oz"],
                "description": "The unit of weights, where the key may not read the shop's settings.",
            },
            "dimension_unit": {
                "enum": ["m", "cm", "mm", "in", "yd"],
                "description": "The unit of dimensions, where the key may not read the shop's settings.",
            },
        },
        required=("url",),
    ),
    credentials_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "consumer_key": {
                **_TOKEN,
                "description": "ck_…, with permission to read (WooCommerce, Settings, Advanced, REST API).",
            },
            "consumer_secret": {**_TOKEN, "description": "cs_…, shown once with the key."},
        },
        "required": ["consumer_key", "consumer_secret"],
        "additionalProperties": False,
    },
    open=WooCommerceConnector,
    addresses=frozenset({"url"}),
    harmless=HARMLESS | {"auth", "weight_unit", "dimension_unit"},
    checks=True,
)
