"""Presentation of products: titles, prices, stock and pictures, and the comparison of the two items of a match."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from domain.catalogue.model import Availability
from entrypoints.console.rendering import find_label, format_fields, format_money, format_words
from entrypoints.console.translation import gettext

Json = Mapping[str, Any]
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
    """Picture: the URLs of its small and large version, its alternative text, and its role, such as `hero`."""

    small: str
    large: str
    alt: str
    role: str


class OfferSummary(NamedTuple):
    """Summary of several offers: lowest and highest price, best availability, and total quantity."""

    price: tuple[Json, Json] | None
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


def find_price_range(offers: Sequence[Json]) -> tuple[Json, Json] | None:
    """Return the lowest and the highest price of offers; None if no offer has a price.

    Prices of other fields than `find_compared_field`, and in other currencies than the most frequent, are not comparable
    and do not count.
    """
    name = find_compared_field(offers)
    prices = [price for offer in offers if find_price_field(offer) == name and (price := find_price(offer))]
    if not prices:
        return None
    [(currency, _)] = Counter(price["currency"] for price in prices).most_common(1)
    prices = sorted(
        (price for price in prices if price["currency"] == currency), key=lambda price: int(price["amount"])
    )
    return prices[0], prices[-1]


def sum_quantities(offers: Sequence[Json]) -> int | None:
    """Return the total quantity of offers; None if no offer has a quantity, or an offer in stock has none."""
    quantities = [offer["quantity"] for offer in offers if offer.get("quantity") is not None]
    available = (Availability.IN_STOCK, Availability.LOW_STOCK)
    without_quantity = [one for one in offers if one.get("quantity") is None and one["availability"] in available]
    return sum(quantities) if quantities and not without_quantity else None


def summarise_offers(offers: Sequence[Json]) -> OfferSummary:
    """Summarise the offers that are not withdrawn."""
    current_offers = [offer for offer in offers if not offer.get("withdrawn_at")]
    best = max(
        [offer["availability"] for offer in current_offers],
        key=lambda one: _AVAILABILITY_RANKS.get(one, 0),
        default=None,
    )
    return OfferSummary(find_price_range(current_offers), best, sum_quantities(current_offers))


def list_pictures(*media: Json) -> list[Picture]:
    """Return the pictures in a list of the API's media objects, without duplicates; those with the role `hero` are first.

    The URL of a stored image is a path of the console; any other picture has the vendor's URL.
    """
    picture_by_url: dict[str, Picture] = {}
    for medium in media:
        role, url = medium.get("role") or "", medium.get("url", "")
        if role in ("video", "document") or not (medium.get("id") or _find_origin(url)):
            continue
        small, large = (
            f"{PICTURES_PATH}{medium['id']}?w={width}" if medium.get("id") else url for width in (320, 1600)
        )
        picture_by_url.setdefault(large, Picture(small, large, medium.get("alt") or "", role))
    return sorted(picture_by_url.values(), key=lambda picture: picture.role != "hero")


def list_picture_origins(pictures: Iterable[Picture | None]) -> list[str]:
    """Return the origins of the pictures on other sites, for a page's Content-Security-Policy."""
    return sorted({origin for picture in pictures if picture is not None and (origin := _find_origin(picture.small))})


def _find_origin(url: str) -> str:
    """Return the origin of an https URL, or an empty text for any other URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if parts.scheme != "https" or not re.fullmatch(r"[A-Za-z0-9.-]+", host):
        return ""
    return f"https://{host}" + (f":{port}" if port else "")


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
        list_pictures(*variant_data.get("media", ()), *product_data.get("media", ()))[:4],
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
