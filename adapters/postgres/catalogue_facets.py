"""Queries of product lists by facets: several values for a filter, other orders, totals and counts (ADR 114).

The statements are rendered from the templates in sql/catalogue_facets.sql. A page reads the rows of the most selective
filter if they are few, and otherwise all rows in the order of the list, up to a limit.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString

from adapters.postgres.session import encode_jsonb, encode_texts
from adapters.postgres.stores import build_page_line_names, load_statements, render_statement
from domain.catalogue import search_terms
from domain.catalogue.categories import list_subcategories
from domain.catalogue.filter_counts import MAX_COUNTED_PRODUCTS, MAX_FILTER_VALUES
from domain.catalogue.model import ProductFilter, ProductSort
from domain.kernel.bounds import LIST_BYTES
from domain.kernel.paging import PageRequest
from domain.search import facets

_GATHER_LIMIT = 5_000
"""Number of rows of a filter from which a page scans the index in the list's order instead of the filter's index."""
_COUNTING_GATHER_LIMIT = 20_000
"""Number of rows of a filter from which a total or counts of facets scan all rows instead of the filter's index."""
_SCAN_LIMIT = 20_000
"""Maximum number of rows that are scanned in the list's order for a page; a row takes about 1 µs."""
_FIRST_SCAN_LIMIT = 500
"""Maximum number of rows that the first attempt at a page scans, before the rows of the filters are counted."""
_COUNTING_SCAN_LIMIT = 200_000
"""Maximum number of rows that are scanned for a total or for counts of facets."""
_LOOKUP_LIMIT = 20_000
"""Maximum number of rows that are found by SKU, MPN, GTIN or external ID."""
MAX_PRICE = 10**18 - 1
"""Maximum price, in minor units."""
_TEMPLATES = load_statements("catalogue")
_FACET_TEMPLATES = load_statements("catalogue_facets")
_RELATIONS = ("products", "variants", "offers", "product_terms", "product_documents")
_PARTS: Final[Mapping[ProductSort, Sequence[str]]] = {
    ProductSort.PRICE_LOW: ("priced", "unpriced"),
    ProductSort.PRICE_HIGH: ("priced", "unpriced"),
}
"""Parts of a list that are read one after the other."""
_FACET_FILTERS = ("brands", "colour", "finish", "currency", "min_price", "max_price", "completeness", "words")
_MULTIPLE_FILTERS = ("status", "category", "availability", "source")
_IDENTIFIER_FILTERS = ("id", "variant", "offer", *search_terms.CODE_FILTERS)
_WORD_NAMES = tuple(f"word{n}" for n in range(search_terms.MAX_QUERY_WORDS))
_TERM_FILTERS = (*_WORD_NAMES, "category", "availability", "source", "catalogue", "colour", "finish")
_UNCOUNTED_INDEXES = frozenset({*_WORD_NAMES, "catalogue", "updated_since"})
"""Filters with an index whose values are not counted."""
_INDEXES = (*_TERM_FILTERS, "brands", "price", "updated_since")


def _load_statements(scan_limit: int, *, by_updated: bool, is_own: bool) -> Mapping[str, LiteralString]:
    lookups = load_statements("catalogue", sort_limit=str(_LOOKUP_LIMIT), **_name_relations(is_own=is_own))
    return load_statements(
        "catalogue_facets",
        scan=_FACET_TEMPLATES["scan"],
        conditions=_FACET_TEMPLATES["conditions"],
        fixed_conditions=_FACET_TEMPLATES["fixed_conditions"],
        gathered_products=_FACET_TEMPLATES["gathered_products"],
        code_products=_FACET_TEMPLATES["code_products"],
        **{name: text for name, text in lookups.items() if "_with_" in name},
        id="p.id" if by_updated else "f.product",
        scan_limit=str(scan_limit),
        gather_limit=str(_COUNTING_GATHER_LIMIT if scan_limit == _COUNTING_SCAN_LIMIT else _GATHER_LIMIT),
        counted_limit=str(MAX_COUNTED_PRODUCTS),
        counting_scan_limit=str(_COUNTING_SCAN_LIMIT),
        max_values=str(MAX_FILTER_VALUES),
        price_points=str(facets.PRICE_POINTS),
        facets="product_facets" if is_own else "readable_facets",
        **_name_relations(is_own=is_own),
    )


