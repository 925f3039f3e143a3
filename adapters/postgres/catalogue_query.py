"""Lists of products and offers: which lines of their statements a request keeps, and their parameters (ADR 24)."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, LiteralString, NamedTuple

from adapters.postgres.session import jsonb, texts
from adapters.postgres.stores import LOOKED, page_names, page_params, rendered, statements
from domain.catalogue import search
from domain.catalogue.model import OfferFilter, ProductFilter
from domain.kernel.bounds import LIST_BYTES
from domain.kernel.paging import PageRequest

_PROBED = 1_000
"""LOOKED, where each row is looked up in another index: some three microseconds each."""
_BRIEFLY = 500
"""LOOKED, before it is known which filter is the rarest: mostly a page is full by then, and nothing has to be counted."""
_COUNTED = 500
"""Up to which the rows of a filter are counted, to find the rarest."""
_PRODUCTS = 300
"""Products that changed lately whose offers are sorted for a page."""
_SHARE = 16 << 10
"""Bytes up to which a product's or variant's data is read for the one name in it: nearly all are smaller."""
_GATHERED = 2_000
"""Rows that are gathered by SKU, MPN, GTIN or external id, and sorted; what has more of them is walked past instead."""
NO_BODY = -1
"""The share of a list that is asked for its ids alone: no document is as small."""
_PARTS = statements("catalogue")
_IS_CODE = (
    "CASE WHEN v.{0}_code = ANY (ARRAY(SELECT s.code FROM jsonb_each_text(%({0})s) AS s (exact, code)))"
    " THEN convert_from(coalesce(v.home_data, v.data), 'UTF8')::json ->> '{0}'"
    " = ANY (ARRAY(SELECT s.exact FROM jsonb_each_text(%({0})s) AS s (exact, code))) END"
)
"""Whether a variant has one of the SKUs or MPNs exactly: its data is read only when its folded code is one of theirs."""
_IS_GTIN = (
    "CASE WHEN v.gtin_key = ANY (ARRAY(SELECT jsonb_array_elements_text(%(gtin)s)))"
    r" THEN ltrim(regexp_replace(convert_from(coalesce(v.home_data, v.data), 'UTF8')::json ->> 'gtin', '[\s-]', '', 'g'), '0') = v.gtin_key END"
)
"""Whether a variant has one of the GTINs; held against its data, since a process of an earlier release leaves the key as it was."""


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
        counted=str(_COUNTED),
        products=str(_PRODUCTS),
        gathered=str(_GATHERED),
    )


SQL = _statements(LOOKED, _PROBED)
_BRIEF = _statements(_BRIEFLY, _BRIEFLY)
FILTERS = {
    "products": (
        "updated_since", "status", "brand", "category", "availability", "source", "q", "id", "variant", "offer", *search.CODES,
    ),
    "offers": ("variant", "product", "source", "availability", "updated_since", "id", *search.CODES),
}  # fmt: skip
"""The filters of each list that its statement knows."""
_WORDS = tuple(f"word{n}" for n in range(search.QUERY_WORDS))
_TERMS = frozenset((*_WORDS, "category", "availability", "source"))
_WALKED = {
    "products": (
        "id", "variant", "offer", *search.CODES, "brand", *_WORDS, "category", "source", "availability", "status", "",
    ),
    "offers": ("id", "variant", "product", *search.CODES, "source", "availability", ""),
}  # fmt: skip
"""What a list can be walked along, the likely rarest first; nothing is the list itself."""
_UPDATED = "updated_since"
_COLUMNS = frozenset({"brand", "status", _UPDATED})
"""Filters of products that their own rows hold."""
_FEW = frozenset({"id", "variant", "offer", "product"})
"""Filters that so few rows pass that a page looks at all of them."""
_UNORDERED = frozenset({*search.CODES, _UPDATED})
"""Filters without an index in the list's order: what passes is sorted, when all of it has been counted."""


