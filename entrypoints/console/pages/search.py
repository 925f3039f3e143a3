"""Search over everything a person can open: products, sources, pages and actions."""

import asyncio
from typing import Any, Final

from entrypoints.console.context import OperationRefused, PageContext, Pages
from entrypoints.console.pages.sources import find_source_names
from entrypoints.console.products import find_title, list_pictures
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response

MAX_PRODUCTS = 6
"""Maximum number of products in the results."""
MAX_OTHERS = 8
"""Maximum number of sources, and of pages and actions, in the results."""
_ACTIONS: Final = (
    (N_("Upload a price list"), "/console/sources/new/file", "sources:write"),
    (N_("Create an API key"), "/console/developers/keys/new", "webhooks:write"),
    (N_("Add a webhook endpoint"), "/console/developers/webhooks/new", "webhooks:write"),
    (N_("Review matches"), "/console/matching/review", "products:write"),
    (N_("Your account"), "/console/account", None),
    (N_("Switch organisation"), "/console/organisations", None),
)
"""Texts, paths and scopes of actions and of pages without an entry in the menu."""

pages = Pages()


@pages.register_get("/console/search")
async def search(page: PageContext) -> Response:
    """Show the pages, actions, sources and products whose texts contain every word of the query."""
    q = page.query["q"].strip()[:100]
    words = q.casefold().split()
    entries = [
        *((title, path, gettext(section)) for section, _, items in page.menu for title, path, _ in items),
        *((gettext(title), path, "") for title, path, scope in _ACTIONS if page.may(scope)),
    ]
    places = [entry for entry in entries if all(word in f"{entry[0]} {entry[2]}".casefold() for word in words)]
    products: list[Any] = []
    names: dict[str, str] = {}
    if words:
        products, names = await asyncio.gather(_find_products(page, q), find_source_names(page))
    rows = [
        (
            product["id"],
            find_title(product),
            product["data"].get("brand", ""),
            next(iter(list_pictures(product["data"].get("media", ()))), None),
        )
        for product in products
    ]
    return page.render(
        "search/search.html",
        image_origins=page.console.object_origins,
        q=q,
        products=rows,
        sources=[item for item in names.items() if all(word in item[1].casefold() for word in words)][:MAX_OTHERS],
        places=places[:MAX_OTHERS],
    )


async def _find_products(page: PageContext, q: str) -> list[Any]:
    """Return the first products that match the query; none if the query is too short to be searched."""
    if not page.may("products:read"):
        return []
    try:
        found: list[Any] = (await page.api.get("/v1/products", q=q, limit=MAX_PRODUCTS))["data"]
    except OperationRefused as error:
        if error.status != 400:
            raise
        return []
    return found