def _name_relations(*, is_own: bool) -> dict[str, str]:
    return {name: name if is_own else "readable_" + name.removeprefix("product_") for name in _RELATIONS}


_STATEMENTS = {
    (scan_limit, by_updated, is_own): _load_statements(scan_limit, by_updated=by_updated, is_own=is_own)
    for scan_limit in (_FIRST_SCAN_LIMIT, _SCAN_LIMIT, _COUNTING_SCAN_LIMIT)
    for by_updated in (False, True)
    for is_own in (False, True)
}
SQL: Final = _STATEMENTS[_SCAN_LIMIT, False, False]


def requires_facets(filter: ProductFilter, sort: ProductSort) -> bool:
    """Return whether a list must be read by facets: in another order, or with a filter that only facets support."""
    return (
        sort != ProductSort.NEWEST
        or any(getattr(filter, name) is not None for name in _FACET_FILTERS)
        or any(len(getattr(filter, name) or ()) > 1 for name in _MULTIPLE_FILTERS)
    )


@dataclass(frozen=True, slots=True)
class FacetQuery:
    """Query of products by facets.

    Attributes:
        line_names: Names of the optional lines of the filters.
        values: Parameters of the statements.
        is_own: Whether only the organisation's own rows are read, without licensed copies.
    """

    line_names: frozenset[str]
    values: Mapping[str, Any]
    is_own: bool

    @property
    def has_identifiers(self) -> bool:
        """True if products are found by IDs or codes, so that no other index is needed."""
        return not self.line_names.isdisjoint(_IDENTIFIER_FILTERS)

    def is_complete(self, index: str) -> bool:
        """Return whether all matching rows are read, because only those of the filter `index` or of IDs and codes are.

        The filter must have fewer rows than the limit.
        """
        return bool(index) or self.has_identifiers

    @property
    def needs_counts(self) -> bool:
        """True if the index depends on the numbers of products of the filters."""
        return not self.has_identifiers and not self.line_names.isdisjoint(_INDEXES)

    @property
    def filter_sizes_statement(self) -> LiteralString:
        """Statement that counts the products of each filter that has an index, for a page."""
        return render_statement(self._get_statement("count_products_by_terms"), self.line_names)

    def build_counting_sizes_statement(self, *, counts_facets: bool) -> LiteralString:
        """Return the statement that counts the products of each filter, for a total or for counts of facets.

        Facets are not gathered for counts of facets, which include products that do not match one of the facets.
        """
        names = self.line_names & _UNCOUNTED_INDEXES if counts_facets else self.line_names
        return render_statement(self._get_statement("count_products_by_terms", _COUNTING_SCAN_LIMIT), names)

    def get_values(self, index: str = "") -> dict[str, Any]:
        """Return the parameters of a statement that reads the rows of the filter `index`."""
        terms = self.values.get(f"{index}_terms" if index in _MULTIPLE_TERMS else index)
        return {**self.values, "scanned_terms": terms}

    def build_page_statement(
        self, page: "FacetPage", index: str, *, is_first_attempt: bool = False, finds_end: bool = False
    ) -> LiteralString:
        """Return the statement of a page, or with `finds_end` the one that returns the key of its last scanned row."""
        names = self.line_names | page.line_names | self._name_scan(index)
        names |= {page.sort if page.sort == ProductSort.UPDATED else "facets"}
        if not self.line_names:
            names |= {"unfiltered"}
        elif not self.is_complete(index):
            names |= {"ordered"}
        limit = _FIRST_SCAN_LIMIT if is_first_attempt else _SCAN_LIMIT
        name = "find_facets_scan_end" if finds_end else "list_products_by_facets"
        statement = self._get_statement(name, limit, by_updated=page.sort == ProductSort.UPDATED)
        return render_statement(statement, names, page.request.limit + 1)

    def build_total_statement(self, index: str) -> LiteralString:
        """Return the statement that counts all products of the query, up to one more than MAX_COUNTED_PRODUCTS."""
        names = self._name_unordered_scan(index)
        return render_statement(
            self._get_statement("count_products", _COUNTING_SCAN_LIMIT), names, MAX_COUNTED_PRODUCTS + 1
        )

    def build_facets_statement(self, index: str) -> LiteralString:
        """Return the statement that counts the values of each facet; only words may be gathered by `index`."""
        names = self._name_unordered_scan(index) | {"newest", "forwards"}
        return render_statement(self._get_statement("count_facets", _COUNTING_SCAN_LIMIT), names)

    def get_statement(self, name: str) -> LiteralString:
        """Return a statement without optional lines."""
        return self._get_statement(name)

    def _name_unordered_scan(self, index: str) -> frozenset[str]:
        names = self.line_names | self._name_scan(index) | {"facets"}
        return names if self.is_complete(index) else names | {"ordered"}

    def _name_scan(self, index: str) -> frozenset[str]:
        if not index:
            return frozenset()
        if index in _WORD_NAMES:
            return frozenset({"by_words" if "codes" in self.line_names else "by_terms"})
        return frozenset({"by_terms" if index in _TERM_FILTERS else f"by_{index}"})

    def _get_statement(self, name: str, scan_limit: int = _SCAN_LIMIT, *, by_updated: bool = False) -> LiteralString:
        return _STATEMENTS[scan_limit, by_updated, self.is_own][name]


