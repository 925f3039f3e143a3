"""Requests for the pages of a Shopify shop's public list of products, and checks of the responses."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from connectors.sdk.context import Context
from connectors.sdk.credentials import set_query_parameters
from connectors.sdk.errors import BadData, Refused
from connectors.sdk.fetching import FetchedPage, fetch_page
from connectors.sdk.notes import encode_note
from connectors.sdk.readers.json_stream import decode_page
from connectors.sdk.spec import StockCheckItem

PAGE_SIZE = 250
MAX_LISTED_PRODUCTS = 25_000
"""Maximum number of products that a shop lists.

If page number times page size exceeds it, the status is 400 ("Page * Limit exceeds the 25000 limit.").
"""

_HEADERS = {"Accept": "application/json"}
_LIMIT_EXCEEDED_STATUSES = frozenset({400})


@dataclass(frozen=True, slots=True)
class ProductPage:
    """Page of products: the response with the page, and the IDs of the products in order."""

    page: FetchedPage
    ids: tuple[Any, ...]


async def fetch_first_page(ctx: Context, products_url: str) -> ProductPage:
    """Fetch the first page of products. Raises ConnectorError; RetryLater at once if the shop requests a wait."""
    return await _parse_products(await fetch_page(ctx, _build_page_url(products_url, 1), _HEADERS, can_wait=False))


async def iterate_product_pages(ctx: Context, products_url: str, first: ProductPage) -> AsyncIterator[bytes]:
    """Yield `first` and all further pages as lines of the snapshot, up to an empty page. Raises ConnectorError.

    A shop lists at most MAX_LISTED_PRODUCTS products. If it may have more, the last line is a note that the others are
    missing. The list also ends at the status 400, and at a page that equals the previous one.
    """
    current = first
    number = 1
    while current.ids:
        yield current.page.to_line()
        number += 1
        if number * PAGE_SIZE > MAX_LISTED_PRODUCTS:
            yield encode_note("the shop lists at most 25,000 products; any further products are missing")
            return
        response = await fetch_page(
            ctx, _build_page_url(products_url, number), _HEADERS, can_wait=True, end_statuses=_LIMIT_EXCEEDED_STATUSES
        )
        if response.status in _LIMIT_EXCEEDED_STATUSES:
            return
        following = await _parse_products(response)
        if following.ids == current.ids:
            return
        current = following
    if number == 1:
        yield current.page.to_line()


async def parse_variant_stock(response: FetchedPage, item: StockCheckItem) -> dict[str, Any]:
    """Parse a variant's stock in the response of a stock check. Raises ConnectorError.

    Returns:
        A product as in products.json, with IDs and its only variant's SKU and availability.
    """
    _check_access(response)
    variant = await decode_page(response.body)
    if not isinstance(variant, dict) or str(variant.get("id")) != item.variant_key:
        raise BadData("The shop's response is not the requested variant.")
    stock = {name: variant.get(name) for name in ("id", "sku", "available")}
    return {"id": item.product_key, "variants": [stock]}


def _build_page_url(address: str, number: int) -> str:
    return set_query_parameters(address, {"limit": str(PAGE_SIZE), "page": str(number)})


async def _parse_products(response: FetchedPage) -> ProductPage:
    """Parse a page of products. Raises Refused for a password page or a bot challenge, BadData for other content."""
    _check_access(response)
    document = await decode_page(response.body)
    products = document.get("products") if isinstance(document, dict) else None
    if not isinstance(products, list):
        raise BadData("The URL returned JSON without products: this is not a Shopify shop.")
    return ProductPage(response, tuple(product.get("id") for product in products if isinstance(product, dict)))


def _check_access(response: FetchedPage) -> None:
    if urlsplit(response.final_url).path.rstrip("/").endswith("/password"):
        raise Refused("The shop is protected by a password.")
    if "html" in response.media_type or response.body.lstrip()[:1] == b"<":
        raise Refused("The shop returned a web page instead of its products: it blocks automated requests.")
