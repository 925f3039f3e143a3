"""Schemas of products, variants, offers and categories (docs/conventions.md#products-variants-and-offers)."""

from collections.abc import Mapping
from typing import Any, Final

from domain.catalogue.categories import Category
from domain.catalogue.model import Availability, ProductStatus, Visibility
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    constant,
    currency,
    date,
    enum,
    id_schema,
    integer,
    list_response,
    map_schema,
    money,
    number,
    response_object,
    text,
    timestamp,
    url,
    with_title,
)  # fmt: skip

MEDIA_ROLES = ("hero", "alternate", "lifestyle", "detail", "dimension", "swatch", "video", "document")
LENGTH_UNITS = ("in", "ft", "mm", "cm", "m")
WEIGHT_UNITS = ("lb", "oz", "g", "kg")
RUG_SHAPES = (
    "rectangle", "runner", "round", "oval", "square", "octagon", "half_round", "hearth", "animal", "irregular",
)  # fmt: skip
CONSTRUCTIONS = (
    "hand_knotted", "hand_tufted", "hand_hooked", "hand_woven", "hand_loomed", "flat_woven", "machine_made",
    "power_loomed", "braided", "printed", "hide",
)  # fmt: skip
AVAILABILITY = enum(Availability.IN_STOCK, *(state for state in Availability if state != Availability.IN_STOCK))
VISIBILITY = with_title("visibility", enum(*Visibility))
DIMENSIONS = ("width", "depth", "height", "diameter", "seat_height", "seat_depth", "arm_height", "clearance")


def _all_optional_schema(name: str, properties: dict[str, Schema]) -> Schema:
    return with_title(name, response_object(None, properties, tuple(properties)))


