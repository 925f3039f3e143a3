"""Rows of products, variants and offers, to and from the domain."""

from decimal import Decimal
from typing import Any

import msgspec

from adapters.postgres.nodes.connecting import Fetched
from domain.catalogue import search
from domain.catalogue.model import Availability, Offer, Product, ProductStatus, Variant, Visibility

plain = msgspec.json.Decoder(float_hook=Decimal).decode
"""Decodes stored JSON, numbers exact."""
packed = msgspec.Raw
"""Keeps stored JSON undecoded."""
_ENCODE = msgspec.json.Encoder().encode

PRODUCT_TYPES = ("text", "text", "text", "text", "int4", "text", "text", "bytea", "timestamptz", "text", "timestamptz")
VARIANT_TYPES = ("text", "text", "text", "text", "text", "text", "text", "int4", "bytea")
OFFER_TYPES = (
    "text", "text", "text", "text", "text", "int8", "int8", "int8", "int8", "int8", "int8", "bytea", "text", "int4",
    "int4", "int2", "timestamptz", "timestamptz",
)  # fmt: skip
_STATUSES = {status.value: status for status in ProductStatus}
_VISIBILITIES = {visibility.value: visibility for visibility in Visibility}
_FACTS = (
    "currency", "cost", "msrp", "map", "price", "compare_at", "quantity", "incoming", "availability", "lead_time_days",
)  # fmt: skip


def product_of(row: Fetched, read: Any) -> Product:
    """A product from id, catalogue, source, key, status, version, visibility, data, created_at, updated_at, stated_category, stated_at."""
    id_, catalogue, source, key, status, version, visibility, data, created_at, updated_at, *stated = row
    status, visibility = _STATUSES[status], _VISIBILITIES[visibility]
    return Product(
        id_, catalogue, source, key, status, version, visibility, read(data), created_at, updated_at, [], *stated
    )


def variant_of(row: Fetched, read: Any) -> Variant:
    """A variant from id, product, source, key, status, version, data, updated_at, stated_at."""
    id_, product, source, key, status, version, data, updated_at, stated_at = row
    return Variant(id_, product, source, key, _STATUSES[status], version, read(data), updated_at, [], stated_at)


def offer_of(*row: Any) -> Offer:
    """An offer from its twenty columns in the order of the table."""
    data: dict[str, Any] = {name: value for name, value in zip(_FACTS, row[5:15], strict=True) if value is not None}
    if "incoming" in data:
        data["incoming"] = plain(data["incoming"])
    return Offer(row[0], row[1], row[2], row[3], row[4], data, *row[15:20])


def product_row(product: Product, packed: bytes) -> Fetched:
    """The columns of PRODUCT_TYPES; the product's data is plain, and packed beside it."""
    brand = product.data.get("brand")
    return (
        product.id, product.catalogue, product.key, product.status, product.version, product.visibility,
        search.brand_key(brand) if brand else None, packed, product.created_at, product.stated_category, product.stated_at,
    )  # fmt: skip


def variant_row(variant: Variant, packed: bytes) -> Fetched:
    """The columns of VARIANT_TYPES; the variant's data is plain, and packed beside it."""
    data = variant.data
    sku = search.code(data["sku"]) if "sku" in data else None
    mpn = search.code(data["mpn"]) if "mpn" in data else None
    return (
        variant.id, variant.product, variant.key, sku or None, mpn or None, search.gtin_key(data.get("gtin")),
        variant.status, variant.version, packed,
    )  # fmt: skip


def offer_row(offer: Offer) -> Fetched:
    """The columns of OFFER_TYPES."""
    get = offer.data.get
    incoming = get("incoming")
    return (
        offer.id, offer.variant, offer.product, offer.location, get("currency"), get("cost"), get("msrp"), get("map"),
        get("price"), get("compare_at"), get("quantity"), _ENCODE(incoming) if incoming else None,
        get("availability", Availability.UNKNOWN), get("lead_time_days"), offer.version, offer.stated, offer.observed_at,
        offer.withdrawn_at,
    )  # fmt: skip


class _Sku(msgspec.Struct):
    sku: str | None = None


_SKU = msgspec.json.Decoder(_Sku).decode


def sku_of(data: Any) -> str | None:
    """The SKU of a variant's data, plain or packed, reading no more of it than that."""
    return _SKU(data).sku if isinstance(data, msgspec.Raw) else data.get("sku")
