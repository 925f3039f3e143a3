"""Facets of a product: the values by which lists of products are filtered, sorted and counted beside the search terms."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from domain.catalogue import search_terms
from domain.catalogue.model import Availability, Offer, Product
from domain.ingestion.data import invert_table, load_toml
from domain.kernel.enums import StoredEnum
from domain.publishing.completeness import REQUIREMENTS, compute_score


class ColourFamily(StoredEnum):
    """Family of colours. The order determines the bits of stored facets: add members at the end."""

    WHITE = "white"
    BLACK = "black"
    GREY = "grey"
    BROWN = "brown"
    BEIGE = "beige"
    CREAM = "cream"
    BLUE = "blue"
    GREEN = "green"
    RED = "red"
    YELLOW = "yellow"
    ORANGE = "orange"
    PINK = "pink"
    PURPLE = "purple"
    TURQUOISE = "turquoise"
    GOLD = "gold"
    SILVER = "silver"
    TRANSPARENT = "transparent"
    MULTICOLOUR = "multicolour"


class FinishFamily(StoredEnum):
    """Family of woods, metals and surfaces. The order determines the bits of stored facets: add members at the end."""

    OAK = "oak"
    WALNUT = "walnut"
    ASH = "ash"
    BEECH = "beech"
    BIRCH = "birch"
    CHERRY = "cherry"
    MAHOGANY = "mahogany"
    MAPLE = "maple"
    PINE = "pine"
    TEAK = "teak"
    BAMBOO = "bamboo"
    BRASS = "brass"
    BRONZE = "bronze"
    CHROME = "chrome"
    COPPER = "copper"
    STAINLESS_STEEL = "stainless_steel"
    GLOSS = "gloss"
    MATTE = "matte"


class CompletenessBand(StoredEnum):
    """Share of the fields that retailers need (domain/publishing/completeness.py): 0–49, 50–79, 80–99 and 100 percent."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    COMPLETE = "complete"


_BAND_STARTS: Final[Mapping[str, int]] = {
    CompletenessBand.LOW: 0,
    CompletenessBand.MEDIUM: 50,
    CompletenessBand.HIGH: 80,
    CompletenessBand.COMPLETE: 100,
}
AVAILABILITIES: Final = (
    Availability.DISCONTINUED,
    Availability.OUT_OF_STOCK,
    Availability.UNKNOWN,
    Availability.PREORDER,
    Availability.BACKORDER,
    Availability.LOW_STOCK,
    Availability.IN_STOCK,
)
"""Availabilities in the order of the bits of stored facets: add new ones at the end."""
_REQUIREMENTS = {name: requirement for name, requirement in REQUIREMENTS.items() if name != "price"}
PRICE_POINTS: Final = REQUIREMENTS["price"].weight
"""Points of completeness for prices, which are added when facets are read, because stock runs change prices only."""
_AVAILABILITY_BITS = {str(value): 1 << n for n, value in enumerate(AVAILABILITIES)}
_COLOUR_BITS = {str(value): 1 << n for n, value in enumerate(ColourFamily)}
_FINISH_BITS = {str(value): 1 << n for n, value in enumerate(FinishFamily)}
MAX_TITLE_KEY_CHARS = 80
"""Number of characters of a title that determine its place in the order by title."""
_COLOURS = load_toml("colours")
_NAME_BY_WORD = invert_table(_COLOURS["titles"]) | invert_table(_COLOURS["names"])
_COLOUR_BY_NAME = invert_table(_COLOURS["colour_families"])
_FINISH_BY_NAME = invert_table(_COLOURS["finish_families"])


class Facets(NamedTuple):
    """Facets of a product.

    Attributes:
        title_key: Normalised beginning of the title, for the order by title; empty without a title.
        category: ID of the category; None without one.
        availabilities: Bit mask of AVAILABILITIES of all offers.
        colours: Bit mask of ColourFamily of all variants.
        finishes: Bit mask of FinishFamily of all variants.
        currency: Currency of `price`; None if no current offer has a selling price.
        price: Lowest selling price of current offers in the most frequent currency, in minor units.
        completeness: Points of completeness without PRICE_POINTS.
        is_priced: Whether all variants have a price.
    """

    title_key: str
    category: str | None
    availabilities: int
    colours: int
    finishes: int
    currency: str | None
    price: int | None
    completeness: int
    is_priced: bool


class OfferFacets(NamedTuple):
    """Facets that depend on the offers of a product only (see Facets)."""

    availabilities: int
    currency: str | None
    price: int | None
    is_priced: bool


