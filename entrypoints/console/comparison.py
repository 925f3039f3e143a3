"""Presentation of comparisons: the state in the query string, the compared items, and the rows of the table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from domain.catalogue.categories import category_by_id
from domain.catalogue.data import list_current_offers
from domain.comparison.model import (
    MAX_ITEMS,
    ComparedItem,
    Measure,
    Prices,
    find_lowest_prices,
    find_lowest_values,
    select_prices,
)
from domain.kernel.units import UNIT_SYSTEMS
from entrypoints.console.products import find_title, list_pictures, summarise_offers
from entrypoints.console.rendering import find_label, format_category, format_field, format_money, format_number
from entrypoints.console.request import FormData
from entrypoints.console.translation import gettext, ngettext

COMPARISON_PATH = "/console/catalogue/compare"
_MAX_OPTIONS = 30
"""Maximum number of variants of a product among which one can be selected; the page of the product links to all others."""
_MAX_ITEM_CHARS = 60
_FACTS_BEFORE_SIZES = ("brand", "collection", "sku", "mpn", "gtin", "category", "axes", "size")
_FACTS_AFTER_SIZES = ("materials", "colour", "finish")
_MEASURES = (
    "width",
    "depth",
    "height",
    "diameter",
    "seat_height",
    "seat_depth",
    "arm_height",
    "clearance",
    "weight",
)
_UNIT_SIGNS = {"in": "″"}
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ComparisonQuery:
    """State of a comparison in the query string.

    Attributes:
        items: The compared products, each as `prod_…` or `prod_…:var_…`.
        by_source: Whether the offers of one product's sources are compared instead.
        units: The name of the unit system.
        only_differences: Whether equal rows are omitted.
        shows_cost: Whether cost prices and margins are shown.
        omitted: Number of further requested items beyond MAX_ITEMS.
    """

    items: tuple[str, ...]
    by_source: bool
    units: str
    only_differences: bool
    shows_cost: bool
    omitted: int = 0

    @classmethod
    def from_form(cls, form: FormData, default_units: str) -> "ComparisonQuery":
        """Return the state in a query string or form."""
        requested = form.get_all("item") or form.split_values("products")
        items = list(dict.fromkeys(item[:_MAX_ITEM_CHARS] for item in requested if item))
        units = form["units"]
        return cls(
            tuple(items[:MAX_ITEMS]),
            form["by"] == "source",
            units if units in UNIT_SYSTEMS else default_units,
            form["differences"] == "1",
            form["cost"] != "0",
            max(0, len(items) - MAX_ITEMS),
        )

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the query string, except the items."""
        values = {
            "by": "source" if self.by_source else "",
            "units": self.units,
            "differences": "1" if self.only_differences else "",
            "cost": "" if self.shows_cost else "0",
        }
        return {name: value for name, value in values.items() if value}

    def build_url(self, path: str = COMPARISON_PATH, **changes: Any) -> str:
        """Return the URL of the comparison with these attributes changed."""
        query: ComparisonQuery = replace(self, **changes)
        products = {"products": ",".join(query.items)} if query.items else {}
        return f"{path}?{urlencode(products | query.parameters, safe=',:')}"

    def add(self, item: str) -> str:
        """Return the URL with the item added as the last one."""
        return self.build_url(items=(*self.items, item), by_source=False)

    def remove(self, index: int) -> str:
        """Return the URL without the item."""
        return self.build_url(items=self.items[:index] + self.items[index + 1 :])

    def move_left(self, index: int) -> str:
        """Return the URL with the item and its left neighbour exchanged."""
        items = list(self.items)
        items[index - 1], items[index] = items[index], items[index - 1]
        return self.build_url(items=tuple(items))


class ComparisonColumn(NamedTuple):
    """Column of a comparison.

    Attributes:
        item: The compared item.
        product: The ID of the product; empty if it was not found.
        options: The variants that can be selected: the item in the query string, the name, and whether it is selected.
        sources: The IDs of the sources of the item's data; empty if they are unknown.
        is_own: Whether the product belongs to the organisation's catalogue.
    """

    item: ComparedItem
    product: str = ""
    options: Sequence[tuple[str, str, bool]] = ()
    sources: frozenset[str] = frozenset()
    is_own: bool = False


class ComparisonCell(NamedTuple):
    """Value of an item.

    Attributes:
        text: The text.
        note: A smaller text, such as the value that the vendor stated.
        status: An availability, which is shown as a badge.
        is_missing: Whether the text states that there is no value.
        is_best: Whether the value is marked as the best one of the row.
    """

    text: str = ""
    note: str = ""
    status: str = ""
    is_missing: bool = False
    is_best: bool = False


class ComparisonRow(NamedTuple):
    """Row of a comparison. `differs` is True if the items that were found have different values."""

    name: str
    label: str
    cells: Sequence[ComparisonCell]
    differs: bool
    best_label: str = ""


