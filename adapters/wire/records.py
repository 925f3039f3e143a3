"""The JSON of pushed records: products, variants and offers with plain measures and money (docs/conventions.md#pushed-records).

The shape is checked here; what the values say is judged by the run, which names bad ones in its problems.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from adapters.wire.schema import Schema, array, boolean, date, integer, map_of, strict_object, text

BODY_LIMIT: Final = 5 * 1024 * 1024
MOST_RECORDS: Final = 1000
_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")

AMOUNT: Final[Schema] = {
    "type": ["number", "string"],
    "maxLength": 40,
    "description": "An exact decimal number, or its text.",
    "examples": [31.5],
}
EXTERNAL_ID: Final = text("LM-1001", longest=255, description="Your own key; the same key is the same thing next time.")
MEASURE: Final = strict_object({"value": AMOUNT, "unit": text("in", longest=40)}, ("value", "unit"))
WEIGHT: Final = strict_object(
    {"value": AMOUNT | {"examples": [42]}, "unit": text("lb", longest=40)}, ("value", "unit"), "A weight with its unit."
)
MONEY: Final = strict_object(
    {"amount": AMOUNT | {"examples": [499]}, "currency": text("usd", longest=40)}, ("amount", "currency")
)
TEXTS: Final = array(text("oak"), most=200)
MEDIA: Final = strict_object(
    {
        "url": text("https://vendor.example/images/lm-1001.jpg", longest=2048),
        "role": text("hero", longest=40),
        "alt": text("Oak dining table"),
        "position": integer(0, least=0),
    },
    ("url",),
)
DIMENSIONS: Final = strict_object(
    dict.fromkeys(
        ("width", "depth", "height", "diameter", "seat_height", "seat_depth", "arm_height", "clearance"), MEASURE
    )
)
COMPLIANCE: Final = strict_object(
    {
        "tsca_title_vi": boolean(),
        "sturdy_act": boolean(),
        "stability_rating": AMOUNT | {"examples": [1.2]},
        "ca_tb117_2013": boolean(),
        "prop65_warning": boolean(False),
        "prop65_chemicals": TEXTS | {"examples": [["lead"]]},
        "country_of_origin": text("SE"),
    }
)
PRODUCT: Final = strict_object(
    {
        "external_id": EXTERNAL_ID,
        "title": text("Oak dining table", longest=2000),
        "brand": text("Lindgren"),
        "collection": text("Skog"),
        "description": text("A table of solid oak.", longest=100_000, shortest=0),
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
COMPONENT: Final = strict_object(
    {
        "name": text("Leg"),
        "sku": text("LM-1001-L"),
        "quantity": integer(4),
        "dimensions": DIMENSIONS,
        "weight": WEIGHT,
    }
)
CARTON: Final = strict_object(
    {"width": MEASURE, "depth": MEASURE, "height": MEASURE, "weight": WEIGHT, "count": integer(1)}
)
RUG: Final = strict_object(
    {
        "shape": text("rectangle", longest=40),
        "size_text": text("5' x 8'"),
        "nominal": text("5x8"),
        "construction": text("hand_knotted", longest=40),
        "pile_height": MEASURE,
        "indoor_outdoor": text("indoor", longest=40),
    }
)
OFFER: Final = strict_object(
    {
        "external_id": EXTERNAL_ID | {"examples": ["LM-1001-OAK@main"]},
        "location": text("main", longest=200),
        "cost": MONEY,
        "msrp": MONEY,
        "map": MONEY,
        "price": MONEY,
        "compare_at": MONEY,
        "quantity": integer(12),
        "incoming": array(strict_object({"quantity": integer(20), "eta": date()}, ("quantity",)), most=100),
        "availability": text("in_stock", longest=40),
        "lead_time_days": integer(14),
    }
)
VARIANT: Final = strict_object(
    {
        "external_id": EXTERNAL_ID | {"examples": ["LM-1001-OAK"]},
        "sku": text("LM-1001-OAK"),
        "gtin": text("7350053850019", longest=40),
        "mpn": text("1001-OAK"),
        "title": text("Oak, oiled", longest=2000),
        "axes": map_of({"type": "string", "maxLength": 500}, {"finish": "oiled"})
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
RECORD: Final = strict_object({"product": PRODUCT, "variants": array(VARIANT, most=1000)}, ("product",))
PUSH: Final = strict_object(
    {
        "records": array(RECORD, least=1, most=MOST_RECORDS),
        "complete": boolean(
            True, "With this, the source's whole catalogue is there: what it no longer states is withdrawn."
        ),
        "batch": text("2026-11-20", longest=255, description="Calls of one open batch fill one run."),
        "more": boolean(False, "More of the batch follows."),
    },
    ("records",),
)


def encode(records: Sequence[Any]) -> bytes:
    """The records as they are kept for the run: a JSON array, decimals exact."""
    return _ENCODER.encode(records)
