"""The lists' filters as predicates over plain products: what is expected of the statements that filter in the database."""

from collections.abc import Iterable, Sequence
from typing import Any

from domain.catalogue.categories import above
from domain.catalogue.model import Availability, Offer, OfferFilter, Product, ProductFilter, Variant
from domain.catalogue.search import (
    availabilities,
    brand_key,
    code,
    exact_codes,
    gtin_key,
    gtin_keys,
    query_words,
    words,
)
from domain.kernel.paging import Filter
from domain.request_logs.model import RequestLog, RequestLogFilter


def found(q: str, held: set[str], codes: Iterable[str]) -> bool:
    """Whether every word of `q` is among the words `held`, or `q` as a code is one of the `codes`."""
    sought = query_words(q)
    whole = code(q)
    return bool(sought) and (held.issuperset(sought) or whole in codes)


def variant_codes(data: Any) -> set[str]:
    """The codes of a variant's SKU and MPN."""
    return {made for name in ("sku", "mpn") if (made := code(data.get(name) or ""))}


def matches(product: Product, filter: ProductFilter) -> bool:
    """Whether the product passes every given filter. The product's and its variants' data must be plain mappings."""
    variants = product.variants
    given = [
        filter.updated_since is None or product.updated_at >= filter.updated_since,
        filter.status in (None, product.status),
        filter.catalogue in (None, product.catalogue),
        filter.brand is None or _is_brand(product.data.get("brand"), filter.brand),
        filter.category is None or filter.category in above(product.data.get("category")),
        filter.availability is None or filter.availability in availabilities(product),
        filter.source in (None, product.source),
        filter.q is None or _found(product, filter.q),
        filter.id is None or product.id in filter.id,
        filter.variant is None or any(variant.id in filter.variant for variant in variants),
        filter.offer is None or any(offer.id in filter.offer for offer in _offers(product)),
        _is_identified(filter, product.key, variants),
    ]
    return all(given)


def _is_identified(filter: ProductFilter | OfferFilter, key_of_product: str, variants: Sequence[Variant]) -> bool:
    """Whether the product's key, or the variants' keys and codes, pass the filters of CODES."""
    known = (key_of_product, *(variant.key for variant in variants))
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
) -> bool:
    """Whether the offer of that variant of that product passes every given filter. The variant's data must be a plain mapping."""
    given = [
        filter.variant in (None, offer.variant),
        filter.product in (None, offer.product),
        filter.source in (None, offer.source),
        filter.availability in (None, offer.data.get("availability", Availability.UNKNOWN)),
        filter.updated_since is None or offer.updated_at >= filter.updated_since,
        filter.id is None or offer.id in filter.id,
        _is_identified(filter, product.key, [variant]),
    ]
    return all(given)


def equals(filter: Filter, row: object) -> bool:
    """Whether the row's fields equal every field that is given."""
    return all(getattr(row, name) == value for name, value in filter.given().items())


def request_matches(filter: RequestLogFilter, log: RequestLog) -> bool:
    """Whether the request passes every given filter."""
    least, most = filter.statuses
    return (
        least <= log.status <= most
        and filter.method in (None, log.method)
        and filter.route in (None, log.route)
        and filter.actor in (None, log.actor.id)
        and filter.error_code in (None, log.error_code)
        and (filter.since is None or log.created_at >= filter.since)
        and (filter.until is None or log.created_at < filter.until)
    )
