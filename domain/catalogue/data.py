"""The `data` of products and variants and the facts of offers (docs/conventions.md#products-variants-and-offers).

These are plain mappings so that they are stored, compared and returned without conversion. Keys that a source
does not state are absent, never None.
"""

from decimal import Decimal
from typing import TypedDict


class Given(TypedDict):
    """A measure as the source wrote it: the exact number and its unit (docs/conventions.md#products-variants-and-offers)."""

    value: Decimal
    unit: str


class Length(TypedDict):
    """A length in hundredths of an inch, rounded half up once, with the value as given."""

    hundredths_in: int
    given: Given


class Weight(TypedDict):
    """A weight in hundredths of a pound, rounded half up once, with the value as given."""

    hundredths_lb: int
    given: Given


class Dimensions(TypedDict, total=False):
    """The named lengths of a piece."""

    width: Length
    depth: Length
    height: Length
    diameter: Length
    seat_height: Length
    seat_depth: Length
    arm_height: Length
    clearance: Length


class Component(TypedDict, total=False):
    """One piece of a set; `quantity` is at least 1."""

    name: str
    sku: str
    quantity: int
    dimensions: Dimensions
    weight: Weight


class Carton(TypedDict, total=False):
    """One kind of box; `count` is at least 1."""

    width: Length
    depth: Length
    height: Length
    weight: Weight
    count: int


class Rug(TypedDict, total=False):
    """Attributes of rugs only; docs/conventions.md#enumerations has the values of shape, construction and indoor_outdoor."""

    shape: str
    size_text: str
    nominal: str
    construction: str
    pile_height: Length
    indoor_outdoor: str


class Media(TypedDict, total=False):
    """A picture, video or document; `id` and `stored_url` are present once the image is stored."""

    url: str
    role: str
    alt: str
    position: int
    id: str
    stored_url: str


class Compliance(TypedDict, total=False):
    """Statements about safety rules and origin."""

    tsca_title_vi: bool
    sturdy_act: bool
    stability_rating: Decimal
    ca_tb117_2013: bool
    prop65_warning: bool
    prop65_chemicals: list[str]
    country_of_origin: str


class ProductData(TypedDict, total=False):
    """The `data` of a product."""

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
    """The `data` of a variant."""

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
    components: list[Component]
    cartons: list[Carton]
    assembly_required: bool
    white_glove: bool
    freight_class: str
    rug: Rug
    media: list[Media]
    discontinued: bool
    replacement_sku: str


class Incoming(TypedDict, total=False):
    """Stock on order: `quantity` at least 1, `eta` a calendar date `YYYY-MM-DD`."""

    quantity: int
    eta: str


class OfferData(TypedDict, total=False):
    """One source's price and stock for one variant at one location; money in minor units of `currency`."""

    currency: str
    cost: int
    msrp: int
    map: int
    price: int
    compare_at: int
    quantity: int
    incoming: list[Incoming]
    availability: str
    lead_time_days: int
