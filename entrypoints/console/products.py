"""Presentation of products: titles, prices, stock and pictures, and the comparison of the two items of a match."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from domain.catalogue.categories import category_by_id
from domain.catalogue.data import list_current_offers
from domain.catalogue.model import Availability
from domain.publishing.completeness import compute_score, list_missing_of_product
from entrypoints.console.rendering import (
    find_label,
    format_field,
    format_fields,
    format_money,
    format_number,
    format_share,
    format_words,
)
from entrypoints.console.translation import gettext, ngettext

Json = Mapping[str, Any]
PriceRange = tuple[Json, Json]
"""The lowest and the highest price, each with `amount`, in minor units, and `currency`."""
MarkedText = Sequence[tuple[str, bool]]
"""Consecutive pieces of a text, each with a flag: True if the piece differs from the other item's text."""
PRICE_FIELDS = ("price", "msrp", "map", "cost")
"""Fields of an offer with prices in order of preference: the first field with a value is the offer's price."""
PICTURES_PATH = "/console/pictures/"
"""Path below which the console redirects to stored images."""
_AVAILABILITY_RANKS = {availability: rank for rank, availability in enumerate(Availability)}
_COMPARED_FIELDS = (
    "title", "brand", "collection", "sku", "mpn", "gtin", "price", "stock", "colour", "finish", "axes", "materials",
    "dimensions", "weight", "category_path", "features", "description",
)  # fmt: skip


class Picture(NamedTuple):
    """Stored picture: the paths of its small and large version, its alternative text, and its ID."""

    small: str
    large: str
    alt: str
    id: str


class OfferSummary(NamedTuple):
    """Summary of several offers.

    Attributes:
        price: The lowest and the highest price.
        price_field: The field of these prices, such as `msrp`; all of them are of this field.
        availability: The best availability.
        quantity: The total quantity.
    """

    price: PriceRange | None
    price_field: str | None
    availability: str | None
    quantity: int | None


def find_title(product: Json) -> str:
    """Return the title of a product; without a title, the vendor's ID of the product; without both, its ID."""
    title: str = product["data"].get("title") or product.get("external_id") or product["id"]
    return title


def find_price_field(offer: Json) -> str | None:
    """Return the name of the field with an offer's price: the first of PRICE_FIELDS with a value. None without a price."""
    for path in PRICE_FIELDS:
        if offer.get(path) is not None:
            return path
    return None


def find_price(offer: Json) -> Json | None:
    """Return the price of an offer as an object with `amount`, in minor units, and `currency`; None without a price."""
    path, currency = find_price_field(offer), offer.get("currency")
    return {"amount": offer[path], "currency": currency} if path and currency else None


def find_compared_field(offers: Sequence[Json]) -> str | None:
    """Return the field whose prices represent the offers: the first of PRICE_FIELDS that is the price of an offer, or None."""
    fields = {find_price_field(offer) for offer in offers if find_price(offer)}
    return next((name for name in PRICE_FIELDS if name in fields), None)


def find_price_range(offers: Sequence[Json], name: str | None = None) -> PriceRange | None:
    """Return the lowest and the highest amount of one field of offers; None if no offer has a value.

    Amounts in other currencies than the most frequent are not comparable and do not count.

    Args:
        offers: The offers.
        name: The field, one of PRICE_FIELDS; None for `find_compared_field`.
    """
    name = name or find_compared_field(offers)
    prices = [
        {"amount": offer[name], "currency": offer["currency"]}
        for offer in offers
        if name and offer.get(name) is not None and offer.get("currency")
    ]
    if not prices:
        return None
    [(currency, _)] = Counter(price["currency"] for price in prices).most_common(1)
    prices = sorted(
        (price for price in prices if price["currency"] == currency), key=lambda price: int(price["amount"])
    )
    return prices[0], prices[-1]


def find_cheapest_offers(offers: Sequence[Json]) -> set[str]:
    """Return the IDs of the offers with the lowest price; none unless sources have different prices that can be compared."""
    name, lowest = find_compared_field(offers), find_price_range(offers)
    if name is None or lowest is None:
        return set()
    comparable = [
        offer for offer in offers if offer.get(name) is not None and offer.get("currency") == lowest[0]["currency"]
    ]
    if len({offer["source"] for offer in comparable}) < 2 or lowest[0]["amount"] == lowest[1]["amount"]:
        return set()
    return {offer["id"] for offer in comparable if offer[name] == lowest[0]["amount"]}


def sum_quantities(offers: Sequence[Json]) -> int | None:
    """Return the total quantity of offers; None if no offer has a quantity, or an offer in stock has none."""
    quantities = [offer["quantity"] for offer in offers if offer.get("quantity") is not None]
    available = (Availability.IN_STOCK, Availability.LOW_STOCK)
    without_quantity = [one for one in offers if one.get("quantity") is None and one["availability"] in available]
    return sum(quantities) if quantities and not without_quantity else None


