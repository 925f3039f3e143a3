"""Statements from one or several rows: offers, distinguishable variants, and reported problems."""

from typing import Any

from domain.catalogue.model import Stream
from domain.catalogue.statements import ProductStatement
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.columns.row_keys import RowKeys, is_total_label
from domain.ingestion.mapping.proposal import map_declared_fields, propose_column_mapping
from domain.ingestion.model import FeedSettings
from domain.ingestion.normalisation import normalise_rows
from domain.ingestion.values.text import ParseFault
from domain.kernel.problems import Problem
from tests.unit.ingestion.test_normalisation import _normalise


def _normalise_mapped(columns: dict[str, str], rows: list[list[Any]]) -> tuple[list[ProductStatement], list[Problem]]:
    """Normalise the rows with a mapping from columns to fields."""
    plan = ReadPlan(map_declared_fields(tuple(columns), tuple(columns.values())), FeedSettings(currency="usd"))
    groups: dict[str, list[tuple[int, list[Any]]]] = {}
    for line, row in enumerate(rows, start=2):
        groups.setdefault(str(plan.read_product_key(row)), []).append((line, row))
    found = [normalise_rows(key, members, plan) for key, members in groups.items()]
    return [statement for statement, _ in found], [problem for _, problems in found for problem in problems]


SHOP = ["Handle", "Title", "Option1 Name", "Option1 Value", "Variant SKU", "Variant Inventory Tracker",
        "Variant Inventory Qty", "Variant Price", "Variant Compare At Price"]  # fmt: skip


def test_an_item_without_tracked_stock_is_not_sold_out() -> None:
    rows = [
        ["oak", "Oak Desk", "", "", "O-1", "", "0", "100.00", ""],
        ["elm", "Elm Desk", "", "", "E-1", "shopify", "0", "100.00", ""],
        ["ash", "Ash Desk", "", "", "A-1", "", "4", "100.00", ""],
    ]
    (oak, elm, ash), _ = _normalise(SHOP, rows)
    assert oak.variants[0].offers[0].data == {"currency": "usd", "price": 10000}
    assert elm.variants[0].offers[0].data["availability"] == "out_of_stock"
    assert ash.variants[0].offers[0].data["quantity"] == 4


def test_a_comparison_price_must_exceed_the_price() -> None:
    headers = ["SKU", "Title", "Price", "Compare At Price"]
    rows = [["A-1", "Oak table", "100.00", "90.00"], ["A-2", "Elm table", "100.00", "100.00"], ["A-3", "Ash table", "100.00", "120.00"]]  # fmt: skip
    (below, equal, above), problems = _normalise(headers, rows)
    assert [one.variants[0].offers[0].data.get("compare_at") for one in (below, equal, above)] == [None, None, 12000]
    assert [(problem.field, problem.problem, problem.line) for problem in problems] == [
        ("compare_at", "conflict", 2),
        ("compare_at", "conflict", 3),
    ]


def test_prices_of_two_rows_are_not_a_comparison_price() -> None:
    rows = [["A-1", "Oak table", "100.00", ""], ["A-1", "Oak table", "80.00", "120.00"]]
    (product,), _ = _normalise(["SKU", "Title", "Price", "Compare At Price"], rows)
    assert product.variants[0].offers[0].data == {"currency": "usd", "price": 10000}


SHEET = ["item_group_id", "SKU", "Title", "Color", "Size", "Category", "Price"]


def test_variants_that_differ_in_colour_have_a_colour_axis() -> None:
    rows = [
        ["g1", "A-1", "Nord Chair", "Oak/White", "", "Chairs", "10"],
        ["g1", "A-2", "Nord Chair", "Black", "", "Chairs", "10"],
        ["g2", "B-1", "Nord Bed", "Oak", "Queen", "Beds", "10"],
        ["g2", "B-2", "Nord Bed", "Oak", "King", "Beds", "10"],
    ]
    (chair, bed), problems = _normalise(SHEET, rows)
    assert [variant.data["axes"] for variant in chair.variants] == [{"Color": "Oak/White"}, {"Color": "Black"}]
    assert [variant.data["axes"] for variant in bed.variants] == [{"Size": "Queen"}, {"Size": "King"}]
    assert problems == []


