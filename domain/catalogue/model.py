"""Products with their variants and offers, and the filters of lists (docs/conventions.md#products-variants-and-offers)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from domain.kernel.enums import StoredEnum


class Stream(StoredEnum):
    """The part of a source's data that a run reads: the whole catalogue, or stock alone."""

    CATALOGUE = "catalogue"
    STOCK = "stock"


class ProductStatus(StoredEnum):
    """The lifecycle status of a product or variant, as far as its source states it."""

    ACTIVE = "active"
    PROBABLY_DISCONTINUED = "probably_discontinued"
    DISCONTINUED = "discontinued"

    @classmethod
    def stated(cls, discontinued: bool | None) -> "ProductStatus":
        """Return the status for the source's statement of discontinuation; None means active."""
        return cls.DISCONTINUED if discontinued else cls.ACTIVE


class Visibility(StoredEnum):
    """The visibility of a product outside its organisation."""

    LISTED = "listed"
    HIDDEN = "hidden"
    UNLISTED = "unlisted"


class Availability(StoredEnum):
    """The availability of an offer, from worst to best (docs/conventions.md#products-variants-and-offers)."""

    DISCONTINUED = "discontinued"
    OUT_OF_STOCK = "out_of_stock"
    UNKNOWN = "unknown"
    PREORDER = "preorder"
    BACKORDER = "backorder"
    LOW_STOCK = "low_stock"
    IN_STOCK = "in_stock"


CATALOGUE_STREAM = 1
STOCK_STREAM = 2
STREAM_BITS = {Stream.CATALOGUE: CATALOGUE_STREAM, Stream.STOCK: STOCK_STREAM}


@dataclass(slots=True)
class Offer:
    """One source's price and stock for one variant at one location; `data` is an OfferData.

    `stated` holds the streams whose last complete run stated the offer (bits of STREAM_BITS); with none left it is
    withdrawn.
    """

    id: str
    variant: str
    product: str
    source: str
    location: str
    data: Mapping[str, Any]
    version: int
    stated: int
    observed_at: datetime
    updated_at: datetime
    withdrawn_at: datetime | None = None


@dataclass(slots=True)
class Variant:
    """One sellable form of a product. `key` is the source's own key; `data` is a VariantData, plain or packed.

    `stated_at`: time of the source's latest changed statement, if `updated_at` has since moved for another reason.
    """

    id: str
    product: str
    source: str
    key: str
    status: ProductStatus
    version: int
    data: Any
    updated_at: datetime
    offers: list[Offer] = field(default_factory=list)
    stated_at: datetime | None = None


@dataclass(slots=True)
class Product:
    """A master product made from one source record (`source`, `key`); `data` is a ProductData, plain or packed.

    `stated_category` is the category that the source itself states; `data` holds the one that the rules assign.
    `updated_at` moves with any change to the product, a variant or an offer; `stated_at` only with a changed statement
    of the product itself (None: unchanged since its creation).
    """

    id: str
    catalogue: str
    source: str
    key: str
    status: ProductStatus
    version: int
    visibility: Visibility
    data: Any
    created_at: datetime
    updated_at: datetime
    variants: list[Variant] = field(default_factory=list)
    stated_category: str | None = None
    stated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SourceItem:
    """A variant as its source identifies it, with its offers; stock checks use `product_key` and `variant_key`."""

    variant: str
    source: str
    product_key: str
    variant_key: str
    sku: str | None
    offers: Sequence[Offer]


@dataclass(frozen=True, slots=True)
class ProductFilter:
    """The filters of GET /v1/products; all that are set must match. `category` includes the categories below it.

    A sequence matches if any of its values does. `external_id` is the source's key of the product or of one of its variants; `sku`, `gtin`,
    `mpn`, `variant` and `offer` match any of its variants.
    """

    updated_since: datetime | None = None
    status: str | None = None
    brand: str | None = None
    category: str | None = None
    availability: str | None = None
    catalogue: str | None = None
    source: str | None = None
    q: str | None = None
    id: Sequence[str] | None = None
    variant: Sequence[str] | None = None
    offer: Sequence[str] | None = None
    external_id: Sequence[str] | None = None
    sku: Sequence[str] | None = None
    gtin: Sequence[str] | None = None
    mpn: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class OfferFilter:
    """The filters of GET /v1/offers; all that are set must match, a sequence if any of its values does.

    `external_id` is the source's key of the offer's variant or product; `sku`, `gtin` and `mpn` are those of its variant.
    """

    variant: str | None = None
    product: str | None = None
    source: str | None = None
    availability: str | None = None
    updated_since: datetime | None = None
    id: Sequence[str] | None = None
    external_id: Sequence[str] | None = None
    sku: Sequence[str] | None = None
    gtin: Sequence[str] | None = None
    mpn: Sequence[str] | None = None


class Document(NamedTuple):
    """A stored response body: a product's JSON as bytes, and its strong ETag (a tuple, because each list creates twenty)."""

    id: str
    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class OfferLine:
    """An offer as GET /v1/offers lists it, with its catalogue, product and variant."""

    offer: Offer
    catalogue: str
    product_title: str | None
    variant_sku: str | None
    product_key: str
    variant_key: str


class LicenceBasis(StoredEnum):
    """The legal basis for using the source's data."""

    VENDOR_AGREEMENT = "vendor_agreement"
    OWN_DATA = "own_data"
    PUBLIC_DATA = "public_data"
    FEED_TERMS = "feed_terms"
    UNKNOWN = "unknown"
