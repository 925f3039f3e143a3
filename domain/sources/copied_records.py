"""Conversion of the products that an organisation reads by a licence to records, in the form of pushed records (docs/push.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.catalogue.differences import PRICE_FIELDS, STOCK_FIELDS
from domain.catalogue.model import ProductStatus

_OFFER_FIELDS = (*PRICE_FIELDS, *STOCK_FIELDS, "availability")


def build_record(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record that states a product with its variants and current offers.

    The keys of the product and its variants are their IDs, which never change. Variants without current offers come last,
    because variants beyond MAX_IMPORTED_VARIANTS are omitted.

    Args:
        document: The product as the API returns it, decoded, with exact numbers.
    """
    is_discontinued = document["status"] == ProductStatus.DISCONTINUED
    product = {**document["data"], "external_id": document["id"], "discontinued": is_discontinued}
    variants = [_build_variant(variant) for variant in document["variants"]]
    return {"product": product, "variants": sorted(variants, key=lambda variant: not variant["offers"])}


def _build_variant(variant: Mapping[str, Any]) -> dict[str, Any]:
    return {**variant["data"], "external_id": variant["id"], "offers": _build_offers(variant["offers"])}


def _build_offers(offers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the offers that are not withdrawn, each at a location of its own.

    A merged variant can have offers of several sources at one location. All except the oldest get their ID in the location.
    """
    built: dict[str, dict[str, Any]] = {}
    for offer in sorted(offers, key=lambda offer: str(offer["id"])):
        if "withdrawn_at" not in offer:
            location = str(offer["location"])
            location = f"{location} ({offer['id']})" if location in built else location
            built[location] = {"location": location, **{name: offer[name] for name in _OFFER_FIELDS if name in offer}}
    return list(built.values())