def test_indistinguishable_variants_are_reported() -> None:
    rows = [
        ["g1", "A-1", "Nord Chair", "Oak", "", "Chairs", "10"],
        ["g1", "A-2", "Nord Chair", "Oak", "", "Chairs", "10"],
    ]
    _, problems = _normalise(SHEET, rows)
    assert [(problem.field, problem.problem, problem.line) for problem in problems] == [("axes", "missing", 2)]


def test_the_title_and_the_category_of_a_variant_are_kept() -> None:
    rows = [
        ["g1", "A-1", "Nord Chair", "Oak", "", "Chairs", "10"],
        ["g1", "A-2", "Nord Bench", "Oak", "", "Benches", "10"],
        ["g1", "A-3", "Nord Chair", "Elm", "", "Chairs", "10"],
    ]
    (product,), problems = _normalise(SHEET, rows)
    assert [variant.data.get("title") for variant in product.variants] == [None, "Nord Bench", None]
    assert (product.data["category_path"], product.data["tags"]) == (["Chairs"], ["Benches"])
    assert problems == []


def test_the_name_of_an_option_may_follow_its_values() -> None:
    headers = ["Handle", "Title", "Option1 Name", "Option1 Value", "Variant SKU", "Variant Price"]
    rows = [["pot", "Pot", "", "Large", "P-1", "10"], ["pot", "", "Size", "Small", "P-2", "8"]]
    (product,), _ = _normalise(headers, rows)
    assert [variant.data["axes"] for variant in product.variants] == [{"Size": "Large"}, {"Size": "Small"}]


def test_each_differing_cell_of_a_repeated_row_is_reported() -> None:
    headers = ["SKU", "Title", "Color", "Width (in)", "Price"]
    rows = [["A-1", "Oak table", "Oak", "30", "10"], ["A-1", "Oak desk", "Elm", "40", "10"], ["A-1", "Oak table", "Oak", "30", "10"]]  # fmt: skip
    (product,), problems = _normalise(headers, rows)
    assert product.data["title"] == "Oak table"
    assert product.variants[0].data["colour"] == "Oak"
    assert sorted((p.field, str(p.problem), p.line) for p in problems) == [
        ("colour", "conflict", 3), ("dimensions", "conflict", 3), ("title", "conflict", 3),
    ]  # fmt: skip


def test_items_with_one_name_and_two_sizes_are_separate_variants() -> None:
    rows = [["Shelf", "30", "10"], ["Shelf", "40", "10"], ["Shelf", "30", "10"]]
    (product,), problems = _normalise(["Name", "Width (in)", "Price"], rows)
    widths = [dict(variant.data["dimensions"])["width"]["hundredths_in"] for variant in product.variants]
    assert (widths, len({variant.key for variant in product.variants})) == ([3000, 4000], 2)
    assert [(problem.field, problem.problem, problem.line) for problem in problems] == [("dimensions", "conflict", 3)]


def test_an_item_without_a_title_is_reported_if_others_have_one() -> None:
    (_, bare), problems = _normalise(["SKU", "Title", "Price"], [["A-1", "Oak table", "10"], ["A-2", "", "10"]])
    assert "title" not in bare.data
    assert [(problem.field, problem.problem, problem.line) for problem in problems] == [("title", "missing", 3)]
    _, problems = _normalise(["SKU", "Price"], [["A-1", "10"]])
    assert problems == []


def test_columns_with_complete_paths_are_alternative_categories() -> None:
    fields = {
        "SKU": "sku",
        "Title": "title",
        "1": "category_path.0",
        "2": "category_path.1",
        "3": "category_path.2",
        "Type": "category_path",
    }
    rows = [["C-1", "Wax Candle", "Scent / Candles", "Gifts / Boxes", "Scent / Candles / Wax", "Candle"]]
    (product,), _ = _normalise_mapped(fields, rows)
    assert product.data["category_path"] == ["Scent", "Candles", "Wax"]
    assert product.data["tags"] == ["Gifts > Boxes", "Candle"]


