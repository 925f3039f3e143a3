"""The list of products: found as one types, narrowed by filters that tell how many there are."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from domain.catalogue import categories, search
from domain.catalogue.completions import Completions, grown
from domain.catalogue.filter_counts import FilterCounts
from domain.catalogue.model import ProductFilter
from domain.kernel.errors import DomainError
from entrypoints.console.formatting import words
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.product_lines import origins_of, row_of
from entrypoints.console.refusals import Refused
from entrypoints.console.source_fields import source_names
from entrypoints.console.visit import Visit

PLACE: Final = "/console/catalogue"
_LIMIT: Final = 24
_TYPED: Final = 12
"""Products that are answered to a key press."""
_FILTERS: Final = ("brand", "category", "availability", "status", "source")
_GROWN: Final = 2
"""Queries that are asked besides the one that is being typed."""
_SHOWN: Final = 8
"""Values of a filter that are shown at once."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value that the list can be narrowed to, with how many products have it, or None where that is not counted."""

    value: str
    title: str
    count: int | None
    chosen: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """A filter with its values."""

    name: str
    title: str
    values: Sequence[Value]

    @property
    def shown(self) -> Sequence[Value]:
        """Those shown at once."""
        return self.values[:_SHOWN]

    @property
    def others(self) -> Sequence[Value]:
        """Those behind `more`."""
        return self.values[_SHOWN:]


async def products(visit: Visit) -> Answer:
    """The list, or the part of it that htmx asks for."""
    given = visit.query.given("q", *_FILTERS, "cursor")
    if len(search.code(given.get("q", ""))) < 2 and len(given.get("q", "")) < 2:
        given.pop("q", None)
    wants_counts, wants_rows = visit.asked.partial != "results", visit.asked.partial != "filters"
    found: Mapping[str, Any] = {"data": [], "has_more": False, "next_cursor": None}
    problem, counts = None, None
    further: Sequence[str] = ()
    choices: list[Choice] = []
    if wants_rows:
        try:
            found, further = await _found(visit, given)
        except Refused as error:
            if error.status != 400:
                raise
            problem = error
    if wants_counts:
        counts, choices = await _choices(visit, given)
    rows = [row_of(product) for product in found["data"]]
    return visit.render(
        "catalogue/products.html",
        pictures=(*origins_of(row.picture for row in rows), *visit.console.object_origins),
        found=found,
        rows=rows,
        further=further,
        given=given,
        kept={name: value for name, value in given.items() if name != "cursor"},
        choices=choices,
        counts=counts,
        problem=problem,
        filtered=any(name in given for name in ("q", *_FILTERS)),
    )


async def _found(visit: Visit, given: Mapping[str, str]) -> tuple[Mapping[str, Any], Sequence[str]]:
    """A page of products; where a query finds less than a page, what its last word may grow into is shown behind it."""
    asked = {name: value for name, value in given.items() if name != "cursor"}
    limit = _TYPED if visit.asked.partial == "results" and not given.get("cursor") else _LIMIT
    found = await visit.api.get("/v1/products", limit=limit, starting_after=given.get("cursor"), **asked)
    q = given.get("q", "")
    if not q or found["has_more"] or given.get("cursor"):
        return found, ()
    async with visit.reading() as tx:
        completions: Completions = await visit.service("catalogue").completions(tx, q)
    queries = grown(q, completions)
    kept = {product["id"]: product for product in found["data"]}
    more: list[dict[str, Any]] = [{"q": query} for query in queries[:_GROWN]]
    if completions.variants:
        more.insert(0, {"variant": completions.variants, "q": None})
    for other in more:
        if len(kept) < limit:
            page = await visit.api.get("/v1/products", limit=limit, **asked | other)
            kept |= {product["id"]: product for product in page["data"] if product["id"] not in kept}
    return {"data": list(kept.values())[:limit], "has_more": False, "next_cursor": None}, queries


async def _choices(visit: Visit, given: Mapping[str, str]) -> tuple[FilterCounts | None, list[Choice]]:
    asked: dict[str, Any] = {name: given[name] for name in ("q", *_FILTERS) if name in given}

    async def counted() -> FilterCounts | None:
        try:
            async with visit.reading() as tx:
                catalogue = visit.service("catalogue")
                found: FilterCounts = await catalogue.filter_counts(tx, ProductFilter(**asked))
                if not found.looked and (
                    queries := grown(asked.get("q", ""), await catalogue.completions(tx, asked.get("q", "")))
                ):
                    found = await catalogue.filter_counts(tx, ProductFilter(**asked | {"q": queries[0]}))
        except DomainError:
            return None  # the list itself tells what is wrong with the query
        return found

    counts, names = await asyncio.gather(counted(), source_names(visit))
    if counts is None:
        return None, []
    listed = (
        ("availability", "Availability", counts.availabilities, words),
        ("brand", "Brand", counts.brands, str),
        ("category", "Category", counts.categories, category_name),
        ("source", "Source", counts.sources, lambda source: names.get(source, source)),
        ("status", "Status", counts.statuses, words),
    )
    made = [Choice(name, title, _values(found, called, given.get(name))) for name, title, found, called in listed]
    return counts, [choice for choice in made if choice.values]


def _values(found: Sequence[tuple[str, int]], called: Any, chosen: str | None) -> list[Value]:
    values = [Value(value, called(value), count, value == chosen) for value, count in found]
    if chosen and not any(value.chosen for value in values):
        values.insert(0, Value(chosen, called(chosen), None, chosen=True))
    return values


def category_name(id: str) -> str:
    """A category's own name; its id when there is none."""
    known = categories.everything().get(id)
    return known.name if known else id


PAGES: Final = (Page(PLACE, products, scope="products:read", menu=Entry("Catalogue", "Products")),)
