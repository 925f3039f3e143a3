"""Pushed records."""

from decimal import Decimal
from typing import Any

from domain.ingestion.model import FeedSettings
from domain.ingestion.records import parse_record

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
    statement, problems = parse_record(RECORD, FeedSettings(warehouse="Main"), 7)
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


def test_invalid_values_are_reported_with_their_path() -> None:
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
    statement, problems = parse_record(record, FeedSettings(), 3)
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


def test_a_record_without_a_key_is_refused() -> None:
    statement, problems = parse_record({"product": {"title": "Oak table"}}, FeedSettings())
    assert statement is None
    assert [(problem.field, problem.problem) for problem in problems] == [("product.external_id", "missing")]


def test_duplicate_keys_and_differing_currencies_are_reported() -> None:
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
    statement, problems = parse_record(record, FeedSettings())
    assert statement is not None
    assert [problem.problem for problem in problems] == ["conflict", "duplicate"]
    assert len(statement.variants[0].offers[0].data) == 2


def test_discontinued_records_are_read() -> None:
    gone, _ = parse_record({"product": {"external_id": "P", "discontinued": True}}, FeedSettings())
    parts, _ = parse_record(
        {"product": {"external_id": "P"}, "variants": [{"external_id": "V", "discontinued": True}]}, FeedSettings()
    )
    assert gone is not None
    assert parts is not None
    assert (gone.discontinued, parts.discontinued) == (True, None)


def _parse_offer(**fields: Any) -> tuple[Any, list[Any]]:
    variant = {"external_id": "V", "offers": [fields]}
    statement, problems = parse_record({"product": {"external_id": "P"}, "variants": [variant]}, FeedSettings(), 4)
    assert statement is not None
    offers = statement.variants[0].offers
    return offers[0].data if offers else None, [(one.field.rpartition(".")[2], one.problem) for one in problems]


def test_money_is_read_in_both_formats() -> None:
    assert _parse_offer(price={"amount": "49.5", "currency": "EUR"}) == ({"price": 4950, "currency": "eur"}, [])
    assert _parse_offer(price=4950, cost=100, currency="eur") == ({"price": 4950, "cost": 100, "currency": "eur"}, [])
    assert _parse_offer(price=4950) == (None, [("price", "unknown_currency")])
    assert _parse_offer(price=-1, currency="usd") == (None, [("price", "out_of_range")])
    assert _parse_offer(price="49.50", currency="usd") == (None, [("price", "unreadable")])
    assert _parse_offer(price=1, currency="xqx")[1] == [("currency", "unknown_currency"), ("price", "unknown_currency")]


def test_a_value_in_place_of_a_number_is_reported_with_a_valid_example() -> None:
    assert _parse_offer(quantity=-3) == (None, [("quantity", "out_of_range")])
    for text in ("#N/A", ">50", "ca. 5", "1,5"):
        assert _parse_offer(quantity=text) == (None, [("quantity", "unreadable")])
    assert _parse_offer(quantity="50") == ({"quantity": 50}, [])
    record = {"product": {"external_id": "P"}, "variants": [{"external_id": "V", "dimensions": {"width": "ca. 95 cm"}}]}
    statement, [problem] = parse_record(record, FeedSettings(), 4)
    assert statement is not None and statement.variants[0].data == {}
    assert (problem.external_id, problem.line, problem.field) == ("P", 4, "variants.0.dimensions.width")
    assert '{"value": 95, "unit": "cm"}' in problem.detail


def test_null_and_placeholders_remove_values() -> None:
    product = {"external_id": "P", "title": None, "brand": "N/A", "tags": [], "compliance": {"sturdy_act": None}}
    variant = {"external_id": "V", "axes": {"Size": None}, "rug": {}, "weight": {"value": 0, "unit": "kg"}}
    statement, problems = parse_record({"product": product, "variants": [variant]}, FeedSettings())
    assert (problems, statement is not None) == ([], True)
    assert statement.data == {"title": None, "brand": None, "tags": None, "compliance": {"sturdy_act": None}}
    assert statement.variants[0].data == {"axes": {"Size": None}, "rug": {}, "weight": None}
    assert _parse_offer(price={"amount": 0, "currency": "usd"}, quantity=None) == (
        {"price": None, "quantity": None},
        [],
    )


def test_null_members_of_list_entries_are_absent() -> None:
    parts = [{"name": "Leg", "sku": None, "dimensions": {"width": None}}, {"name": None}]
    record = {"product": {"external_id": "P"}, "variants": [{"external_id": "V", "components": parts, "offers": None}]}
    statement, _ = parse_record(record, FeedSettings())
    assert statement is not None and statement.variants[0].data == {"components": [{"name": "Leg"}]}
    assert statement.variants[0].is_complete and not statement.has_offers_only


def test_records_may_contain_only_offers() -> None:
    alone = [
        {"product": {"external_id": "P"}, "variants": [{"external_id": "V", "offers": []}]},
        {"product": {"external_id": "P"}},
    ]
    more = [
        {"product": {"external_id": "P", "title": 4}},
        {"product": {"external_id": "P"}, "variants": [{"external_id": "V", "sku": 1}]},
    ]
    marks = [statement.has_offers_only for one in alone + more if (statement := parse_record(one, FeedSettings())[0])]
    assert marks == [True, True, False, False]


def test_a_problem_names_its_component() -> None:
    components = [{"sku": "A"}, {"sku": "B", "dimensions": {"length": {"value": 3, "unit": "in"}}}]
    record = {"product": {"external_id": "P"}, "variants": [{"external_id": "V", "components": components}]}
    _, problems = parse_record(record, FeedSettings())
    assert [problem.field for problem in problems] == ["variants.0.components.1.dimensions.length"]