def test_a_platforms_category_is_kept_in_addition_to_the_vendors_type() -> None:
    fields = {"SKU": "sku", "Title": "title", "Product Category": "google_category", "Type": "category_path"}
    (product,), _ = _normalise_mapped(fields, [["O-1", "Oak", "Furniture > Chairs", "Side Chair"]])
    assert (product.data["category_path"], product.data["tags"]) == (["Side Chair"], ["Furniture > Chairs"])


def test_a_number_is_not_a_category() -> None:
    (product,), problems = _normalise(["SKU", "Title", "Category"], [["A-1", "Oak", "4128"]])
    assert "category_path" not in product.data
    assert [(problem.field, problem.problem) for problem in problems] == [("category_path", "unreadable")]


def test_regulations_are_not_materials() -> None:
    (product,), _ = _normalise(["SKU", "Title", "Material"], [["A-1", "Rest", "Foam, Knit Fabric, Meets CFR 1633"]])
    assert product.variants[0].data["materials"] == ["Foam", "Knit Fabric"]
    assert product.data["features"] == ["Meets CFR 1633"]


SIZED = ["SKU", "Title", "Width", "Depth", "Height", "Price"]


def _read_sides(title: str, *sides: str, currency: str = "eur") -> tuple[dict[str, str], list[str]]:
    (product,), problems = _normalise(SIZED, [["A-1", title, *sides, "10"]], FeedSettings(currency=currency))
    given = dict[str, Any](product.variants[0].data.get("dimensions", {}))
    found = {
        side: f"{length['given']['value'].normalize():f} {length['given']['unit']}" for side, length in given.items()
    }
    return found, [str(problem.problem) for problem in problems]


def test_a_title_with_more_sides_than_the_columns_is_used_and_reported() -> None:
    assert _read_sides("Desk, 141x83 cm", "83", "", "74") == (
        {"width": "141 cm", "depth": "83 cm", "height": "74 cm"},
        ["conflict"],
    )
    assert _read_sides("Shelf, 31x27 cm", "", "27", "5")[0] == {"width": "31 cm", "depth": "27 cm", "height": "5 cm"}
    assert _read_sides("Door, 61x65 cm", "", "", "") == ({}, [])
    assert _read_sides("Mirror, 61x151 cm", "61", "", "") == ({"width": "61 cm"}, ["conflict"])
    assert _read_sides("Tray table, 46x54 cm", "", "", "54") == ({"width": "46 cm", "height": "54 cm"}, [])


def test_columns_take_precedence_over_a_contradicting_title() -> None:
    assert _read_sides("Storage, 96x40x128 cm", "96", "36", "104") == (
        {"width": "96 cm", "depth": "36 cm", "height": "104 cm"}, ["conflict"],
    )  # fmt: skip
    assert _read_sides("Desk, 141x83 cm", "141", "83", "74")[1] == []
    assert _read_sides("Bed frame, 140x200 cm", "147", "", "") == ({"width": "147 cm"}, [])


def test_a_size_in_a_title_is_used_if_no_column_states_one() -> None:
    assert _read_sides("Wardrobe 171x46x172cm White", "", "", "")[0] == {
        "width": "171 cm",
        "depth": "46 cm",
        "height": "172 cm",
    }
    others = ("Cover for table 140x80 cm", "Frame, 21x30 cm", 'Table w/ 1 X 18" Leaf', "Table and chairs, 120x80 cm",
              "7 Pc. Dining Set 120x80 cm", "Model 12x34", "Rack 10x20x30x40 cm")  # fmt: skip
    for title in others:
        assert _read_sides(title, "", "", "") == ({}, []), title


def test_a_unit_in_the_title_takes_precedence_over_a_presumed_unit() -> None:
    assert _read_sides("Knob, 21 mm", "21", "29", "")[0] == {"width": "21 mm", "depth": "29 mm"}
    assert _read_sides("Table top, 28 mm", "120", "", "")[0] == {"width": "120 cm"}
    assert _read_sides("Knob, 21 mm", "21 cm", "", "")[0] == {"width": "21 cm"}


def test_the_size_of_a_product_is_not_the_size_of_its_variants() -> None:
    headers = ["Handle", "Title", "Option1 Name", "Option1 Value", "Variant SKU", "Variant Price"]
    (product,), _ = _normalise(headers, [["pot", "Pot 40x40 cm", "Size", "Large", "P-1", "10"]])
    assert "dimensions" not in product.variants[0].data


