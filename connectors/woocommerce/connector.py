"""Connector for WooCommerce shops, which fetches products, variations, categories and units by the REST API (wc/v3)."""

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from connectors.sdk.context import Context
from connectors.sdk.credentials import set_query_parameters
from connectors.sdk.errors import BadData, Refused
from connectors.sdk.fetching import FetchedPage, fetch_page
from connectors.sdk.listing_pages import Listing, ListingPage, decode_response, encode_single_item, iterate_pages
from connectors.sdk.notes import encode_note
from connectors.sdk.settings import NEUTRAL_SETTINGS, URL, build_config_schema
from connectors.sdk.spec import ConnectorSpec, Fetched, StockCheckItem
from connectors.sdk.tables import Table
from connectors.woocommerce.rows import read_woocommerce_tables

_API = "/wp-json/wc/v3"
_PAGE_SIZE = 100
_STOCK_FIELDS = "id,sku,type,parent_id,stock_status,stock_quantity,manage_stock,backorders"
_UNIT_SETTINGS = {
    "currency": "general/woocommerce_currency",
    "weight_unit": "products/woocommerce_weight_unit",
    "dimension_unit": "products/woocommerce_dimension_unit",
}
_HIDDEN_STATUSES = frozenset({401, 403, 404})
_KEY_SCHEMA = {
    "type": "string",
    "minLength": 8,
    "maxLength": 200,
    "pattern": "^[!-~]+$",
    "x-words": "ASCII letters, digits and punctuation without spaces",
}


class WooCommerceConnector:
    """Connector for WooCommerce shops, by a consumer key with read permission."""

    @asynccontextmanager
    async def fetch(self, ctx: Context) -> AsyncIterator[Fetched]:
        """Fetch pages of up to 100 products, one per line, each followed by the pages of its products' variations."""
        pages = iterate_pages(ctx, _build_products_listing(ctx), starts_fetch=True)
        first = await anext(pages)
        yield Fetched(
            status=first.response.status,
            chunks=_iterate_chunks(ctx, first, pages),
            final_url=_api_url(ctx),
            content_type="application/jsonl",
            filename="products.jsonl",
            served_by="wc/v3",
        )

    @asynccontextmanager
    async def fetch_stock(self, ctx: Context, item: StockCheckItem) -> AsyncIterator[Fetched]:
        """Check the stock of one item: fetch its product or variation, as one page. Raises ConnectorError."""
        product, variant = item.product_key, item.variant_key
        if not (product.isdecimal() and variant.isdecimal()):
            raise BadData("The item's keys are not WooCommerce product IDs.")
        is_product = product == variant
        path = f"/products/{product}" if is_product else f"/products/{product}/variations/{variant}"
        url, headers = _build_request(ctx, path, {"_fields": _STOCK_FIELDS})
        response = await fetch_page(ctx, url, headers, can_wait=False)
        if not isinstance(await decode_response(response), dict):
            raise BadData("The shop's response is not a product.")
        yield Fetched(
            status=response.status,
            chunks=_yield_line(
                encode_single_item(
                    "products" if is_product else "variations",
                    response,
                    None if is_product else {"parent": int(product)},
                )
            ),
            final_url=_api_url(ctx),
            content_type="application/jsonl",
            filename="stock.jsonl",
            served_by="wc/v3",
        )

    def parse_tables(self, ctx: Context, path: Path) -> Iterator[Table]:
        """Yield the only table of the snapshot. Raises BadData."""
        return read_woocommerce_tables(ctx, path)


async def _iterate_chunks(ctx: Context, first: ListingPage, pages: AsyncIterator[ListingPage]) -> AsyncIterator[bytes]:
    if ctx.stream == "catalogue":
        async for line in _fetch_shop_data(ctx):
            yield line
    page: ListingPage | None = first
    while page is not None:
        yield page.line
        for item in page.items:
            if isinstance(item, dict) and item.get("type") == "variable" and isinstance(item.get("id"), int):
                async for variations in iterate_pages(
                    ctx, _build_variations_listing(ctx, item["id"]), extra_members={"parent": item["id"]}
                ):
                    yield variations.line
        page = await anext(pages, None)


async def _yield_line(line: bytes) -> AsyncIterator[bytes]:
    yield line


