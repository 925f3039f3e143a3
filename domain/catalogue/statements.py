"""Statements of a source: a product with its variants and their offers, from a feed or a pushed record."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.catalogue.data import OfferData, ProductData, VariantData
from domain.catalogue.differences import CHECKED, PRICE_FIELDS, merge_data

NO_LOCATION = "default"
"""The location of offers whose record has none."""


@dataclass(slots=True)
class OfferStatement:
    """A source's statement of one variant's offer at one location; `data` holds only the stated fields.

    `blank` names the fields whose columns its rows leave blank: `offer.compare_at`.
    """

    location: str
    data: OfferData
    blank: frozenset[str] = frozenset()

    @property
    def is_general(self) -> bool:
        """True if the offer applies at every location of the item: it has no location and states no stock."""
        return self.location == NO_LOCATION and self.data.keys().isdisjoint(CHECKED)


@dataclass(slots=True)
class VariantStatement:
    """A source's statement of one variant; `key` is the source's own key for it, unique within the source.

    `restated`: its offers are complete, so that all others are withdrawn in any kind of run. `blank` names the fields
    whose columns its rows leave blank: `variant.dimensions.width`. `covers_locations` is false if the rows have no cells
    of stock or locations, so that offers elsewhere stay; `states_status` if they have none of the status or availability. `cartons` are the cells of numbered cartons.
    """

    key: str
    data: VariantData
    offers: list[OfferStatement] = field(default_factory=list)
    restated: bool = False
    blank: frozenset[str] = frozenset()
    covers_locations: bool = True
    states_status: bool = True
    cartons: "CartonCells | None" = None


@dataclass(slots=True)
class ProductStatement:
    """A source's statement of one product; `key` is the source's own key for it.

    `blank` names its own fields whose columns the rows leave blank: `product.brand`. `restated`: its variants are complete.
    `discontinued` is None where the record does not state it. `names_product` is false for an item of a feed without a
    column for products: a stored variant stays with its product, unless the item has another title.
    The data of a pushed record, which is merged before it is applied (domain/ingestion/merging.py), may hold None for
    fields to remove; `alone` marks a record that has offers only.
    """

    key: str
    data: ProductData
    variants: list[VariantStatement] = field(default_factory=list)
    discontinued: bool | None = False
    restated: bool = False
    alone: bool = False
    blank: frozenset[str] = frozenset()
    names_product: bool = True


@dataclass(frozen=True, slots=True)
class CartonCells:
    """The cells that a row has for numbered cartons.

    Attributes:
        parts: The parts of each carton that have a cell, filled or blank, by the carton's number from 0.
        stated: The numbers of the cartons in the statement's list, in its order.

    """

    parts: Mapping[int, frozenset[str]]
    stated: tuple[int, ...] = ()

    def merged(self, held: list[Any], stated: list[Any]) -> list[Any]:
        """Merge stated cartons into those held by number: parts without a cell keep their values, blank ones are removed."""
        boxes = dict(zip(self.stated, stated, strict=False))
        merged = []
        for number in range(max((len(held), *(number + 1 for number in self.parts)))):
            before = held[number] if number < len(held) else {}
            kept = {name: part for name, part in before.items() if name not in self.parts.get(number, ())}
            carton = {**boxes.get(number, {}), **kept}
            if carton.keys() - {"count"}:
                merged.append(carton)
        return merged

    def together(self, mine: list[Any], other: "CartonCells", others: list[Any]) -> "tuple[CartonCells, list[Any]]":
        """Return the cells of both, and the cartons that `mine` and then `others` state."""
        boxes = dict(zip(other.stated, others, strict=False))
        for number, carton in zip(self.stated, mine, strict=False):
            boxes[number] = {**boxes.get(number, {}), **carton}
        numbers = self.parts.keys() | other.parts.keys()
        parts = {
            number: self.parts.get(number, frozenset()) | other.parts.get(number, frozenset()) for number in numbers
        }
        return CartonCells(parts, tuple(sorted(boxes))), [boxes[number] for number in sorted(boxes)]


def together(first: ProductStatement, second: ProductStatement) -> ProductStatement:
    """Merge two sheets' statements of one product: the second fills in what the first does not state."""
    first.data = merge_data(second.data, first.data)  # type: ignore[assignment]
    first.blank |= second.blank
    first.names_product |= second.names_product
    known = {variant.key: variant for variant in first.variants}
    for variant in second.variants:
        mine = known.get(variant.key)
        if mine is None:
            first.variants.append(variant)
            continue
        stating = variant if "cartons" in variant.data and "cartons" not in mine.data else mine
        cartons, boxes = stating.cartons if "cartons" in stating.data else mine.cartons or variant.cartons, None
        if mine.cartons is not None and variant.cartons is not None:
            stated = mine.data.get("cartons", []), variant.cartons, variant.data.get("cartons", [])
            cartons, boxes = mine.cartons.together(*stated)
        mine.data = merge_data(variant.data, mine.data)  # type: ignore[assignment]
        if boxes:
            mine.data["cartons"] = boxes
        mine.blank |= variant.blank
        mine.covers_locations |= variant.covers_locations
        mine.states_status |= variant.states_status
        mine.cartons = cartons
        mine.offers = _merge_offers(mine.offers, variant.offers)
    if first.discontinued is None or second.discontinued:
        first.discontinued = second.discontinued
    return first


def at_locations(offers: list[OfferStatement], locations: Collection[str]) -> list[OfferStatement]:
    """Return the offers with general ones copied to each location; unchanged if there are no locations."""
    general = next((offer for offer in offers if offer.is_general), None)
    if general is None or not locations:
        return offers
    known = {offer.location: offer for offer in offers if offer is not general}
    return [
        _complete_offer(known[place], general)
        if place in known
        else OfferStatement(place, {**general.data}, general.blank)
        for place in dict.fromkeys((*locations, *known))
    ]


def _complete_offer(offer: OfferStatement, other: OfferStatement) -> OfferStatement:
    """Return the offer completed by another: prices only in the same currency, and compare_at only with its price."""
    facts: dict[str, Any] = dict(other.data)
    if "currency" in offer.data and offer.data["currency"] != facts.get("currency"):
        facts = {name: value for name, value in facts.items() if name not in PRICE_FIELDS}
    elif "price" in offer.data:
        facts.pop("compare_at", None)
    return OfferStatement(offer.location, {**facts, **offer.data}, offer.blank | other.blank)  # type: ignore[typeddict-item]


def _merge_offers(first: list[OfferStatement], second: list[OfferStatement]) -> list[OfferStatement]:
    places = {offer.location for offer in (*first, *second) if not offer.is_general} - {NO_LOCATION}
    merged = {offer.location: offer for offer in at_locations(first, places)}
    for offer in at_locations(second, places):
        mine = merged.get(offer.location)
        merged[offer.location] = offer if mine is None else _complete_offer(mine, offer)
    return list(merged.values())
