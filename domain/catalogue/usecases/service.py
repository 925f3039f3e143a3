"""Read access to the catalogue: products, offers and the taxonomy."""

from collections.abc import Iterable
from dataclasses import dataclass

from domain.catalogue import categories, search
from domain.catalogue.categories import Category
from domain.catalogue.completions import SHORTEST_CODE, Completions, last_word
from domain.catalogue.filter_counts import FilterCounts
from domain.catalogue.model import Document, OfferFilter, OfferLine, ProductFilter
from domain.catalogue.ports import CatalogueStore
from domain.kernel.errors import FieldError, InvalidRequest
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import existing
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class CatalogueService:
    """Read access to the catalogue; only runs write."""

    async def list_products(self, tx: Tx, filter: ProductFilter, page_request: PageRequest) -> Page[Document]:
        """Return a page of products, newest first. Raises InvalidRequest for a query without or with too many words."""
        if filter.q is not None:
            refuse_query(filter.q)
        return await tx[CatalogueStore].products(filter, page_request)

    async def filter_counts(self, tx: Tx, filter: ProductFilter) -> FilterCounts:
        """Return the counts by which the list can be filtered, over its newest products. Raises InvalidRequest as `list_products` does."""
        if filter.q is not None:
            refuse_query(filter.q)
        return await tx[CatalogueStore].filter_counts(filter)

    async def completions(self, tx: Tx, q: str) -> Completions:
        """Return the completions of a query that is being typed."""
        code = search.code(q)
        return await tx[CatalogueStore].completions(last_word(q), code if len(code) >= SHORTEST_CODE else "")

    async def get_product(self, tx: Tx, id: str) -> Document:
        """Return a product's document, for a merged product that of its survivor. Raises NotFound."""
        return existing(await tx[CatalogueStore].product(id))

    async def list_offers(self, tx: Tx, filter: OfferFilter, page_request: PageRequest) -> Page[OfferLine]:
        """Return a page of offers, newest first."""
        return await tx[CatalogueStore].offers(filter, page_request)

    def categories(self) -> Iterable[Category]:
        """Return all categories in the order of the tree."""
        return categories.everything().values()


def refuse_query(q: str) -> None:
    """Raise InvalidRequest for a query without a letter or digit, or with more than eight words."""
    words = search.split(q)
    if not words:
        fault = FieldError(
            "query.q", "invalid_value", "The query has no words. Enter at least one word, or a SKU or MPN."
        )
    elif len(words) > search.QUERY_WORDS:
        fault = FieldError("query.q", "too_many", f"The query has too many words. Enter at most {search.QUERY_WORDS}.")
    else:
        return
    raise InvalidRequest(fault.detail, fields=(fault,))
