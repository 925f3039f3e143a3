"""Files of products, read by independent readers."""

import csv
import io
from datetime import datetime
from pathlib import Path
from typing import Any

import defusedxml.ElementTree  # type: ignore[import-untyped]
import openpyxl
import pytest

from adapters.files import product_files
from adapters.files.product_files import XlsxTable, create_product_file
from domain.exports.columns import COLUMNS, DEFAULT_COLUMNS
from domain.exports.layout import ExportFormat, ExportLayout, ExportLocale, RowLevel, UnitSystem
from domain.exports.templates import SHOPIFY_COLUMNS, find_template_error
from tests.unit.exports.products import HOSTILE, build_offer, build_product, build_variant, encode

CSV, XLSX = ExportFormat.CSV, ExportFormat.XLSX
SHOPIFY, GOOGLE = ExportFormat.SHOPIFY_CSV, ExportFormat.GOOGLE_MERCHANT_XML
GERMAN, ENGLISH = ExportLocale.GERMAN, ExportLocale.ENGLISH
LINK = "https://shop.example/products/{handle}?sku={sku}"
G = "{http://base.google.com/ns/1.0}"
SHOPIFY_TEMPLATE = (
    "Handle,Title,Body (HTML),Vendor,Product Category,Type,Tags,Published,Option1 Name,Option1 Value,Option2 Name,Option2 Value,"
    "Option3 Name,Option3 Value,Variant SKU,Variant Grams,Variant Inventory Tracker,Variant Inventory Qty,Variant Inventory Policy,"
    "Variant Fulfillment Service,Variant Price,Variant Compare At Price,Variant Requires Shipping,Variant Taxable,Variant Barcode,"
    "Image Src,Image Position,Image Alt Text,Gift Card,SEO Title,SEO Description,Variant Image,Variant Weight Unit,"
    "Variant Tax Code,Cost per item,Status"
)


def write(layout: ExportLayout, folder: Path, *products: dict[str, Any]) -> tuple[int, bytes, list[dict[str, str]]]:
    """Return the number of rows, the file, and the omitted items."""
    file = create_product_file(layout, {"src_1": "Feed; of, Möbler"}, folder)
    portions = [file.add(encode(product)) for product in products]
    data = b"".join(portion.data for portion in portions) + b"".join(file.finish())
    omitted_portions = list(file.list_omitted())
    omitted = list(csv.DictReader(io.StringIO(b"".join(part.data for part in omitted_portions).decode(), newline="")))
    assert sum(part.rows for part in omitted_portions) == len(omitted)
    return sum(portion.rows for portion in portions), data, omitted


def read_csv(data: bytes, delimiter: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=delimiter, strict=True))


def read_items(data: bytes) -> list[dict[str, list[str]]]:
    channel = defusedxml.ElementTree.fromstring(data).find("channel")
    items = []
    for item in channel.iterfind("item"):
        found: dict[str, list[str]] = {}
        for element in item:
            assert element.tag.startswith(G)
            found.setdefault(element.tag.removeprefix(G), []).append(element.text)
        items.append(found)
    return items


def test_a_csv_for_programs_has_names_and_plain_numbers(tmp_path: Path) -> None:
    rows, data, _ = write(ExportLayout(CSV, tuple(COLUMNS)), tmp_path, build_product())
    [row] = read_csv(data)
    assert rows == 1 and not data.startswith(b"\xef\xbb\xbf") and data.endswith(b"\r\n")
    assert list(row) == [column.get_heading(None, UnitSystem.METRIC) for column in COLUMNS.values()]
    assert (row["width_cm"], row["weight_kg"], row["price"], row["currency"]) == ("80", "29.937", "649.00", "EUR")
    assert (row["materials"], row["options"], row["assembly_required"]) == (
        "Wool, Oak, solid",
        "Colour: Grey 1",
        "true",
    )
    assert (row["availability"], row["quantity"], row["source"]) == ("in_stock", "12", "Feed; of, Möbler")
    assert row["image_urls"] == "https://v.example/1.jpg?a=1&b=2, https://v.example/2.jpg"
    assert row["updated_at"] == "2026-11-20T13:08:00.000Z"


