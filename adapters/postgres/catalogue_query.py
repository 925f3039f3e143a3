"""Queries of product and offer lists: selection of the statements' conditional lines, and their parameters (ADR 24)."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, LiteralString, NamedTuple

from adapters.postgres.session import jsonb, texts
from adapters.postgres.stores import LOOKED, page_names, page_params, rendered, statements
from domain.catalogue import search
from domain.catalogue.model import OfferFilter, ProductFilter
from domain.kernel.bounds import LIST_BYTES
from domain.kernel.paging import PageRequest

_PROBE_LIMIT = 1_000
"""Scan limit (instead of LOOKED) if each row requires a lookup in another index, which takes about 3 µs."""
_BRIEF_LIMIT = 500
"""Scan limit before the filters' rows are counted; most pages are full by then, so that counting is unnecessary."""
_COUNT_LIMIT = 500
"""Limit of counting a filter's rows to find the most selective filter."""
_PRODUCTS = 300
"""Maximum number of recently changed products whose offers are sorted for a page."""
_SHARE = 16 << 10
"""Maximum bytes of a product's or variant's data that is read for its name; nearly all are smaller."""
_SORT_LIMIT = 2_000
"""Maximum number of rows found by SKU, MPN, GTIN or external id that are sorted; larger results are scanned in the list's order."""
NO_BODY = -1
"""Value of `share` for lists of ids only; no document is as small."""
_PARTS = statements("catalogue")
_IS_CODE = (
    "CASE WHEN v.{0}_code = ANY (ARRAY(SELECT s.code FROM jsonb_each_text(%({0})s) AS s (exact, code)))"
    " THEN convert_from(coalesce(v.home_data, v.data), 'UTF8')::json ->> '{0}'"
    " = ANY (ARRAY(SELECT s.exact FROM jsonb_each_text(%({0})s) AS s (exact, code))) END"
)
"""Condition that a variant has exactly one of the SKUs or MPNs; its data is read only if its folded code matches."""
_IS_GTIN = (
    "CASE WHEN v.gtin_key = ANY (ARRAY(SELECT jsonb_array_elements_text(%(gtin)s)))"
    r" THEN ltrim(regexp_replace(convert_from(coalesce(v.home_data, v.data), 'UTF8')::json ->> 'gtin', '[\s-]', '', 'g'), '0') = v.gtin_key END"
)
"""Condition that a variant has one of the GTINs; also compared with its data, since an earlier release does not update the key."""


def _statements(looked: int, probed: int) -> Mapping[str, LiteralString]:
    return statements(
        "catalogue",
        products_walked=_PARTS["products_walked"],
        offers_walked=_PARTS["offers_walked"],
        **{name: text for name, text in _PARTS.items() if "_with_" in name},
        **{f"is_{name}": _IS_CODE.format(name) for name in ("sku", "mpn")},
        is_gtin=_IS_GTIN,
        looked=str(looked),
        probed=str(probed),
        counted=str(_COUNT_LIMIT),
        products=str(_PRODUCTS),
        gathered=str(_SORT_LIMIT),
    )


SQL = _statements(LOOKED, _PROBE_LIMIT)
_BRIEF = _statements(_BRIEF_LIMIT, _BRIEF_LIMIT)
FILTERS = {
    "products": (
        "updated_since", "status", "brand", "category", "availability", "source", "q", "id", "variant", "offer", *search.CODES,
    ),
    "offers": ("variant", "product", "source", "availability", "updated_since", "id", *search.CODES),
}  # fmt: skip
"""Filters of each list's statement."""
_WORDS = tuple(f"word{n}" for n in range(search.QUERY_WORDS))
_TERMS = frozenset((*_WORDS, "category", "availability", "source"))
_INDEXES = {
    "products": (
        "id", "variant", "offer", *search.CODES, "brand", *_WORDS, "category", "source", "availability", "status", "",
    ),
    "offers": ("id", "variant", "product", *search.CODES, "source", "availability", ""),
}  # fmt: skip
"""Indexes that a list can be scanned by, the most selective first; the empty string is the list's own order."""
_UPDATED = "updated_since"
_COLUMNS = frozenset({"brand", "status", _UPDATED})
"""Filters on columns of products."""
_SELECTIVE = frozenset({"id", "variant", "offer", "product"})
"""Filters with so few rows that all of them are scanned."""
_UNORDERED = frozenset({*search.CODES, _UPDATED})
"""Filters without an index in the list's order; their rows are sorted if all of them were counted."""