async def _fetch_shop_data(ctx: Context) -> AsyncIterator[bytes]:
    """Yield lines with the shop's currency, units and categories, which precede the products in the snapshot."""
    found: dict[str, Any] = {}
    for name, path in _UNIT_SETTINGS.items():
        url, headers = _build_request(ctx, f"/settings/{path}", {})
        response = await fetch_page(ctx, url, headers, can_wait=True, end_statuses=_HIDDEN_STATUSES)
        value = (await decode_response(response)).get("value") if response.status not in _HIDDEN_STATUSES else None
        found[name] = ctx.config.get(name) or value
    yield json.dumps({"kind": "settings", **found}).encode() + b"\n"
    if not found["weight_unit"] or not found["dimension_unit"]:
        yield encode_note("the key cannot read the shop's units: set them in config")
    async for page in iterate_pages(
        ctx, _build_listing(ctx, "categories", "/products/categories", {"orderby": "id", "order": "asc"})
    ):
        yield page.line


def _build_products_listing(ctx: Context) -> Listing:
    query = {"status": "publish", "orderby": "id", "order": "asc"}
    return _build_listing(ctx, "products", "/products", _restrict_fields(ctx, query))


def _build_variations_listing(ctx: Context, parent: int) -> Listing:
    query = {"status": "publish", "orderby": "id", "order": "asc"}
    return _build_listing(ctx, "variations", f"/products/{parent}/variations", _restrict_fields(ctx, query))


def _restrict_fields(ctx: Context, query: dict[str, str]) -> dict[str, str]:
    return {**query, "_fields": _STOCK_FIELDS} if ctx.stream == "stock" else query


def _build_listing(ctx: Context, kind: str, path: str, query: Mapping[str, str]) -> Listing:
    def build_request(offset: int, size: int) -> tuple[str, Mapping[str, str]]:
        return _build_request(ctx, path, {**query, "per_page": str(size), "offset": str(offset)})

    return Listing(kind, build_request, lambda document: document, _read_total, _PAGE_SIZE)


def _read_total(response: FetchedPage, _: Any) -> int | None:
    stated = (response.headers.get("X-WP-Total") or "").strip()
    return int(stated) if stated.isdecimal() and len(stated) < 12 else None


def _api_url(ctx: Context) -> str:
    url = str(ctx.config.get("url", "")).rstrip("/")
    if not urlsplit(url).hostname:
        raise BadData("the source has no shop URL (config.url)")
    return url if url.endswith(_API) else f"{url}{_API}"


def _build_request(ctx: Context, path: str, query: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the URL and headers of a request that contains the consumer key and its secret.

    The key and the secret are in the header Authorization or, with the setting `auth: query`, in the URL. Raises
    Refused without credentials, BadData without the shop's URL.

    Args:
        ctx: The context.
        path: The path below the API's URL, such as `/products`.
        query: The query parameters.
    """
    credentials = ctx.credentials
    if not credentials:
        raise Refused("WooCommerce requires a consumer key and its secret.", is_credentials_error=True)
    url = set_query_parameters(f"{_api_url(ctx)}{path}", query)
    headers = {"Accept": "application/json"}
    if ctx.config.get("auth") == "query":
        return set_query_parameters(url, dict(credentials)), headers
    pair = f"{credentials['consumer_key']}:{credentials['consumer_secret']}".encode()
    return url, {**headers, "Authorization": f"Basic {b64encode(pair).decode('ascii')}"}


SPEC = ConnectorSpec(
    name="woocommerce",
    title="WooCommerce",
    kinds=frozenset({"api"}),
    streams=frozenset({"catalogue", "stock"}),
    can_fetch=True,
    config_schema=build_config_schema(
        {
            "url": {
                **URL,
                "description": "The shop's URL, such as https://shop.example; https protects the key.",
            },
            "auth": {
                "enum": ["basic", "query"],
                "default": "basic",
                "description": "How the key is sent: in a header (basic) or, for servers that remove it, in the URL (query).",
            },
            "weight_unit": {
                "enum": ["kg", "g", "lbs", "oz"],
                "description": "The unit of weights, if the key cannot read the shop's settings.",
            },
            "dimension_unit": {
                "enum": ["m", "cm", "mm", "in", "yd"],
                "description": "The unit of dimensions, if the key cannot read the shop's settings.",
            },
        },
        required=("url",),
    ),
    credentials_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "consumer_key": {
                **_KEY_SCHEMA,
                "description": "ck_…, with read permission (WooCommerce, Settings, Advanced, REST API).",
            },
            "consumer_secret": {**_KEY_SCHEMA, "description": "cs_…, shown once with the key."},
        },
        "required": ["consumer_key", "consumer_secret"],
        "additionalProperties": False,
    },
    open=WooCommerceConnector,
    address_settings=frozenset({"url"}),
    neutral_settings=NEUTRAL_SETTINGS | {"auth", "weight_unit", "dimension_unit"},
    can_check_stock=True,
)