BODY = ["Handle", "Title", "Body (HTML)", "Option1 Name", "Option1 Value", "Variant SKU", "Variant Price", "Color"]
TEXT = '<p>A calm desk.<br>Product Dimensions: 48" W x 24" D x 30" H<br>Materials: Elm, Steel.<br>Color: Sand<br>Weight: 61 lbs</p>'


def test_labelled_facts_of_a_text_are_used_if_no_column_states_them() -> None:
    (product,), problems = _normalise(BODY, [["d", "Desk", TEXT, "", "", "D-1", "10", ""]])
    data = product.variants[0].data
    assert (data["materials"], data["colour"]) == (["Elm", "Steel"], "Sand")
    assert (dict(data["dimensions"])["width"]["hundredths_in"], data["weight"]["hundredths_lb"]) == (4800, 6100)
    assert problems == []
    (product,), _ = _normalise(BODY, [["d", "Desk", TEXT, "", "", "D-1", "10", "Walnut"]])
    assert product.variants[0].data["colour"] == "Walnut"


def test_a_text_about_several_variants_contributes_only_shared_facts() -> None:
    rows = [["d", "Desk", TEXT, "Size", "S", "D-1", "10", ""], ["d", "", "", "", "L", "D-2", "12", ""]]
    (product,), _ = _normalise(BODY, rows)
    assert [sorted(variant.data) for variant in product.variants] == [["axes", "materials", "sku"]] * 2


def test_a_repeated_or_meaningless_label_is_not_a_fact() -> None:
    texts = ("Color: Sand<br>Color: Elm", "Color: Varies by size", "The color: a story that ends", "Weight: heavy")
    for text in texts:
        (product,), problems = _normalise(BODY, [["d", "Desk", f"<p>{text}</p>", "", "", "D-1", "10", ""]])
        assert sorted(product.variants[0].data) == ["sku"], text
        assert problems == []


def test_the_construction_and_the_pile_of_a_rug_are_read_from_features() -> None:
    headers = ["SKU", "Title", "Category", "Feature 1", "Feature 2"]
    (product,), _ = _normalise(headers, [["R-1", "Meadow", "Area Rugs", "Hand Tufted", "Pile Height: 0.5 in"]])
    rug = product.variants[0].data["rug"]
    assert (rug["construction"], rug["pile_height"]["hundredths_in"]) == ("hand_tufted", 50)
    (product,), _ = _normalise(headers, [["C-1", "Meadow", "Chairs", "Hand Tufted", "Pile Height: 0.5 in"]])
    assert "rug" not in product.variants[0].data


def test_sizes_in_options_are_used_if_their_sides_are_named() -> None:
    rows = [["d", "Trough", "", "Size", "Large | 910mm L x 520mm W x 480mm H", "D-1", "10", ""],
            ["d", "", "", "", "Small | 410mm x 300mm", "D-2", "10", ""]]  # fmt: skip
    (product,), _ = _normalise(BODY, rows)
    large, small = (variant.data.get("dimensions", {}) for variant in product.variants)
    assert {side: str(length["given"]["value"]) for side, length in dict[str, Any](large).items()} == {
        "width": "910", "depth": "520", "height": "480",
    }  # fmt: skip
    assert small == {}


def test_spreadsheet_errors_and_formulas_are_reported_and_not_used() -> None:
    fields = {"SKU": "sku", "Title": "title", "Color": "colour", "Price": "price"}
    rows = [["A-1", "Oak table", "#N/A", "=VLOOKUP(A2,Prices!A:B,2)"], ["A-2", "#REF!", "#1 Red", "=B2*2"], ['="A-3"', "Elm", "Oak", "3"]]  # fmt: skip
    products, problems = _normalise_mapped(fields, rows)
    assert sorted((p.line, p.column, str(p.problem)) for p in problems if p.field == "cell") == [
        (2, "Color", "unreadable"), (2, "Price", "unreadable"), (3, "Price", "unreadable"), (3, "Title", "unreadable"),
    ]  # fmt: skip
    assert [product.variants[0].data.get("colour") for product in products] == [None, "#1 Red", "Oak"]
    assert [product.variants[0].offers for product in products][:2] == [[], []]


