"""Formats that earlier releases stored: field names stay when classes and attributes are renamed."""

import msgspec

from adapters.postgres.matching import _DECODE
from domain.runs.model import FetchRecord

FEATURES = {
    "id": "var_1", "title": "Oak table", "words": ["oak"], "quantities": [], "brand": [], "colours": [], "shades": [],
    "colour_stated": False, "codes": [], "stems": [], "part": "A-1", "mentioned": [], "joined": [], "gtin": None,
    "sides": [180.0, 90.0, None], "figures": [180.0, 90.0, None], "sizes": [], "weight": None, "price": None,
    "currency": "usd", "packs": None, "pieces": None, "accessory": [], "described": [],
}  # fmt: skip


def test_stored_features_are_decoded() -> None:
    features = _DECODE(msgspec.msgpack.encode(FEATURES))
    assert (features.part, features.sides, features.figures) == ("A-1", (180.0, 90.0, None), (180.0, 90.0, None))


def test_an_incomplete_fetch_stays_incomplete() -> None:
    assert not msgspec.convert({"settings": "d", "whole": False}, FetchRecord).whole
