"""Search terms: stored texts with a prefix, such as `w:oak`, by which products and offers are found (architecture §6)."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

from domain.catalogue.categories import path_ids
from domain.catalogue.model import Availability, Product

MAX_QUERY_WORDS = 8
"""Maximum number of words in a search query (docs/conventions.md#search-and-filters)."""

AVAILABILITY_TERMS = ("a:", "a;")
"""Range of all terms for availability: from the first text (inclusive) to the second (exclusive)."""

CODE_FILTERS = ("external_id", "sku", "gtin", "mpn")
"""Names of filters by product codes. Each takes several values, of which one must match."""

MIN_GTIN_DIGITS = 8
"""Minimum number of digits of a GTIN."""

MAX_FINISH_CHARS = 200
"""Number of characters of a stated colour or finish whose words are search terms."""

MAX_FINISH_WORDS = 500
"""Maximum number of words of colours and finishes that are search terms of one product."""

_WORD = re.compile(r"[^\W_]+")
_BETWEEN_DIGITS = re.compile(r"[\s-]")


def normalise_text(text: str) -> str:
    """Return the text in lower case, without accents and with single spaces: `Café  Öst` becomes `cafe ost`."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return " ".join("".join(char for char in decomposed if not unicodedata.combining(char)).split())


def split_into_words(text: str) -> list[str]:
    """Return the words of a text in order, in lower case and without accents; only letters and digits belong to words."""
    return _WORD.findall(normalise_text(text))


def product_words(title: str | None, brand: str | None) -> set[str]:
    """Return the words of a product's title and brand, in lower case and without accents."""
    return {*split_into_words(title or ""), *split_into_words(brand or "")}


def list_finishes(product: Product) -> set[str]:
    """Return the stated colours and finishes of a product's variants, whose data must be decoded."""
    return {text for variant in product.variants for name in ("colour", "finish") if (text := variant.data.get(name))}


@lru_cache(maxsize=4096)
def split_finish(text: str) -> tuple[str, ...]:
    """Return the words of a stated colour or finish, up to MAX_FINISH_CHARS characters."""
    return tuple(split_into_words(text[:MAX_FINISH_CHARS]))


def normalise_code(text: str) -> str:
    """Return a SKU or MPN in lower case and without punctuation: `AB-12/c` becomes `ab12c`. The result may be empty."""
    return "".join(split_into_words(text))


def normalise_codes(codes: Iterable[str]) -> dict[str, str]:
    """Map each SKU or MPN, without surrounding spaces, to its normalised code; codes without letters or digits are omitted."""
    return {exact: made for text in codes if (made := normalise_code(exact := text.strip()))}


def normalise_gtin(text: str | None) -> str | None:
    """Return the digits of a GTIN without leading zeros, or None if the text cannot be a GTIN.

    The result is therefore the same for the notations of a GTIN with 8, 12, 13 and 14 digits.
    """
    digits = _BETWEEN_DIGITS.sub("", text or "")
    return (digits.lstrip("0") or None) if digits.isascii() and digits.isdigit() else None


def normalise_gtins(gtins: Iterable[str]) -> list[str]:
    """Return the normalised GTINs without duplicates; texts that cannot be GTINs are skipped."""
    return list(dict.fromkeys(key for text in gtins if (key := normalise_gtin(text))))


def find_gtin(q: str) -> str | None:
    """Return the normalised GTIN that a query consists of, or None if the query is not a GTIN."""
    return normalise_gtin(q) if sum(map(str.isdigit, q)) >= MIN_GTIN_DIGITS else None


def normalise_brand(text: str) -> str:
    """Return a brand in lower case, without accents and spaces, for the brand filter: `West  Elm` becomes `westelm`."""
    return normalise_text(text).replace(" ", "")


def split_query(q: str) -> list[str]:
    """Return the distinct words of a query, at most MAX_QUERY_WORDS."""
    return list(dict.fromkeys(split_into_words(q)))[:MAX_QUERY_WORDS]


def word_term(word: str) -> str:
    """Return the search term of a word, which must be in lower case and without accents."""
    return "w:" + word


def category_term(category: str) -> str:
    """Return the search term of a category; all products in the category and its subcategories have the term."""
    return "c:" + category


def availability_term(availability: str) -> str:
    """Return the search term of an offer's availability."""
    return "a:" + availability


def source_term(source: str) -> str:
    """Return the search term of a source; the source's products, and their survivors after merges, have the term."""
    return "s:" + source


def catalogue_term(catalogue: str) -> str:
    """Return the search term of a catalogue; only published copies of products have it."""
    return "k:" + catalogue


def path_term_range(source: str) -> tuple[str, str]:
    """Return the range of the search terms of all category paths of a source: first text (inclusive) and end (exclusive)."""
    return f"p:{source}:", f"p:{source};"


def path_term(source: str, path: Iterable[str]) -> str:
    """Return the search term of a source's category path."""
    return path_term_range(source)[0] + sha256("\x1f".join(path).encode()).hexdigest()[:32]


def list_availabilities(product: Product) -> frozenset[str]:
    """Return the availabilities of all offers of the product."""
    return frozenset(
        offer.data.get("availability", Availability.UNKNOWN) for variant in product.variants for offer in variant.offers
    )


def compute_finish_terms(product: Product) -> set[str]:
    """Return the search terms of the stated colours and finishes of a product's variants."""
    words = {word for text in list_finishes(product) for word in split_finish(text)}
    return {word_term(word) for word in sorted(words)[:MAX_FINISH_WORDS]}


def compute_terms(product: Product) -> set[str]:
    """Return a product's search terms: words, categories, availabilities, source and category path, but no codes.

    The words are those of the title, the brand, and the colours and finishes of the variants.
    """
    data = product.data
    found = {word_term(word) for word in product_words(data.get("title"), data.get("brand"))}
    found |= compute_finish_terms(product)
    found.update(map(category_term, path_ids(data.get("category"))))
    found.update(map(availability_term, list_availabilities(product)))
    found.add(source_term(product.source))
    if path := data.get("category_path"):
        found.add(path_term(product.source, path))
    return found
