"""Queries of product and offer lists, rendered from the SQL templates in sql/catalogue.sql (ADR 24).

A template has optional lines that end in names (`--? name`). A line is included only if all its names are selected,
such as the filters that a request uses.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, LiteralString, NamedTuple

from adapters.postgres.session import encode_jsonb, encode_texts
from adapters.postgres.stores import (
    SCAN_LIMIT,
    build_page_line_names,
    build_page_params,
    load_statements,
    render_statement,
)
from domain.catalogue import search_terms
from domain.catalogue.model import OfferFilter, ProductFilter
from domain.kernel.bounds import LIST_BYTES
from domain.kernel.paging import PageRequest

_LOOKUP_SCAN_LIMIT = 1_000
"""Maximum number of rows that are scanned for a page if each row requires a lookup in another index.

A lookup takes about 3 µs. Without lookups, SCAN_LIMIT applies.
"""
_FIRST_SCAN_LIMIT = 500
"""Maximum number of rows that the first attempt at a page scans.

The first attempt fills most pages, so that the rows of the filters need not be counted.
"""
_COUNT_LIMIT = 500
"""Maximum number of a filter's rows that are counted to find the most selective filter."""
_MAX_SORTED_PRODUCTS = 300
"""Bound on the number of recently changed products whose offers are sorted for a page of offers.

If the bound is reached, another index is scanned.
"""
_MAX_NAME_SOURCE_BYTES = 16 << 10
"""Maximum bytes of a product's or variant's data from which the offer list decodes the title or the SKU.

From larger data, which is rare, the database extracts the title or the SKU.
"""
_SORT_LIMIT = 2_000
"""Bound on the number of rows found by SKU, MPN, GTIN or external ID that are sorted for a page.

If the bound is reached, another index is scanned.
"""
_TEMPLATES = load_statements("catalogue")
_IS_CODE = (
    "CASE WHEN v.{0}_code = ANY (ARRAY(SELECT s.code FROM jsonb_each_text(%({0})s) AS s (exact, code)))"
    " THEN ARRAY[convert_from(v.data, 'UTF8')::json ->> '{0}', convert_from(v.home_data, 'UTF8')::json ->> '{0}']"
    " && ARRAY(SELECT s.exact FROM jsonb_each_text(%({0})s) AS s (exact, code)) END"
)
"""Template of the SQL condition that the SKU or MPN of a variant is exactly equal to one of the requested codes.

The placeholder `{0}` stands for `sku` or `mpn`. The variant's data is read only if the normalised code matches, which is that of its
source, or a corrected one.
"""
_IS_GTIN = (
    "CASE WHEN v.gtin_key = ANY (ARRAY(SELECT jsonb_array_elements_text(%(gtin)s)))"
    r" THEN v.gtin_key = ANY (ARRAY[ltrim(regexp_replace(convert_from(v.data, 'UTF8')::json ->> 'gtin', '[\s-]', '', 'g'), '0'),"
    r" ltrim(regexp_replace(convert_from(v.home_data, 'UTF8')::json ->> 'gtin', '[\s-]', '', 'g'), '0')]) END"
)
"""SQL condition that the GTIN of a variant is one of the requested GTINs.

The data is compared as well, since earlier releases do not update the key.
"""


_RELATIONS = ("products", "variants", "offers", "product_terms", "product_documents")
"""Tables of a catalogue. The views that also have the licensed copies of other organisations' rows begin with `readable_`."""


