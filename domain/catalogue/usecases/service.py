"""Read access to the catalogue: products, offers and the taxonomy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from domain.catalogue import categories, search_terms, spelling
from domain.catalogue.categories import Category
from domain.catalogue.completions import MIN_CODE_CHARS, Completions, complete_query, last_word
from domain.catalogue.filter_counts import FilterCounts, TotalCount
from domain.catalogue.model import Document, OfferFilter, OfferLine, ProductFilter, ProductSort
from domain.catalogue.ports import CatalogueStore
from domain.kernel.errors import FieldError, InvalidRequest
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import require_found
from ports.unit_of_work import Tx

_INEXACT = "~"
"""Beginning of the page keys of products with other forms of a query's words, which follow those with the words."""
_MAX_SPELLINGS = 5
"""Maximum number of similar spellings of a word."""


@dataclass(frozen=True, slots=True)
class CatalogueService:
    """Read access to the catalogue; only runs change it."""

    async def list_products(
        self, tx: Tx, filter: ProductFilter, page_request: PageRequest, sort: ProductSort = ProductSort.NEWEST
    ) -> Page[Document]:
        """Return a page of products.

        With a query in the default order, products that contain its words are first, and products with other forms of
        the words follow. Raises InvalidRequest for an invalid filter (`validate_filter`).
        """
        validate_filter(filter)
        store, key = tx[CatalogueStore], page_request.key
        if filter.q is None:
            return await store.list_products(filter, page_request, sort)
        if sort != ProductSort.NEWEST:
            return await store.list_products(await _add_forms(tx, filter), page_request, sort)
        if key is not None and key.startswith(_INEXACT):
            return await self._list_inexact_products(
                tx, filter, replace(page_request, key=key.removeprefix(_INEXACT) or None)
            )
        page = await store.list_products(filter, page_request, sort)
        if page.has_more:
            return page
        # A full page needs to know whether a product follows.
        remaining = page_request.limit - len(page.items)
        more = await self._list_inexact_products(tx, filter, PageRequest(remaining or 1))
        if remaining:
            return Page(page.items + more.items, more.has_more, more.next_key)
        has_more = bool(more.items) or more.has_more
        return Page(page.items, has_more, _INEXACT if has_more else None)

    async def _list_inexact_products(self, tx: Tx, filter: ProductFilter, page_request: PageRequest) -> Page[Document]:
        """Return a page of the products that do not contain all words of the query, but other forms of them."""
        extended = await _add_forms(tx, filter)
        if extended.words is None:
            return Page((), has_more=False, next_key=None)
        page = await tx[CatalogueStore].list_products(replace(extended, is_inexact=True), page_request)
        return replace(page, next_key=page.next_key and _INEXACT + page.next_key)

    async def list_product_ids(self, tx: Tx, filter: ProductFilter, limit: int) -> Sequence[str]:
        """Return the IDs of the newest products that match the filter, at most `limit`.

        Raises InvalidRequest for an invalid filter (`validate_filter`).
        """
        validate_filter(filter)
        return await tx[CatalogueStore].list_product_ids(filter, limit)

    async def count_products(self, tx: Tx, filter: ProductFilter) -> TotalCount:
        """Count the products that match the filter, up to MAX_COUNTED_PRODUCTS.

        Raises InvalidRequest for an invalid filter (`validate_filter`).
        """
        validate_filter(filter)
        return await tx[CatalogueStore].count_products(await _add_forms(tx, filter))

    async def count_filter_values(self, tx: Tx, filter: ProductFilter) -> FilterCounts:
        """Count the products that match the filter, by the values of each filter.

        Only the newest products are counted. Raises InvalidRequest for an invalid filter (`validate_filter`).
        """
        validate_filter(filter)
        return await tx[CatalogueStore].count_filter_values(await _add_forms(tx, filter))

    async def find_completions(self, tx: Tx, q: str) -> Completions:
        """Return words and variants that complete an unfinished query."""
        code = search_terms.normalise_code(q)
        return await tx[CatalogueStore].find_completions(last_word(q), code if len(code) >= MIN_CODE_CHARS else "")

    async def complete_query(self, tx: Tx, q: str, filter: ProductFilter) -> list[str]:
        """Return queries that complete the last word of an unfinished query, and find a product that matches the filter."""
        queries = complete_query(q, await self.find_completions(tx, q))
        return [
            query
            for query in queries
            if (await tx[CatalogueStore].list_products(replace(filter, q=query), PageRequest(limit=1))).items
        ]

    async def get_product(self, tx: Tx, id: str) -> Document:
        """Return the document of the product or, if it was merged, of the product that is shown for it. Raises NotFound."""
        return require_found(await tx[CatalogueStore].get_product(id))

    async def list_offers(self, tx: Tx, filter: OfferFilter, page_request: PageRequest) -> Page[OfferLine]:
        """Return a page of offers, newest first."""
        return await tx[CatalogueStore].list_offers(filter, page_request)

    def list_categories(self) -> Iterable[Category]:
        """Return all categories in the order of the tree."""
        return categories.category_by_id().values()


async def _add_forms(tx: Tx, filter: ProductFilter) -> ProductFilter:
    """Add other forms of the query's words to the filter, and similar spellings of words that no product has.

    The filter is unchanged if there are none.
    """
    if filter.q is None:
        return filter
    store, words = tx[CatalogueStore], search_terms.split_query(filter.q)
    possible = {word: spelling.list_possible_forms(word) for word in words}
    existing = {*await store.find_existing_words({*words}.union(*possible.values()))}
    choices: dict[str, list[str]] = {}
    for word in words:
        forms = spelling.select_forms(word, sorted(possible[word] & existing))
        if not forms and word not in existing:
            forms = [*await store.find_existing_words([*spelling.list_similar_spellings(word)])][:_MAX_SPELLINGS]
            for other in tuple(forms):
                found = await store.find_existing_words(spelling.list_possible_forms(other))
                forms += spelling.select_forms(other, found)
        choices[word] = list(dict.fromkeys((word, *forms)))
    return replace(filter, words=[*choices.values()]) if any(len(words) > 1 for words in choices.values()) else filter


def validate_filter(filter: ProductFilter) -> None:
    """Raise InvalidRequest for a query without words or with more than eight, or for prices without a currency."""
    if filter.q is not None:
        validate_query(filter.q)
    if filter.currency is None and (filter.min_price is not None or filter.max_price is not None):
        detail = "Prices need a currency. Send currency as well."
        raise InvalidRequest.for_field("query.currency", "required", detail)


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
