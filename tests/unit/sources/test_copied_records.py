"""Conversion of a product that an organisation reads by a licence to a record: every field returns unchanged."""

from decimal import Decimal
from typing import Any

import pytest

from adapters.api_json.codec import JsonCodec
from domain.catalogue.data import (
    BundleComponent,
    Carton,
    Compliance,
    Dimensions,
    Media,
    OfferData,
    ProductData,
    Rug,
    VariantData,
)
from domain.ingestion.model import FeedSettings
from domain.ingestion.record_merge import RecordMerger
from domain.ingestion.records import parse_record
from domain.ingestion.values.quantities import build_measure
from domain.kernel.bounds import MAX_IMPORTED_VARIANTS
from domain.sources.copied_records import build_record

CODEC = JsonCodec()
CM, KG = build_measure(Decimal("180.50"), "cm"), build_measure(Decimal(12), "kg")
DIMENSIONS = dict.fromkeys(Dimensions.__annotations__, CM)
MEDIA = [
    {"url": "https://vendor.example/1.jpg", "role": "hero", "alt": "Front", "position": 1},
    {"url": "https://vendor.example/a.mp4", "role": "video", "position": 2},
]
PRODUCT: dict[str, Any] = {
    "title": "Halden table", "brand": "Lindgren", "collection": "Halden", "description": "Oak, 5 < 6 & more\n- oiled",
    "category_path": ["Living", "Tables"], "category": "ctg_76XL5dnbT9Tto7kA6c2nBd", "tags": ["oak"], "gpc_brick": "10002195", "features": ["Extends"],
    "compliance": {
        "tsca_title_vi": True, "sturdy_act": False, "stability_rating": Decimal("1.50"), "ca_tb117_2013": True, "prop65_warning": True,
        "prop65_chemicals": ["lead"], "country_of_origin": "SE",
    },
    "media": MEDIA,
}  # fmt: skip
VARIANT: dict[str, Any] = {
    "sku": "HT-180.0", "gtin": "4006381333931", "mpn": "HT180", "title": "Halden 180", "axes": {"Size": "180"}, "colour": "Oak",
    "finish": "Oiled", "materials": ["oak", "steel"], "dimensions": DIMENSIONS, "weight": KG,
    "components": [{"name": "Top", "sku": "HT-T", "quantity": 2, "dimensions": {"width": CM}, "weight": KG}],
    "cartons": [{"width": CM, "depth": CM, "height": CM, "weight": KG, "count": 2}], "assembly_required": True, "white_glove": False,
    "freight_class": "92.5",
    "rug": {
        "shape": "round", "size_text": "5 ft x 8 ft", "nominal": "5x8", "construction": "hand_knotted", "pile_height": CM,
        "indoor_outdoor": "indoor",
    },
    "media": MEDIA, "discontinued": True, "replacement_sku": "HT-200",
}  # fmt: skip
OFFER: dict[str, Any] = {
    "currency": "usd", "cost": 40_000, "msrp": 99_900, "map": 89_900, "price": 94_950, "compare_at": 99_900, "quantity": 3,
    "incoming": [{"quantity": 4, "eta": "2026-12-04"}], "availability": "backorder", "lead_time_days": 12,
}  # fmt: skip


def _build_offer(id: str, location: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "source": "src_1", "location": location, "version": 1, **OFFER, **fields}


def _build_document(offers: list[dict[str, Any]], status: str = "active") -> dict[str, Any]:
    stored = [{**entry, "id": "img_1", "stored_url": "https://joinery.example/v1/media/img_1"} for entry in MEDIA]
    variant = {
        "object": "variant",
        "id": "var_1",
        "external_id": "V",
        "status": "active",
        "version": 1,
        "data": {**VARIANT, "media": stored},
    }
    data = {**PRODUCT, "media": stored}
    return {
        "object": "product", "id": "prod_1", "external_id": "P", "status": status, "data": data, "variants": [variant | {"offers": offers}]
    }  # fmt: skip


