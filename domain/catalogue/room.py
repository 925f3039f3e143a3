"""Size limits of a product (domain/kernel/bounds.py), including data kept from earlier runs and pushes."""

from collections.abc import Mapping
from typing import Any

from domain.catalogue.model import Product, Variant
from domain.catalogue.trimming import size
from domain.kernel.bounds import MIB, OFFERS, PRODUCT_BYTES, VARIANTS_HELD
from domain.kernel.problems import Problem, ProblemKind

_VARIANT = 256 << 10
"""Upper bound of a variant's data in bytes: five trimmed lists, and texts."""
_OFFER = 8 << 10
"""Upper bound of an offer in bytes: a location of a thousand characters, and a hundred arrivals."""
_FIXED = 360
"""Bytes of an offer, or of a variant's envelope, besides its content: IDs, times, prices."""
_ARRIVAL = 48


class Room:
    """Size accounting of the products that one chunk changes. Sizes are computed only if the upper bounds exceed the limit."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}
        self._weights: dict[str, int] = {}
        self._refusals: dict[tuple[str, str], tuple[int, int]] = {}

    def refuse(self, product: Product, field: str, line: int | None, problems: list[Problem]) -> None:
        """Report that an object exceeded the limit, in the one problem of the product and field."""
        count, place = self._refusals.get((product.id, field), (0, len(problems)))
        self._refusals[product.id, field] = count + 1, place
        detail = (
            f"No room for {count + 1:,} {field} more of {product.key}: a product keeps at most {VARIANTS_HELD:,} variants of "
            f"{OFFERS} offers each, and {PRODUCT_BYTES // MIB} MiB. What it has stays as it was."
        )
        problem = Problem(field, ProblemKind.TOO_LONG, detail, problems[place].line if count else line)
        problems[place : place + 1] = [problem]

    def variant(self, product: Product, data: Mapping[str, Any], old: Variant | None = None) -> bool:
        """Return whether the variant data fits: as a new variant, or as the new data of `old`."""
        counts = self._count_objects(product)
        if old is None and counts[0] >= VARIANTS_HELD:
            return False
        if self._fits_surely(counts, variants=1):
            counts[0] += old is None
            return True
        weight = size(data) + _FIXED if old is None else size(data) - size(old.data)
        return self._add_weight(product, weight, counts, variants=old is None)

    def moved(self, product: Product, variant: Variant) -> bool:
        """Return whether a variant with its offers fits when moved to the product; discard the product's cached counts."""
        counts = self._count_objects(product)
        if counts[0] >= VARIANTS_HELD:
            return False
        self._counts.pop(product.id)
        self._weights.pop(product.id, None)
        return weight_of(product) + _weight(variant) <= PRODUCT_BYTES

    def offer(self, product: Product, variant: Variant, location: str, data: Mapping[str, Any]) -> bool:
        """Return whether another offer of the variant fits."""
        counts = self._count_objects(product)
        if len(variant.offers) >= OFFERS:
            return False
        if self._fits_surely(counts, offers=1):
            counts[1] += 1
            return True
        return self._add_weight(product, _offer_weight(location, data), counts, offers=1)

    def arrivals(self, product: Product, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Return whether the new incoming stock of an offer fits."""
        counts = self._count_objects(product)
        weight = _ARRIVAL * (len(new.get("incoming", ())) - len(old.get("incoming", ())))
        return weight <= 0 or self._fits_surely(counts) or self._add_weight(product, weight, counts)

    def _count_objects(self, product: Product) -> list[int]:
        counts = self._counts.get(product.id)
        if counts is None:
            variants = product.variants
            counts = self._counts[product.id] = [len(variants), sum([len(variant.offers) for variant in variants])]
        return counts

    def _fits_surely(self, counts: list[int], variants: int = 0, offers: int = 0) -> bool:
        return (counts[0] + variants) * _VARIANT + (counts[1] + offers) * _OFFER <= PRODUCT_BYTES

    def _add_weight(self, product: Product, weight: int, counts: list[int], variants: int = 0, offers: int = 0) -> bool:
        held = self._weights.get(product.id)
        if held is None:
            held = weight_of(product)
        if weight > 0 and held + weight > PRODUCT_BYTES:
            self._weights[product.id] = held
            return False
        self._weights[product.id] = held + weight
        counts[0] += variants
        counts[1] += offers
        return True


def weight_of(product: Product) -> int:
    """Return the approximate size of a product's variants and offers as JSON, in bytes."""
    return sum(map(_weight, product.variants))


def _weight(variant: Variant) -> int:
    offers = sum(_offer_weight(offer.location, offer.data) for offer in variant.offers)
    return _data_size(variant.data) + _FIXED + offers


def _data_size(data: Any) -> int:
    """Return the size in bytes of data that is plain or already packed as JSON."""
    return size(data) if isinstance(data, Mapping) else len(bytes(data))


def _offer_weight(location: str, data: Mapping[str, Any]) -> int:
    return _FIXED + len(location.encode()) + _ARRIVAL * len(data.get("incoming", ()))
