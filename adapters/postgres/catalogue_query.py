"""Lists of products and offers: which lines of their statements a request keeps, and their parameters (ADR 24)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, LiteralString, NamedTuple

from adapters.postgres.listing import LOOKED, page_names, page_params
from adapters.postgres.sqlfile import rendered, statements
from domain.catalogue import search
from domain.catalogue.model import OfferFilter, ProductFilter
from domain.kernel.bounds import LIST_BYTES
from domain.kernel.paging import PageRequest

_PROBED: Final = 1_000
"""LOOKED, where each row is looked up in another index: some three microseconds each."""
_BRIEFLY: Final = 500
"""LOOKED, before it is known which filter is the rarest: mostly a page is full by then, and nothing has to be counted."""
_COUNTED: Final = 500
"""Up to which the rows of a filter are counted, to find the rarest."""
_PRODUCTS: Final = 300
"""Products that changed lately whose offers are sorted for a page."""
_SHARE: Final = 16 << 10
"""Bytes up to which a product's or variant's data is read for the one name in it: nearly all are smaller."""
_PARTS: Final = statements("catalogue")


def _statements(looked: int, probed: int) -> Mapping[str, LiteralString]:
    return statements(
        "catalogue",
        products_walked=_PARTS["products_walked"],
        offers_walked=_PARTS["offers_walked"],
        looked=str(looked),
        probed=str(probed),
        counted=str(_COUNTED),
        products=str(_PRODUCTS),
    )


SQL: Final = _statements(LOOKED, _PROBED)
_BRIEF: Final = _statements(_BRIEFLY, _BRIEFLY)
FILTERS: Final = {
    "products": ("updated_since", "status", "brand", "category", "availability", "source", "q"),
    "offers": ("variant", "product", "source", "availability", "updated_since"),
}
"""The filters of each list that its statement knows."""
_WORDS: Final = tuple(f"word{n}" for n in range(search.QUERY_WORDS))
_TERMS: Final = frozenset((*_WORDS, "category", "availability"))
_WALKED: Final = {
    "products": ("brand", *_WORDS, "category", "source", "availability", "status", ""),
    "offers": ("variant", "product", "source", "availability", ""),
}
"""What a list can be walked along, the likely rarest first; nothing is the list itself."""
_UPDATED: Final = "updated_since"
_COLUMNS: Final = frozenset({"brand", "source", "status", _UPDATED})
"""Filters of products that their own rows hold."""
_FEW: Final = frozenset({"variant", "product"})
"""Filters that so few offers pass that a page looks at all of them."""


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
        if known & _FEW or (len(known) < 2 and _UPDATED not in known):
            return None
        return rendered(SQL["product_sizes" if self.name == "products" else "offer_sizes"], self.names)

    @property
    def brief(self) -> LiteralString | None:
        """The list's statement along the likely rarest filter, no further than mostly suffices, where others could be rarer."""
        if _UPDATED in self.names:
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

    The latest changes have no index in the list's order: they are sorted, when all of them have been counted.
    """
    ways = [one for one in _WALKED[name] if not one or one in filters]
    if not sizes:
        return ways[0]
    if sizes.get(_UPDATED, _COUNTED) < _COUNTED:
        ways.append(_UPDATED)
    return min(ways, key=sizes.__getitem__)


def _way(walked: str) -> str:
    """The lines of `products_walked` that serve it."""
    return "by_term" if walked in _TERMS else "" if walked == _UPDATED else "by_column"


def products_query(filter: ProductFilter, page_request: PageRequest) -> ListQuery:
    """What GET /v1/products asks for."""
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
    names = {*values}
    if filter.q is not None:
        words = {f"word{n}": search.word_term(word) for n, word in enumerate(search.query_words(filter.q))}
        values |= words | {"code": search.code(filter.q)}
        names |= {"q", *(words or ("no_word",))}
    values |= {"share": LIST_BYTES // page_request.limit, **page_params(page_request)}
    return ListQuery("products", frozenset(names), values, page_request)


def offers_query(filter: OfferFilter, page_request: PageRequest) -> ListQuery:
    """What GET /v1/offers asks for."""
    values = {name: value for name in FILTERS["offers"] if (value := getattr(filter, name)) is not None}
    names = frozenset(values)
    return ListQuery("offers", names, values | {"share": _SHARE, **page_params(page_request)}, page_request)
