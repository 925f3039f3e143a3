"""Pushed records."""

from decimal import Decimal
from typing import Any

from domain.ingestion.model import FeedSettings
from domain.ingestion.records import from_record

RECORD: dict[str, Any] = {
    "product": {
        "external_id": "P-1",
        "title": "Oak table",
        "category_path": ["Dining", "Tables"],
        "compliance": {"country_of_origin": "Vietnam", "sturdy_act": False},
        "media": ["https://a.example/1.jpg", {"url": "https://a.example/2.jpg", "role": "swatch", "alt": "Oak"}],
    },
    "variants": [
        {
            "external_id": "V-1",
            "sku": "OT-1",
            "gtin": "4006381333931",
            "axes": {"Size": "Large"},
            "dimensions": {"width": {"value": 160, "unit": "cm"}, "height": {"value": "76.5", "unit": "cm"}},
            "weight": {"value": 38.2, "unit": "kg"},
            "cartons": [{"width": {"value": 10, "unit": "in"}, "count": 2}],
            "offers": [
                {"location": "NJ", "price": {"amount": "12.50", "currency": "USD"}, "quantity": 3},
                {"cost": {"amount": 7, "currency": "usd"}, "incoming": [{"quantity": 5, "eta": "2027-01-05"}]},
            ],
        }
    ],
}


def test_a_record_becomes_a_statement() -> None:
    statement, problems = from_record(RECORD, FeedSettings(warehouse="Main"), 7)
    assert problems == []
    assert statement is not None
    assert statement.key == "P-1"
    assert statement.data["compliance"] == {"country_of_origin": "VN", "sturdy_act": False}
    assert [(item["role"], item["position"]) for item in statement.data["media"]] == [("hero", 1), ("swatch", 2)]
    variant = statement.variants[0]
    assert variant.key == "V-1"
    assert variant.data["dimensions"]["width"] == {
        "hundredths_in": 6299,
        "given": {"value": Decimal(160), "unit": "cm"},
    }
    assert variant.data["weight"]["given"]["value"] == Decimal("38.2")
    assert variant.data["cartons"][0]["count"] == 2
    assert [(offer.location, offer.data) for offer in variant.offers] == [
        ("NJ", {"price": 1250, "currency": "usd", "quantity": 3}),
        ("Main", {"cost": 700, "currency": "usd", "incoming": [{"quantity": 5, "eta": "2027-01-05"}]}),
    ]


def test_bad_values_are_told_with_their_path() -> None:
    record = {
        "product": {"external_id": "P-1", "title": 4, "odd": 1},
        "variants": [
            {
                "external_id": "V-1",
                "gtin": "4006381333932",
                "colour": "Oak",
                "weight": {"value": 1, "unit": "stone"},
                "offers": [{"price": {"amount": "-1", "currency": "usd"}, "cost": {"amount": "1", "currency": "xqx"}}],
            },
            {"colour": "Elm"},
        ],
    }
    statement, problems = from_record(record, FeedSettings(), 3)
    assert statement is not None
    assert statement.variants[0].data == {"colour": "Oak"}
    assert {(problem.field, problem.problem, problem.line) for problem in problems} == {
        ("product.title", "unreadable", 3),
        ("product.odd", "unreadable", 3),
        ("variants.0.gtin", "bad_check_digit", 3),
        ("variants.0.weight", "unknown_unit", 3),
        ("variants.0.offers.0.price", "out_of_range", 3),
        ("variants.0.offers.0.cost", "unknown_currency", 3),
        ("variants.1.external_id", "missing", 3),
    }


def test_a_record_without_key_cannot_be_kept() -> None:
    statement, problems = from_record({"product": {"title": "Oak table"}}, FeedSettings())
    assert statement is None
    assert [(problem.field, problem.problem) for problem in problems] == [("product.external_id", "missing")]


def test_two_variants_of_one_key_and_two_currencies() -> None:
    record = {
        "product": {"external_id": "P-1"},
        "variants": [
            {
                "external_id": "V",
                "offers": [{"price": {"amount": 1, "currency": "usd"}, "cost": {"amount": 1, "currency": "eur"}}],
            },
            {"external_id": "V"},
        ],
    }
    statement, problems = from_record(record, FeedSettings())
    assert statement is not None
    assert [problem.problem for problem in problems] == ["conflict", "duplicate"]
    assert len(statement.variants[0].offers[0].data) == 2


def test_discontinued_records() -> None:
    gone, _ = from_record({"product": {"external_id": "P", "discontinued": True}}, FeedSettings())
    parts, _ = from_record(
        {"product": {"external_id": "P"}, "variants": [{"external_id": "V", "discontinued": True}]}, FeedSettings()
    )
    assert gone is not None
    assert parts is not None
    assert (gone.discontinued, parts.discontinued) == (True, None)
