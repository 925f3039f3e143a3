"""Products: found as one types, and each with everything that is known of it."""

from typing import Final

from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.visit import Visit


async def products(visit: Visit) -> Answer:
    """The search."""
    given = visit.query.given("q", "cursor")
    found = await visit.api.get("/v1/products", limit=25, q=given.get("q"), starting_after=given.get("cursor"))
    return visit.render("catalogue/products.html", found=found, q=given.get("q", ""))


PAGES: Final = (Page("/console/catalogue", products, scope="products:read", menu=Entry("Catalogue", "Products")),)
