"""All statements of product lists by facets, for checks of rendered statements."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from adapters.postgres.catalogue_facets import FacetPage, FacetQuery, build_facet_query
from domain.catalogue.model import ProductFilter, ProductSort
from domain.kernel.paging import PageRequest

_FILTER = ProductFilter(
    updated_since=datetime(2026, 11, 20, tzinfo=UTC), status=["active"], brands=["b"], category=["c"], catalogue="k", source=["s"], availability=["in_stock"],
    colour=["grey"], finish=["oak"], completeness=["low"], currency="eur", min_price=1, q="one two", words=[["one"], ["two", "twos"]], is_inexact=True,
)  # fmt: skip
_IDENTIFIED = ProductFilter(
    id=["prod_1"], variant=["var_1"], offer=["ofr_1"], sku=["a"], mpn=["b"], gtin=["4006381333931"], external_id=["e"]
)
_INDEXES = ("", "word0", "word1", "category", "availability", "source", "catalogue", "colour", "finish", "brands", "price", "updated_since")  # fmt: skip
_KEYS = {
    ProductSort.NEWEST: "prod_1",
    ProductSort.UPDATED: "2026-11-20T00:00:00+00:00\x1fprod_1",
    ProductSort.TITLE: "title\x1fprod_1",
    ProductSort.PRICE_LOW: "eur000000000000000100\x1fprod_1",
    ProductSort.PRICE_HIGH: "\x1fprod_1",
}


def list_facet_statements(*, is_own: bool = False) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the name of each statement, the rendered statement, and its parameters without those of the tenant."""
    for filter in (_FILTER, ProductFilter(q="one"), _IDENTIFIED, ProductFilter(), ProductFilter(q="--")):
        query = build_facet_query(filter, is_own=is_own)
        for index in _INDEXES if filter is _FILTER else ("",):
            values = query.get_values(index)
            for page in _list_pages():
                for first, end in (
                    ((True, False), (False, False), (False, True)) if query.line_names else ((True, False),)
                ):
                    statement = query.build_page_statement(page, index, is_first_attempt=first, finds_end=end)
                    name = "find_facets_scan_end" if end else "list_products_by_facets"
                    yield f"catalogue_facets.{name}", statement, values | page.values
            yield "catalogue_facets.count_products", query.build_total_statement(index), values
            yield "catalogue_facets.count_facets", query.build_facets_statement(index), values
        yield from _list_other_statements(query)


def _list_pages() -> Iterator[FacetPage]:
    for sort, key in _KEYS.items():
        for request in (PageRequest(2), PageRequest(2, key)):
            yield from FacetPage(request, sort).list_parts()
    yield FacetPage(PageRequest(2, "prod_1", backwards=True), ProductSort.NEWEST)


def _list_other_statements(query: FacetQuery) -> Iterator[tuple[str, str, dict[str, Any]]]:
    yield "catalogue_facets.count_products_by_terms", query.filter_sizes_statement, query.get_values()
    for counts_facets in (False, True):
        statement = query.build_counting_sizes_statement(counts_facets=counts_facets)
        yield "catalogue_facets.count_products_by_terms", statement, query.get_values()
    values: dict[str, Any] = {"ids": ["prod_1"], "terms": '["w:one"]'}
    for name in ("list_brand_spellings", "exceeds_counted_rows", "find_existing_terms"):
        yield f"catalogue_facets.{name}", query.get_statement(name), values