_LENGTH_UNIT = with_title("length_unit", enum("cm", *(unit for unit in LENGTH_UNITS if unit != "cm")))
LENGTH = with_title(
    "length",
    response_object(
        None,
        {
            "hundredths_in": integer(3150, description="Hundredths of an inch, rounded half up."),
            "given": with_title("given_length", response_object(None, {"value": number(80.0), "unit": _LENGTH_UNIT})),
        },
    ),
)
WEIGHT = with_title(
    "weight",
    response_object(
        None,
        {
            "hundredths_lb": integer(6600, description="Hundredths of a pound, rounded half up."),
            "given": with_title(
                "given_weight",
                response_object(None, {"value": number(66.0), "unit": with_title("weight_unit", enum(*WEIGHT_UNITS))}),
            ),
        },
    ),
)
MEDIA = with_title(
    "product_media",
    response_object(
        None,
        {
            "url": url("https://vendor.example/images/hedda-1.jpg"),
            "role": with_title("media_role", enum(*MEDIA_ROLES)),
            "alt": text("Hedda sofa, front"),
            "position": integer(1, minimum=1),
            "id": id_schema("img"),
            "stored_url": url("https://api.example/v1/media/img_01J8ZQ5T3V7XK2M9RB4CDW"),
        },
        optional=("role", "alt", "position", "id", "stored_url"),
    ),
)
DIMENSIONS_SCHEMA = _all_optional_schema("dimensions", dict.fromkeys(DIMENSIONS, LENGTH))
COMPONENT = _all_optional_schema(
    "component",
    {
        "name": text("Headboard"),
        "sku": text("HD-100-HB"),
        "quantity": integer(1, minimum=1),
        "dimensions": DIMENSIONS_SCHEMA,
        "weight": WEIGHT,
    },
)
CARTON = _all_optional_schema(
    "carton", {"width": LENGTH, "depth": LENGTH, "height": LENGTH, "weight": WEIGHT, "count": integer(1, minimum=1)}
)
RUG = _all_optional_schema(
    "rug",
    {
        "shape": with_title("rug_shape", enum(*RUG_SHAPES)),
        "size_text": text("5'3\" x 7'6\""),
        "nominal": text("5x8"),
        "construction": with_title("rug_construction", enum(*CONSTRUCTIONS)),
        "pile_height": LENGTH,
        "indoor_outdoor": with_title("rug_use", enum("indoor", "outdoor", "indoor_outdoor")),
    },
)
COMPLIANCE = _all_optional_schema(
    "compliance",
    {
        "tsca_title_vi": boolean(),
        "sturdy_act": boolean(),
        "stability_rating": number(1.2),
        "ca_tb117_2013": boolean(),
        "prop65_warning": boolean(False),
        "prop65_chemicals": array(text("Lead")),
        "country_of_origin": text("VN"),
    },
)
PRODUCT_DATA = _all_optional_schema(
    "product_data",
    {
        "title": text("Hedda three-seat sofa", max_length=10_000),
        "brand": text("Lindgren Möbler", max_length=10_000),
        "collection": text("Hedda", max_length=10_000),
        "description": text("A low sofa with loose cushions.", max_length=1_000_000),
        "category_path": array(text("Living room")),
        "category": id_schema("ctg"),
        "tags": array(text("new")),
        "gpc_brick": text("10002195"),
        "features": array(text("Removable covers")),
        "compliance": COMPLIANCE,
        "media": array(MEDIA),
    },
)
VARIANT_DATA = _all_optional_schema(
    "variant_data",
    {
        "sku": text("HD-300-GY"),
        "gtin": text("4006381333931"),
        "mpn": text("HD300"),
        "title": text("Grey"),
        "axes": map_schema(text("Grey"), {"Colour": "Grey"}),
        "colour": text("Grey"),
        "finish": text("Oak"),
        "materials": array(text("Wool")),
        "dimensions": DIMENSIONS_SCHEMA,
        "weight": WEIGHT,
        "components": array(COMPONENT),
        "cartons": array(CARTON),
        "assembly_required": boolean(),
        "white_glove": boolean(False),
        "freight_class": text("125"),
        "rug": RUG,
        "media": array(MEDIA),
        "discontinued": boolean(False),
        "replacement_sku": text("HD-310-GY"),
    },
)
_OFFER: Final[dict[str, Schema]] = {
    "id": id_schema("ofr"),
    "source": id_schema("src"),
    "location": text("NJ"),
    "currency": currency(),
    "cost": money(27900),
    "msrp": money(83700),
    "map": money(69900),
    "price": money(64900),
    "compare_at": money(79900),
    "quantity": integer(12, minimum=0, description="Number of available units; 0 if the offer is withdrawn."),
    "incoming": array(_all_optional_schema("arrival", {"quantity": integer(40, minimum=1), "eta": date()})),
    "availability": AVAILABILITY,
    "lead_time_days": integer(14, minimum=0),
    "version": integer(3, minimum=1),
    "observed_at": timestamp(),
    "withdrawn_at": timestamp("When the source stopped listing the offer; omitted while the source lists it."),
}
_OFFER_OPTIONAL = (
    "currency", "cost", "msrp", "map", "price", "compare_at", "quantity", "incoming", "lead_time_days", "withdrawn_at",
)  # fmt: skip
EXTERNAL_ID = text(
    "LM-1001", max_length=10_000,
    description="The ID in the source: the external_id of a pushed record, or the key of a row in a feed.",
)  # fmt: skip
OFFER = response_object("offer", _OFFER, _OFFER_OPTIONAL)
OFFER_LINE = with_title(
    "offer_line",
    response_object(
        "offer",
        {
            **_OFFER,
            "variant": id_schema("var"),
            "catalogue": id_schema("cat"),
            "product": id_schema("prod"),
            "product_title": text("Hedda three-seat sofa"),
            "variant_sku": text("HD-300-GY"),
            "product_external_id": EXTERNAL_ID,
            "variant_external_id": EXTERNAL_ID | {"examples": ["LM-1001-OAK"]},
        },
        (*_OFFER_OPTIONAL, "product", "product_title", "variant_sku", "product_external_id", "variant_external_id"),
    ),
)
OFFERS = list_response(OFFER_LINE)
_MERGE_PARTS: Final[Mapping[str, Schema]] = {
    "provenance": map_schema(
        with_title(
            "field_origin",
            response_object(
                None,
                {
                    "source": id_schema("src"),
                    "observed_at": timestamp(
                        "When the source last changed its data on the product or variant, or when the person made the correction."
                    ),
                    "reason": with_title(
                        "origin_reason",
                        enum("only_source", "own", "first_party", "vendor_agreement", "freshest", "person_edit")
                        | {"description": "Why this source takes precedence."},
                    ),
                },
            ),
        ),
        {
            "title": {
                "source": "src_01J8ZQ5T3V7XK2M9RB4CDW",
                "observed_at": "2026-11-20T13:08:00.000Z",
                "reason": "freshest",
            }
        },
        "The origin of each field of `data`, if the object is merged or corrected. Corrected parts of nested fields have a path, such as "
        "`dimensions.width`; a field that a person has cleared is not in `data`.",
    ),
}
VARIANT = response_object(
    "variant",
    {
        "id": id_schema("var"),
        "external_id": EXTERNAL_ID | {"examples": ["LM-1001-OAK"]},
        "status": enum(*ProductStatus),
        "version": integer(2, minimum=1),
        "data": VARIANT_DATA,
        "offers": array(OFFER),
        "updated_at": timestamp(),
        "merged_from": array(id_schema("var"), description="Variants of other sources that are merged into this one."),
        **_MERGE_PARTS,
    },
    ("external_id", "merged_from", "provenance"),
)
PRODUCT = response_object(
    "product",
    {
        "id": id_schema("prod"),
        "external_id": EXTERNAL_ID,
        "catalogue": id_schema("cat"),
        "status": enum(*ProductStatus),
        "version": integer(2, minimum=1),
        "data": PRODUCT_DATA,
        "variants": array(VARIANT),
        "visibility": VISIBILITY,
        "created_at": timestamp(),
        "updated_at": timestamp("Time of the last change of the product, its variants or offers."),
        "merged_from": array(id_schema("prod"), description="Products of other sources that are merged into this one."),
        **_MERGE_PARTS,
    },
    ("external_id", "merged_from", "provenance"),
)
TOTAL_COUNT = response_object(
    None,
    {
        "count": integer(1234, minimum=0, description="Number of products; at most 10,000."),
        "is_exact": boolean(True, "Whether `count` is exact; otherwise there are more products."),
    },
    description="Number of products on all pages, if the request has `include=total_count`.",
)
PRODUCTS = list_response(PRODUCT)
PRODUCTS |= {"properties": {**PRODUCTS["properties"], "total_count": TOTAL_COUNT}}
CATEGORY = response_object(
    "category",
    {
        "id": id_schema("ctg"),
        "name": text("Loveseats"),
        "path": array(text("Seating")),
        "parent": id_schema("ctg"),
        "google_product_category": integer(460, description="ID of the equivalent Google product category."),
    },
    ("parent", "google_product_category"),
)
CATEGORIES = response_object(
    "category_tree",
    {
        "object": constant("category_tree"),
        "categories": array(CATEGORY, description="The categories, parents before their children."),
    },
)


def render_category(entry: Category) -> dict[str, Any]:
    """Render a category of the taxonomy."""
    answer: dict[str, Any] = {"object": "category", "id": entry.id, "name": entry.name, "path": list(entry.path)}
    if entry.parent is not None:
        answer["parent"] = entry.parent
    if entry.google is not None:
        answer["google_product_category"] = entry.google
    return answer