class ProductDocument(NamedTuple):
    """Product of the API without its variants, and the variants as undecoded JSON (ADR 73)."""

    product: dict[str, Any]
    variants: list[msgspec.Raw]

    @classmethod
    def from_parts(cls, parts: dict[str, msgspec.Raw]) -> "ProductDocument":
        """Return a document from the encoded members of a product."""
        variants = msgspec.json.decode(parts.pop("variants"), type=list[msgspec.Raw])
        return cls({name: msgspec.json.decode(part) for name, part in parts.items()}, variants)

    def find_variant(self, id: str) -> Json:
        """Return the variant with an ID, or into which it was merged; the first variant if there is neither."""
        for raw in self.variants if id else ():
            if id.encode() in bytes(raw):
                variant: Json = msgspec.json.decode(raw)
                if id in (variant["id"], *variant.get("merged_from", ())):
                    return variant
        first: Json = msgspec.json.decode(self.variants[0]) if self.variants else {"id": "", "data": {}, "offers": []}
        return first


def build_missing_column(item: str) -> ComparisonColumn:
    """Return the column of a product that the organisation does not have; `item` is as in the query string."""
    return ComparisonColumn(ComparedItem(title=gettext("Not found"), subtitle=item, is_found=False))


def build_column(
    document: ProductDocument,
    key: str,
    source_names: Mapping[str, str],
    catalogues: Sequence[str],
    format_variant: Callable[[Json], str],
) -> ComparisonColumn:
    """Return the column of a product.

    Args:
        document: The product.
        key: The item in the query string, which contains the ID of the selected variant if one is selected.
        source_names: The names of the organisation's sources by ID.
        catalogues: The IDs of the organisation's catalogues.
        format_variant: Returns the name of a variant.
    """
    product, variants = document
    variant = document.find_variant(key.partition(":")[2])
    offers = list_current_offers(variant["offers"])
    is_own = product["catalogue"] in catalogues
    requested = key.partition(":")[0]
    candidates = [msgspec.json.decode(raw) for raw in variants[:_MAX_OPTIONS]]
    if variant["id"] not in {"", *(candidate["id"] for candidate in candidates)}:
        candidates.append(variant)
    options = [
        (f"{requested}:{candidate['id']}", format_variant(candidate)[:80], candidate["id"] == variant["id"])
        for candidate in candidates
    ]
    data = product["data"] | variant["data"]
    facts = {
        name: text for name in (*_FACTS_BEFORE_SIZES, *_FACTS_AFTER_SIZES) if (text := format_field(data.get(name)))
    }
    if (category := data.get("category")) in category_by_id():
        facts["category"] = format_category(category)
    elif data.get("category_path"):
        facts["category"] = format_field(data["category_path"], "category_path")
    if size := (data.get("rug") or {}).get("size_text"):
        facts["size"] = size
    if is_own and source_names:
        facts["sources"] = ", ".join(
            dict.fromkeys(source_names.get(offer["source"], offer["source"]) for offer in offers)
        )
    pictures = list_pictures(variant["data"].get("media", ()), product["data"].get("media", ()))
    item = ComparedItem(
        title=find_title(product)[:300],
        subtitle=format_variant(variant)[:200] if len(variants) > 1 else "",
        image=next((picture.id for picture in pictures), ""),
        facts={name: text[:400] for name, text in facts.items() if text},
        measures=_list_measures(data),
        **_summarise(offers),
    )
    return ComparisonColumn(
        item, product["id"], options if len(options) > 1 else (), _list_sources(product, variant), is_own
    )


def build_source_columns(
    document: ProductDocument, key: str, source_names: Mapping[str, str], catalogues: Sequence[str]
) -> list[ComparisonColumn]:
    """Return a column for each source that offers the selected variant, in order of names, at most MAX_ITEMS."""
    variant = document.find_variant(key.partition(":")[2])
    offers_by_source: dict[str, list[Json]] = {}
    for offer in list_current_offers(variant["offers"]):
        offers_by_source.setdefault(offer["source"], []).append(offer)
    product = document.product
    is_own = product["catalogue"] in catalogues
    title = " · ".join(dict.fromkeys(text for text in (find_title(product), variant["data"].get("title")) if text))
    title_origins = {origin["source"] for name, origin in (product.get("provenance") or {}).items() if name == "title"}
    columns = [
        ComparisonColumn(
            ComparedItem(
                title=source_names.get(source) or gettext("Another organisation"),
                subtitle=title[:300],
                facts={"location": ", ".join(dict.fromkeys(offer["location"] for offer in offers))[:400]},
                **_summarise(offers),
            ),
            sources=frozenset({source, *title_origins}),
            is_own=is_own,
        )
        for source, offers in offers_by_source.items()
    ]
    return sorted(columns, key=lambda column: column.item.title.casefold())[:MAX_ITEMS]


def _summarise(offers: Sequence[Json]) -> dict[str, Any]:
    """Return the attributes of a ComparedItem that depend on the current offers."""
    summary = summarise_offers(offers)
    return {
        "prices": select_prices(offers),
        "availability": summary.availability or "",
        "quantity": summary.quantity,
        "lead_time_days": min(
            (offer["lead_time_days"] for offer in offers if offer.get("lead_time_days") is not None), default=None
        ),
    }


