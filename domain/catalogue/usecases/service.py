"""Read access to the catalogue: products, offers and the taxonomy."""

from collections.abc import Iterable
from dataclasses import dataclass

from domain.catalogue import categories, search_terms
from domain.catalogue.categories import Category
from domain.catalogue.completions import MIN_CODE_CHARS, Completions, last_word
from domain.catalogue.filter_counts import FilterCounts
from domain.catalogue.model import Document, OfferFilter, OfferLine, ProductFilter
from domain.catalogue.ports import CatalogueStore
from domain.kernel.errors import FieldError, InvalidRequest
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import require_found
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class CatalogueService:
    """Read access to the catalogue; only runs change it."""

    async def list_products(self, tx: Tx, filter: ProductFilter, page_request: PageRequest) -> Page[Document]:
        """Return a page of products, newest first. Raises InvalidRequest for a query with no words or too many."""
        if filter.q is not None:
            validate_query(filter.q)
        return await tx[CatalogueStore].list_products(filter, page_request)

    async def count_filter_values(self, tx: Tx, filter: ProductFilter) -> FilterCounts:
        """Count the products that match the filter, by each brand, status, availability, category and source.

        Only the newest products are counted. Raises InvalidRequest for a query with no words or too many.
        """
        if filter.q is not None:
            validate_query(filter.q)
        return await tx[CatalogueStore].count_filter_values(filter)

    async def find_completions(self, tx: Tx, q: str) -> Completions:
        """Return words and variants that complete an unfinished query."""
        code = search_terms.normalise_code(q)
        return await tx[CatalogueStore].find_completions(last_word(q), code if len(code) >= MIN_CODE_CHARS else "")

    async def get_product(self, tx: Tx, id: str) -> Document:
        """Return the document of the product or, if it was merged, of the product that is shown for it. Raises NotFound."""
        return require_found(await tx[CatalogueStore].get_product(id))

    async def list_offers(self, tx: Tx, filter: OfferFilter, page_request: PageRequest) -> Page[OfferLine]:
        """Return a page of offers, newest first."""
        return await tx[CatalogueStore].list_offers(filter, page_request)

    def list_categories(self) -> Iterable[Category]:
        """Return all categories in the order of the tree."""
        return categories.category_by_id().values()


def validate_query(q: str) -> None:
    """Raise InvalidRequest for a query without a letter or digit, or with more than eight words."""
    words = search_terms.split_into_words(q)
    if not words:
        fault = FieldError(
            "query.q", "invalid_value", "The query has no words. Enter at least one word, or a SKU or MPN."
        )
    elif len(words) > search_terms.MAX_QUERY_WORDS:
        fault = FieldError(
            "query.q", "too_many", f"The query has too many words. Enter at most {search_terms.MAX_QUERY_WORDS}."
        )
    else:
        return
    raise InvalidRequest(fault.detail, fields=(fault,))
