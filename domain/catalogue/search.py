"""What products are found by: keys made of their words, and the lists' filters as predicates.

The keys are stored as they are computed here, so that every store finds the same products (architecture §6).
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from domain.catalogue.categories import above
from domain.catalogue.model import Availability, Offer, OfferFilter, Product, ProductFilter, Variant

QUERY_WORDS = 8
"""How many words of a query count (docs/conventions.md#search-and-filters)."""

AVAILABILITY_TERMS = ("a:", "a;")
"""Every availability's term stands from the first to below the second."""

CODES = ("external_id", "sku", "gtin", "mpn")
"""Filters by what others know an item by: each takes many values, of which any will do."""

_WORD = re.compile(r"[^\W_]+")
_BETWEEN_DIGITS = re.compile(r"[\s-]")


def fold(text: str) -> str:
    """The text without case and accents, its spaces collapsed: `Café  Öst` is `cafe ost`."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return " ".join("".join(char for char in decomposed if not unicodedata.combining(char)).split())


def split(text: str) -> list[str]:
    """The folded words of a text in their order; anything but letters and digits divides."""
    return _WORD.findall(fold(text))


def words(title: str | None, brand: str | None) -> set[str]:
    """The folded words of a product's title and brand."""
    return {*split(title or ""), *split(brand or "")}


def code(text: str) -> str:
    """A SKU or MPN without case and punctuation: `AB-12/c` is `ab12c`; empty when nothing is left."""
    return "".join(split(text))


def exact_codes(codes: Iterable[str]) -> dict[str, str]:
    """SKUs or MPNs with what each is indexed by, its `code`; one without a letter or digit finds nothing."""
    return {exact: made for text in codes if (made := code(exact := text.strip()))}


def gtin_key(text: str | None) -> str | None:
    """A GTIN as it is compared: its digits without leading zeros, which its forms of 8, 12, 13 and 14 digits differ by."""
    digits = _BETWEEN_DIGITS.sub("", text or "")
    return (digits.lstrip("0") or None) if digits.isascii() and digits.isdigit() else None


def gtin_keys(gtins: Iterable[str]) -> list[str]:
    """The keys of those texts that could be GTINs, each once."""
    return list(dict.fromkeys(key for text in gtins if (key := gtin_key(text))))


def brand_key(text: str) -> str:
    """A brand without case and spacing, which the brand filter ignores: `West  Elm` is `westelm`."""
    return fold(text).replace(" ", "")


def query_words(q: str) -> list[str]:
    """The words of a query that count, at most QUERY_WORDS, each once."""
    return list(dict.fromkeys(split(q)))[:QUERY_WORDS]


def found(q: str, held: set[str], codes: Iterable[str]) -> bool:
    """Whether every word of `q` is among the words `held`, or `q` as a code is one of the `codes`."""
    sought = query_words(q)
    whole = code(q)
    return bool(sought) and (held.issuperset(sought) or whole in codes)


def variant_codes(data: Any) -> set[str]:
    """The codes of a variant's SKU and MPN."""
    return {made for name in ("sku", "mpn") if (made := code(data.get(name) or ""))}


def word_term(word: str) -> str:
    """How a folded word stands among a product's terms."""
    return "w:" + word


def category_term(category: str) -> str:
    """How a category stands among the terms of the products in it and below it."""
    return "c:" + category


def availability_term(availability: str) -> str:
    """How the availability of an offer stands among its product's terms."""
    return "a:" + availability


def source_term(source: str) -> str:
    """How a source stands among the terms of its products, and of those that they are merged into."""
    return "s:" + source


def path_terms(source: str) -> tuple[str, str]:
    """Every term of a source's category paths stands from the first to below the second."""
    return f"p:{source}:", f"p:{source};"


def path_term(source: str, path: Iterable[str]) -> str:
    """How a source's category path stands among the terms of the products that have it."""
    return path_terms(source)[0] + sha256("\x1f".join(path).encode()).hexdigest()[:32]


def availabilities(product: Product) -> frozenset[str]:
    """The availability of every offer of the product."""
    return frozenset(
        offer.data.get("availability", Availability.UNKNOWN) for variant in product.variants for offer in variant.offers
    )


def terms(product: Product) -> set[str]:
    """Everything a product is found by, codes apart: words, categories with all above, availabilities, its source and its path."""
    data = product.data
    found = {word_term(word) for word in words(data.get("title"), data.get("brand"))}
    found.update(map(category_term, above(data.get("category"))))
    found.update(map(availability_term, availabilities(product)))
    found.add(source_term(product.source))
    if path := data.get("category_path"):
        found.add(path_term(product.source, path))
    return found


class Parts(NamedTuple):
    """What is shown as something else, as its sources state it."""

    products: Sequence[Product] = ()
    variants: Sequence[Variant] = ()


NO_PARTS = Parts()


def matches(
    product: Product,
    filter: ProductFilter,
    categories_below: Callable[[str], frozenset[str]],
    merged: Parts = NO_PARTS,
) -> bool:
    """Whether the product passes every given filter. `categories_below` gives a category's id and those below it.

    The product's and its variants' data must be plain mappings. It is found by the codes and sources of what is `merged` into it
    as well.
    """
    variants = [*product.variants, *merged.variants]
    keys = [product.key, *(other.key for other in merged.products)]
    given = [
        filter.updated_since is None or product.updated_at >= filter.updated_since,
        filter.status in (None, product.status),
        filter.catalogue in (None, product.catalogue),
        filter.brand is None or _is_brand(product.data.get("brand"), filter.brand),
        filter.category is None or product.data.get("category") in categories_below(filter.category),
        filter.availability is None or filter.availability in availabilities(product),
        filter.source in (None, product.source, *(other.source for other in merged.products)),
        filter.q is None or _found(product, filter.q),
        filter.id is None or not {product.id, *(other.id for other in merged.products)}.isdisjoint(filter.id),
        filter.variant is None or any(variant.id in filter.variant for variant in variants),
        filter.offer is None or any(offer.id in filter.offer for offer in _offers(product)),
        _is_identified(filter, keys, variants),
    ]
    return all(given)


def _is_identified(filter: ProductFilter | OfferFilter, keys: Iterable[str], variants: Sequence[Variant]) -> bool:
    """Whether the products' keys, or the variants' keys and codes, pass the filters of CODES."""
    known = (*keys, *(variant.key for variant in variants))
    if filter.external_id is not None and {text.strip() for text in filter.external_id}.isdisjoint(known):
        return False
    codes = (
        ("sku", filter.sku, exact_codes, str),
        ("mpn", filter.mpn, exact_codes, str),
        ("gtin", filter.gtin, gtin_keys, gtin_key),
    )
    return all(
        sought is None
        or any(variant.data.get(name) and key(variant.data[name]) in keys_of(sought) for variant in variants)
        for name, sought, keys_of, key in codes
    )


def _is_brand(brand: str | None, sought: str) -> bool:
    return bool(brand) and brand_key(brand or "") == brand_key(sought)


def _offers(product: Product) -> Iterable[Offer]:
    return (offer for variant in product.variants for offer in variant.offers)


def _found(product: Product, q: str) -> bool:
    held = words(product.data.get("title"), product.data.get("brand"))
    codes = {made for variant in product.variants for made in variant_codes(variant.data)}
    return found(q, held, codes)


def offer_matches(
    offer: Offer,
    variant: Variant,
    product: Product,
    filter: OfferFilter,
    merged: Parts = NO_PARTS,
) -> bool:
    """Whether the offer of that variant of that product passes every given filter. The variant's data must be a plain mapping.

    `merged` as of `matches`.
    """
    variants = [variant, *merged.variants]
    keys = [product.key, *(other.key for other in merged.products)]
    given = [
        filter.variant in (None, offer.variant, *(other.id for other in merged.variants)),
        filter.product in (None, offer.product, *(other.id for other in merged.products)),
        filter.source in (None, offer.source),
        filter.availability in (None, offer.data.get("availability", Availability.UNKNOWN)),
        filter.updated_since is None or offer.updated_at >= filter.updated_since,
        filter.id is None or offer.id in filter.id,
        _is_identified(filter, keys, variants),
    ]
    return all(given)