def _list_measures(data: Json) -> dict[str, Measure]:
    lengths = {**(data.get("dimensions") or {}), "weight": data.get("weight")}
    return {
        name: Measure(str(length["given"]["value"]), length["given"]["unit"])
        for name, length in lengths.items()
        if name in _MEASURES and length
    }


def _list_sources(product: Json, variant: Json) -> frozenset[str]:
    """Return the IDs of the sources of a product's and a variant's data."""
    origins = [origin for one in (product, variant) for origin in (one.get("provenance") or {}).values()]
    return frozenset(origin["source"] for origin in [*origins, *variant["offers"]])


def build_rows(items: Sequence[ComparedItem], units: str, *, shows_cost: bool) -> list[ComparisonRow]:
    """Return the rows of a comparison; rows without any value are omitted.

    Args:
        items: The compared items.
        units: The name of the unit system.
        shows_cost: Whether cost prices and margins are shown.
    """

    def build(
        name: str, label: str, cells: Sequence[ComparisonCell], best: frozenset[int] = frozenset(), best_label: str = ""
    ) -> ComparisonRow:
        values = {(cell.text.casefold(), cell.status) for item, cell in zip(items, cells, strict=True) if item.is_found}
        marked = [cell._replace(is_best=index in best) for index, cell in enumerate(cells)]
        return ComparisonRow(name, label, marked, len(values) > 1, best_label)

    def build_facts(names: Sequence[str]) -> list[ComparisonRow]:
        return [
            build(name, find_label(name, "fields"), [ComparisonCell(item.facts.get(name, "")) for item in items])
            for name in names
        ]

    prices = [item.prices for item in items]
    lead_times = [item.lead_time_days for item in items]
    rows = [
        *build_facts(_FACTS_BEFORE_SIZES),
        *(
            build(name, find_label(name, "fields"), [_format_measure(item.measures.get(name), units) for item in items])
            for name in _MEASURES
        ),
        *build_facts(_FACTS_AFTER_SIZES),
        build(
            "price",
            gettext("Lowest selling price"),
            [ComparisonCell(_format_amount(one, one.price if one else None)) for one in prices],
            find_lowest_prices(prices),
            gettext("Lowest"),
        ),
        build(
            "msrp",
            find_label("msrp", "amounts"),
            [ComparisonCell(_format_amount(one, one.msrp if one else None)) for one in prices],
        ),
    ]
    if shows_cost and any(one and one.cost is not None for one in prices):
        rows += [
            build("cost", find_label("cost", "amounts"), [_format_cost(one) for one in prices]),
            build("margin", gettext("Margin"), [_format_margin(one) for one in prices]),
        ]
    rows += [
        build("stock", find_label("stock", "fields"), [_format_stock(item) for item in items]),
        build(
            "delivery",
            gettext("Lead time"),
            [ComparisonCell(_format_lead_time(days)) for days in lead_times],
            find_lowest_values(lead_times),
            gettext("Shortest"),
        ),
        *build_facts(("location",)),
        build("sources", gettext("Sources"), [ComparisonCell(item.facts.get("sources", "")) for item in items]),
    ]
    return [row for row in rows if any(cell.text or cell.status for cell in row.cells)]


def _format_measure(measure: Measure | None, units: str) -> ComparisonCell:
    if measure is None:
        return ComparisonCell()
    value, unit = measure.convert(units)
    stated = "" if measure.unit == unit else _format_quantity(Decimal(measure.value), measure.unit)
    return ComparisonCell(_format_quantity(value, unit), stated)


def _format_quantity(value: Decimal, unit: str) -> str:
    return format_number(value) + _UNIT_SIGNS.get(unit, f" {unit}")


def _format_amount(prices: Prices | None, amount: int | None) -> str:
    return format_money({"amount": amount, "currency": prices.currency}) if prices and amount is not None else ""


def _format_cost(prices: Prices | None) -> ComparisonCell:
    if prices is not None and prices.price is not None and prices.cost is None:
        return ComparisonCell(gettext("No cost"), is_missing=True)
    return ComparisonCell(_format_amount(prices, prices.cost if prices else None))


def _format_margin(prices: Prices | None) -> ComparisonCell:
    if prices is None or prices.margin is None:
        is_priced = prices is not None and prices.price is not None
        return ComparisonCell(gettext("No cost") if is_priced else gettext("No selling price"), is_missing=True)
    percent = prices.margin_percent
    return ComparisonCell(
        _format_amount(prices, prices.margin),
        "" if percent is None else gettext("%(percent)s%% of the price", percent=format_number(percent)),
    )


def _format_stock(item: ComparedItem) -> ComparisonCell:
    if not item.availability:
        return ComparisonCell()
    text = (
        ""
        if item.quantity is None
        else ngettext("%(count)s unit", "%(count)s units", item.quantity, count=format_number(item.quantity))
    )
    return ComparisonCell(text, status=item.availability)


def _format_lead_time(days: int | None) -> str:
    if days is None:
        return ""
    if not days:
        return gettext("Ships on the same day")
    return ngettext("Ships in %(count)s day", "Ships in %(count)s days", days, count=format_number(days))