def test_a_csv_in_german_opens_in_a_german_spreadsheet_program(tmp_path: Path) -> None:
    layout = ExportLayout(CSV, ("title", "price", "width", "availability", "assembly_required", "updated_at"), GERMAN)
    _, data, _ = write(layout, tmp_path, build_product(title='Sofa; "groß"'))
    assert data.startswith(b"\xef\xbb\xbf")
    [row] = read_csv(data, ";")
    assert row == {
        "Titel": 'Sofa; "groß"', "Preis": "649,00", "Breite (cm)": "80", "Verfügbarkeit": "Auf Lager", "Montage nötig": "Ja",
        "Geändert": "20.11.2026 13:08",
    }  # fmt: skip


def test_sizes_are_converted_from_the_stated_values(tmp_path: Path) -> None:
    for units, expected in ((UnitSystem.METRIC, ("80", "29.937")), (UnitSystem.IMPERIAL, ("31.5", "66"))):
        _, data, _ = write(ExportLayout(CSV, ("width", "weight"), units=units), tmp_path, build_product())
        [row] = read_csv(data)
        assert tuple(row.values()) == expected


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (RowLevel.PRODUCT, [("HD-1, HD-2", "10.00", "9", "")]),
        (RowLevel.VARIANT, [("HD-1", "10.00", "7", "80"), ("HD-2", "30.00", "2", "100")]),
        (RowLevel.OFFER, [("HD-1", "20.00", "3", "80"), ("HD-1", "10.00", "4", "80"), ("HD-1", "1.00", "0", "80"), ("HD-2", "30.00", "2", "100")]),
    ],
)  # fmt: skip
def test_rows_represent_products_variants_or_offers(
    tmp_path: Path, level: RowLevel, expected: list[tuple[str, ...]]
) -> None:
    withdrawn = build_offer(price=100, quantity=0, withdrawn_at="2026-11-20T13:08:00.000Z")
    offers = [build_offer(price=2000, quantity=3), build_offer(price=1000, quantity=4), withdrawn]
    wide = {"width": {"hundredths_in": 3937, "given": {"value": 1, "unit": "m"}}}
    product = build_product(
        [build_variant(1, offers), build_variant(2, [build_offer(price=3000, quantity=2)], dimensions=wide)]
    )
    rows, data, _ = write(ExportLayout(CSV, ("sku", "price", "quantity", "width"), row_by=level), tmp_path, product)
    assert [tuple(row.values()) for row in read_csv(data)] == expected and rows == len(expected)


def test_amounts_in_other_currencies_are_not_compared(tmp_path: Path) -> None:
    offers = [build_offer(price=2000), build_offer(price=3000), build_offer(price=500, currency="jpy")]
    _, data, _ = write(ExportLayout(CSV, ("price", "currency")), tmp_path, build_product([build_variant(1, offers)]))
    assert read_csv(data) == [{"price": "20.00", "currency": "EUR"}]
    _, data, _ = write(
        ExportLayout(CSV, ("price", "currency")), tmp_path, build_product([build_variant(1, offers[2:])])
    )
    assert read_csv(data) == [{"price": "500", "currency": "JPY"}]


