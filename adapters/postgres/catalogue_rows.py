"""Conversion of products, variants and offers from and to rows of the database."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec

from adapters.postgres.nodes.connections import DatabaseRow
from domain.catalogue import search_terms
from domain.catalogue.model import Availability, Offer, Product, ProductStatus, Variant, Visibility
from domain.search.facets import compute_facets

decode_data = msgspec.json.Decoder(float_hook=Decimal).decode
"""Function that decodes stored JSON; numbers with a fraction or an exponent become exact decimals."""
RawData = msgspec.Raw
"""Type that wraps stored JSON without decoding it; an alternative to `decode_data`."""
encode_exactly = msgspec.json.Encoder(decimal_format="number").encode
"""Function that encodes data as JSON; decimals keep their digits."""

PRODUCT_COLUMN_TYPES = (
    "text",
    "text",
    "text",
    "text",
    "int4",
    "text",
    "text",
    "bytea",
    "timestamptz",
    "text",
    "timestamptz",
)
VARIANT_COLUMN_TYPES = ("text", "text", "text", "text", "text", "text", "text", "int4", "bytea")
OFFER_COLUMN_TYPES = (
    "text", "text", "text", "text", "text", "int8", "int8", "int8", "int8", "int8", "int8", "bytea", "text", "int4",
    "int4", "int2", "timestamptz", "timestamptz",
)  # fmt: skip
FACET_COLUMN_TYPES = (
    "text", "text", "text", "text", "text", "text[]", "text", "text", "int8", "int2", "int2", "bool", "int4", "int4",
)  # fmt: skip
_STATUSES = {status.value: status for status in ProductStatus}
_VISIBILITIES = {visibility.value: visibility for visibility in Visibility}
OFFER_FIELDS = (
    "currency", "cost", "msrp", "map", "price", "compare_at", "quantity", "incoming", "availability", "lead_time_days",
)  # fmt: skip


def build_product(row: DatabaseRow, decode: Any) -> Product:
    """Build a product from a row; `decode` converts the column `data`.

    The columns are id, catalogue, source, key, status, version, visibility, data, created_at, updated_at,
    stated_category, stated_at.
    """
    id_, catalogue, source, key, status, version, visibility, data, created_at, updated_at, *stated = row
    status, visibility = _STATUSES[status], _VISIBILITIES[visibility]
    return Product(
        id_, catalogue, source, key, status, version, visibility, decode(data), created_at, updated_at, [], *stated
    )


def build_variant(row: DatabaseRow, decode: Any) -> Variant:
    """Build a variant from a row; `decode` converts the column `data`.

    The columns are id, product, source, key, status, version, data, updated_at, stated_at.
    """
    id_, product, source, key, status, version, data, updated_at, stated_at = row
    return Variant(id_, product, source, key, _STATUSES[status], version, decode(data), updated_at, [], stated_at)


def build_offer(*row: Any) -> Offer:
    """Build an offer from the values of its twenty columns, in the order of the columns of OFFER_COLUMN_TYPES."""
    data: dict[str, Any] = {
        name: value for name, value in zip(OFFER_FIELDS, row[5:15], strict=True) if value is not None
    }
    if "incoming" in data:
        data["incoming"] = decode_data(data["incoming"])
    return Offer(row[0], row[1], row[2], row[3], row[4], data, *row[15:20])


def build_stated_offer(*row: Any) -> Offer:
    """Build an offer with the data of its source from the twenty columns of `build_offer` and the column `home_data`."""
    offer = build_offer(*row[:20])
    if row[20] is not None:
        offer.data = decode_data(row[20])
    return offer


def build_product_row(product: Product, encoded_data: bytes) -> DatabaseRow:
    """Return the row to store for a product, in the columns of PRODUCT_COLUMN_TYPES; `encoded_data` is `product.data` as JSON."""
    brand = product.data.get("brand")
    return (
        product.id, product.catalogue, product.key, product.status, product.version, product.visibility,
        search_terms.normalise_brand(brand) if brand else None, encoded_data, product.created_at, product.stated_category, product.stated_at,
    )  # fmt: skip


def build_variant_row(variant: Variant, encoded_data: bytes) -> DatabaseRow:
    """Return the row to store for a variant, in the columns of VARIANT_COLUMN_TYPES; `encoded_data` is `variant.data` as JSON."""
    data = variant.data
    sku = search_terms.normalise_code(data["sku"]) if "sku" in data else None
    mpn = search_terms.normalise_code(data["mpn"]) if "mpn" in data else None
    return (
        variant.id, variant.product, variant.key, sku or None, mpn or None, search_terms.normalise_gtin(data.get("gtin")),
        variant.status, variant.version, encoded_data,
    )  # fmt: skip


def build_offer_row(offer: Offer) -> DatabaseRow:
    """Return the row to store for an offer, in the columns of OFFER_COLUMN_TYPES."""
    get = offer.data.get
    incoming = get("incoming")
    return (
        offer.id, offer.variant, offer.product, offer.location, get("currency"), get("cost"), get("msrp"), get("map"),
        get("price"), get("compare_at"), get("quantity"), encode_exactly(incoming) if incoming else None,
        get("availability", Availability.UNKNOWN), get("lead_time_days"), offer.version, offer.stated_streams, offer.observed_at,
        offer.withdrawn_at,
    )  # fmt: skip


def build_facet_row(product: Product, sources: Iterable[str]) -> DatabaseRow:
    """Return the facets to store for a product as readers see it, in the columns of FACET_COLUMN_TYPES.

    Args:
        product: The product with decoded data.
        sources: The product's source, and those of the products merged into it.
    """
    facets, brand = compute_facets(product), product.data.get("brand")
    return (
        product.id, product.catalogue, product.status, search_terms.normalise_brand(brand) if brand else None, facets.category, sorted(sources),
        facets.title_key, facets.currency, facets.price, facets.availabilities, facets.completeness, facets.is_priced, facets.colours, facets.finishes,
    )  # fmt: skip


class _DataWithSku(msgspec.Struct):
    """Excerpt of a variant's data that contains only the SKU."""

    sku: str | None = None


_decode_sku = msgspec.json.Decoder(_DataWithSku).decode


def read_sku(data: Any) -> str | None:
    """Return the SKU in a variant's data, or None.

    `data` is either decoded or RawData. In RawData, only the SKU is decoded.
    """
    return _decode_sku(data).sku if isinstance(data, msgspec.Raw) else data.get("sku")