def test_total_rows_are_recognised() -> None:
    sums = ("Total", "SUBTOTAL", "Grand Total:", "Sub-Total", "Summe", "total items", "Subtotal - Beds")
    assert all(map(is_total_label, sums))
    assert not any(map(is_total_label, ("Total Comfort Sofa", "TOTAL-1", "Sumatra", "T-100", "Summer", "")))


def test_a_short_line_next_to_a_series_name_counts_as_a_title() -> None:
    fields = {"SKU": "sku", "Name": "title", "Short": "description", "Width": "dimensions.width@unit=cm"}
    (product,), problems = _normalise_mapped(fields, [["A-1", "OSLO", "Desk, 141x83 cm", "83"]])
    given = dict[str, Any](product.variants[0].data["dimensions"])
    assert {side: length["hundredths_in"] for side, length in given.items()} == {"width": 5551, "depth": 3268}
    assert [str(problem.problem) for problem in problems] == ["conflict"]


def test_headings_and_notes_are_no_items() -> None:
    headers = ["SKU", "Name", "Colour", "Price"]
    items: list[list[Any]] = [["AB-1", "Table", "oak", "10"], ["AB-2", "Chair", "oak", "5"]]
    rows = [
        ["LIVING ROOM", "", "", ""],
        ["AB-3", "", "", ""],
        ["", "", "", "All prices without VAT."],
        ["SERIES 12", None, None, None],
        ["Total", "", "", "15"],
    ]
    mapping = map_declared_fields(headers, ["sku", "title", "colour", "price"])
    plan = ReadPlan(mapping, FeedSettings(currency="usd"))
    keys = RowKeys(plan, Stream.CATALOGUE, list(enumerate([*items, *rows])))
    found = [keys.read_key(row) for row in [*items, *rows]]
    assert [key for key in found if isinstance(key, str)] == ["AB-1", "AB-2", "AB-3"]
    assert [key.detail for key in found if isinstance(key, ParseFault)] == [
        'The row with only "LIVING ROOM" is a heading or a note, not an item.',
        'The row with only "All prices without VAT." is a heading or a note, not an item.',
        'The row with only "SERIES 12" is a heading or a note, not an item.',
        'The row of "Total" is a total of other rows, not an item.',
    ]


def test_rows_of_one_model_in_several_finishes_and_sizes_are_variants() -> None:
    fields = {"Model": "mpn", "Finish": "finish", "Width": "dimensions.width@unit=cm", "Price": "price"}
    rows: list[list[Any]] = [["Oslo", "Oak", "180", "899"], ["Oslo", "Walnut", "180", "949"], ["Oslo", "Walnut", "200", "999"], ["Oslo", "Oak", "180", "899"]]  # fmt: skip
    (product,), problems = _normalise_mapped(fields, rows)
    assert [(variant.key, variant.offers[0].data["price"]) for variant in product.variants] == [
        ("Oslo", 89900), ("Oslo / Walnut", 94900), ("Oslo / Walnut / 200 cm", 99900),
    ]  # fmt: skip
    assert [problem.detail for problem in problems if "differ in" in problem.detail] == [
        'Items with the key "Oslo" differ in finish; each of them is a variant.',
        'Items with the key "Oslo" differ in finish and size; each of them is a variant.',
    ]


def test_prices_in_cents() -> None:
    headers = ["SKU", "Name", "price_cents"]
    settings = FeedSettings(currency="usd")
    plan = ReadPlan(propose_column_mapping(headers, [["A-1", "Chair", "89900"]], settings), settings)
    assert [one.settings for one in propose_column_mapping(headers, [["A-1", "Chair", "89900"]], settings).columns][2][
        "unit"
    ] == "cents"
    product, _ = normalise_rows("A-1", [(2, ["A-1", "Chair", "89900"])], plan)
    assert product.variants[0].offers[0].data["price"] == 89900
    _, problems = normalise_rows("A-2", [(3, ["A-2", "Chair", "899.00"])], plan)
    assert [problem.detail for problem in problems] == ['"899.00" is not a whole number of cents.']