class ListQuery(NamedTuple):
    """A list that is asked for: its name, its filters as columns and terms hold them, what its page needs beside them.

    `names` are the lines that it keeps of its statement, but for those that depend on what is walked along.
    """

    name: str
    names: frozenset[str]
    values: dict[str, Any]
    page_request: PageRequest

    @property
    def sizes(self) -> LiteralString | None:
        """The statement that counts what passes each filter, if what is walked along depends on that."""
        known = self.names & {*_WALKED[self.name], _UPDATED}
        if known & _FEW or (len(known) < 2 and not known & _UNORDERED):
            return None
        return rendered(SQL["product_sizes" if self.name == "products" else "offer_sizes"], self.names)

    @property
    def brief(self) -> LiteralString | None:
        """The list's statement along the likely rarest filter, no further than mostly suffices, where others could be rarer."""
        if self.names & _UNORDERED:
            return None
        return list_sql(self.name, self.names, self.page_request, self.likely, known=_BRIEF)

    @property
    def likely(self) -> str:
        """What the list is walked along as long as nothing was counted."""
        return walked_along(self.name, self.names, {})

    def full(self, found: Sequence[Sequence[Any]]) -> bool:
        """Whether what was walked along fills a page, with one row more; codes alone may fill one, too."""
        limit = self.page_request.limit
        return len(found) > limit and ("q" not in self.names or found[0][-1] > limit)

    def statement(self, walked: str) -> LiteralString:
        """The list's statement."""
        return list_sql(self.name, self.names, self.page_request, walked)

    def end(self, walked: str, sizes: Mapping[str, int]) -> LiteralString | None:
        """The statement that finds where a page ends that is not full; None when all that there is was looked at."""
        if sizes[walked] < _COUNTED or "no_word" in self.names:
            return None
        return list_sql(self.name, self.names, self.page_request, walked, of=f"{self.name}_end")


def list_sql(
    name: str,
    filters: Iterable[str],
    page_request: PageRequest,
    walked: str | None = None,
    of: str | None = None,
    known: Mapping[str, LiteralString] | None = None,
) -> LiteralString:
    """The statement of the list (of FILTERS) with these filters given, for that page, `walked` along one of them.

    A query is looked for word by word: `word0` to `word7` as well as `q`, or `no_word` when it holds none. `of` names
    another statement that walks as this one does; `known` are the statements with other bounds.
    """
    given = frozenset(filters)
    walked = walked_along(name, given, {}) if walked is None else walked
    others = given - {walked}
    names = page_names(page_request) | others | {f"by_{walked}"}
    if name == "products":
        names |= {f"given_{filter}" for filter in given} | ({"some", _way(walked)} if given else {"all"})
        if others & _COLUMNS:
            names |= {"row" if _way(walked) == "by_column" else "probe"}
    return rendered((known or SQL)[of or name], names, page_request.limit + 1)


def walked_along(name: str, filters: Collection[str], sizes: Mapping[str, int]) -> str:
    """Which filter's index a page of the list is walked along: the rarest, or without sizes the likely rarest.

    What has no index in the list's order is sorted: the latest changes and what is gathered by codes, when all was counted.
    """
    ways = [one for one in (*_WALKED[name], _UPDATED) if not one or one in filters]
    if not sizes:
        return ways[0]
    return min((one for one in ways if one not in _UNORDERED or sizes[one] < _COUNTED), key=sizes.__getitem__)


def _way(walked: str) -> str:
    """The lines of `products_walked` that serve it."""
    return "by_term" if walked in _TERMS else "" if walked == _UPDATED else "by_column"


_ANYWHERE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "updated_since": lambda moment: moment,
    "external_id": lambda ids: texts({id.strip() for id in ids}),
    "sku": lambda codes: jsonb(search.exact_codes(codes)),
    "mpn": lambda codes: jsonb(search.exact_codes(codes)),
    "gtin": lambda codes: texts(search.gtin_keys(codes)),
    "id": texts,
}
_OF_PRODUCTS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **_ANYWHERE,
    "status": str,
    "brand": search.brand_key,
    "category": search.category_term,
    "availability": search.availability_term,
    "source": search.source_term,
    "variant": texts,
    "offer": texts,
}
_OF_OFFERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **_ANYWHERE,
    **dict.fromkeys(("variant", "product", "source", "availability"), str),
}
"""The parameters of each list's filters; codes are folded as they are indexed."""


def _given(filter: ProductFilter | OfferFilter, parameters: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    values = {name: getattr(filter, name) for name in parameters}
    return {name: parameters[name](value) for name, value in values.items() if value is not None}


def products_query(filter: ProductFilter, page_request: PageRequest) -> ListQuery:
    """Return the query of GET /v1/products."""
    values = _given(filter, _OF_PRODUCTS)
    names = {*values}
    if filter.q is not None:
        words = {f"word{n}": search.word_term(word) for n, word in enumerate(search.query_words(filter.q))}
        values |= words | {"code": search.code(filter.q)}
        names |= {"q", *(words or ("no_word",))}
    values |= {"share": LIST_BYTES // page_request.limit, **page_params(page_request)}
    return ListQuery("products", frozenset(names), values, page_request)


def offers_query(filter: OfferFilter, page_request: PageRequest) -> ListQuery:
    """Return the query of GET /v1/offers."""
    values = _given(filter, _OF_OFFERS)
    share = {"share": _SHARE, **page_params(page_request)}
    return ListQuery("offers", frozenset(values), values | share, page_request)
