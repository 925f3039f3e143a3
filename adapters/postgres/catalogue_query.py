"""Lists of products and offers: which lines of their statements a request keeps, and their parameters."""

from collections.abc import Iterable
from typing import Any, Final, LiteralString

from adapters.postgres.listing import page_names, page_params
from adapters.postgres.sqlfile import rendered, statements
from domain.catalogue import search
from domain.catalogue.model import OfferFilter, ProductFilter
from domain.kernel.bounds import LIST_BYTES
from domain.kernel.paging import PageRequest

SQL: Final = statements("catalogue")
_SHARE: Final = 16 << 10
"""Bytes up to which a product's or variant's data is read for the one name in it: nearly all are smaller."""
Query = tuple[LiteralString, dict[str, Any]]
FILTERS: Final = {
    "products": ("updated_since", "status", "brand", "category", "availability", "source", "q"),
    "offers": ("variant", "product", "source", "availability", "updated_since"),
}
"""The filters of each list that its statement knows."""


def list_sql(name: str, filters: Iterable[str], page_request: PageRequest) -> LiteralString:
    """The statement of the list (of FILTERS) with these filters given, for that page.

    A query is looked for word by word: `word0` to `word7` as well as `q`, or `no_word` when it holds none.
    """
    names = page_names(page_request).union(filters)
    names |= {"some" if names & {*FILTERS["products"]} else "all"} if name == "products" else set()
    return rendered(SQL[name], names, page_request.limit + 1)


def products_query(filter: ProductFilter, page_request: PageRequest) -> Query:
    """The statement of GET /v1/products and its parameters: each as the columns and terms hold it."""
    values: dict[str, Any] = {}
    share = {"share": LIST_BYTES // page_request.limit}
    if filter.updated_since is not None:
        values["updated_since"] = filter.updated_since
    if filter.status is not None:
        values["status"] = filter.status
    if filter.brand is not None:
        values["brand"] = search.brand_key(filter.brand)
    if filter.category is not None:
        values["category"] = search.category_term(filter.category)
    if filter.availability is not None:
        values["availability"] = search.availability_term(filter.availability)
    if filter.source is not None:
        values["source"] = filter.source
    names = {*values}
    if filter.q is not None:
        words = {f"word{n}": search.word_term(word) for n, word in enumerate(search.query_words(filter.q))}
        values |= words | {"code": search.code(filter.q)}
        names |= {"q", *(words or ("no_word",))}
    return list_sql("products", names, page_request), values | share | page_params(page_request)


def offers_query(filter: OfferFilter, page_request: PageRequest) -> Query:
    """The statement of GET /v1/offers and its parameters."""
    values = {name: value for name in FILTERS["offers"] if (value := getattr(filter, name)) is not None}
    return list_sql("offers", values, page_request), values | {"share": _SHARE} | page_params(page_request)
