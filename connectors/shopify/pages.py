"""Paging through a shop's products; a refusal is distinguished from the last page."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from connectors.sdk.context import Context
from connectors.sdk.credentials import with_query
from connectors.sdk.errors import BadData, Refused
from connectors.sdk.notes import note
from connectors.sdk.pulling import Page, page
from connectors.sdk.readers.json_stream import decoded_page
from connectors.sdk.spec import Item

SIZE = 250
FARTHEST = 25_000
"""page * limit beyond this answers 400 "Page * Limit exceeds the 25000 limit." (observed 2026-09-29)."""

_HEADERS = {"Accept": "application/json"}
_TOO_FAR = frozenset({400})


@dataclass(frozen=True, slots=True)
class ProductPage:
    """Page of products: the response, and the IDs of its products in order."""

    page: Page
    ids: tuple[Any, ...]


async def first_page(ctx: Context, address: str) -> ProductPage:
    """Fetch the first page; a wait that the shop requests is left to the runner. Raises ConnectorError."""
    return await _read(await page(ctx, _numbered(address, 1), _HEADERS, patient=False))


async def walk(ctx: Context, address: str, first: ProductPage) -> AsyncIterator[bytes]:
    """Yield the pages as lines, until an empty one. Raises ConnectorError.

    A shop lists at most 25,000 products this way; a full last page is reported. A page that repeats the one before ends
    the list: the shop ignores the page number.
    """
    current = first
    number = 1
    while current.ids:
        yield current.page.line()
        number += 1
        if number * SIZE > FARTHEST:
            yield note("the shop shows no more than 25,000 products; those beyond are missing")
            return
        answer = await page(ctx, _numbered(address, number), _HEADERS, patient=True, ends=_TOO_FAR)
        if answer.status in _TOO_FAR:
            return
        following = await _read(answer)
        if following.ids == current.ids:
            return
        current = following
    if number == 1:
        yield current.page.line()


async def stock_of(answer: Page, item: Item) -> dict[str, Any]:
    """Return a product with the stock of the response's one variant. Raises BadData, Refused."""
    _refuse_closed(answer)
    variant = await decoded_page(answer.body)
    if not isinstance(variant, dict) or str(variant.get("id")) != item.variant_key:
        raise BadData("The shop's response is not the requested variant.")
    stock = {name: variant.get(name) for name in ("id", "sku", "available")}
    return {"id": item.product_key, "variants": [stock]}


def _numbered(address: str, number: int) -> str:
    return with_query(address, {"limit": str(SIZE), "page": str(number)})


async def _read(answer: Page) -> ProductPage:
    """Parse the products of a response. Raises Refused for a password page or a challenge, BadData for anything else."""
    _refuse_closed(answer)
    document = await decoded_page(answer.body)
    products = document.get("products") if isinstance(document, dict) else None
    if not isinstance(products, list):
        raise BadData("The address answers with JSON that lists no products: it is not a Shopify shop.")
    return ProductPage(answer, tuple(product.get("id") for product in products if isinstance(product, dict)))


def _refuse_closed(answer: Page) -> None:
    if urlsplit(answer.final_url).path.rstrip("/").endswith("/password"):
        raise Refused("The shop is closed behind a password.")
    if "html" in answer.media_type or answer.body.lstrip()[:1] == b"<":
        raise Refused("The shop answers with a web page instead of its products: it blocks automated requests.")