def _load_statements(
    scan_limit: int = SCAN_LIMIT, lookup_scan_limit: int = _LOOKUP_SCAN_LIMIT, *, is_own: bool = False
) -> Mapping[str, LiteralString]:
    """Return the statements of the lists.

    Args:
        scan_limit: Maximum number of rows that are scanned for a page.
        lookup_scan_limit: The same if each row requires a lookup in another index.
        is_own: Whether the statements read only the organisation's own rows, without licensed copies.
    """
    return load_statements(
        "catalogue",
        scan_products=_TEMPLATES["scan_products"],
        scan_offers=_TEMPLATES["scan_offers"],
        **{name: text for name, text in _TEMPLATES.items() if "_with_" in name},
        **{f"is_{name}": _IS_CODE.format(name) for name in ("sku", "mpn")},
        is_gtin=_IS_GTIN,
        scan_limit=str(scan_limit),
        lookup_scan_limit=str(lookup_scan_limit),
        count_limit=str(_COUNT_LIMIT),
        max_sorted_products=str(_MAX_SORTED_PRODUCTS),
        sort_limit=str(_SORT_LIMIT),
        **{name: name if is_own else "readable_" + name.removeprefix("product_") for name in _RELATIONS},
    )


SQL = _load_statements()
_OWN_STATEMENTS = _load_statements(is_own=True)
_FIRST_SCAN_STATEMENTS = {
    is_own: _load_statements(_FIRST_SCAN_LIMIT, _FIRST_SCAN_LIMIT, is_own=is_own) for is_own in (False, True)
}
FILTERS = {
    "products": (
        "updated_since", "status", "brand", "category", "availability", "source", "catalogue", "q", "id", "variant", "offer", *search_terms.CODE_FILTERS,
    ),
    "offers": ("variant", "product", "source", "availability", "updated_since", "id", *search_terms.CODE_FILTERS),
}  # fmt: skip
"""Names of the filters that each list supports."""
_WORD_NAMES = tuple(f"word{n}" for n in range(search_terms.MAX_QUERY_WORDS))
_TERM_FILTERS = frozenset((*_WORD_NAMES, "category", "availability", "source", "catalogue"))
_INDEXES = {
    "products": (
        "id", "variant", "offer", *search_terms.CODE_FILTERS, "brand", *_WORD_NAMES, "category", "source", "catalogue", "availability", "status",
        "",
    ),
    "offers": ("id", "variant", "product", *search_terms.CODE_FILTERS, "source", "availability", ""),
}  # fmt: skip
"""Filters of each list that have an index, the most selective first.

The empty string stands for the index in the list's order.
"""
_UPDATED_SINCE = "updated_since"
_COLUMN_FILTERS = frozenset({"brand", "status", _UPDATED_SINCE})
"""Filters on columns of the table of products."""
_SELECTIVE_FILTERS = frozenset({"id", "variant", "offer", "product"})
"""Filters that match so few rows that their indexes are scanned without counting rows first."""
_UNORDERED_FILTERS = frozenset({*search_terms.CODE_FILTERS, _UPDATED_SINCE})
"""Filters whose index is not in the list's order. Their rows are sorted if counting has found all of them."""


