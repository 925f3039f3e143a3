"""Filters of the lists as predicates over plain products: the expected results of the filters in SQL."""

from collections.abc import Iterable, Sequence
from typing import Any

from domain.catalogue.categories import path_ids
from domain.catalogue.model import Availability, Offer, OfferFilter, Product, ProductFilter, Variant
from domain.catalogue.search_terms import (
    list_availabilities,
    normalise_brand,
    normalise_code,
    normalise_codes,
    normalise_gtin,
    normalise_gtins,
    product_words,
    split_query,
)
from domain.kernel.paging import Filter
from domain.request_logs.model import RequestLog, RequestLogFilter


def matches_query(q: str, held: set[str], codes: Iterable[str]) -> bool:
    """Return whether all words of `q` are in `held`, or `q` as a code is in `codes`."""
    sought = split_query(q)
    whole = normalise_code(q)
    return bool(sought) and (held.issuperset(sought) or whole in codes)


def variant_codes(data: Any) -> set[str]:
    """Return the codes of a variant's SKU and MPN."""
    return {made for name in ("sku", "mpn") if (made := normalise_code(data.get(name) or ""))}


def matches(product: Product, filter: ProductFilter) -> bool:
    """Return whether a product matches all given filters. The data of the product and its variants must be plain mappings."""
    variants = product.variants
    given = [
        filter.updated_since is None or product.updated_at >= filter.updated_since,
        filter.status in (None, product.status),
        filter.catalogue in (None, product.catalogue),
        filter.brand is None or _is_brand(product.data.get("brand"), filter.brand),
        filter.category is None or filter.category in path_ids(product.data.get("category")),
        filter.availability is None or filter.availability in list_availabilities(product),
        filter.source in (None, product.source),
        filter.q is None or _found(product, filter.q),
        filter.id is None or product.id in filter.id,
        filter.variant is None or any(variant.id in filter.variant for variant in variants),
        filter.offer is None or any(offer.id in filter.offer for offer in _offers(product)),
        _is_identified(filter, product.key, variants),
    ]
    return all(given)


def _is_identified(filter: ProductFilter | OfferFilter, key_of_product: str, variants: Sequence[Variant]) -> bool:
    """Return whether the product's key, or the keys and codes of the variants, match the filters by code."""
    known = (key_of_product, *(variant.key for variant in variants))
    if filter.external_id is not None and {text.strip() for text in filter.external_id}.isdisjoint(known):
        return False
    codes = (
        ("sku", filter.sku, normalise_codes, str),
        ("mpn", filter.mpn, normalise_codes, str),
        ("gtin", filter.gtin, normalise_gtins, normalise_gtin),
    )
    return all(
        sought is None
        or any(variant.data.get(name) and key(variant.data[name]) in keys_of(sought) for variant in variants)
        for name, sought, keys_of, key in codes
    )


def _is_brand(brand: str | None, sought: str) -> bool:
    return bool(brand) and normalise_brand(brand or "") == normalise_brand(sought)


def _offers(product: Product) -> Iterable[Offer]:
    return (offer for variant in product.variants for offer in variant.offers)


def _found(product: Product, q: str) -> bool:
    held = product_words(product.data.get("title"), product.data.get("brand"))
    codes = {made for variant in product.variants for made in variant_codes(variant.data)}
    return matches_query(q, held, codes)


def offer_matches(
    offer: Offer,
    variant: Variant,
    product: Product,
    filter: OfferFilter,
) -> bool:
    """Return whether an offer with its variant and product matches all given filters. The variant's data must be a plain mapping."""
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
    """Return whether the row's fields equal all given fields."""
    return all(getattr(row, name) == value for name, value in filter.get_conditions().items())


def request_matches(filter: RequestLogFilter, log: RequestLog) -> bool:
    """Return whether a request log matches all given filters."""
    least, most = filter.status_range
    return (
        least <= log.status <= most
        and filter.method in (None, log.method)
        and filter.route in (None, log.route)
        and filter.actor in (None, log.actor.id)
        and filter.error_code in (None, log.error_code)
        and (filter.since is None or log.created_at >= filter.since)
        and (filter.until is None or log.created_at < filter.until)
    )
