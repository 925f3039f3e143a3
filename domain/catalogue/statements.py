"""What a source states: a product with its variants and their offers, as a feed or a pushed record gave them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from domain.catalogue.data import OfferData, ProductData, VariantData
from domain.catalogue.differences import PRICE_FIELDS, merge_data

NO_LOCATION: Final = "default"
"""The location of offers whose record names none."""
_STOCK: Final = frozenset({"quantity", "availability", "incoming"})


@dataclass(slots=True)
class OfferStatement:
    """A source's offer of one variant at one location; `data` holds only what this feed states."""

    location: str
    data: OfferData

    @property
    def is_general(self) -> bool:
        """Whether it holds wherever the item is offered: it names no location and states no stock."""
        return self.location == NO_LOCATION and _STOCK.isdisjoint(self.data)


@dataclass(slots=True)
class VariantStatement:
    """A source's statement of one variant; `key` is the source's own key for it, unique within the source.

    `restated`: its offers are all there are, so that others are withdrawn, whatever kind of run this is. `blank` names the
    fields of variant and offers whose columns its rows leave blank: `variant.dimensions.width`, `offer.compare_at`.
    What its feed has no columns for it does not state: `covers_locations` is false without columns of stock or locations,
    so that offers elsewhere stay, `states_status` without one of the status. `cartons` are the columns of numbered cartons.
    """

    key: str
    data: VariantData
    offers: list[OfferStatement] = field(default_factory=list)
    restated: bool = False
    blank: frozenset[str] = frozenset()
    covers_locations: bool = True
    states_status: bool = True
    cartons: "CartonColumns | None" = None


@dataclass(slots=True)
class ProductStatement:
    """A source's statement of one product; `key` is the source's own key for it.

    `blank` names its own fields whose columns the rows leave blank: `product.brand`. `restated`: its variants are all there are.
    `discontinued` is None where the record does not state it. `names_product` is false for an item of a feed without a
    column for products: a variant that is known stays with its product, unless the item has another title.
    Of a pushed record, which is merged before it is applied (domain/ingestion/merging.py), data may hold None for what is to
    be removed, and `alone` marks one that names offers and nothing else.
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
class CartonColumns:
    """The columns of numbered cartons that a feed has: how many cartons, and which of a carton's `parts`."""

    number: int
    parts: frozenset[str]

    def merged(self, held: list[Any], stated: list[Any]) -> list[Any]:
        """Merge stated cartons into those held by number: parts and numbers without a column keep their values."""
        kept = [{name: part for name, part in one.items() if name not in self.parts} for one in held[: self.number]]
        if not stated:  # the columns are blank
            return [one for one in kept if one.keys() - {"count"}] + held[self.number :]
        merged = [{**one, **(kept[at] if at < len(kept) else {})} for at, one in enumerate(stated)]
        return merged + held[self.number :]


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
        mine.data = merge_data(variant.data, mine.data)  # type: ignore[assignment]
        mine.blank |= variant.blank
        mine.covers_locations |= variant.covers_locations
        mine.states_status |= variant.states_status
        mine.cartons = mine.cartons or variant.cartons
        mine.offers = _merged_offers(mine.offers, variant.offers)
    if first.discontinued is None or second.discontinued:
        first.discontinued = second.discontinued
    return first


def at_locations(offers: list[OfferStatement], locations: Iterable[str]) -> list[OfferStatement]:
    """Return the offers with general ones at each of the locations instead; as they are where there is none."""
    places = [location for location in locations if location != NO_LOCATION]
    general = [offer for offer in offers if offer.is_general]
    if not places or not general:
        return offers
    known = {offer.location: offer for offer in offers if not offer.is_general}
    facts: dict[str, Any] = dict(general[0].data)
    return [
        OfferStatement(place, {**facts, **(known[place].data if place in known else {})})  # type: ignore[typeddict-item]
        for place in dict.fromkeys((*places, *known))
    ]


def _merged_offers(first: list[OfferStatement], second: list[OfferStatement]) -> list[OfferStatement]:
    locations = [offer.location for offer in (*first, *second)]
    first, second = at_locations(first, locations), at_locations(second, locations)
    merged = {offer.location: offer for offer in first}
    for offer in second:
        mine = merged.setdefault(offer.location, offer)
        if mine is not offer:
            other: dict[str, Any] = dict(offer.data)
            if mine.data.get("currency") != other.get("currency") and "currency" in mine.data:
                other = {name: value for name, value in other.items() if name not in PRICE_FIELDS}
            mine.data = {**other, **mine.data}  # type: ignore[typeddict-item]
    return list(merged.values())