class ListQuery(NamedTuple):
    """Query of one page of a list.

    Attributes:
        name: Name of the list, `products` or `offers`.
        line_names: Names of the template's optional lines to include; those that depend on the scanned index are added on rendering.
        values: Parameters of the statement.
        page_request: Requested page.
        is_own: Whether the page has only the organisation's own rows, without licensed copies.
    """

    name: str
    line_names: frozenset[str]
    values: dict[str, Any]
    page_request: PageRequest
    is_own: bool = False

    @property
    def count_statement(self) -> LiteralString | None:
        """Statement that counts the rows of each filter; None if the index is chosen without these counts."""
        indexed = self.line_names & {*_INDEXES[self.name], _UPDATED_SINCE}
        if indexed & _SELECTIVE_FILTERS or (len(indexed) < 2 and not indexed & _UNORDERED_FILTERS):
            return None
        statements = _OWN_STATEMENTS if self.is_own else SQL
        return render_statement(
            statements["count_products_by_filter" if self.name == "products" else "count_offers_by_filter"],
            self.line_names,
        )

    @property
    def limited_statement(self) -> LiteralString | None:
        """List statement for the first attempt at a page, which scans at most _FIRST_SCAN_LIMIT rows.

        The scanned index is that of `likely_filter`. None if the rows of the filters must be counted first.
        """
        if self.line_names & _UNORDERED_FILTERS:
            return None
        return build_list_statement(
            self.name,
            self.line_names,
            self.page_request,
            self.likely_filter,
            templates=_FIRST_SCAN_STATEMENTS[self.is_own],
        )

    @property
    def likely_filter(self) -> str:
        """Filter whose index is presumably the fastest to scan, while the row counts of the filters are unknown."""
        return choose_scanned_filter(self.name, self.line_names, {})

    def is_full(self, rows: Sequence[Sequence[Any]]) -> bool:
        """Return whether the rows that the list statement returned are a full page and one more row.

        The list statement for a query `q` finds products by words, and by SKU or MPN. Only the products found by words
        count. If the scan for words has ended early, unscanned products may precede the products found by SKU or MPN.
        """
        limit = self.page_request.limit
        return len(rows) > limit and ("q" not in self.line_names or rows[0][-1] > limit)

    def build_statement(self, scanned_filter: str) -> LiteralString:
        """Return the list statement that scans the index of the filter `scanned_filter`; if empty, the list's order."""
        return self._build_statement(scanned_filter)

    def build_end_statement(self, scanned_filter: str, row_counts: Mapping[str, int]) -> LiteralString | None:
        """Return the statement that selects the key of the last scanned row; None if all rows were scanned.

        The statement is for a page that is not full.

        Args:
            scanned_filter: Filter of the scanned index.
            row_counts: Row counts by filter.
        """
        if row_counts[scanned_filter] < _COUNT_LIMIT or "no_word" in self.line_names:
            return None
        return self._build_statement(scanned_filter, f"find_{self.name}_scan_end")

    def _build_statement(self, scanned_filter: str, statement_name: str | None = None) -> LiteralString:
        templates = _OWN_STATEMENTS if self.is_own else SQL
        return build_list_statement(
            self.name, self.line_names, self.page_request, scanned_filter, statement_name, templates
        )


def build_list_statement(
    name: str,
    filters: Iterable[str],
    page_request: PageRequest,
    scanned_filter: str | None = None,
    statement_name: str | None = None,
    templates: Mapping[str, LiteralString] | None = None,
) -> LiteralString:
    """Return the SQL statement for a page of a list.

    Args:
        name: Name of the list, one of FILTERS.
        filters: Names of the filters. With the filter `q`, they include `word0`, `word1` and so on, one for each word
            of the query, or `no_word` if the query contains no word.
        page_request: The requested page.
        scanned_filter: Filter whose index is scanned; None for the presumably most selective one.
        statement_name: Name of another statement that scans the same index; None for the list's statement.
        templates: Statements with other scan limits or relations than SQL; None for SQL.
    """
    all_filters = frozenset(filters)
    scanned_filter = choose_scanned_filter(name, all_filters, {}) if scanned_filter is None else scanned_filter
    other_filters = all_filters - {scanned_filter}
    names = build_page_line_names(page_request) | other_filters | {f"by_{scanned_filter}"}
    if name == "products":
        names |= {f"given_{filter}" for filter in all_filters} | (
            {"some", _find_scan_line_name(scanned_filter)} if all_filters else {"all"}
        )
        if other_filters & _COLUMN_FILTERS:
            names |= {"row" if _find_scan_line_name(scanned_filter) == "by_column" else "probe"}
    return render_statement((templates or SQL)[statement_name or f"list_{name}"], names, page_request.limit + 1)


