"""Statements from rows."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from domain.catalogue.statements import ProductStatement
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import map_declared_fields, propose_column_mapping
from domain.ingestion.model import FeedSettings
from domain.ingestion.normalisation import normalise_rows
from domain.kernel.problems import Problem

USD = FeedSettings(currency="usd")


def _normalise(
    headers: Sequence[str], rows: Sequence[Sequence[Any]], context: FeedSettings = USD
) -> tuple[list[ProductStatement], list[Problem]]:
    plan = ReadPlan(propose_column_mapping(headers, rows, context), context)
    groups: dict[str, list[tuple[int, list[Any]]]] = {}
    for line, row in enumerate(rows, start=2):
        key = plan.read_product_key(row)
        assert key is not None
        groups.setdefault(key, []).append((line, list(row)))
    found = [normalise_rows(key, members, plan, "Sheet1") for key, members in groups.items()]
    return [statement for statement, _ in found], [problem for _, problems in found for problem in problems]


SHOP = ["Handle", "Title", "Vendor", "Type", "Option1 Name", "Option1 Value", "Variant SKU", "Variant Price", "Variant Grams",
        "Variant Compare At Price", "Image Src", "Image Position", "Image Alt Text", "Status"]  # fmt: skip


def test_rows_of_one_handle_are_variants_of_one_product() -> None:
    rows = [
        [
            "nord",
            "Nord Sofa",
            "Acme",
            "Sofas",
            "Color",
            "Gray",
            "N-1",
            "620",
            "45359.237",
            "700.00",
            "https://a.example/1.jpg",
            "1",
            "front",
            "active",
        ],
        [
            "nord",
            "",
            "",
            "",
            "",
            "Blue [NOT AVAILABLE]",
            "N-2",
            "630",
            "0.0",
            "",
            "https://a.example/2.jpg",
            "2",
            "",
            "",
        ],
        ["nord", "", "", "", "", "", "", "", "", "", "https://a.example/3.jpg", "3", "", ""],
    ]
    (product,), problems = _normalise(SHOP, rows)
    assert problems == []
    assert product.data["title"] == "Nord Sofa"
    assert product.data["category_path"] == ["Sofas"]
    assert [(m["role"], m["position"]) for m in product.data["media"]] == [
        ("hero", 1),
        ("alternate", 2),
        ("alternate", 3),
    ]
    assert product.data["media"][0]["alt"] == "front"
    assert [variant.key for variant in product.variants] == ["N-1", "N-2"]
    first, second = product.variants
    assert first.data["axes"] == {"Color": "Gray"}
    assert first.data["weight"]["hundredths_lb"] == 10000
    assert first.offers[0].data == {"currency": "usd", "price": 62000, "compare_at": 70000}
    assert "weight" not in second.data
    assert second.data["colour"] == "Blue"
    assert second.offers[0].data["availability"] == "out_of_stock"


def test_variants_without_a_code_are_keyed_by_their_options() -> None:
    rows = [
        ["pot", "Pot", "", "", "Size", "Large", "", "10", "", "", "", "", "", ""],
        ["pot", "", "", "", "", "Small", "", "8", "", "", "", "", "", ""],
    ]
    (product,), _ = _normalise(SHOP, rows)
    assert [variant.key for variant in product.variants] == ["pot / Large", "pot / Small"]


def test_a_code_shared_by_two_variants_is_reported() -> None:
    rows = [
        ["pot", "Pot", "", "", "Size", "Large", "'101", "10", "", "", "", "", "", ""],
        ["pot", "", "", "", "", "Small", "'101", "8", "", "", "", "", "", ""],
    ]
    (product,), problems = _normalise(SHOP, rows)
    assert [variant.key for variant in product.variants] == ["101", "101 / Small"]
    assert [problem.problem for problem in problems] == ["duplicate"]


def test_a_lone_variant_has_no_axis() -> None:
    rows = [["nord", "Nord", "", "", "Title", "Default Title", "", "10", "", "", "", "", "", ""]]
    (product,), _ = _normalise(SHOP, rows)
    assert (product.variants[0].key, product.variants[0].data) == ("nord", {})


SHEET = ["Item", "Short Description", "Category", "Subcategory", "Product Dimension (Inch)", "Weight (LB)", "East", "MSRP",
         "Parts for Group Items", "Shipping Length (IN)", "Shipping Width (IN)", "Shipping Height (IN)", "Origin", "Color"]  # fmt: skip


def test_a_row_of_an_item_master_is_normalised() -> None:
    rows = [["N-Q", "Queen Bed, Gray", "Bedroom", "Bed", '86"L X 64"W X 50"H', "120.5", Decimal("559.0"), 1200, "N-Q-HB, N-Q-FB",
             Decimal("70.5"), 10, "", "VN", "Gray"]]  # fmt: skip
    (product,), problems = _normalise(SHEET, rows)
    assert problems == []
    variant = product.variants[0]
    assert product.data["category_path"] == ["Bedroom", "Bed"]
    assert product.data["compliance"] == {"country_of_origin": "VN"}
    assert {side: v["hundredths_in"] for side, v in dict[str, Any](variant.data["dimensions"]).items()} == {
        "depth": 8600, "width": 6400, "height": 5000,
    }  # fmt: skip
    assert [part["sku"] for part in variant.data["components"]] == ["N-Q-HB", "N-Q-FB"]
    assert variant.data["cartons"][0]["depth"]["hundredths_in"] == 7050
    assert variant.offers[0].data == {"currency": "usd", "cost": 55900, "msrp": 120000}


def test_repeated_rows_fill_gaps_and_differing_prices_are_reported() -> None:
    headers = ["SKU", "Title", "Price", "Color"]
    rows = [["A-1", "Oak table", "10.00", ""], ["A-1", "", "10.00", "Oak"], ["A-1", "", "12.00", ""]]
    (product,), problems = _normalise(headers, rows)
    assert product.variants[0].data["colour"] == "Oak"
    assert product.variants[0].offers[0].data["price"] == 1000
    assert [(problem.problem, problem.field, problem.line, problem.sheet) for problem in problems] == [
        ("conflict", "price", 4, "Sheet1")
    ]


def test_columns_of_several_locations_become_offers() -> None:
    rows = [["A-1", "3", "20+", "", "01/24/2027"], ["A-2", "", "0", "11/23", ""]]
    (first, second), problems = _normalise(["Item", "NJ", "CA", "ETA NJ", "ETA CA"], rows, FeedSettings(stream="stock"))
    assert [(offer.location, offer.data) for offer in first.variants[0].offers] == [
        ("NJ", {"quantity": 3, "availability": "low_stock"}),
        ("CA", {"quantity": 20, "incoming": [{"eta": "2027-01-24"}], "availability": "in_stock"}),
    ]
    assert [offer.location for offer in second.variants[0].offers] == ["CA"]
    assert [(problem.problem, problem.column) for problem in problems] == [("unreadable", "ETA NJ")]


def test_rows_with_a_warehouse_column_are_offers_of_one_variant() -> None:
    rows = [["A-1", "East", "3"], ["A-1", "West", "0"]]
    (product,), problems = _normalise(["SKU", "Warehouse", "Quantity"], rows)
    assert [(offer.location, offer.data["quantity"]) for offer in product.variants[0].offers] == [
        ("East", 3),
        ("West", 0),
    ]
    assert problems == []


def test_the_sources_warehouse_is_the_default_of_offers() -> None:
    (product,), _ = _normalise(["SKU", "Qty"], [["A-1", "9"]], FeedSettings(warehouse="Main"))
    assert product.variants[0].offers[0].location == "Main"


def test_an_offer_requires_a_price_or_stock() -> None:
    (product,), _ = _normalise(["SKU", "Title", "Price"], [["A-1", "Oak table", ""]])
    assert [(offer.data, offer.blank_fields) for offer in product.variants[0].offers] == [({}, {"offer.price"})]
    (product,), _ = _normalise(["SKU", "Title", "Price", "Qty"], [["A-1", "Oak table", "", ""]])
    assert product.variants[0].offers == []


def test_a_sale_price_is_the_price() -> None:
    (product,), _ = _normalise(
        ["id", "title", "price", "sale_price"], [["A-1", "Oak table", "327.00 USD", "294.30 USD"]]
    )
    assert product.variants[0].offers[0].data == {"currency": "usd", "price": 29430, "compare_at": 32700}


def test_only_invalid_values_are_omitted() -> None:
    headers = ["SKU", "Title", "UPC", "Price", "Width", "Image"]
    (product,), problems = _normalise(
        headers, [["A-1", "Oak table", "4006381333932", "Call", "30", "oak.jpg"]], FeedSettings()
    )
    assert product.data == {"title": "Oak table"}
    assert product.variants[0].data == {"sku": "A-1"}
    kinds = {problem.column: problem.problem for problem in problems}
    assert kinds == {"UPC": "bad_check_digit", "Price": "unreadable", "Width": "unknown_unit", "Image": "unreadable"}


def test_discontinued_flags_and_states_are_read() -> None:
    products, _ = _normalise(
        ["SKU", "Title", "Discontinued"], [["A-1", "Oak table", "Yes"], ["A-2", "Elm table", "No"]]
    )
    assert [product.discontinued for product in products] == [True, False]
    (gone,), _ = _normalise(["SKU", "Title", "Status"], [["A-1", "Oak table", "Discontinued"]])
    assert (gone.discontinued, gone.variants[0].data["discontinued"]) == (True, True)


def test_a_length_column_is_the_long_side() -> None:
    (product,), problems = _normalise(["SKU", "Length (in)", "Width (in)", "Height (in)"], [["A-1", "48", "24", "18"]])
    sides = {side: v["hundredths_in"] for side, v in dict[str, Any](product.variants[0].data["dimensions"]).items()}
    assert (sides, problems) == ({"width": 4800, "depth": 2400, "height": 1800}, [])


def test_units_of_separate_columns_are_used() -> None:
    headers = ["sku", "width", "dimensionUnit", "weight", "weightUnit"]
    (product,), problems = _normalise(headers, [["A-1", "100", "cm", "10", "kg"]])
    assert problems == []
    assert product.variants[0].data["dimensions"]["width"]["given"] == {"value": Decimal(100), "unit": "cm"}
    assert product.variants[0].data["weight"]["hundredths_lb"] == 2205


def test_rug_sizes_are_read() -> None:
    headers = ["SKU", "Title", "Category", "Size", "Construction", "Pile Height"]
    (product,), problems = _normalise(headers, [["R-1", "Meadow", "Rugs", "5'3\" x 7'6\"", "Power Loomed", "0.25"]])
    variant = product.variants[0].data
    assert problems == []
    assert (variant["rug"]["shape"], variant["rug"]["nominal"], variant["rug"]["size_text"]) == (
        "rectangle",
        "5' x 8'",
        "5'3\" x 7'6\"",
    )
    assert variant["dimensions"]["depth"]["hundredths_in"] == 9000


def test_attribute_lists_are_read() -> None:
    features = "color : oak | overallwidth-sidetoside:30 | overallproductweight:12 | adultassemblyrequired : yes | countryoforigin : viet nam"
    (product,), _ = _normalise(["product_id", "product_name", "product_features"], [["77", "oak table", features]])
    variant = product.variants[0].data
    assert (variant["colour"], variant["assembly_required"], variant["weight"]["hundredths_lb"]) == ("oak", True, 1200)
    assert product.data["compliance"] == {"country_of_origin": "VN"}


def test_boxes_and_their_count_are_read() -> None:
    headers = ["SKU", "Number of Boxes", "Carton Width (Box 1) in", "Carton Width (Box 2) in"]
    (product,), _ = _normalise(headers, [["A-1", "2", "10", "12"]])
    assert [(box["width"]["hundredths_in"], box["count"]) for box in product.variants[0].data["cartons"]] == [
        (1000, 1),
        (1200, 1),
    ]


def test_json_cells_and_ragged_rows_are_read() -> None:
    mapping = map_declared_fields(["a", "b", "c", "d", "e"], ["sku", "title", "price", "media", "tags"])
    plan = ReadPlan(mapping, USD)
    rows: list[tuple[int, list[Any]]] = [
        (
            1,
            [
                "A-1",
                {"name": "Oak table"},
                {"amount": "12.50", "currency": "CAD"},
                [{"src": "https://a.example/1.jpg"}],
                ["x", "y"],
            ],
        ),
        (2, ["A-1"]),
    ]
    statement, problems = normalise_rows("A-1", rows, plan)
    assert problems == []
    assert statement.data["title"] == "Oak table"
    assert statement.data["tags"] == ["x", "y"]
    assert statement.variants[0].offers[0].data == {"currency": "cad", "price": 1250}


def test_numbers_keep_their_point_for_any_decimal_mark_of_texts() -> None:
    (product,), _ = _normalise(
        ["SKU", "Price"], [["A-1", Decimal("1234.567")]], FeedSettings(currency="eur", decimal="comma")
    )
    assert product.variants[0].offers[0].data["price"] == 123457


def test_rows_without_a_key_value_have_no_key() -> None:
    plan = ReadPlan(propose_column_mapping(["SKU", "Title"], [["A-1", "x"]], USD), USD)
    assert plan.read_product_key(["", "Oak table"]) is None
    assert plan.read_product_key(["'A-1", "Oak table"]) == "A-1"
    assert plan.read_variant_key([Decimal("101.0"), ""]) == "101"


def test_titles_are_keys_only_without_other_keys() -> None:
    plan = ReadPlan(propose_column_mapping(["Title", "Price"], [["Oak table", "1"]], USD), USD)
    assert plan.read_product_key(["Oak table", "1"]) == "Oak table"


def test_options_and_images_in_json_are_read() -> None:
    mapping = map_declared_fields(["a", "b", "c", "d"], ["sku", "axes", "media", "variant_media"])
    pictures = [{"url": "https://a.example/1.jpg", "alt": "Front"}, {"url": "https://a.example/2.jpg"}]
    rows: list[tuple[int, list[Any]]] = [(1, ["A-1", {"Color": "Gray", "Size": "Queen"}, pictures, pictures[:1]])]
    statement, problems = normalise_rows("A-1", rows, ReadPlan(mapping, USD))
    assert problems == []
    assert statement.variants[0].data["axes"] == {"Color": "Gray", "Size": "Queen"}
    assert statement.variants[0].data["colour"] == "Gray"
    assert [item.get("alt") for item in statement.data["media"]] == ["Front", None]
    assert statement.variants[0].data["media"][0]["alt"] == "Front"
