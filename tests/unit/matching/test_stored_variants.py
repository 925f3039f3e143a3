"""Features of a stored variant."""

from typing import Any

import msgspec
import pytest

from domain.matching.features import MatchFeatures, StoredVariant, compute_features


def build_features(
    product: dict[str, Any] | None = None, price: int | None = None, currency: str = "usd", **variant: Any
) -> MatchFeatures:
    return compute_features(
        StoredVariant(
            "var_1",
            "prod_1",
            "src_1",
            {"title": "Halden table"} if product is None else product,
            variant,
            price,
            currency,
        )
    )


def build_length(hundredths: int, value: float, unit: str) -> dict[str, Any]:
    return {"hundredths_in": hundredths, "given": {"value": value, "unit": unit}}


def test_features_combine_the_product_and_the_variant() -> None:
    features = build_features(
        {"title": "Halden table", "brand": "Nordlicht Home", "collection": "Fjord", "description": "Made of ash"},
        49900, sku="HT-180", gtin="4006381333931", mpn="XR-2214", colour="Oak", materials=["Solid oak"],
    )  # fmt: skip
    assert features.id == "var_1" and {"halden", "table", "fjord"} <= features.words
    assert features.brand == {"nordlicht"} and features.shades == {"oak"} and features.colour_stated
    assert features.gtin == "4006381333931" and features.part == "xr2214" and features.codes >= {"xr2214", "ht180"}
    assert (features.price, features.currency) == (499.0, "usd")
    assert {"ash", "solid"} <= features.described


def test_lengths_are_centimetres_and_given_measures() -> None:
    features = build_features(
        dimensions={"width": build_length(7087, 180, "cm"), "depth": build_length(3543, 90, "cm")},
        weight={"hundredths_lb": 2205, "given": {"value": 10, "unit": "kg"}},
    )
    assert features.sides == (180.01, 89.99, None) and features.figures == (180, 90, None)
    assert features.weight == pytest.approx(10.0, abs=0.01)
    round_ = build_features(dimensions={"diameter": build_length(4724, 120, "cm")})
    assert round_.sides == (119.99, 119.99, None)


def test_axes_distinguish_siblings() -> None:
    features = build_features(axes={"Color": "Dark Grey", "Size": "180 x 90 cm", "Legs": "tapered"})
    assert features.colours >= {"grey"} and features.sizes == ((180.0, 90.0),) and "tapered" in features.words
    assert build_features(axes={"Finish": "Walnut"}).shades == {"walnut"}
    assert build_features(axes={"Quantity": "4"}).packs == 4


def test_repeated_values_are_used_once() -> None:
    assert build_features({"title": "Halden table"}, title="Halden table, oak").title == "Halden table, oak"
    assert build_features({"title": "Halden table"}, title="Oak / 180 cm").title == "Halden table - Oak / 180 cm"
    assert build_features({}, title="Bench").title == "Bench"


def test_impossible_numbers_are_ignored() -> None:
    pieces = [{"name": "Chair", "quantity": 10**20}, {"name": "Table", "quantity": 10**5000}]
    assert build_features(axes={"Pack": "9" * 21}).packs is None and build_features(components=pieces).pieces is None
    features = build_features(
        dimensions={"width": build_length(10**400, 1.0, "cm"), "depth": build_length(10**9, 10.0**7, "in")},
        weight={"hundredths_lb": 10**400, "given": {"value": 1, "unit": "kg"}},
    )
    assert features.sides == features.figures == (None, None, None) and features.weight is None
    assert not build_features({"title": "Rail " + "9" * 400 + " cm"}).sizes


def test_a_long_title_does_not_displace_its_axes() -> None:
    title = " ".join(f"{one}{other}rk" for one in "bdfghklmnp" for other in "aeiouy" * 3)
    features = build_features({"title": title}, axes={"Size": "180 x 90 cm", "Legs": "tapered"})
    assert (
        "tapered" in features.words
        and features.sizes == ((180.0, 90.0),)
        and features.title == f"{title} - 180 x 90 cm - tapered"
    )
    many = build_features({"title": title}, axes={f"Size {at}": f"{title}{at} " * 9 for at in range(50)})
    assert len(many.words) <= 128


def test_sets_and_prices_are_read() -> None:
    assert build_features(components=[{"name": "Table", "quantity": 1}, {"name": "Chair", "quantity": 4}]).pieces == 5
    assert build_features(components=[{"name": "Table", "quantity": 1}]).pieces is None
    assert build_features(price=49900, currency="jpy").price == 49900
    assert build_features().price is None
    assert build_features({"title": "Kilim"}, rug={"size_text": "5' x 8'"}).sizes == ((152.4, 243.84),)


def test_the_category_path_states_the_kind_of_a_title_without_a_noun() -> None:
    path = ["Furniture", "Chairs", "Dining room"]
    assert build_features({"title": "Halden", "category_path": path}).kind == "chair"


def test_features_that_an_older_release_stored_are_readable() -> None:
    stored = msgspec.to_builtins(build_features({"title": "Cover for sofa"}))
    del stored["kind"]
    assert msgspec.convert(stored | {"accessory": ["cover"]}, MatchFeatures).kind == ""