def choose_scanned_filter(name: str, filters: Collection[str], row_counts: Mapping[str, int]) -> str:
    """Choose the filter whose index a query of a list scans: that with the fewest rows.

    Args:
        name: Name of the list.
        filters: Names of the query's filters.
        row_counts: Row counts by filter, at most _COUNT_LIMIT. If empty, the first filter in _INDEXES is chosen. A filter
            whose index does not have the list's order is chosen only if its rows are fewer than _COUNT_LIMIT.

    Returns:
        The name of the filter; the empty string for the index that only has the list's order.
    """
    indexes = [index for index in (*_INDEXES[name], _UPDATED_SINCE) if not index or index in filters]
    if not row_counts:
        return indexes[0]
    eligible = (index for index in indexes if index not in _UNORDERED_FILTERS or row_counts[index] < _COUNT_LIMIT)
    return min(eligible, key=row_counts.__getitem__)


def _find_scan_line_name(scanned_filter: str) -> str:
    """Return the name of the lines in the template `scan_products` that scan the table with the filter's index.

    The lines `by_term` scan the table of search terms. The lines `by_column` scan the table of products. For
    `updated_since` the name is empty, because this filter has its own lines `by_updated_since`.
    """
    return "by_term" if scanned_filter in _TERM_FILTERS else "" if scanned_filter == _UPDATED_SINCE else "by_column"


_COMMON_PARAMETERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "updated_since": lambda moment: moment,
    "external_id": lambda ids: encode_texts({id.strip() for id in ids}),
    "sku": lambda codes: encode_jsonb(search_terms.normalise_codes(codes)),
    "mpn": lambda codes: encode_jsonb(search_terms.normalise_codes(codes)),
    "gtin": lambda codes: encode_texts(search_terms.normalise_gtins(codes)),
    "id": encode_texts,
}
_PRODUCT_PARAMETERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **_COMMON_PARAMETERS,
    "status": lambda values: str(values[0]),
    "brand": search_terms.normalise_brand,
    "category": lambda values: search_terms.category_term(values[0]),
    "availability": lambda values: search_terms.availability_term(values[0]),
    "source": lambda values: search_terms.source_term(values[0]),
    "catalogue": search_terms.catalogue_term,
    "variant": encode_texts,
    "offer": encode_texts,
}
_OFFER_PARAMETERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **_COMMON_PARAMETERS,
    **dict.fromkeys(("variant", "product", "source", "availability"), str),
}
"""Conversions of filter values to parameters, by filter. Codes are normalised as in the index."""


def _convert_parameters(
    filter: ProductFilter | OfferFilter, parameters: Mapping[str, Callable[[Any], Any]]
) -> dict[str, Any]:
    values = {name: getattr(filter, name) for name in parameters}
    return {name: parameters[name](value) for name, value in values.items() if value is not None}


def build_products_query(filter: ProductFilter, page_request: PageRequest, *, is_own: bool = False) -> ListQuery:
    """Return the query for a page of products with this filter, newest first.

    Args:
        filter: The filter; each of its conditions has a single value, except for IDs and codes.
        page_request: The requested page.
        is_own: Whether the page has only the organisation's own products.
    """
    values = _convert_parameters(filter, _PRODUCT_PARAMETERS)
    names = {*values}
    if filter.q is not None:
        words = {f"word{n}": search_terms.word_term(word) for n, word in enumerate(search_terms.split_query(filter.q))}
        values |= words | {"code": search_terms.normalise_code(filter.q)}
        names |= {"q", *(words or ("no_word",))}
        if (gtin_code := search_terms.find_gtin(filter.q)) is not None:
            values["gtin_code"] = gtin_code
            names.add("gtin_code")
    values |= {"max_document_bytes": LIST_BYTES // page_request.limit, **build_page_params(page_request)}
    return ListQuery("products", frozenset(names), values, page_request, is_own)


def build_offers_query(filter: OfferFilter, page_request: PageRequest) -> ListQuery:
    """Return the query for a page of offers with this filter."""
    values = _convert_parameters(filter, _OFFER_PARAMETERS)
    params = {"max_data_bytes": _MAX_NAME_SOURCE_BYTES, **build_page_params(page_request)}
    return ListQuery("offers", frozenset(values), values | params, page_request)
