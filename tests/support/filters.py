"""Filters of the lists as predicates over plain products: the expected results of the filters in SQL."""

from collections.abc import Iterable, Sequence
from typing import Any

from domain.catalogue.categories import path_ids
from domain.catalogue.model import Availability, Offer, OfferFilter, Product, ProductFilter, ProductSort, Variant
from domain.catalogue.search_terms import (
    list_availabilities,
    normalise_brand,
    normalise_code,
    normalise_codes,
    normalise_gtin,
    normalise_gtins,
    product_words,
    split_into_words,
    split_query,
)
from domain.kernel.paging import Filter
from domain.publishing.completeness import compute_score, list_missing_of_product
from domain.request_logs.model import RequestLog, RequestLogFilter
from tests.support.catalogues import FAMILIES


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
        filter.status is None or product.status in filter.status,
        filter.catalogue in (None, product.catalogue),
        filter.brands is None or any(_is_brand(product.data.get("brand"), brand) for brand in filter.brands),
        filter.brand is None or _is_brand(product.data.get("brand"), filter.brand),
        filter.category is None or not {*filter.category}.isdisjoint(path_ids(product.data.get("category"))),
        filter.availability is None or not list_availabilities(product).isdisjoint(filter.availability),
        filter.source is None or product.source in filter.source,
        filter.colour is None or not list_families(product, 0).isdisjoint(filter.colour),
        filter.finish is None or not list_families(product, 1).isdisjoint(filter.finish),
        filter.completeness is None or find_completeness_band(product) in filter.completeness,
        filter.currency is None or _is_priced(product, filter),
        filter.q is None or _found(product, filter.q),
        filter.id is None or product.id in filter.id,
        filter.variant is None or any(variant.id in filter.variant for variant in variants),
        filter.offer is None or any(offer.id in filter.offer for offer in _offers(product)),
        _is_identified(filter, product.key, variants),
    ]
    return all(given)


def list_families(product: Product, kind: int) -> set[str]:
    """Return the families of the colours (0) or finishes (1) of a random product."""
    texts = [
        variant.data[name] for variant in product.variants for name in ("colour", "finish") if name in variant.data
    ]
    return {family for text in texts for family in FAMILIES[text][kind]}


def find_completeness_band(product: Product) -> str:
    """Return the band of a product's completeness, from the rules of published catalogues."""
    variants = [
        {"data": variant.data, "offers": [offer.data for offer in variant.offers]} for variant in product.variants
    ]
    score = compute_score(list_missing_of_product({"data": product.data, "variants": variants}))
    return "complete" if score == 100 else "high" if score >= 80 else "medium" if score >= 50 else "low"


def find_lowest_price(product: Product) -> tuple[str, int] | None:
    """Return the lowest selling price of the current offers in their most frequent currency; None without a price."""
    current = [offer.data for offer in _offers(product) if offer.withdrawn_at is None]
    prices = [(data["currency"], data["price"]) for data in current if "price" in data]
    currencies = sorted(currency for currency, _ in prices)
    return min(price for price in prices if price[0] == max(currencies, key=currencies.count)) if prices else None


def _is_priced(product: Product, filter: ProductFilter) -> bool:
    price = find_lowest_price(product)
    return (
        price is not None
        and price[0] == filter.currency
        and (filter.min_price is None or price[1] >= filter.min_price)
        and (filter.max_price is None or price[1] <= filter.max_price)
    )


def sort_products(products: Iterable[Product], sort: ProductSort) -> list[Product]:
    """Return products in the order of a list."""
    newest = sorted(products, key=lambda product: product.id, reverse=True)
    if sort == ProductSort.UPDATED:
        return sorted(newest, key=lambda product: product.updated_at, reverse=True)
    if sort == ProductSort.TITLE:
        return sorted(newest, key=lambda product: (" ".join(split_into_words(product.data["title"])), product.id))
    if sort == ProductSort.NEWEST:
        return newest
    priced = [(*price, product.id) for product in newest if (price := find_lowest_price(product))]
    ids = [id for *_, id in sorted(priced, reverse=sort == ProductSort.PRICE_HIGH)]
    product_by_id = {product.id: product for product in newest}
    return [product_by_id.pop(id) for id in ids] + list(product_by_id.values())


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
    finishes = [variant.data.get(name, "") for variant in product.variants for name in ("colour", "finish")]
    held |= {word for text in finishes for word in split_into_words(text)}
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