class ListQuery(NamedTuple):
    """Query of a list's page.

    Attributes:
        name: Name of the list.
        names: Conditional lines of the statement, except those that depend on the scanned index.
        values: Parameters, in the form of columns and search terms.
        page_request: Requested page.

    """

    name: str
    names: frozenset[str]
    values: dict[str, Any]
    page_request: PageRequest

    @property
    def sizes(self) -> LiteralString | None:
        """Statement that counts each filter's rows, or None if the choice of the index does not depend on them."""
        indexed = self.names & {*_INDEXES[self.name], _UPDATED}
        if indexed & _SELECTIVE or (len(indexed) < 2 and not indexed & _UNORDERED):
            return None
        return rendered(SQL["product_sizes" if self.name == "products" else "offer_sizes"], self.names)

    @property
    def brief(self) -> LiteralString | None:
        """List statement by the presumably most selective filter with a low scan limit; None if that cannot be used."""
        if self.names & _UNORDERED:
            return None
        return list_sql(self.name, self.names, self.page_request, self.likely, templates=_BRIEF)

    @property
    def likely(self) -> str:
        """Index to scan before filters are counted."""
        return walked_along(self.name, self.names, {})

    def full(self, found: Sequence[Sequence[Any]]) -> bool:
        """Return whether the scan filled a page plus one row; rows found by codes only do not count."""
        limit = self.page_request.limit
        return len(found) > limit and ("q" not in self.names or found[0][-1] > limit)

    def statement(self, walked: str) -> LiteralString:
        """Return the list statement that scans the index `walked`."""
        return list_sql(self.name, self.names, self.page_request, walked)

    def end(self, walked: str, sizes: Mapping[str, int]) -> LiteralString | None:
        """Return the statement that finds the end of a page that is not full; None if all rows were scanned."""
        if sizes[walked] < _COUNT_LIMIT or "no_word" in self.names:
            return None
        return list_sql(self.name, self.names, self.page_request, walked, variant=f"{self.name}_end")


def list_sql(
    name: str,
    filters: Iterable[str],
    page_request: PageRequest,
    walked: str | None = None,
    variant: str | None = None,
    templates: Mapping[str, LiteralString] | None = None,
) -> LiteralString:
    """Return the statement of a list (one of FILTERS) with the filters and the page, scanning the index `walked`.

    A query `q` also has the names `word0` to `word7`, or `no_word` if it contains no word. `variant` names another
    statement with the same scan; `templates` are the statements with other limits.
    """
    given = frozenset(filters)
    walked = walked_along(name, given, {}) if walked is None else walked
    others = given - {walked}
    names = page_names(page_request) | others | {f"by_{walked}"}
    if name == "products":
        names |= {f"given_{filter}" for filter in given} | ({"some", _way(walked)} if given else {"all"})
        if others & _COLUMNS:
            names |= {"row" if _way(walked) == "by_column" else "probe"}
    return rendered((templates or SQL)[variant or name], names, page_request.limit + 1)


def walked_along(name: str, filters: Collection[str], sizes: Mapping[str, int]) -> str:
    """Return the filter whose index to scan: the most selective one, or without `sizes` presumably so.

    Filters without an index in the list's order are eligible only if all their rows were counted; these are then sorted.
    """
    indexes = [index for index in (*_INDEXES[name], _UPDATED) if not index or index in filters]
    if not sizes:
        return indexes[0]
    eligible = (index for index in indexes if index not in _UNORDERED or sizes[index] < _COUNT_LIMIT)
    return min(eligible, key=sizes.__getitem__)


def _way(walked: str) -> str:
    """Return the name of the lines of `products_walked` for an index."""
    return "by_term" if walked in _TERMS else "" if walked == _UPDATED else "by_column"


_COMMON_PARAMETERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "updated_since": lambda moment: moment,
    "external_id": lambda ids: texts({id.strip() for id in ids}),
    "sku": lambda codes: jsonb(search.exact_codes(codes)),
    "mpn": lambda codes: jsonb(search.exact_codes(codes)),
    "gtin": lambda codes: texts(search.gtin_keys(codes)),
    "id": texts,
}
_PRODUCT_PARAMETERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **_COMMON_PARAMETERS,
    "status": str,
    "brand": search.brand_key,
    "category": search.category_term,
    "availability": search.availability_term,
    "source": search.source_term,
    "variant": texts,
    "offer": texts,
}
_OFFER_PARAMETERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **_COMMON_PARAMETERS,
    **dict.fromkeys(("variant", "product", "source", "availability"), str),
}
"""Conversions of filter values to parameters; codes are folded as in the index."""


def _parameters(filter: ProductFilter | OfferFilter, parameters: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    values = {name: getattr(filter, name) for name in parameters}
    return {name: parameters[name](value) for name, value in values.items() if value is not None}


def products_query(filter: ProductFilter, page_request: PageRequest) -> ListQuery:
    """Return the query of GET /v1/products."""
    values = _parameters(filter, _PRODUCT_PARAMETERS)
    names = {*values}
    if filter.q is not None:
        words = {f"word{n}": search.word_term(word) for n, word in enumerate(search.query_words(filter.q))}
        values |= words | {"code": search.code(filter.q)}
        names |= {"q", *(words or ("no_word",))}
    values |= {"share": LIST_BYTES // page_request.limit, **page_params(page_request)}
    return ListQuery("products", frozenset(names), values, page_request)


def offers_query(filter: OfferFilter, page_request: PageRequest) -> ListQuery:
    """Return the query of GET /v1/offers."""
    values = _parameters(filter, _OFFER_PARAMETERS)
    share = {"share": _SHARE, **page_params(page_request)}
    return ListQuery("offers", frozenset(values), values | share, page_request)