_MULTIPLE_TERMS = frozenset(_TERM_FILTERS) - {*_WORD_NAMES}


@dataclass(frozen=True, slots=True)
class FacetPage:
    """Page of a list by facets, or the part of a page that is read by one statement.

    Attributes:
        part: One of the parts of a list by price; empty for other orders.
        has_documents: Whether the rows contain documents, or only IDs.
    """

    request: PageRequest
    sort: ProductSort
    part: str = ""
    has_documents: bool = True

    @property
    def line_names(self) -> frozenset[str]:
        """Names of the optional lines of order and position."""
        names = build_page_line_names(self.request)
        return names | ({self.part, self.sort} if self.part == "priced" else {self.part or self.sort})

    @property
    def values(self) -> dict[str, Any]:
        """Parameters of the page's position."""
        value, _, id = (self.request.key or "").rpartition("\x1f")
        max_bytes = LIST_BYTES // max(1, self.request.limit) if self.has_documents else -1
        values: dict[str, Any] = {"page_key": id, "max_document_bytes": max_bytes}
        if self.sort == ProductSort.UPDATED:
            return values | {"page_value": datetime.fromisoformat(value) if value else None}
        return values | {"page_value": value}

    def list_parts(self) -> Iterator["FacetPage"]:
        """Yield the parts of the page that may follow its position, in order."""
        if self.sort not in _PARTS:
            yield self
            return
        is_unpriced = self.request.key is not None and self.request.key.startswith("\x1f")
        if not is_unpriced:
            yield FacetPage(self.request, self.sort, "priced")
        yield FacetPage(self.request if is_unpriced else PageRequest(self.request.limit), self.sort, "unpriced")

    def build_key(self, id: str, *values: Any) -> str:
        """Return the key of an item, from the columns that follow the ID."""
        if self.sort == ProductSort.NEWEST:
            return id
        if self.part == "unpriced":
            return "\x1f" + id
        text = values[0].isoformat() if self.sort == ProductSort.UPDATED else values[0]
        return f"{text}\x1f{id}"


_FACET_PARAMETERS: Final[Mapping[str, Callable[[Sequence[str]], dict[str, Any]]]] = {
    "status": lambda values: {"status": list(values)},
    "brands": lambda values: {"brands": [search_terms.normalise_brand(brand) for brand in values]},
    "category": lambda values: {
        "category": [id for category in values for id in list_subcategories(category)],
        "category_terms": [search_terms.category_term(category) for category in values],
    },
    "availability": lambda values: {
        "availability": facets.encode_availabilities(values),
        "availability_terms": [search_terms.availability_term(value) for value in values],
    },
    "source": lambda values: {
        "source": list(values),
        "source_terms": [search_terms.source_term(source) for source in values],
    },
    "colour": lambda values: {
        "colour": facets.encode_colours(values),
        "colour_terms": _build_word_terms(facets.find_family_words(colours=values)),
    },
    "finish": lambda values: {
        "finish": facets.encode_finishes(values),
        "finish_terms": _build_word_terms(facets.find_family_words(finishes=values)),
    },
    "completeness": lambda values: {
        "completeness": [
            score for lowest, highest in facets.list_band_ranges(values) for score in range(lowest, highest + 1)
        ]
    },
}
"""Parameters of the filters with several values, by filter. The terms are those of all products that can match."""