def _copy(document: dict[str, Any]) -> Any:
    """Return the statement that a run of a follower applies."""
    record = CODEC.decode(CODEC.encode(build_record(CODEC.decode(CODEC.encode(document)))))
    statement, problems = parse_record(record, FeedSettings())
    assert statement is not None and problems == []
    merger = RecordMerger(None, lambda _: None, is_complete=True)
    merged = merger.merge([statement])
    assert merged is not None and merger.problems == []
    return merged


def test_every_field_returns_unchanged() -> None:
    parts: dict[type, Any] = {
        ProductData: PRODUCT, Compliance: PRODUCT["compliance"], VariantData: VARIANT, OfferData: OFFER, Rug: VARIANT["rug"],
        BundleComponent: VARIANT["components"][0], Carton: VARIANT["cartons"][0], Media: MEDIA[0] | {"id": "", "stored_url": ""},
    }  # fmt: skip
    for kind, example in parts.items():
        assert kind.__annotations__.keys() == example.keys(), "the example has all fields"
    statement = _copy(_build_document([_build_offer("ofr_1", "Main"), _build_offer("ofr_2", "North", quantity=0)]))
    assert (statement.key, statement.data, statement.discontinued) == ("prod_1", PRODUCT, True)
    [variant] = statement.variants
    assert (variant.key, variant.data) == ("var_1", VARIANT)
    assert {offer.location: offer.data for offer in variant.offers} == {"Main": OFFER, "North": OFFER | {"quantity": 0}}
    given = variant.data["dimensions"]["width"]["given"]["value"]
    assert str(given) == "180.50", "the number as the vendor gave it"


@pytest.mark.parametrize(
    "availability", ["in_stock", "low_stock", "out_of_stock", "preorder", "discontinued", "unknown"]
)
def test_fields_that_the_licence_hides_are_not_stated(availability: str) -> None:
    hidden = {"quantity", "incoming", "lead_time_days", "cost"}
    shown = {name: value for name, value in OFFER.items() if name not in hidden} | {"availability": availability}
    statement = _copy(_build_document([{"id": "ofr_1", "location": "Main", "version": 1, **shown}]))
    assert statement.variants[0].offers[0].data == shown


def test_offers_at_one_location_stay_distinct_and_withdrawn_ones_are_omitted() -> None:
    offers = [
        _build_offer("ofr_3", "Main"),
        _build_offer("ofr_2", "Main", price=1),
        _build_offer("ofr_1", "Main", withdrawn_at="2026-11-20T00:00:00Z"),
    ]
    [variant] = _copy(_build_document(offers)).variants
    assert [(offer.location, offer.data["price"]) for offer in variant.offers] == [
        ("Main", 1),
        ("Main (ofr_3)", 94_950),
    ]


@pytest.mark.parametrize(
    ("status", "is_discontinued"), [("active", False), ("probably_discontinued", False), ("discontinued", True)]
)
def test_the_status_of_a_product_is_stated(status: str, is_discontinued: bool) -> None:
    document = _build_document([_build_offer("ofr_1", "Main")], status)
    document["variants"][0]["data"].pop("discontinued")
    assert _copy(document).discontinued == is_discontinued


def test_current_variants_are_copied_rather_than_former_ones() -> None:
    former = [
        {"id": f"var_{number}", "status": "active", "data": {"sku": str(number)}, "offers": []}
        for number in range(MAX_IMPORTED_VARIANTS)
    ]
    current = {"id": "var_x", "status": "active", "data": {"sku": "x"}, "offers": [_build_offer("ofr_1", "main")]}
    document = {"id": "prod_1", "status": "active", "data": {"title": "A"}, "variants": [*former, current]}
    statement, _ = parse_record(build_record(document), FeedSettings())
    assert statement is not None and len(statement.variants) == MAX_IMPORTED_VARIANTS
    assert "var_x" in {variant.key for variant in statement.variants}
