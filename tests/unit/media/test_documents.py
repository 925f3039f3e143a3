"""Stored images in products' documents (adapters/api_json/catalogue.py): listed with their media, and nothing else changes."""

import json

from adapters.api_json.catalogue import JsonCatalogueRendering
from domain.catalogue.model import Product
from tests.support import builders

WIRE = JsonCatalogueRendering("https://api.example/")
A, B, C = (f"https://a.example/{letter}.jpg" for letter in "abc")


def product() -> Product:
    made = builders.product(
        "src_1",
        "cat_1",
        "k",
        data={"title": 'Sofa ü "x" \\u0041', "media": [{"url": A, "role": "hero", "alt": "é"}, {"url": B}]},
    )
    builders.variant(made, "k/1", data={"sku": "S1", "media": [{"url": C, "position": 1}]})
    builders.variant(made, "k/2", data={"sku": "S2"})
    return made


def test_stored_images_are_listed_with_their_media() -> None:
    plain = WIRE.render_product(product(), {})
    pictured = WIRE.set_images(plain, {A: "img_1", C: "img_2", "https://elsewhere.example": "img_3"})
    document = json.loads(pictured)
    assert document["data"]["media"] == [
        {"url": A, "role": "hero", "alt": "é", "id": "img_1", "stored_url": "https://api.example/v1/media/img_1"},
        {"url": B},
    ]
    assert document["variants"][0]["data"]["media"][0]["stored_url"] == "https://api.example/v1/media/img_2"
    assert WIRE.set_images(pictured, {}) == plain, "byte for byte what it was"
    assert WIRE.set_images(pictured, {A: "img_1", C: "img_2"}) == pictured, "the same once more"


def test_numbers_stay_the_bytes_they_were() -> None:
    made = product()
    given = {"hundredths_in": 1, "given": {"value": 0, "unit": "cm"}}
    made.variants[0].data["dimensions"] = {"width": given}
    body = WIRE.render_product(made, {}).replace(b'"value":0,', b'"value":10.500000000000000000000001,')
    assert b'"value":10.500000000000000000000001,' in WIRE.set_images(body, {A: "img_1"})
