"""Products with their variants and offers, and the filters of lists (docs/conventions.md#products-variants-and-offers)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from domain.kernel.enums import StoredEnum


class Stream(StoredEnum):
    """Part of a source's data that a run reads: the whole catalogue, or only stock."""

    CATALOGUE = "catalogue"
    STOCK = "stock"


class ProductStatus(StoredEnum):
    """Lifecycle status of a product or variant according to its source."""

    ACTIVE = "active"
    PROBABLY_DISCONTINUED = "probably_discontinued"
    DISCONTINUED = "discontinued"

    @classmethod
    def from_discontinued(cls, is_discontinued: bool | None) -> "ProductStatus":
        """Return DISCONTINUED if the source states that the item is discontinued, else ACTIVE."""
        return cls.DISCONTINUED if is_discontinued else cls.ACTIVE


class Visibility(StoredEnum):
    """Visibility of a product to other organisations.

    LISTED products of a published catalogue can be read with a licence. HIDDEN products were hidden by the vendor. UNLISTED products
    were never published, or were withdrawn.
    """

    LISTED = "listed"
    HIDDEN = "hidden"
    UNLISTED = "unlisted"


class Availability(StoredEnum):
    """Availability of an offer, from worst to best (docs/conventions.md#products-variants-and-offers)."""

    DISCONTINUED = "discontinued"
    OUT_OF_STOCK = "out_of_stock"
    UNKNOWN = "unknown"
    PREORDER = "preorder"
    BACKORDER = "backorder"
    LOW_STOCK = "low_stock"
    IN_STOCK = "in_stock"

    @classmethod
    def from_quantity(cls, quantity: int) -> "Availability":
        """Return OUT_OF_STOCK for a quantity up to 0, LOW_STOCK up to MAX_LOW_STOCK, and IN_STOCK above."""
        if quantity <= 0:
            return cls.OUT_OF_STOCK
        return cls.LOW_STOCK if quantity <= MAX_LOW_STOCK else cls.IN_STOCK


KEPT_AVAILABILITIES = frozenset((Availability.PREORDER, Availability.BACKORDER, Availability.DISCONTINUED))
"""Availabilities that remain when only a quantity is stated."""
MAX_LOW_STOCK = 5
"""Maximum quantity that counts as low stock."""

CATALOGUE_STREAM = 1
"""Bit of the catalogue stream in `Offer.stated_streams`."""
STOCK_STREAM = 2
"""Bit of the stock stream in `Offer.stated_streams`."""
STREAM_BITS = {Stream.CATALOGUE: CATALOGUE_STREAM, Stream.STOCK: STOCK_STREAM}
"""Bit of each stream in `Offer.stated_streams`."""


@dataclass(slots=True)
class Offer:
    """One source's price and stock for one variant at one location; `data` is an OfferData.

    `stated_streams` is a bit mask (CATALOGUE_STREAM, STOCK_STREAM) of the streams whose last complete run listed the offer.
    If it is 0, the offer is withdrawn.
    """

    id: str
    variant: str
    product: str
    source: str
    location: str
    data: Mapping[str, Any]
    version: int
    stated_streams: int
    observed_at: datetime
    updated_at: datetime
    withdrawn_at: datetime | None = None


@dataclass(slots=True)
class Variant:
    """Article that can be ordered: one size, colour or pack of a product.

    Attributes:
        key: The key by which the source identifies the variant.
        data: A VariantData, decoded or encoded (CatalogueRenderer).
        stated_at: When the source last changed the data of the variant itself; None means `updated_at`.
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
    """Product with the data of one source.

    Attributes:
        key: The key by which the source identifies the product.
        data: A ProductData, decoded or encoded (CatalogueRenderer), with the category that rules assign.
        updated_at: When the product, a variant or an offer last changed.
        stated_category: The category in the source's feed, before category rules.
        stated_at: When the source last changed the data of the product itself; None if it has not since creation.
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
    """Variant with its offers, and with the keys and the SKU that a stock check sends to its source."""

    variant: str
    source: str
    product_key: str
    variant_key: str
    sku: str | None
    offers: Sequence[Offer]


class ProductSort(StoredEnum):
    """Order of a list of products. Products without a selling price are last in both orders by price."""

    NEWEST = "newest"
    UPDATED = "updated"
    TITLE = "title"
    PRICE_LOW = "price_low"
    PRICE_HIGH = "price_high"


@dataclass(frozen=True, slots=True)
class ProductFilter:
    """Filters of GET /v1/products.

    A product must match every filter that is set. If a filter has several values, one of them must match. `category`
    includes the categories below it. `external_id` is the source's key of the product or of one of its variants. `sku`,
    `gtin`, `mpn`, `variant` and `offer` match if they match one of its variants.

    Attributes:
        brand: Brand of the product; `brands` are several brands.
        colour: Colour families (domain/search/facets.py), like `finish` of a variant.
        currency: Currency of the product's selling price.
        min_price: Minimum of the lowest selling price, in minor units of `currency`.
        max_price: Maximum of the lowest selling price, in minor units of `currency`.
        completeness: Bands of completeness (domain/search/facets.py).
        words: Words for each word of `q`, of which one must match; None for the words of `q` only.
        is_inexact: Whether products that contain all words of `q`, or have it as a code, are left out.
    """

    updated_since: datetime | None = None
    status: Sequence[str] | None = None
    brand: str | None = None
    category: Sequence[str] | None = None
    availability: Sequence[str] | None = None
    catalogue: str | None = None
    source: Sequence[str] | None = None
    q: str | None = None
    id: Sequence[str] | None = None
    variant: Sequence[str] | None = None
    offer: Sequence[str] | None = None
    external_id: Sequence[str] | None = None
    sku: Sequence[str] | None = None
    gtin: Sequence[str] | None = None
    mpn: Sequence[str] | None = None
    brands: Sequence[str] | None = None
    colour: Sequence[str] | None = None
    finish: Sequence[str] | None = None
    currency: str | None = None
    min_price: int | None = None
    max_price: int | None = None
    completeness: Sequence[str] | None = None
    words: Sequence[Sequence[str]] | None = None
    is_inexact: bool | None = None


@dataclass(frozen=True, slots=True)
class OfferFilter:
    """Filters of GET /v1/offers.

    An offer must match every filter that is set. If a filter has several values, one of them must match. `external_id`
    is the source's key of the offer's variant or product. `sku`, `gtin` and `mpn` are codes of the offer's variant.
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


class Document(NamedTuple):  # a tuple, because each list creates twenty
    """Product as the API returns it: stored JSON, and the strong ETag of the JSON."""

    id: str
    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class OfferLine:
    """Offer in the list of GET /v1/offers, with data of its product and variant."""

    offer: Offer
    catalogue: str
    product_title: str | None
    variant_sku: str | None
    product_key: str
    variant_key: str


class LicenceBasis(StoredEnum):
    """Legal basis for using the source's data."""

    VENDOR_AGREEMENT = "vendor_agreement"
    OWN_DATA = "own_data"
    PUBLIC_DATA = "public_data"
    FEED_TERMS = "feed_terms"
    UNKNOWN = "unknown"
