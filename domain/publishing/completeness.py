"""Completeness of products: what retailers need to sell a product, and what is missing."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

Data = Mapping[str, Any]


class Requirement(NamedTuple):
    """Field that retailers need.

    Attributes:
        weight: Share of the score, in points; all weights together are 100.
        is_met: Whether the data of the product, the data of the variant and the offers of the variant contain the field.
    """

    weight: int
    is_met: Callable[[Data, Data, list[Data]], bool]


def _has(*names: str) -> Callable[[Data, Data, list[Data]], bool]:
    """Return a condition that the product or the variant has one of the fields."""
    return lambda product, variant, _: any(product.get(name) or variant.get(name) for name in names)


def _has_size(_: Data, variant: Data, __: list[Data]) -> bool:
    dimensions = variant.get("dimensions") or {}
    return len(dimensions.keys() & {"width", "depth", "height", "diameter"}) >= 2 or bool(variant.get("rug"))


def _has_price(_: Data, __: Data, offers: list[Data]) -> bool:
    return any(offer.get(name) is not None for offer in offers for name in ("msrp", "map", "price"))


REQUIREMENTS: Final[Mapping[str, Requirement]] = {
    "media": Requirement(20, _has("media")),
    "description": Requirement(12, _has("description")),
    "dimensions": Requirement(12, _has_size),
    "price": Requirement(10, _has_price),
    "category": Requirement(8, _has("category")),
    "brand": Requirement(6, _has("brand")),
    "sku": Requirement(6, _has("sku")),
    "gtin": Requirement(6, _has("gtin")),
    "materials": Requirement(6, _has("materials")),
    "colour": Requirement(4, _has("colour", "finish")),
    "weight": Requirement(4, _has("weight")),
    "cartons": Requirement(3, _has("cartons")),
    "country_of_origin": Requirement(
        3, lambda product, _, __: bool((product.get("compliance") or {}).get("country_of_origin"))
    ),
}
"""Fields that retailers need, the most important first."""


def list_missing_fields(product: Data, variant: Data, offers: list[Data]) -> list[str]:
    """Return the fields that a variant lacks, the most important first.

    Args:
        product: Data of the product.
        variant: Data of the variant.
        offers: Data of the variant's offers.
    """
    return [name for name, requirement in REQUIREMENTS.items() if not requirement.is_met(product, variant, offers)]


def compute_score(missing: list[str]) -> int:
    """Return the score of an item that lacks these fields: 100 if nothing is missing, 0 if everything is."""
    return 100 - sum(REQUIREMENTS[name].weight for name in missing)


def list_missing_of_product(document: Data) -> list[str]:
    """Return the fields that a product's document, or one of its variants, lacks, the most important first."""
    variants = document["variants"] or [{"data": {}, "offers": []}]
    missing = {
        name
        for variant in variants
        for name in list_missing_fields(document["data"], variant["data"], variant["offers"])
    }
    return [name for name in REQUIREMENTS if name in missing]
