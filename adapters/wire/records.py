"""JSON of pushed records: products, variants and offers with simple measures and money (docs/conventions.md#pushed-records).

The schema checks only the structure. The run checks the values and reports invalid ones as problems, so strings are
accepted for numbers, and null wherever it removes a value.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from domain.kernel.schema import Schema, array, boolean, date, map_of, named, strict_object, text

BODY_LIMIT = 5 * 1024 * 1024
MOST_RECORDS = 1000
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def _or_null(schema: Schema, *kinds: str) -> Schema:
    """Extend the schema by further types and by null, which removes the value."""
    declared = schema["type"]
    types = [declared] if isinstance(declared, str) else declared
    title = {"title": f"{schema['title']}_or_null"} if "title" in schema and "properties" not in schema else {}
    return schema | title | {"type": list(dict.fromkeys([*types, *kinds, "null"]))}


def _object(name: str, properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """Return an object schema whose optional members accept null."""
    members = {name: schema if name in required else _or_null(schema) for name, schema in properties.items()}
    return named(name, strict_object(members, required))


AMOUNT: Final[Schema] = {
    "title": "exact_number",
    "type": ["number", "string"],
    "maxLength": 40,
    "description": "An exact decimal number, as a number or a string.",
    "examples": [31.5],
}
EXTERNAL_ID = text(
    "LM-1001", longest=255, description="Your key for this object. It identifies the object in later pushes."
)
GIVEN = {"value": AMOUNT, "unit": text("in", longest=40)}


def _measure(name: str, key: str, example: Mapping[str, Any], description: str) -> Schema:
    """Return the schema of a measure, in the form of requests or of responses."""
    response_form = {key: AMOUNT, "given": _object("pushed_given", GIVEN)}
    return _or_null(_object(name, {**GIVEN, **response_form}), "string") | {
        "maxLength": 500,
        "examples": [dict(example)],
        "description": f"{description}: `value` and `unit`, or `{key}` with `given` as in responses.",
    }


MEASURE = _measure("pushed_length", "hundredths_in", {"value": 31.5, "unit": "in"}, "A length")
WEIGHT = _measure("pushed_weight", "hundredths_lb", {"value": 42, "unit": "lb"}, "A weight")
MONEY = _or_null(
    named(
        "pushed_money",
        strict_object(
            {"amount": AMOUNT | {"examples": [499]}, "currency": text("usd", longest=40)}, ("amount", "currency")
        ),
    ),
    "integer",
    "string",
) | {
    "maxLength": 500,
    "examples": [{"amount": 499, "currency": "usd"}],
    "description": "An amount in major units with its currency, or minor units as in responses with a separate `currency`.",
}


def _count(example: int) -> Schema:
    """Return the schema of an integer that also accepts strings and fractions, which the run reports as problems."""
    return {"type": ["integer", "string", "number"], "maxLength": 500, "examples": [example]}


TEXTS = array(text("oak"), most=200)
MEDIA = _object(
    "pushed_media",
    {
        "url": text("https://vendor.example/images/lm-1001.jpg", longest=2048),
        "role": text("hero", longest=40),
        "alt": text("Oak dining table"),
        "position": _count(0),
        "id": text("img_01J8ZQ5T3V7XK2M9RB4CDW", longest=200, description="As in responses; ignored."),
        "stored_url": text("https://images.example/1", longest=2048, description="As in responses; ignored."),
    },
    ("url",),
)
DIMENSIONS = _object(
    "pushed_dimensions",
    dict.fromkeys(
        ("width", "depth", "height", "diameter", "seat_height", "seat_depth", "arm_height", "clearance"), MEASURE
    ),
)
COMPLIANCE = _object(
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
PRODUCT = _object(
    "pushed_product",
    {
        "external_id": EXTERNAL_ID,
        "title": text("Oak dining table", longest=2000),
        "brand": text("Lindgren"),
        "collection": text("Skog"),
        "description": text("A table of solid oak.", longest=100_000, shortest=0),
        "category": text("furniture.tables", longest=200, description="The ID of a category of the taxonomy."),
        "category_path": TEXTS | {"examples": [["Dining room", "Tables"]]},
        "tags": TEXTS | {"examples": [["scandinavian"]]},
        "gpc_brick": text("10002106"),
        "features": TEXTS | {"examples": [["Seats six"]]},
        "compliance": COMPLIANCE,
        "media": array(MEDIA, most=200),
        "discontinued": boolean(False),
    },
    ("external_id",),
)
COMPONENT = _object(
    "pushed_component",
    {
        "name": text("Leg"),
        "sku": text("LM-1001-L"),
        "quantity": _count(4),
        "dimensions": DIMENSIONS,
        "weight": WEIGHT,
    },
)
CARTON = _object(
    "pushed_carton", {"width": MEASURE, "depth": MEASURE, "height": MEASURE, "weight": WEIGHT, "count": _count(1)}
)
RUG = _object(
    "pushed_rug",
    {
        "shape": text("rectangle", longest=40),
        "size_text": text("5' x 8'"),
        "nominal": text("5x8"),
        "construction": text("hand_knotted", longest=40),
        "pile_height": MEASURE,
        "indoor_outdoor": text("indoor", longest=40),
    },
)
OFFER = _object(
    "pushed_offer",
    {
        "external_id": EXTERNAL_ID | {"examples": ["LM-1001-OAK@main"]},
        "location": text("main", longest=200),
        "currency": text("usd", longest=40, description="The currency of amounts in minor units."),
        "cost": MONEY,
        "msrp": MONEY,
        "map": MONEY,
        "price": MONEY,
        "compare_at": MONEY,
        "quantity": _count(12),
        "incoming": array(_object("pushed_arrival", {"quantity": _count(20), "eta": date()}, ("quantity",)), most=100),
        "availability": text("in_stock", longest=40),
        "lead_time_days": _count(14),
    },
)
VARIANT = _object(
    "pushed_variant",
    {
        "external_id": EXTERNAL_ID | {"examples": ["LM-1001-OAK"]},
        "sku": text("LM-1001-OAK"),
        "gtin": text("7350053850019", longest=40),
        "mpn": text("1001-OAK"),
        "title": text("Oak, oiled", longest=2000),
        "axes": map_of({"type": ["string", "null"], "maxLength": 500}, {"finish": "oiled"})
        | {"maxProperties": 100, "propertyNames": {"maxLength": 200}},
        "colour": text("natural"),
        "finish": text("oiled"),
        "materials": TEXTS,
        "dimensions": DIMENSIONS,
        "weight": WEIGHT,
        "components": array(COMPONENT, most=200),
        "cartons": array(CARTON, most=200),
        "assembly_required": boolean(),
        "white_glove": boolean(False),
        "freight_class": text("125", longest=40),
        "rug": RUG,
        "media": array(MEDIA, most=200),
        "discontinued": boolean(False),
        "replacement_sku": text("LM-1002-OAK"),
        "offers": array(OFFER, most=500),
    },
    ("external_id",),
)
RECORD = _object("pushed_record", {"product": PRODUCT, "variants": array(VARIANT, most=1000)}, ("product",))
PUSH = strict_object(
    {
        "records": array(RECORD, least=1, most=MOST_RECORDS),
        "complete": boolean(
            True,
            "With this call, the source's whole catalogue has been pushed. Items that were not pushed are withdrawn.",
        ),
        "batch": text(
            "2026-11-20", longest=255, description="Name of the batch. Calls of one open batch form one run."
        ),
        "more": boolean(False, "Further calls of the batch follow."),
        "accept_shrink": boolean(False, "Permit a complete batch to withdraw more items than the removal limit."),
    },
    ("records",),
)


def encode(records: Sequence[Any]) -> bytes:
    """Encode the records as the run reads them: a JSON array with exact decimals."""
    return _ENCODER.encode(records)
