"""Conversion of products, variants and offers from and to rows."""

from decimal import Decimal
from typing import Any

import msgspec

from adapters.postgres.nodes.connecting import Fetched
from domain.catalogue import search
from domain.catalogue.model import Availability, Offer, Product, ProductStatus, Variant, Visibility

plain = msgspec.json.Decoder(float_hook=Decimal).decode
"""Decoder of stored JSON with exact numbers."""
packed = msgspec.Raw
"""Wrapper that keeps stored JSON undecoded."""
_ENCODE = msgspec.json.Encoder().encode

PRODUCT_TYPES = ("text", "text", "text", "text", "int4", "text", "text", "bytea", "timestamptz", "text", "timestamptz")
VARIANT_TYPES = ("text", "text", "text", "text", "text", "text", "text", "int4", "bytea")
OFFER_TYPES = (
    "text", "text", "text", "text", "text", "int8", "int8", "int8", "int8", "int8", "int8", "bytea", "text", "int4",
    "int4", "int2", "timestamptz", "timestamptz",
)  # fmt: skip
_STATUSES = {status.value: status for status in ProductStatus}
_VISIBILITIES = {visibility.value: visibility for visibility in Visibility}
_FIELDS = (
    "currency", "cost", "msrp", "map", "price", "compare_at", "quantity", "incoming", "availability", "lead_time_days",
)  # fmt: skip


def product_of(row: Fetched, decode: Any) -> Product:
    """Build a product from id, catalogue, source, key, status, version, visibility, data, created_at, updated_at, stated_category, stated_at."""
    id_, catalogue, source, key, status, version, visibility, data, created_at, updated_at, *stated = row
    status, visibility = _STATUSES[status], _VISIBILITIES[visibility]
    return Product(
        id_, catalogue, source, key, status, version, visibility, decode(data), created_at, updated_at, [], *stated
    )


def variant_of(row: Fetched, decode: Any) -> Variant:
    """Build a variant from id, product, source, key, status, version, data, updated_at, stated_at."""
    id_, product, source, key, status, version, data, updated_at, stated_at = row
    return Variant(id_, product, source, key, _STATUSES[status], version, decode(data), updated_at, [], stated_at)


def offer_of(*row: Any) -> Offer:
    """Build an offer from its twenty columns in the order of the table."""
    data: dict[str, Any] = {name: value for name, value in zip(_FIELDS, row[5:15], strict=True) if value is not None}
    if "incoming" in data:
        data["incoming"] = plain(data["incoming"])
    return Offer(row[0], row[1], row[2], row[3], row[4], data, *row[15:20])


def product_row(product: Product, packed: bytes) -> Fetched:
    """Return the columns of PRODUCT_TYPES; `packed` is the encoded data of the product."""
    brand = product.data.get("brand")
    return (
        product.id, product.catalogue, product.key, product.status, product.version, product.visibility,
        search.brand_key(brand) if brand else None, packed, product.created_at, product.stated_category, product.stated_at,
    )  # fmt: skip


def variant_row(variant: Variant, packed: bytes) -> Fetched:
    """Return the columns of VARIANT_TYPES; `packed` is the encoded data of the variant."""
    data = variant.data
    sku = search.code(data["sku"]) if "sku" in data else None
    mpn = search.code(data["mpn"]) if "mpn" in data else None
    return (
        variant.id, variant.product, variant.key, sku or None, mpn or None, search.gtin_key(data.get("gtin")),
        variant.status, variant.version, packed,
    )  # fmt: skip


def offer_row(offer: Offer) -> Fetched:
    """Return the columns of OFFER_TYPES."""
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
    """Return the SKU of a variant's data; packed data is decoded for the SKU only."""
    return _SKU(data).sku if isinstance(data, msgspec.Raw) else data.get("sku")
