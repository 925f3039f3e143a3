"""State of the product list in the query string: filters, order, columns and layout."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlencode

from domain.catalogue import search_terms
from domain.catalogue.categories import category_by_id
from domain.kernel.money import EXPONENTS
from entrypoints.console.rendering import find_label
from entrypoints.console.request import FormData, parse_number
from entrypoints.console.translation import N_

LIST_PATH = "/console/catalogue"
"""Path of the product list."""


class Facet(NamedTuple):
    """Filter of the product list.

    Attributes:
        name: The query parameter; for a range, `min_` and `max_` followed by the name.
        label: The heading, as a message to translate.
        kind: `values` for a list of values, `tree` for categories, `range` for amounts of money.
        parameter: The filter of GET /v1/products.
        counts: The attribute of FilterCounts with the values.
        label_table: The table of labels.toml with the labels of the values; empty if the values are texts of their own.
    """

    name: str
    label: str
    kind: Literal["values", "tree", "range"]
    parameter: str
    counts: str
    label_table: str = ""

    @property
    def has_labels(self) -> bool:
        """True if the values are codes or IDs, which `label_value` replaces by texts."""
        return bool(self.label_table) or self.kind == "tree" or self.name == "source"

    def label_value(self, value: str, source_names: Mapping[str, str]) -> str:
        """Return the text of a value; `source_names` are the names of sources by ID."""
        if self.name == "source":
            return source_names.get(value, value)
        if self.kind == "tree":
            category = category_by_id().get(value)
            return category.name if category else value
        return find_label(value, self.label_table) if self.label_table else value


FACETS: Final = (
    Facet("availability", N_("Availability"), "values", "availability", "availabilities", "availability"),
    Facet("category", N_("Category"), "tree", "category", "categories"),
    Facet("brand", N_("Brand"), "values", "brands", "brands"),
    Facet("price", N_("Price"), "range", "price", "prices"),
    Facet("colour", N_("Colour"), "values", "colour", "colours", "colour_families"),
    Facet("finish", N_("Finish"), "values", "finish", "finishes", "finish_families"),
    Facet("source", N_("Source"), "values", "source", "sources"),
    Facet("completeness", N_("Completeness"), "values", "completeness", "completeness", "completeness_bands"),
    Facet("status", N_("Status"), "values", "status", "statuses", "product_statuses"),
)
"""Filters of the product list, in order."""
_RANGES: Final = tuple(facet.name for facet in FACETS if facet.kind == "range")
_FILTER_NAMES: Final = (
    "q",
    *(facet.name for facet in FACETS if facet.kind != "range"),
    "currency",
    *(f"{bound}_{name}" for name in _RANGES for bound in ("min", "max")),
)


class ListColumn(NamedTuple):
    """Column of the product list.

    Attributes:
        name: The value of the query parameter.
        label: The heading, as a message to translate.
        exported: The columns of an export with the same values.
        is_default: Whether the list has the column if none is selected.
        is_number: Whether the values are aligned right.
    """

    name: str
    label: str
    exported: tuple[str, ...]
    is_default: bool = False
    is_number: bool = False


COLUMNS: Final = (
    ListColumn("brand", N_("Brand"), ("brand",)),
    ListColumn("sku", N_("SKU"), ("sku",)),
    ListColumn("gtin", N_("GTIN"), ("gtin",)),
    ListColumn("category", N_("Category"), ("category", "category_path"), is_default=True),
    ListColumn("price", N_("Price"), ("price", "msrp", "currency"), is_default=True, is_number=True),
    ListColumn("msrp", N_("MSRP"), ("msrp",), is_number=True),
    ListColumn("cost", N_("Cost price"), ("cost",), is_number=True),
    ListColumn("stock", N_("Stock"), ("availability", "quantity"), is_default=True),
    ListColumn("variants", N_("Variants"), (), is_default=True, is_number=True),
    ListColumn("completeness", N_("Completeness"), (), is_number=True),
    ListColumn("sources", N_("Sources"), ("source",), is_number=True),
    ListColumn("colour", N_("Colour"), ("colour",)),
    ListColumn("size", N_("Size"), ("width", "depth", "height")),
    ListColumn("lead_time", N_("Lead time"), ("lead_time_days",)),
    ListColumn("status", N_("Status"), ("status",)),
    ListColumn("changed", N_("Changed"), ("updated_at",), is_default=True),
    ListColumn("created", N_("Created"), ("created_at",)),
)
"""Columns of the product list after the product's name, in order."""
DEFAULT_COLUMNS: Final = tuple(column.name for column in COLUMNS if column.is_default)
SORTS: Final[Mapping[str, str]] = {
    "newest": N_("Newest first"),
    "updated": N_("Recently changed"),
    "title": N_("Title"),
    "price_low": N_("Lowest price"),
    "price_high": N_("Highest price"),
}
"""Labels of the orders of the product list, as messages to translate; the first order is the default."""
_DEFAULT_SORT: Final = next(iter(SORTS))
ALL_VIEW: Final = "all"
"""Value of the parameter `view` for the list without a saved view."""


