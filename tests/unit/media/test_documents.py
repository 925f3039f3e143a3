"""Stored images in product documents (adapters/api_json/catalogue.py): they are listed with their media, and nothing else changes."""

import json

from adapters.api_json.catalogue import JsonCatalogueRendering
from domain.catalogue.model import Product
from tests.support import builders

WIRE = JsonCatalogueRendering("https://api.example/")
A, B, C = (f"https://a.example/{letter}.jpg" for letter in "abc")


def create_product() -> Product:
    product = builders.product(
        "src_1",
        "cat_1",
        "k",
        data={"title": 'Sofa ü "x" \\u0041', "media": [{"url": A, "role": "hero", "alt": "é"}, {"url": B}]},
    )
    builders.variant(product, "k/1", data={"sku": "S1", "media": [{"url": C, "position": 1}]})
    builders.variant(product, "k/2", data={"sku": "S2"})
    return product


def test_stored_images_are_listed_with_their_media() -> None:
    plain = WIRE.render_product(create_product(), {})
    pictured = WIRE.set_images(plain, {A: "img_1", C: "img_2", "https://elsewhere.example": "img_3"})
    document = json.loads(pictured)
    assert document["data"]["media"] == [
        {"url": A, "role": "hero", "alt": "é", "id": "img_1", "stored_url": "https://api.example/v1/media/img_1"},
        {"url": B},
    ]
    assert document["variants"][0]["data"]["media"][0]["stored_url"] == "https://api.example/v1/media/img_2"
    assert WIRE.set_images(pictured, {}) == plain, "the bytes are unchanged"
    assert WIRE.set_images(pictured, {A: "img_1", C: "img_2"}) == pictured, "the result is reproducible"


def test_numbers_keep_their_bytes() -> None:
    product = create_product()
    given = {"hundredths_in": 1, "given": {"value": 0, "unit": "cm"}}
    product.variants[0].data["dimensions"] = {"width": given}
    body = WIRE.render_product(product, {}).replace(b'"value":0,', b'"value":10.500000000000000000000001,')
    assert b'"value":10.500000000000000000000001,' in WIRE.set_images(body, {A: "img_1"})
