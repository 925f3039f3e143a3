"""Search terms of products, stored as they are computed here (architecture §6)."""

import re
import unicodedata
from collections.abc import Iterable
from hashlib import sha256

from domain.catalogue.categories import above
from domain.catalogue.model import Availability, Product

QUERY_WORDS = 8
"""Maximum number of words of a query (docs/conventions.md#search-and-filters)."""

AVAILABILITY_TERMS = ("a:", "a;")
"""Bounds of the availability terms: from the first (inclusive) to the second (exclusive)."""

CODES = ("external_id", "sku", "gtin", "mpn")
"""Filters by product codes: each takes many values, any of which may match."""

_WORD = re.compile(r"[^\W_]+")
_BETWEEN_DIGITS = re.compile(r"[\s-]")


def fold(text: str) -> str:
    """Return the text without case and accents, and with single spaces: `Café  Öst` becomes `cafe ost`."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return " ".join("".join(char for char in decomposed if not unicodedata.combining(char)).split())


def split(text: str) -> list[str]:
    """Return the folded words of a text in order; all characters except letters and digits separate words."""
    return _WORD.findall(fold(text))


def words(title: str | None, brand: str | None) -> set[str]:
    """Return the folded words of a product's title and brand."""
    return {*split(title or ""), *split(brand or "")}


def code(text: str) -> str:
    """Return a SKU or MPN without case and punctuation: `AB-12/c` becomes `ab12c`; may be empty."""
    return "".join(split(text))


def exact_codes(codes: Iterable[str]) -> dict[str, str]:
    """Return the index key (see `code`) of each SKU or MPN; codes without a letter or digit are left out."""
    return {exact: made for text in codes if (made := code(exact := text.strip()))}


def gtin_key(text: str | None) -> str | None:
    """Return a GTIN in the form in which it is compared: digits without leading zeros, equal for its forms of 8, 12, 13 and 14 digits."""
    digits = _BETWEEN_DIGITS.sub("", text or "")
    return (digits.lstrip("0") or None) if digits.isascii() and digits.isdigit() else None


def gtin_keys(gtins: Iterable[str]) -> list[str]:
    """Return the distinct comparison keys of all texts that can be GTINs."""
    return list(dict.fromkeys(key for text in gtins if (key := gtin_key(text))))


def brand_key(text: str) -> str:
    """Return a brand without case and spaces, which the brand filter ignores: `West  Elm` becomes `westelm`."""
    return fold(text).replace(" ", "")


def query_words(q: str) -> list[str]:
    """Return the distinct significant words of a query, at most QUERY_WORDS."""
    return list(dict.fromkeys(split(q)))[:QUERY_WORDS]


def word_term(word: str) -> str:
    """Return the search term of a folded word."""
    return "w:" + word


def category_term(category: str) -> str:
    """Return the search term of a category, for the products in it and below it."""
    return "c:" + category


def availability_term(availability: str) -> str:
    """Return the search term of an offer's availability."""
    return "a:" + availability


def source_term(source: str) -> str:
    """Return the search term of a source, for its products and those they are merged into."""
    return "s:" + source


def path_terms(source: str) -> tuple[str, str]:
    """Return the bounds of the terms of a source's category paths: the first (inclusive) and the end (exclusive)."""
    return f"p:{source}:", f"p:{source};"


def path_term(source: str, path: Iterable[str]) -> str:
    """Return the search term of a source's category path."""
    return path_terms(source)[0] + sha256("\x1f".join(path).encode()).hexdigest()[:32]


def availabilities(product: Product) -> frozenset[str]:
    """Return the availabilities of all offers of the product."""
    return frozenset(
        offer.data.get("availability", Availability.UNKNOWN) for variant in product.variants for offer in variant.offers
    )


def terms(product: Product) -> set[str]:
    """Return all search terms of a product except codes: words, categories, availabilities, its source and its category path."""
    data = product.data
    found = {word_term(word) for word in words(data.get("title"), data.get("brand"))}
    found.update(map(category_term, above(data.get("category"))))
    found.update(map(availability_term, availabilities(product)))
    found.add(source_term(product.source))
    if path := data.get("category_path"):
        found.add(path_term(product.source, path))
    return found