class ActiveFilter(NamedTuple):
    """Selected value of a filter, empty for a range, and the state of the list without it."""

    facet: Facet
    value: str
    rest: "ProductQuery"


@dataclass(frozen=True, slots=True)
class ProductQuery:
    """State of the product list.

    Attributes:
        filters: The selected values by query parameter.
        sort: The order, one of SORTS.
        columns: Names of the columns.
        layout: `table` or `grid`.
    """

    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sort: str = _DEFAULT_SORT
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    layout: str = "table"

    @classmethod
    def from_query(cls, query: FormData) -> "ProductQuery":
        """Return the state in a query string; unknown columns, orders and layouts are ignored."""
        filters = {
            name: values
            for name in _FILTER_NAMES
            if (values := tuple(dict.fromkeys(text.strip() for text in query.get_all(name) if text.strip())))
        }
        q = filters.get("q", ("",))[-1]
        if max(len(search_terms.normalise_code(q)), len(q)) < 2:
            filters.pop("q", None)
        columns = set(query.split_values("columns"))
        selected = tuple(column.name for column in COLUMNS if column.name in columns)
        sort = query.get("sort")
        return cls(
            filters,
            sort if sort in SORTS else _DEFAULT_SORT,
            selected or DEFAULT_COLUMNS,
            "grid" if query.get("layout") == "grid" else "table",
        )

    def get(self, name: str) -> str:
        """Return the last value of a query parameter; an empty text if there is none."""
        return self.filters.get(name, ("",))[-1]

    @property
    def is_filtered(self) -> bool:
        """True if the list has a filter."""
        return bool(self.filters)

    def encode(self, **changes: Any) -> str:
        """Return the query string, with attributes replaced; defaults are omitted."""
        query = replace(self, **changes)
        pairs = [(name, value) for name in _FILTER_NAMES for value in query.filters.get(name, ())]
        if query.sort != _DEFAULT_SORT:
            pairs.append(("sort", query.sort))
        if query.columns != DEFAULT_COLUMNS:
            pairs.append(("columns", ",".join(query.columns)))
        if query.layout != "table":
            pairs.append(("layout", query.layout))
        return urlencode(pairs)

    def build_path(self, cursor: str = "", view: str = "", **changes: Any) -> str:
        """Return the path of the list in this state, with attributes replaced, at a cursor and below a saved view."""
        parts = [urlencode({"view": view}) if view else "", self.encode(**changes)]
        query = "&".join(filter(None, [*parts, urlencode({"cursor": cursor}) if cursor else ""]))
        return f"{LIST_PATH}?{query}" if query else LIST_PATH

    def with_filter(self, name: str, *values: str) -> dict[str, tuple[str, ...]]:
        """Return the filters with other values of one parameter; without values, the parameter is removed."""
        others = {key: held for key, held in self.filters.items() if key != name}
        return {**others, name: values} if values else others

    def list_active(self) -> Iterable[ActiveFilter]:
        """Yield the selected values in the order of the facets."""
        for facet in FACETS:
            if facet.kind == "range":
                bounds = (f"min_{facet.name}", f"max_{facet.name}", "currency")
                if any(name in self.filters for name in bounds):
                    others = {key: held for key, held in self.filters.items() if key not in bounds}
                    yield ActiveFilter(facet, "", replace(self, filters=others))
                continue
            selected = self.filters.get(facet.name, ())
            for value in selected:
                rest = [other for other in selected if other != value]
                yield ActiveFilter(facet, value, replace(self, filters=self.with_filter(facet.name, *rest)))

    def build_export_query(self) -> str:
        """Return the query string of an export of the list: its filters as the API has them, its order and its columns."""
        columns = dict.fromkeys(name for column in COLUMNS if column.name in self.columns for name in column.exported)
        order = {} if self.sort == _DEFAULT_SORT else {"sort": self.sort}
        return urlencode({**self.build_api_filters(), **order, "columns": ",".join(("title", *columns))})

    def build_api_filters(self) -> dict[str, str]:
        """Return the filters as query parameters of GET /v1/products. Amounts become minor units of the currency."""
        found = {"q": self.get("q")} if "q" in self.filters else {}
        for facet in FACETS:
            if values := self.filters.get(facet.name):
                found[facet.parameter] = ",".join(map(_escape_commas, values))
        if currency := self.get("currency").lower():
            found["currency"] = currency
        for name in (f"{bound}_{facet}" for facet in _RANGES for bound in ("min", "max")):
            if text := self.get(name):
                found[name] = _convert_to_minor_units(text, currency)
        return found


def _escape_commas(value: str) -> str:
    """Escape the commas in a value of a list (docs/finding.md)."""
    return value.replace("\\", "\\\\").replace(",", "\\,")


def _convert_to_minor_units(text: str, currency: str) -> str:
    """Convert an amount in a form to minor units; text that is not an amount is returned unchanged, so that the API refuses it."""
    amount = parse_number(text)
    return str(int(amount.scaleb(EXPONENTS.get(currency, 2)))) if isinstance(amount, Decimal) else text