def summarise_offers(offers: Sequence[Json], availabilities: Collection[str] = ()) -> OfferSummary:
    """Summarise the offers that are not withdrawn.

    Args:
        offers: The offers.
        availabilities: Availabilities by which a list is filtered: the summary states the stock of the offers that match,
            if any does.
    """
    current_offers = list_current_offers(offers)
    stocked = [offer for offer in current_offers if offer["availability"] in availabilities] or current_offers
    best = max(
        [offer["availability"] for offer in stocked], key=lambda one: _AVAILABILITY_RANKS.get(one, 0), default=None
    )
    return OfferSummary(
        find_price_range(current_offers), find_compared_field(current_offers), best, sum_quantities(stocked)
    )


def list_pictures(*media_lists: Iterable[Json]) -> list[Picture]:
    """Return the stored pictures of lists of the API's media objects, without duplicates.

    The pictures of the first list come first; in each list, those with the role `hero` do. Images that are not stored yet
    are omitted: loading them from the vendor's server would tell the vendor who looks at which product.
    """
    picture_by_id: dict[str, Picture] = {}
    for media in media_lists:
        for medium in sorted(filter(_is_picture, media), key=lambda medium: medium.get("role") != "hero"):
            if id := medium.get("id"):
                small, large = (f"{PICTURES_PATH}{id}?w={width}" for width in (320, 1600))
                picture_by_id.setdefault(id, Picture(small, large, medium.get("alt") or "", id))
    return list(picture_by_id.values())


def count_missing_pictures(*media_lists: Iterable[Json]) -> int:
    """Return the number of images in lists of the API's media objects that are not stored yet."""
    return len(
        {medium.get("url") for media in media_lists for medium in media if _is_picture(medium) and not medium.get("id")}
    )


def _is_picture(medium: Json) -> bool:
    """Return whether a media object of the API is an image."""
    return medium.get("role") not in ("video", "document")


@dataclass(frozen=True, slots=True)
class ProductRow:
    """Product in the product list.

    Attributes:
        product: The product as in the API.
        title: The product's title.
        picture: The first stored picture.
        summary: The summary of the offers of all variants.
        prices: The lowest and the highest amount by field.
        texts: The formatted values of the other columns, by column.
    """

    product: Json
    title: str
    picture: Picture | None
    summary: OfferSummary
    prices: Mapping[str, PriceRange]
    texts: Mapping[str, str]


def build_product_row(product: Json, columns: Collection[str], availabilities: Collection[str]) -> ProductRow:
    """Return a product of the API as a row of the product list.

    Args:
        product: The product.
        columns: The columns of the list, for which values are formatted.
        availabilities: The availabilities by which the list is filtered.
    """
    variants, data = product["variants"], product["data"]
    offers = [offer for variant in variants for offer in variant["offers"]]
    current_offers = list_current_offers(offers)
    details = [variant["data"] for variant in variants]
    category = category_by_id().get(data.get("category", ""))
    lead_times = sorted(
        {offer["lead_time_days"] for offer in current_offers if offer.get("lead_time_days") is not None}
    )
    formats: Mapping[str, Callable[[], str]] = {
        "brand": lambda: data.get("brand") or "",
        "sku": lambda: _list_some(detail.get("sku") for detail in details),
        "gtin": lambda: _list_some(detail.get("gtin") for detail in details),
        "category": lambda: category.name if category else " › ".join(data.get("category_path", ())[-1:]),
        "variants": lambda: format_number(len(variants)),
        "completeness": lambda: format_share(compute_score(list_missing_of_product(product))),
        "sources": lambda: format_number(len({offer["source"] for offer in offers})),
        "colour": lambda: _list_some(detail.get("colour") for detail in details),
        "size": lambda: format_field(next((one["dimensions"] for one in details if one.get("dimensions")), None), "dimensions"),
        "lead_time": lambda: _format_days(lead_times),
    }  # fmt: skip
    gallery = list_pictures(data.get("media", ()), *(detail.get("media", ()) for detail in details[:1]))
    return ProductRow(
        product,
        find_title(product),
        next(iter(gallery), None),
        summarise_offers(offers, availabilities),
        {name: prices for name in PRICE_FIELDS if (prices := find_price_range(current_offers, name))},
        {name: format_value() for name, format_value in formats.items() if name in columns},
    )


def _list_some(values: Iterable[str | None]) -> str:
    """Return the first value, and how many different ones follow: `HD-300-GY +4`."""
    different = list(dict.fromkeys(filter(None, values)))
    return " +".join([*different[:1], *([format_number(len(different) - 1)] if len(different) > 1 else [])])