def build_facet_query(filter: ProductFilter, *, is_own: bool) -> FacetQuery:
    """Return the query for the products that match the filter; `is_own`: only those of the organisation's own catalogue."""
    parameters: dict[str, Any] = {}
    for name, convert in _FACET_PARAMETERS.items():
        if (value := getattr(filter, name)) is not None:
            parameters[name] = convert(value)
    if filter.brand is not None:
        key = search_terms.normalise_brand(filter.brand)
        parameters["brands"] = {"brands": [key] if key in parameters.get("brands", {"brands": [key]})["brands"] else []}
    if filter.catalogue is not None:
        term = search_terms.catalogue_term(filter.catalogue)
        parameters["catalogue"] = {"catalogue": filter.catalogue, "catalogue_terms": [term]}
    if filter.currency is not None:
        least = filter.min_price or 0
        most = MAX_PRICE if filter.max_price is None else filter.max_price
        parameters["price"] = {
            "currency": filter.currency,
            "least": least,
            "most": most,
            "least_key": _build_price_key(filter.currency, least),
            "most_key": _build_price_key(filter.currency, most),
        }
    if filter.updated_since is not None:
        parameters["updated_since"] = {"updated_since": filter.updated_since}
    identifiers = _build_identifiers(filter)
    words, word_names = _build_words(filter)
    values = {name: value for given in parameters.values() for name, value in given.items()}
    names = parameters.keys() | identifiers.keys() | word_names
    return FacetQuery(frozenset(names), values | identifiers | words, is_own)


def _build_price_key(currency: str, amount: int) -> str:
    """Return the text by which prices are sorted, as the database computes it (0057_product_facets.sql)."""
    return f"{currency}{amount:018}"


def _build_word_terms(words: Collection[str]) -> list[str]:
    return [search_terms.word_term(word) for word in sorted(words)]


def _build_identifiers(filter: ProductFilter) -> dict[str, Any]:
    """Return the parameters of the filters by IDs and codes."""
    values: dict[str, Any] = {
        name: encode_texts(value) for name in ("id", "variant", "offer") if (value := getattr(filter, name)) is not None
    }
    if filter.external_id is not None:
        values["external_id"] = encode_texts({id.strip() for id in filter.external_id})
    if filter.gtin is not None:
        values["gtin"] = encode_texts(search_terms.normalise_gtins(filter.gtin))
    for name in ("sku", "mpn"):
        if (codes := getattr(filter, name)) is not None:
            values[name] = encode_jsonb(search_terms.normalise_codes(codes))
    return values


def _build_words(filter: ProductFilter) -> tuple[dict[str, Any], set[str]]:
    """Return the parameters of the search query, and the names of its lines."""
    if filter.q is None:
        return {}, set()
    exact_words = search_terms.split_query(filter.q)
    choices = filter.words if filter.words is not None else [[word] for word in exact_words]
    values: dict[str, Any] = {
        name: [search_terms.word_term(word) for word in words]
        for name, words in zip(_WORD_NAMES, choices, strict=False)
    }
    names = {*values, "words", "codes"} if choices else {"no_word"}
    values |= {"code": search_terms.normalise_code(filter.q), "gtin_code": search_terms.find_gtin(filter.q)}
    if filter.is_inexact:
        names = (names - {"codes"}) | {"inexact"}
        values |= {"exact_words": _build_word_terms(exact_words), "exact_count": len(exact_words)}
    return values, names


def choose_index(sizes: Mapping[str, int]) -> str:
    """Return the filter whose products are few enough to be gathered; an empty text if all rows are scanned."""
    return min(sizes, key=lambda name: (sizes[name], name), default="")


def choose_counting_indexes(sizes: Mapping[str, int]) -> Sequence[str]:
    """Return the filters by which a total or counts of facets are found: the second one if the first finds too few products.

    The newest products of a frequent word are gathered first, because looking up words product by product is slow.
    """
    index = choose_index(sizes)
    frequent_words = [name for name in _WORD_NAMES if name in sizes]
    return (frequent_words[0], "") if not index and frequent_words else (index,)


def split_brand_value(value: str) -> tuple[str, str]:
    """Return the key of a brand and the ID of a product of the brand, from a value of the statement `count_facets`."""
    key, _, product = value.rpartition(" ")
    return key, product


def decode_bits(count_by_mask: Mapping[str, int], members: Sequence[str]) -> dict[str, int]:
    """Return the number of products of each member, from the numbers of products of each bit mask."""
    return {
        member: count
        for n, member in enumerate(members)
        if (count := sum(size for mask, size in count_by_mask.items() if int(mask) >> n & 1))
    }
