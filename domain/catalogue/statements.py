"""Statements: what a feed or a pushed record states about a product, its variants and their offers."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.catalogue.data import OfferData, ProductData, VariantData
from domain.catalogue.differences import PRICE_FIELDS, STOCK_CHECK_FIELDS, merge_data

NO_LOCATION = "default"
"""The location of offers for which the feed has no location."""


@dataclass(slots=True)
class OfferStatement:
    """Statement of a feed about one variant's offer at one location; `data` has only the fields in the feed.

    `blank_fields` has the names of fields whose cells are blank, such as `offer.compare_at`.
    """

    location: str
    data: OfferData
    blank_fields: frozenset[str] = frozenset()

    @property
    def is_general(self) -> bool:
        """True if the offer applies to all locations of the variant, because it has neither a location nor stock."""
        return self.location == NO_LOCATION and self.data.keys().isdisjoint(STOCK_CHECK_FIELDS)


@dataclass(slots=True)
class VariantStatement:
    """Statement of a feed about one variant.

    Attributes:
        key: The key by which the source identifies the variant, unique within the source.
        is_complete: Whether `offers` has all offers of the variant, so that every run withdraws the others.
        blank_fields: Names of fields whose cells are blank, such as `variant.dimensions.width`.
        covers_locations: False if the rows have no cells for stock or locations, so that other offers are kept.
        states_status: False if the rows have no cells for status or availability.
        is_discontinued: Whether the variant is discontinued even if `data` does not state this.
        carton_cells: The cells of numbered cartons; None if the feed has no columns for them.
    """

    key: str
    data: VariantData
    offers: list[OfferStatement] = field(default_factory=list)
    is_complete: bool = False
    blank_fields: frozenset[str] = frozenset()
    covers_locations: bool = True
    states_status: bool = True
    is_discontinued: bool = False
    carton_cells: "CartonCells | None" = None


@dataclass(slots=True)
class ProductStatement:
    """Statement of a feed about one product.

    The data of a pushed record, which is merged before it is applied (domain/ingestion/record_merge.py), has None for fields to
    remove.

    Attributes:
        key: The key by which the source identifies the product.
        discontinued: Whether the source states that the product is discontinued; None if it does not state the status.
        is_complete: Whether `variants` has all variants of the product.
        has_offers_only: Whether a pushed record has only offers.
        blank_fields: Names of the product's fields whose cells are blank, such as `product.brand`.
        has_product_key: Whether `key` identifies the product. False for an item of a feed without product keys: the item
            belongs to the stored product that already has its variant, unless the titles differ.
    """

    key: str
    data: ProductData
    variants: list[VariantStatement] = field(default_factory=list)
    discontinued: bool | None = False
    is_complete: bool = False
    has_offers_only: bool = False
    blank_fields: frozenset[str] = frozenset()
    has_product_key: bool = True


@dataclass(frozen=True, slots=True)
class CartonCells:
    """Cells of a row for numbered cartons (`Carton 1 weight`), filled or blank.

    Attributes:
        parts: Names of the fields of a carton that have a cell, by the carton's index (0 for `Carton 1`).
        carton_indexes: Indexes of the cartons with a filled cell, in the order of `cartons` in the row's data.
    """

    parts: Mapping[int, frozenset[str]]
    carton_indexes: tuple[int, ...] = ()

    def merge_cartons(self, stored_cartons: list[Any], stated_cartons: list[Any]) -> list[Any]:
        """Merge the cartons in the row into the stored ones, by index, and return the result.

        Fields without a cell keep their stored values; those with a blank cell are removed.
        """
        stated_by_index = dict(zip(self.carton_indexes, stated_cartons, strict=False))
        merged = []
        for index in range(max((len(stored_cartons), *(index + 1 for index in self.parts)))):
            before = stored_cartons[index] if index < len(stored_cartons) else {}
            kept = {name: part for name, part in before.items() if name not in self.parts.get(index, ())}
            carton = {**stated_by_index.get(index, {}), **kept}
            if carton.keys() - {"count"}:
                merged.append(carton)
        return merged

    def combine_rows(
        self, cartons: list[Any], other_cells: "CartonCells", other_cartons: list[Any]
    ) -> "tuple[CartonCells, list[Any]]":
        """Return the cells of this row and another one, and the cartons of both rows.

        Args:
            cartons: The cartons in this row; their values take precedence.
            other_cells: The cells of the other row.
            other_cartons: The cartons in the other row.
        """
        combined = dict(zip(other_cells.carton_indexes, other_cartons, strict=False))
        for index, carton in zip(self.carton_indexes, cartons, strict=False):
            combined[index] = {**combined.get(index, {}), **carton}
        parts = {
            index: self.parts.get(index, frozenset()) | other_cells.parts.get(index, frozenset())
            for index in self.parts.keys() | other_cells.parts.keys()
        }
        return CartonCells(parts, tuple(sorted(combined))), [combined[index] for index in sorted(combined)]


def merge_statements(first: ProductStatement, second: ProductStatement) -> ProductStatement:
    """Add what `second` states in addition to `first`, and return `first`; both are about one product."""
    first.data = merge_data(second.data, first.data)  # type: ignore[assignment]
    first.blank_fields |= second.blank_fields
    first.has_product_key |= second.has_product_key
    known = {variant.key: variant for variant in first.variants}
    for variant in second.variants:
        mine = known.get(variant.key)
        if mine is None:
            first.variants.append(variant)
            continue
        stating = variant if "cartons" in variant.data and "cartons" not in mine.data else mine
        cartons, boxes = (
            stating.carton_cells if "cartons" in stating.data else mine.carton_cells or variant.carton_cells,
            None,
        )
        if mine.carton_cells is not None and variant.carton_cells is not None:
            stated = mine.data.get("cartons", []), variant.carton_cells, variant.data.get("cartons", [])
            cartons, boxes = mine.carton_cells.combine_rows(*stated)
        mine.data = merge_data(variant.data, mine.data)  # type: ignore[assignment]
        if boxes:
            mine.data["cartons"] = boxes
        mine.blank_fields |= variant.blank_fields
        mine.covers_locations |= variant.covers_locations
        mine.states_status |= variant.states_status
        mine.carton_cells = cartons
        mine.offers = _merge_offers(mine.offers, variant.offers)
    if first.discontinued is None or second.discontinued:
        first.discontinued = second.discontinued
    return first


def expand_general_offers(offers: list[OfferStatement], locations: Collection[str]) -> list[OfferStatement]:
    """Replace the general offer by a copy for each location; return all offers.

    Without a general offer or locations, the offers are returned unchanged. An existing offer for a location keeps its
    fields; missing fields are taken from the general offer.
    """
    general = next((offer for offer in offers if offer.is_general), None)
    if general is None or not locations:
        return offers
    known = {offer.location: offer for offer in offers if offer is not general}
    return [
        _complete_offer(known[place], general)
        if place in known
        else OfferStatement(place, {**general.data}, general.blank_fields)
        for place in dict.fromkeys((*locations, *known))
    ]


def _complete_offer(offer: OfferStatement, other: OfferStatement) -> OfferStatement:
    """Return the offer with missing fields taken from another one.

    Prices are taken only if they have the same currency, and `compare_at` only together with its price.
    """
    added: dict[str, Any] = dict(other.data)
    if "currency" in offer.data and offer.data["currency"] != added.get("currency"):
        added = {name: value for name, value in added.items() if name not in PRICE_FIELDS}
    elif "price" in offer.data:
        added.pop("compare_at", None)
    return OfferStatement(offer.location, {**added, **offer.data}, offer.blank_fields | other.blank_fields)  # type: ignore[typeddict-item]


def _merge_offers(first: list[OfferStatement], second: list[OfferStatement]) -> list[OfferStatement]:
    places = {offer.location for offer in (*first, *second) if not offer.is_general} - {NO_LOCATION}
    merged = {offer.location: offer for offer in expand_general_offers(first, places)}
    for offer in expand_general_offers(second, places):
        mine = merged.get(offer.location)
        merged[offer.location] = offer if mine is None else _complete_offer(mine, offer)
    return list(merged.values())