def compute_facets(product: Product) -> Facets:
    """Return the facets of a product, whose data and whose variants' data must be decoded."""
    data = product.data
    recognised = [_recognise_families(text) for text in search_terms.list_finishes(product)]
    variants = [variant.data for variant in product.variants]
    of_offers = compute_offer_facets(product)
    return Facets(
        build_title_key(data.get("title")),
        data.get("category"),
        of_offers.availabilities,
        _join_bits(colours for colours, _ in recognised),
        _join_bits(finishes for _, finishes in recognised),
        of_offers.currency,
        of_offers.price,
        compute_score(["price", *_list_missing_fields(data, variants)]),
        of_offers.is_priced,
    )


def _list_missing_fields(product: Mapping[str, Any], variants: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fields except for the price that the product, or one of its variants, lacks."""
    return [
        name
        for name, requirement in _REQUIREMENTS.items()
        # what the product has, all variants have
        if not requirement.is_met(product, {}, [])
        and (not variants or any(not requirement.is_met(product, variant, []) for variant in variants))
    ]


def compute_offer_facets(product: Product) -> OfferFacets:
    """Return the facets of a product that depend on its offers only."""
    currency, price = find_selling_price(offer for variant in product.variants for offer in variant.offers)
    is_priced = bool(product.variants) and all(
        any(offer.data.get(name) is not None for offer in variant.offers for name in ("msrp", "map", "price"))
        for variant in product.variants
    )
    return OfferFacets(encode_availabilities(search_terms.list_availabilities(product)), currency, price, is_priced)


def find_selling_price(offers: Iterable[Offer]) -> tuple[str, int] | tuple[None, None]:
    """Return currency and amount of the lowest selling price of the offers that are not withdrawn.

    Only prices in the most frequent currency count; of equally frequent currencies, the first in alphabetical order
    is used. Recommended prices and costs are not selling prices.
    """
    prices = [
        (offer.data["currency"], offer.data["price"])
        for offer in offers
        if offer.withdrawn_at is None and offer.data.get("price") is not None and offer.data.get("currency")
    ]
    if not prices:
        return None, None
    currency = prices[0][0]
    if any(other != currency for other, _ in prices):
        count_by_currency = Counter(code for code, _ in prices)
        currency = min(count_by_currency, key=lambda code: (-count_by_currency[code], code))
    return currency, min(amount for code, amount in prices if code == currency)


def build_title_key(title: str | None) -> str:
    """Return the text by which products are sorted by title."""
    return " ".join(search_terms.split_into_words((title or "")[: 4 * MAX_TITLE_KEY_CHARS]))[:MAX_TITLE_KEY_CHARS]


@lru_cache(maxsize=4096)
def _recognise_families(text: str) -> tuple[int, int]:
    """Return the bit masks of the colour families and the finish families that a text states."""
    words = search_terms.split_finish(text)
    names = {_NAME_BY_WORD.get(word, word) for word in words}
    return (
        encode_colours(_COLOUR_BY_NAME[name] for name in names if name in _COLOUR_BY_NAME),
        encode_finishes(_FINISH_BY_NAME[name] for name in names if name in _FINISH_BY_NAME),
    )


def find_family_words(colours: Iterable[str] = (), finishes: Iterable[str] = ()) -> set[str]:
    """Return all words by which one of the colour or finish families is recognised."""
    families, finish_families = {*colours}, {*finishes}
    names = {name for name, family in _COLOUR_BY_NAME.items() if family in families}
    names |= {name for name, family in _FINISH_BY_NAME.items() if family in finish_families}
    return {word for word, name in _NAME_BY_WORD.items() if name in names} | {name for name in names if " " not in name}


def _join_bits(masks: Iterable[int]) -> int:
    joined = 0
    for mask in masks:
        joined |= mask
    return joined


def _encode(values: Iterable[str], bit_by_value: Mapping[str, int]) -> int:
    return _join_bits(bit_by_value[value] for value in values if value in bit_by_value)


def encode_availabilities(values: Iterable[str]) -> int:
    """Return the bit mask of availabilities."""
    return _encode(values, _AVAILABILITY_BITS)


def encode_colours(families: Iterable[str]) -> int:
    """Return the bit mask of colour families."""
    return _encode(families, _COLOUR_BITS)


def encode_finishes(families: Iterable[str]) -> int:
    """Return the bit mask of finish families."""
    return _encode(families, _FINISH_BITS)


def find_band(score: int) -> str:
    """Return the band of a completeness in percent."""
    return max((start, band) for band, start in _BAND_STARTS.items() if score >= start)[1]


def list_band_ranges(bands: Iterable[str]) -> list[tuple[int, int]]:
    """Return the lowest and highest completeness of each band."""
    starts = [*_BAND_STARTS.values(), 101]
    return [(starts[n], starts[n + 1] - 1) for n, band in enumerate(_BAND_STARTS) if band in {*bands}]