@pytest.mark.parametrize("text", [HOSTILE, "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_no_text_is_executed_as_a_formula(tmp_path: Path, text: str) -> None:
    for locale, delimiter in ((None, ","), (GERMAN, ";"), (ENGLISH, ",")):
        _, data, _ = write(ExportLayout(CSV, ("title", "sku"), locale), tmp_path, build_product(title=text))
        assert list(read_csv(data, delimiter)[0].values()) == [f"'{text}", "HD-1"]
    _, data, _ = write(ExportLayout(SHOPIFY), tmp_path, build_product(title=text))
    assert read_csv(data)[0]["Title"] == f"'{text}"
    _, data, _ = write(ExportLayout(XLSX, ("title",)), tmp_path, build_product(title=text))
    [[_], [cell]] = openpyxl.load_workbook(io.BytesIO(data)).active.iter_rows()
    assert cell.data_type != "f" and text.strip()[0] in str(cell.value)


def test_an_xlsx_has_numbers_dates_and_a_fixed_heading(tmp_path: Path) -> None:
    names = ("title", "gtin", "price", "quantity", "width", "availability", "updated_at", "image_url")
    rows, data, _ = write(
        ExportLayout(XLSX, names, ENGLISH), tmp_path, build_product(), build_product(title=None, media=None)
    )
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    assert rows == 2 and sheet.title == "Products" and sheet.freeze_panes == "A2"
    heading, first, second = ([cell.value for cell in row] for row in sheet.iter_rows())
    assert heading == ["Title", "GTIN", "Price", "Quantity", "Width (cm)", "Availability", "Changed", "Image"]
    assert first == [
        "Hedda sofa",
        "4006381333931",
        649,
        12,
        80,
        "In stock",
        datetime(2026, 11, 20, 13, 8),
        "https://v.example/1.jpg?a=1&b=2",
    ]
    assert second[0] is None and second[-1] is None
    assert sheet["C2"].number_format == "#,##0.00" and sheet["G2"].number_format == "yyyy-mm-dd hh:mm"
    assert sheet.column_dimensions["A"].width > sheet.column_dimensions["D"].width


def test_rows_beyond_the_limit_of_a_sheet_continue_on_the_next(tmp_path: Path) -> None:
    file = XlsxTable(ExportLayout(XLSX, ("sku",), GERMAN), {}, tmp_path, max_rows=3)
    file.add(encode(build_product([build_variant(number) for number in range(5)])))
    book = openpyxl.load_workbook(io.BytesIO(b"".join(file.finish())))
    assert [[cell.value for [cell] in sheet.iter_rows()] for sheet in book] == [
        ["SKU", "HD-0", "HD-1"], ["SKU", "HD-2", "HD-3"], ["SKU", "HD-4"],
    ]  # fmt: skip
    assert book.sheetnames == ["Produkte", "Produkte 2", "Produkte 3"] and product_files.MAX_SHEET_ROWS == 1_048_576


def test_a_long_text_is_cut_at_the_limit_of_a_cell(tmp_path: Path) -> None:
    _, data, _ = write(ExportLayout(XLSX, ("description",)), tmp_path, build_product(description="é" * 40_000))
    assert openpyxl.load_workbook(io.BytesIO(data)).active["A2"].value == "é" * 32_767


@pytest.mark.parametrize("format", [CSV, XLSX, SHOPIFY, GOOGLE])
def test_a_file_without_products_is_valid(tmp_path: Path, format: ExportFormat) -> None:
    rows, data, omitted = write(ExportLayout(format, link_template=LINK), tmp_path)
    assert rows == 0 and omitted == []
    if format == XLSX:
        assert openpyxl.load_workbook(io.BytesIO(data)).active.max_row == 1
    elif format == GOOGLE:
        assert read_items(data) == []
    else:
        assert read_csv(data) == [] and data.count(b"\r\n") == 1


def test_products_without_variants_and_variants_without_offers_have_a_row(tmp_path: Path) -> None:
    _, data, _ = write(ExportLayout(CSV), tmp_path, build_product([]), build_product([build_variant(1, [])]))
    first, second = read_csv(data)
    assert first["title"] == second["title"] == "Hedda sofa" and first["sku"] == "" and second["sku"] == "HD-1"
    assert second["price"] == second["availability"] == ""
    assert len(DEFAULT_COLUMNS) == len(set(DEFAULT_COLUMNS)) and set(DEFAULT_COLUMNS) <= set(COLUMNS)


def test_shopify_receives_products_with_variants_and_images(tmp_path: Path) -> None:
    reduced = build_offer(price=59900, compare_at=79900, quantity=3)
    plain = build_variant(2, [build_offer(quantity=None) | {"availability": "backorder"}], gtin=None, weight=None)
    del plain["offers"][0]["quantity"]
    rows, data, omitted = write(ExportLayout(SHOPIFY), tmp_path, build_product([build_variant(1, [reduced]), plain]))
    assert data.split(b"\r\n")[0].decode() == SHOPIFY_TEMPLATE == ",".join(SHOPIFY_COLUMNS)
    first, second = read_csv(data)
    assert rows == 2 and omitted == []
    assert (first["Handle"], second["Handle"]) == ("prod-1ab", "prod-1ab") and second["Title"] == ""
    assert (
        first["Body (HTML)"]
        == "<p>A low sofa.</p><p>With &lt;loose&gt; cushions.</p><ul><li>Removable covers</li></ul>"
    )
    assert (first["Vendor"], first["Tags"], first["Status"]) == ("Lindgren & Möbler", "new, a b", "active")
    assert (first["Option1 Name"], first["Option1 Value"], second["Option1 Value"]) == ("Colour", "Grey 1", "Grey 2")
    assert (first["Variant Price"], first["Variant Compare At Price"], first["Cost per item"]) == (
        "599.00",
        "799.00",
        "279.00",
    )
    assert (first["Variant Grams"], first["Variant Weight Unit"], first["Variant Barcode"]) == (
        "29937",
        "kg",
        "4006381333931",
    )
    assert (first["Variant Inventory Tracker"], first["Variant Inventory Qty"], first["Variant Inventory Policy"]) == (
        "shopify",
        "3",
        "deny",
    )
    assert (
        second["Variant Inventory Tracker"],
        second["Variant Inventory Qty"],
        second["Variant Inventory Policy"],
    ) == ("", "", "continue")
    assert (first["Image Src"], first["Image Position"], first["Image Alt Text"]) == (
        "https://v.example/1.jpg?a=1&b=2",
        "1",
        'The "sofa"',
    )
    assert (second["Image Src"], second["Image Position"]) == ("https://v.example/2.jpg", "2")


def test_options_in_shopify_are_unique_and_at_most_three(tmp_path: Path) -> None:
    def read_options(*variants: dict[str, Any]) -> list[list[str]]:
        _, data, _ = write(ExportLayout(SHOPIFY), tmp_path, build_product(list(variants), media=None))
        rows = read_csv(data)
        return [
            [row["Option1 Name"] or rows[0]["Option1 Name"], row["Option1 Value"], row["Option3 Value"]] for row in rows
        ]

    assert read_options(build_variant(1, axes=None)) == [["Title", "Default Title", ""]]
    four = {"A": "1", "B": "2", "C": "3", "D": "4"}
    assert read_options(build_variant(1, axes=four), build_variant(2, axes=four, title=None)) == [
        ["Variant", "Grey 1", ""], ["Variant", "1 / 2 / 3 / 4", ""],
    ]  # fmt: skip
    equal = {"axes": {"Size": "L"}, "title": "Large"}
    assert read_options(build_variant(1, **equal), build_variant(2, **equal)) == [
        ["Variant", "Large (var_1)", ""], ["Variant", "Large (var_2)", ""],
    ]  # fmt: skip
    assert read_options(build_variant(1, axes={"A": "1", "C": "3"}), build_variant(2, axes={"B": "2"})) == [
        ["A", "1", "n/a"], ["A", "n/a", "2"],
    ]  # fmt: skip


def test_items_without_a_price_are_not_sold_for_nothing_in_shopify(tmp_path: Path) -> None:
    msrp_only = build_offer(msrp=100)
    del msrp_only["price"]
    products = (
        build_product(), build_product([build_variant(2, [msrp_only])]), build_product([build_variant(3, [build_offer(currency="usd")])]),
        build_product([]), build_product(title=None), build_product([build_variant(4, [build_offer(withdrawn_at="2026-11-20T13:08:00.000Z")])]),
    )  # fmt: skip
    _, data, omitted = write(ExportLayout(SHOPIFY), tmp_path, *products)
    assert [row["Variant SKU"] for row in read_csv(data)] == ["HD-1", ""]
    assert [row["problem"] for row in omitted] == [
        "The variant has no price.", "The price is not in EUR, the currency of the file.", "The product has no variants.",
        "The product has no title.", "The variant has no price.",
    ]  # fmt: skip
    assert omitted[0] == {
        "product_id": "prod_1aB",
        "variant_id": "var_2",
        "sku": "HD-2",
        "title": "Hedda sofa",
        "problem": "The variant has no price.",
    }


def test_google_receives_the_required_attributes(tmp_path: Path) -> None:
    offer = build_offer(price=59900, compare_at=79900)
    product = build_product(
        [build_variant(1, [offer], axes={"Size": "L"}), build_variant(2)], description=HOSTILE + "d" * 6000
    )
    rows, data, omitted = write(ExportLayout(GOOGLE, link_template=LINK), tmp_path, product)
    first, second = read_items(data)
    assert rows == 2 and omitted == [] and all(len(values) == 1 for name, values in first.items())
    assert {
        "id",
        "title",
        "description",
        "link",
        "image_link",
        "availability",
        "price",
        "brand",
        "gtin",
        "mpn",
        "condition",
    } <= set(first)
    assert (
        first["id"] == ["var_1"] and first["title"] == ["Hedda sofa, Grey 1"] and len(first["description"][0]) == 5000
    )
    assert first["description"][0].startswith(HOSTILE.replace("\u0001", "\ufffd"))
    assert first["link"] == ["https://shop.example/products/prod-1ab?sku=HD-1"]
    assert (first["image_link"], first["additional_image_link"]) == (
        ["https://v.example/1.jpg?a=1&b=2"],
        ["https://v.example/2.jpg"],
    )
    assert (first["price"], first["sale_price"], second["price"]) == (["799.00 EUR"], ["599.00 EUR"], ["649.00 EUR"])
    assert (first["availability"], first["size"], first["item_group_id"]) == (["in_stock"], ["L"], ["prod_1aB"])
    assert (first["product_width"], first["shipping_weight"]) == (["80 cm"], ["29.937 kg"])
    assert (
        first["product_type"] == ["Living > Sofas"] and "identifier_exists" not in first and "sale_price" not in second
    )


def test_items_that_google_would_reject_are_omitted_and_listed(tmp_path: Path) -> None:
    priceless = build_offer()
    del priceless["price"]
    products = (
        build_product([build_variant(title=None)], title=None), build_product(description=None), build_product(media=None), build_product([]),
        build_product([build_variant(1, [priceless])]), build_product([build_variant(1, [build_offer(availability="unknown")])]),
        build_product([build_variant(1, sku=None)]), build_product([build_variant(1, sku="x" * 3000)]),
    )  # fmt: skip
    rows, data, omitted = write(ExportLayout(GOOGLE, link_template=LINK), tmp_path, *products)
    assert rows == 0 and read_items(data) == [] and len(omitted) == len(products)
    assert [row["problem"].split()[-1] for row in omitted[:6]] == [
        "title.",
        "description.",
        "image.",
        "variants.",
        "price.",
        "unknown.",
    ]
    assert all("missing or too long" in row["problem"] for row in omitted[6:])


def test_items_without_identifiers_are_marked_and_backorders_have_dates(tmp_path: Path) -> None:
    arriving = build_offer(availability="backorder", incoming=[{"quantity": 4, "eta": "2026-12-04"}])
    products = (
        build_product([build_variant(1, [arriving], gtin=None, mpn=None)], brand=None),
        build_product([build_variant(2, [build_offer(availability="preorder")])]),
    )
    _, data, _ = write(ExportLayout(GOOGLE, link_template=LINK), tmp_path, *products)
    first, second = read_items(data)
    assert first["identifier_exists"] == ["no"] and "brand" not in first
    assert (first["availability"], first["availability_date"]) == (["backorder"], ["2026-12-04T00:00Z"])
    assert second["availability"] == ["out_of_stock"] and "availability_date" not in second


@pytest.mark.parametrize(
    ("template", "is_valid"),
    [
        (LINK, True), ("http://shop.example/{variant_id}", True), ("https://shop.example/", False), ("javascript:alert({sku})", False),
        ("https://shop.example/{sku.__class__}", False), ("https://shop.example/{price}", False), ("https://{sku", False),
        ("https://u:p@shop.example/{sku}", False), ("https://shop.example/{sku} x", False), ("{sku}", False), ("https:///{sku}", False),
    ],
)  # fmt: skip
def test_an_address_needs_a_known_placeholder(template: str, is_valid: bool) -> None:
    assert (find_template_error(template) is None) == is_valid
