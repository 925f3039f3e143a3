"""Lists of products and offers: filters composed from whitelisted pieces, keyset order, index-friendly."""

from typing import Any, LiteralString

from adapters.postgres.listing import newest_first, page_params
from adapters.postgres.sqlfile import statements
from domain.catalogue import search
from domain.catalogue.model import OfferFilter, ProductFilter
from domain.kernel.paging import PageRequest

SQL = statements("catalogue")
Query = tuple[LiteralString, dict[str, Any]]

_HAS_TERM: LiteralString = (
    " AND EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s AND t.livemode = %(livemode)s"
    " AND t.product = p.id AND t.term = "
)
_PRODUCT_PIECES: dict[str, LiteralString] = {
    "updated_since": " AND p.updated_at >= %(updated_since)s",
    "status": " AND p.status = %(status)s",
    "brand": " AND p.brand_key = %(brand)s",
    "category": _HAS_TERM + "%(category)s)",
    "availability": _HAS_TERM + "%(availability)s)",
    "source": " AND p.source = %(source)s",
}
_WORDS: tuple[LiteralString, ...] = (
    "%(word0)s", "%(word1)s", "%(word2)s", "%(word3)s", "%(word4)s", "%(word5)s", "%(word6)s", "%(word7)s",
)  # fmt: skip
_BY_CODE: LiteralString = (
    " AND p.id IN (SELECT v.product FROM variants v WHERE v.org = %(org)s AND v.livemode = %(livemode)s"
    " AND v.sku_code = %(code)s UNION ALL SELECT v.product FROM variants v WHERE v.org = %(org)s"
    " AND v.livemode = %(livemode)s AND v.mpn_code = %(code)s)"
)
_OFFER_PIECES: dict[str, LiteralString] = {
    "variant": " AND o.variant = %(variant)s",
    "product": " AND o.product = %(product)s",
    "source": " AND o.source = %(source)s",
    "availability": " AND o.availability = %(availability)s",
    "updated_since": " AND o.updated_at >= %(updated_since)s AND p.updated_at >= %(updated_since)s",
}


def _values(filter: ProductFilter) -> dict[str, Any]:
    """What each given filter compares with, as the columns and terms hold it."""
    values: dict[str, Any] = {}
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
    return values


def products_query(filter: ProductFilter, page_request: PageRequest) -> Query:
    """The statement of GET /v1/products and its parameters. Without filters it reads documents alone."""
    values = _values(filter)
    pieces: LiteralString = ""
    for name in values:
        pieces += _PRODUCT_PIECES[name]
    params = values | page_params(page_request)
    if filter.q is None and not values:
        where, order = newest_first(page_request, "product")
        return SQL["documents"] + where + order, params
    where, order = newest_first(page_request, "p.id")
    inner = pieces + where
    if filter.q is None:
        chosen: LiteralString = SQL["filtered"] + inner + order
    else:
        chosen = _searched(filter.q, inner, order, params)
    final_order: LiteralString = "ASC" if page_request.backwards else "DESC"
    return chosen + " " + SQL["filtered_end"] + " ORDER BY d.product " + final_order, params


def _searched(q: str, inner: LiteralString, order: LiteralString, params: dict[str, Any]) -> LiteralString:
    """Products whose words hold the query, and those of which a variant has it as SKU or MPN: two ordered halves."""
    words = search.query_words(q)
    params["code"] = search.code(q)
    by_words: LiteralString = ""
    for place, word in zip(_WORDS, words, strict=False):
        by_words += _HAS_TERM + place + ")"
        params[place[2:-2]] = search.word_term(word)
    if not words:
        by_words = " AND false"
    outer = order.replace("p.id", "id")
    base: LiteralString = "SELECT p.id FROM products p WHERE p.org = %(org)s AND p.livemode = %(livemode)s"
    return (
        "SELECT d.product, d.body, d.etag FROM ((" + base + by_words + inner + order + ") UNION ("
        + base + _BY_CODE + inner + order + ")" + outer
    )  # fmt: skip


def offers_query(filter: OfferFilter, page_request: PageRequest) -> Query:
    """The statement of GET /v1/offers and its parameters."""
    params: dict[str, Any] = page_params(page_request)
    pieces: LiteralString = ""
    for name, piece in _OFFER_PIECES.items():
        value = getattr(filter, name)
        if value is not None:
            pieces += piece
            params[name] = value
    where, order = newest_first(page_request, "o.id")
    return SQL["offers"] + pieces + where + order, params