def _format_days(days: Sequence[int]) -> str:
    """Format the lowest and the highest of ascending numbers of days: `3 to 14 days`; empty without numbers."""
    if not days:
        return ""
    last = ngettext("%(count)s day", "%(count)s days", days[-1], count=format_number(days[-1]))
    return last if days[0] == days[-1] else gettext("%(first)s to %(last)s", first=format_number(days[0]), last=last)


@dataclass(frozen=True, slots=True)
class MatchItem:
    """One of the two items of a match, as the page of the match shows it.

    Attributes:
        product: The product's ID.
        title: The product's title.
        variant_title: The variant's title; empty if it is the same as the product's.
        pictures: Pictures of the variant and the product.
        field_texts: The formatted values of the variant and the product, by field.
        sources: The IDs of the sources that offer the variant.
        weight_hundredths_lb: The weight in hundredths of a pound; None if it is unknown.
        exists: Whether the product exists; False if it was deleted.
    """

    product: str
    title: str
    variant_title: str = ""
    pictures: Sequence[Picture] = ()
    field_texts: Mapping[str, str] = field(default_factory=dict)
    sources: Sequence[str] = ()
    weight_hundredths_lb: int | None = None
    exists: bool = True


class FieldComparison(NamedTuple):
    """Values of one field of the two items, with marked differences. `agrees` is None if only one item has a value."""

    name: str
    left: MarkedText
    right: MarkedText
    agrees: bool | None


def build_match_item(pair_variant: Json, product: Json | None) -> MatchItem:
    """Return an item of a match.

    Args:
        pair_variant: The variant as the API's match contains it.
        product: The variant's product as in the API; None if it was deleted.
    """
    if product is None:
        return MatchItem(pair_variant["product"], gettext("Deleted item"), exists=False)
    variants = product["variants"]
    variant = next(
        (candidate for candidate in variants if candidate["id"] == pair_variant["id"]),
        variants[0] if len(variants) == 1 else {},
    )
    product_data, variant_data, offers = product["data"], variant.get("data", {}), variant.get("offers", [])
    title = variant_data.get("title") or ""
    facts = format_fields(product_data | variant_data)
    facts["title"] = " · ".join(dict.fromkeys(text for text in (product_data.get("title"), title) if text))
    facts["stock"] = ", ".join(dict.fromkeys(format_words(offer["availability"]) for offer in offers))
    if (price := find_price_range(offers)) and (name := find_compared_field(offers)):
        facts["price"] = format_money(price[0]) + ("" if name == "price" else f" ({find_label(name, 'amounts')})")
    return MatchItem(
        product["id"],
        product_data.get("title") or find_title({**product, "data": variant_data}),
        title if title != product_data.get("title") else "",
        list_pictures(variant_data.get("media", ()), product_data.get("media", ()))[:4],
        facts,
        tuple(dict.fromkeys(offer["source"] for offer in offers if "source" in offer)),
        (variant_data.get("weight") or {}).get("hundredths_lb"),
    )


def compare_items(left: MatchItem, right: MatchItem) -> list[FieldComparison]:
    """Compare the fields for which at least one item has a value. Weights that differ by at most 1% count as equal."""
    weights = [side.weight_hundredths_lb for side in (left, right) if side.weight_hundredths_lb is not None]
    is_weight_equal = len(weights) == 2 and (max(weights) - min(weights)) * 100 <= max(weights)
    comparisons = []
    for name in _COMPARED_FIELDS:
        left_text, right_text = left.field_texts.get(name, ""), right.field_texts.get(name, "")
        is_equal = left_text.casefold() == right_text.casefold() or (name == "weight" and is_weight_equal)
        if left_text and right_text and not is_equal:
            comparisons.append(FieldComparison(name, *mark_differences(left_text, right_text), agrees=False))
        elif left_text or right_text:
            comparisons.append(
                FieldComparison(
                    name, [(left_text, False)], [(right_text, False)], agrees=True if left_text and right_text else None
                )
            )
    return comparisons


def mark_differences(left: str, right: str) -> tuple[MarkedText, MarkedText]:
    """Mark in each of two texts the words that the other text does not contain, or contains less often."""
    left_words, right_words = left[:600].split(), right[:600].split()
    return list(_mark_unmatched(left_words, right_words)), list(_mark_unmatched(right_words, left_words))


def _mark_unmatched(words: Sequence[str], other_words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield groups of consecutive words as text, each with a flag.

    The flag is True if `other_words` lacks the words or contains them less often.
    """
    unmatched = Counter(word.casefold() for word in other_words)

    def differs(word: str) -> bool:
        unmatched[word.casefold()] -= 1
        return unmatched[word.casefold()] < 0

    for is_different, piece_words in groupby(words, differs):
        yield " ".join(piece_words), is_different
