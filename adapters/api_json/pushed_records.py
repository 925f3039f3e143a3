"""JSON of pushed records: products, variants and offers with simple measures and money.

The format is described in docs/conventions.md#pushed-records. The schema checks only the structure. The run checks the
values and reports invalid ones as problems, so strings are accepted for numbers, and null wherever it removes a value.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from domain.kernel.schema import Schema, array, boolean, date, map_schema, strict_object, text, with_title

BODY_LIMIT = 5 * 1024 * 1024
MAX_RECORDS = 1000
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def _make_nullable(schema: Schema, *extra_types: str) -> Schema:
    """Return the schema with additional JSON types: `extra_types`, and null, which removes the value."""
    declared = schema["type"]
    types = [declared] if isinstance(declared, str) else declared
    title = {"title": f"{schema['title']}_or_null"} if "title" in schema and "properties" not in schema else {}
    return schema | title | {"type": list(dict.fromkeys([*types, *extra_types, "null"]))}


def _object_schema(name: str, properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """Return the schema of an object, whose members accept null unless they are required."""
    members = {name: schema if name in required else _make_nullable(schema) for name, schema in properties.items()}
    return with_title(name, strict_object(members, required))


AMOUNT: Final[Schema] = {
    "title": "exact_number",
    "type": ["number", "string"],
    "maxLength": 40,
    "description": "An exact decimal number, as a number or a string.",
    "examples": [31.5],
}
EXTERNAL_ID = text(
    "LM-1001", max_length=255, description="Your key for this object. It identifies the object in later pushes."
)
MEASURE_MEMBERS = {"value": AMOUNT, "unit": text("in", max_length=40)}


def _measure_schema(name: str, key: str, example: Mapping[str, Any], description: str) -> Schema:
    """Return the schema of a measure, which accepts the format of requests, the format of responses, text and null.

    Args:
        name: Title of the schema.
        key: Name of the member with the value in responses, such as `hundredths_in`.
        example: Example in the format of requests.
        description: Start of the description.
    """
    response_members = {key: AMOUNT, "given": _object_schema("pushed_given", MEASURE_MEMBERS)}
    return _make_nullable(_object_schema(name, {**MEASURE_MEMBERS, **response_members}), "string") | {
        "maxLength": 500,
        "examples": [dict(example)],
        "description": f"{description}: an object with `value` and `unit`, or with `{key}` and `given` as returned by the API.",
    }


MEASURE = _measure_schema("pushed_length", "hundredths_in", {"value": 31.5, "unit": "in"}, "A length")
WEIGHT = _measure_schema("pushed_weight", "hundredths_lb", {"value": 42, "unit": "lb"}, "A weight")
MONEY = _make_nullable(
    with_title(
        "pushed_money",
        strict_object(
            {"amount": AMOUNT | {"examples": [499]}, "currency": text("usd", max_length=40)}, ("amount", "currency")
        ),
    ),
    "integer",
    "string",
) | {
    "maxLength": 500,
    "examples": [{"amount": 499, "currency": "usd"}],
    "description": "An object with an amount in major units and its currency, or an integer of minor units in the offer's `currency`.",
}


def _count_schema(example: int) -> Schema:
    """Return the schema of an integer. Strings and fractions are accepted too, and become problems of the run."""
    return {"type": ["integer", "string", "number"], "maxLength": 500, "examples": [example]}


TEXTS = array(text("oak"), max_items=200)
MEDIA = _object_schema(
    "pushed_media",
    {
        "url": text("https://vendor.example/images/lm-1001.jpg", max_length=2048),
        "role": text("hero", max_length=40),
        "alt": text("Oak dining table"),
        "position": _count_schema(0),
        "id": text(
            "img_01J8ZQ5T3V7XK2M9RB4CDW",
            max_length=200,
            description="Read-only: the value is ignored, so you can send an object as the API returned it.",
        ),
        "stored_url": text(
            "https://images.example/1",
            max_length=2048,
            description="Read-only: the value is ignored, so you can send an object as the API returned it.",
        ),
    },
    ("url",),
)
DIMENSIONS = _object_schema(
    "pushed_dimensions",
    dict.fromkeys(
        ("width", "depth", "height", "diameter", "seat_height", "seat_depth", "arm_height", "clearance"), MEASURE
    ),
)
COMPLIANCE = _object_schema(
    "pushed_compliance",
    {
        "tsca_title_vi": boolean(),
        "sturdy_act": boolean(),
        "stability_rating": AMOUNT | {"examples": [1.2]},
        "ca_tb117_2013": boolean(),
        "prop65_warning": boolean(False),
        "prop65_chemicals": TEXTS | {"examples": [["lead"]]},
        "country_of_origin": text("SE"),
    },
)
PRODUCT = _object_schema(
    "pushed_product",
    {
        "external_id": EXTERNAL_ID,
        "title": text("Oak dining table", max_length=2000),
        "brand": text("Lindgren"),
        "collection": text("Skog"),
        "description": text("A table of solid oak.", max_length=100_000, min_length=0),
        "category": text(
            "ctg_2okZ1uiOd5UYIMjPdXiizq", max_length=200, description="The ID of a category in GET /v1/categories."
        ),
        "category_path": TEXTS | {"examples": [["Dining room", "Tables"]]},
        "tags": TEXTS | {"examples": [["scandinavian"]]},
        "gpc_brick": text("10002106"),
        "features": TEXTS | {"examples": [["Seats six"]]},
        "compliance": COMPLIANCE,
        "media": array(MEDIA, max_items=200),
        "discontinued": boolean(False),
    },
    ("external_id",),
)
COMPONENT = _object_schema(
    "pushed_component",
    {
        "name": text("Leg"),
        "sku": text("LM-1001-L"),
        "quantity": _count_schema(4),
        "dimensions": DIMENSIONS,
        "weight": WEIGHT,
    },
)
CARTON = _object_schema(
    "pushed_carton",
    {"width": MEASURE, "depth": MEASURE, "height": MEASURE, "weight": WEIGHT, "count": _count_schema(1)},
)
RUG = _object_schema(
    "pushed_rug",
    {
        "shape": text("rectangle", max_length=40),
        "size_text": text("5' x 8'"),
        "nominal": text("5x8"),
        "construction": text("hand_knotted", max_length=40),
        "pile_height": MEASURE,
        "indoor_outdoor": text("indoor", max_length=40),
    },
)
OFFER = _object_schema(
    "pushed_offer",
    {
        "external_id": EXTERNAL_ID | {"examples": ["LM-1001-OAK@main"]},
        "location": text("main", max_length=200),
        "currency": text("usd", max_length=40, description="The currency of prices that are integers of minor units."),
        "cost": MONEY,
        "msrp": MONEY,
        "map": MONEY,
        "price": MONEY,
        "compare_at": MONEY,
        "quantity": _count_schema(12),
        "incoming": array(
            _object_schema("pushed_arrival", {"quantity": _count_schema(20), "eta": date()}, ("quantity",)),
            max_items=100,
        ),
        "availability": text("in_stock", max_length=40),
        "lead_time_days": _count_schema(14),
    },
)
VARIANT = _object_schema(
    "pushed_variant",
    {
        "external_id": EXTERNAL_ID | {"examples": ["LM-1001-OAK"]},
        "sku": text("LM-1001-OAK"),
        "gtin": text("7350053850019", max_length=40),
        "mpn": text("1001-OAK"),
        "title": text("Oak, oiled", max_length=2000),
        "axes": map_schema({"type": ["string", "null"], "maxLength": 500}, {"finish": "oiled"})
        | {"maxProperties": 100, "propertyNames": {"maxLength": 200}},
        "colour": text("natural"),
        "finish": text("oiled"),
        "materials": TEXTS,
        "dimensions": DIMENSIONS,
        "weight": WEIGHT,
        "components": array(COMPONENT, max_items=200),
        "cartons": array(CARTON, max_items=200),
        "assembly_required": boolean(),
        "white_glove": boolean(False),
        "freight_class": text("125", max_length=40),
        "rug": RUG,
        "media": array(MEDIA, max_items=200),
        "discontinued": boolean(False),
        "replacement_sku": text("LM-1002-OAK"),
        "offers": array(OFFER, max_items=500),
    },
    ("external_id",),
)
RECORD = _object_schema("pushed_record", {"product": PRODUCT, "variants": array(VARIANT, max_items=1000)}, ("product",))
PUSH = strict_object(
    {
        "records": array(RECORD, min_items=1, max_items=MAX_RECORDS),
        "complete": boolean(
            True,
            "Whether this call completes the source's catalogue. If true, items that were not pushed are withdrawn.",
        ),
        "batch": text(
            "2026-11-20", max_length=255, description="Name of the batch. Calls of one open batch form one run."
        ),
        "more": boolean(False, "Whether further calls of the batch follow."),
        "accept_shrink": boolean(False, "Permit a complete batch to withdraw more items than the removal limit."),
    },
    ("records",),
)


def encode_records(records: Sequence[Any]) -> bytes:
    """Encode pushed records for the run as a JSON array with exact decimals."""
    return _ENCODER.encode(records)
