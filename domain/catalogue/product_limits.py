"""Limits on the amount of data of one product (domain/kernel/bounds.py), including data from earlier runs and pushes."""

from collections.abc import Mapping
from typing import Any

from domain.catalogue.data_limits import json_size
from domain.catalogue.model import Product, Variant
from domain.kernel.bounds import MAX_OFFERS, MAX_STORED_VARIANTS, MIB, PRODUCT_BYTES
from domain.kernel.problems import Problem, ProblemKind

_MAX_VARIANT_BYTES = 256 << 10
"""Upper bound of a variant's data in bytes: five lists of at most VARIANT_LIST_BYTES (see `trim_variant`), and texts."""
_MAX_OFFER_BYTES = 8 << 10
"""Upper bound of an offer in bytes: a location of 1,000 characters, and 100 entries of incoming stock."""
_FIXED_BYTES_PER_OBJECT = 360
"""Estimated bytes of all parts of a variant or offer whose size hardly varies: IDs and times, and the prices of an offer."""
_INCOMING_STOCK_BYTES = 48
"""Estimated bytes of one entry of an offer's incoming stock."""


class ProductSizeLimit:
    """Limit of the sizes of the products that a chunk changes.

    Exact sizes are computed only if an upper bound exceeds the limit.
    """

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}
        self._weights: dict[str, int] = {}
        self._refusals: dict[tuple[str, str], tuple[int, int]] = {}

    def add_problem(self, product: Product, field: str, line: int | None, problems: list[Problem]) -> None:
        """Add a problem about a refused variant, offer or incoming stock, or count it in the problem that exists.

        There is one problem for each product and field.
        """
        count, place = self._refusals.get((product.id, field), (0, len(problems)))
        self._refusals[product.id, field] = count + 1, place
        detail = (
            f"{count + 1:,} {field} of the product {product.key} were not stored, because they exceed the limits of a product: "
            f"{MAX_STORED_VARIANTS:,} variants, {MAX_OFFERS} offers for each variant, and {PRODUCT_BYTES // MIB} MiB. Their previously "
            f"stored data is unchanged."
        )
        problem = Problem(field, ProblemKind.TOO_LONG, detail, problems[place].line if count else line)
        problems[place : place + 1] = [problem]

    def try_add_variant(self, product: Product, data: Mapping[str, Any], old: Variant | None = None) -> bool:
        """Return whether a product can have a new variant, or new data for the variant `old`; if so, count its size."""
        counts = self._count_objects(product)
        if old is None and counts[0] >= MAX_STORED_VARIANTS:
            return False
        if self._is_within_upper_bound(counts, variants=1):
            counts[0] += old is None
            return True
        weight = json_size(data) + _FIXED_BYTES_PER_OBJECT if old is None else json_size(data) - json_size(old.data)
        return self._add_size(product, weight, counts, variants=old is None)

    def try_add_moved_variant(self, product: Product, variant: Variant) -> bool:
        """Return whether a variant with its offers can move to the product from another product.

        If so, discard the cached sizes of the product, because the caller moves the variant.
        """
        counts = self._count_objects(product)
        if counts[0] >= MAX_STORED_VARIANTS:
            return False
        self._counts.pop(product.id)
        self._weights.pop(product.id, None)
        return compute_size(product) + _measure_variant(variant) <= PRODUCT_BYTES

    def try_add_offer(self, product: Product, variant: Variant, location: str, data: Mapping[str, Any]) -> bool:
        """Return whether a product can have a new offer of the variant; if so, count its size."""
        counts = self._count_objects(product)
        if len(variant.offers) >= MAX_OFFERS:
            return False
        if self._is_within_upper_bound(counts, offers=1):
            counts[1] += 1
            return True
        return self._add_size(product, _measure_offer(location, data), counts, offers=1)

    def try_replace_incoming_stock(self, product: Product, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Return whether a product can have the incoming stock in the offer data `new`, which replaces `old`.

        The answer is no if the product would exceed PRODUCT_BYTES. A yes also updates the product's counted size, unless
        an upper bound of the size was sufficient for the answer.
        """
        counts = self._count_objects(product)
        weight = _INCOMING_STOCK_BYTES * (len(new.get("incoming", ())) - len(old.get("incoming", ())))
        return weight <= 0 or self._is_within_upper_bound(counts) or self._add_size(product, weight, counts)

    def _count_objects(self, product: Product) -> list[int]:
        counts = self._counts.get(product.id)
        if counts is None:
            variants = product.variants
            counts = self._counts[product.id] = [len(variants), sum([len(variant.offers) for variant in variants])]
        return counts

    def _is_within_upper_bound(self, counts: list[int], variants: int = 0, offers: int = 0) -> bool:
        return (counts[0] + variants) * _MAX_VARIANT_BYTES + (counts[1] + offers) * _MAX_OFFER_BYTES <= PRODUCT_BYTES

    def _add_size(self, product: Product, weight: int, counts: list[int], variants: int = 0, offers: int = 0) -> bool:
        held = self._weights.get(product.id)
        if held is None:
            held = compute_size(product)
        if weight > 0 and held + weight > PRODUCT_BYTES:
            self._weights[product.id] = held
            return False
        self._weights[product.id] = held + weight
        counts[0] += variants
        counts[1] += offers
        return True


def compute_size(product: Product) -> int:
    """Return the approximate size of a product's variants and offers as JSON, in bytes."""
    return sum(map(_measure_variant, product.variants))


def _measure_variant(variant: Variant) -> int:
    offers = sum(_measure_offer(offer.location, offer.data) for offer in variant.offers)
    return _measure_data(variant.data) + _FIXED_BYTES_PER_OBJECT + offers


def _measure_data(data: Any) -> int:
    """Return the size in bytes of data that is decoded, or already encoded as JSON."""
    return json_size(data) if isinstance(data, Mapping) else len(bytes(data))


def _measure_offer(location: str, data: Mapping[str, Any]) -> int:
    return _FIXED_BYTES_PER_OBJECT + len(location.encode()) + _INCOMING_STOCK_BYTES * len(data.get("incoming", ()))
