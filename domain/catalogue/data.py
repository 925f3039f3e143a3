"""The `data` of products, variants and offers (docs/conventions.md#products-variants-and-offers).

These are plain mappings, so that they can be stored, compared and returned without conversion. Keys that a source does
not state are absent, never None.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, TypedDict


class GivenMeasure(TypedDict):
    """Measure in the vendor's notation: the exact number and the unit (docs/conventions.md#products-variants-and-offers)."""

    value: Decimal
    unit: str


class Length(TypedDict):
    """Length in hundredths of an inch, rounded half up from `given`, the exact measure in the vendor's unit."""

    hundredths_in: int
    given: GivenMeasure


class Weight(TypedDict):
    """Weight in hundredths of a pound, rounded half up from `given`, the exact measure in the vendor's unit."""

    hundredths_lb: int
    given: GivenMeasure


class Dimensions(TypedDict, total=False):
    """Measurements of an article, by name."""

    width: Length
    depth: Length
    height: Length
    diameter: Length
    seat_height: Length
    seat_depth: Length
    arm_height: Length
    clearance: Length


class BundleComponent(TypedDict, total=False):
    """Article that a bundle contains; `quantity` is at least 1."""

    name: str
    sku: str
    quantity: int
    dimensions: Dimensions
    weight: Weight


class Carton(TypedDict, total=False):
    """Cartons of the same size in which an article is delivered; `count`, their number, is at least 1."""

    width: Length
    depth: Length
    height: Length
    weight: Weight
    count: int


class Rug(TypedDict, total=False):
    """Attributes that only rugs have.

    `size_text` is the size as the vendor wrote it. `nominal` is the nominal size of the trade, such as `5x8`.
    docs/conventions.md#enumerations lists the values of `shape`, `construction` and `indoor_outdoor`.
    """

    shape: str
    size_text: str
    nominal: str
    construction: str
    pile_height: Length
    indoor_outdoor: str


class Media(TypedDict, total=False):
    """Image, video or document; `id` and `stored_url` are present if the image is stored."""

    url: str
    role: str
    alt: str
    position: int
    id: str
    stored_url: str


class Compliance(TypedDict, total=False):
    """Compliance with safety rules, and the country of origin, according to the source."""

    tsca_title_vi: bool
    sturdy_act: bool
    stability_rating: Decimal
    ca_tb117_2013: bool
    prop65_warning: bool
    prop65_chemicals: list[str]
    country_of_origin: str


class ProductData(TypedDict, total=False):
    """Fields of a product that the source's feed has, stored as `Product.data`."""

    title: str
    brand: str
    collection: str
    description: str
    category_path: list[str]
    category: str
    tags: list[str]
    gpc_brick: str
    features: list[str]
    compliance: Compliance
    media: list[Media]


class VariantData(TypedDict, total=False):
    """Fields of a variant that the source's feed has, stored as `Variant.data`."""

    sku: str
    gtin: str
    mpn: str
    title: str
    axes: dict[str, str]
    colour: str
    finish: str
    materials: list[str]
    dimensions: Dimensions
    weight: Weight
    components: list[BundleComponent]
    cartons: list[Carton]
    assembly_required: bool
    white_glove: bool
    freight_class: str
    rug: Rug
    media: list[Media]
    discontinued: bool
    replacement_sku: str


class IncomingStock(TypedDict, total=False):
    """Stock that is on order: `quantity` is at least 1, `eta` a date `YYYY-MM-DD`."""

    quantity: int
    eta: str


class OfferData(TypedDict, total=False):
    """One source's price and stock for one variant at one location; prices are in minor units of `currency`."""

    currency: str
    cost: int
    msrp: int
    map: int
    price: int
    compare_at: int
    quantity: int
    incoming: list[IncomingStock]
    availability: str
    lead_time_days: int


def list_current_offers(offers: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the offers, as the API returns them, that are not withdrawn."""
    return [offer for offer in offers if not offer.get("withdrawn_at")]
