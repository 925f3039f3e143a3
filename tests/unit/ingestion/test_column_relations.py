"""Columns whose meaning or unit depends on other columns, on values, or on the kind of the table."""

from collections.abc import Sequence
from typing import Any

import pytest

from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.ingestion.model import FeedSettings
from domain.ingestion.normalisation import normalise_rows

Rows = Sequence[Sequence[str]]


def _map(headers: Sequence[str], rows: Rows, notes: str = "", **settings: Any) -> dict[str, str]:
    """Return the field of each column that is read, by header."""
    mapping = propose_column_mapping(headers, rows, FeedSettings(**{"currency": "eur", **settings}), notes=notes)
    return {column.column: column.field for column in mapping.columns if not column.is_alternative}


def _read(headers: Sequence[str], row: list[Any], rows: Rows | None = None, **settings: Any) -> tuple[Any, Any]:
    """Return the only variant of a row and its only offer, or an empty one."""
    given = FeedSettings(**{"currency": "eur", **settings})
    plan = ReadPlan(propose_column_mapping(headers, rows or [row], given), given)
    product, _ = normalise_rows(str(plan.read_product_key(row)), [(2, row)], plan)
    (variant,) = product.variants
    return variant.data, next((offer.data for offer in variant.offers), {})


def test_units_in_columns_of_their_own() -> None:
    headers = [
        "SKU",
        "item_width",
        "item_width_unit_of_measure",
        "item_height",
        "item_height_unit_of_measure",
        "item_depth",
    ]
    data, _ = _read(headers, ["A-1", "58", "IN", "60", "CM", "10"])
    given = {name: length["given"]["unit"] for name, length in data["dimensions"].items()}
    assert given == {"width": "in", "height": "cm", "depth": "in"}, (
        "the first unit is that of columns without their own"
    )


def test_units_of_xml_elements() -> None:
    headers = [
        "kod",
        "szerokosc.#text",
        "szerokosc.@jednostka",
        "wysokosc.#text",
        "wysokosc.@jednostka",
        "waga.#text",
        "waga.@jednostka",
    ]
    data, _ = _read(headers, ["A-1", "140", "cm", "750", "mm", "41", "kg"])
    assert data["dimensions"]["height"]["given"]["unit"] == "mm"
    assert (data["dimensions"]["width"]["given"]["unit"], data["weight"]["given"]["unit"]) == ("cm", "kg")


@pytest.mark.parametrize(
    ("price", "quantity", "expected"),
    [("1.189,00", "4,000", 4), ("1.189,00", "1.204,000", 1204), ("1,189.00", "4,000", 4000), ("1189", "4,000", 4000)],
)
def test_numbers_with_two_marks_determine_the_mark_of_quantities(price: str, quantity: str, expected: int) -> None:
    _, offer = _read(["MATNR", "KBETR", "KONWA", "LABST"], ["A-1", price, "EUR", quantity])
    assert offer["quantity"] == expected


def test_a_status_in_words_for_stock_is_the_availability() -> None:
    headers = ["SKU", "Name", "Status"]
    assert _map(headers, [["A", "x", "sofort lieferbar"], ["B", "y", "ausverkauft"]])["Status"] == "availability"
    for words in (("Active", "Discontinued"), ("Discontinued", "Auslaufartikel")):
        assert _map(headers, [["A", "x", words[0]], ["B", "y", words[1]]])["Status"] == "status"


MODELS = [
    ["S-1", "M-1", "Oak table 160"],
    ["S-2", "M-1", "Oak table 180"],
    ["S-3", "M-2", "Bench 140"],
    ["S-4", "M-2", "Bench 160"],
]
SERIES = [
    ["S-1", "Olivia", "Armchair"],
    ["S-2", "Olivia", "Sofa 2 seats"],
    ["S-3", "Rita", "Pouf"],
    ["S-4", "Rita", "Sofa"],
]


@pytest.mark.parametrize(
    ("header", "rows", "field"),
    [
        ("Style No.", MODELS, "product_key"),
        ("Model number", MODELS, "product_key"),
        ("Modello", SERIES, "collection"),
    ],
)
def test_codes_that_rows_share(header: str, rows: Rows, field: str) -> None:
    mapping = _map(["Item Code", header, "Title"], rows)
    assert (mapping["Item Code"], mapping[header]) == ("sku", field)


def test_a_sale_price_is_read_unless_its_dates_are_stated() -> None:
    headers = ["SKU", "Sale price", "Regular price", "Date sale price ends"]
    rows = [["A", "9.00", "12.00", ""]]
    assert "Sale price" in _map(headers, rows)
    assert "Sale price" not in _map(headers, [[*rows[0][:3], "2026-12-01"]])


@pytest.mark.parametrize(
    ("header", "value", "field"),
    [
        ("G.W. (kg)", "22.6", "cartons.0.weight"),
        ("FOB Shenzhen USD/pc", "78.50", "cost"),
        ("CIF Rotterdam (EUR)", "78.50", "cost"),
        ("FOB port", "Shenzhen", None),
        ("Includes", "1x MT-200; 6x MT-110", "components"),
        ("Includes", "Hardware and tools", None),
        ("UGS", "A-2", None),
        ("Termin realizacji", "14 dni", "lead_time_days"),
        ("Termin realizacji", "2026-12-14", "incoming.0.eta"),
        ("Cena katalogowa netto [PLN]", "649,00", "msrp"),
        ("Cena po rabacie netto [PLN]", "454,30", "cost"),
    ],
)
def test_headers_with_values(header: str, value: str, field: str | None) -> None:
    assert _map(["SKU", header], [["A-1", value]] * 3).get(header) == field


@pytest.mark.parametrize(
    ("second", "field"), [("L200 x B100 x H74 cm", "dimensions"), ("Teak, 200 x 100 cm", "description")]
)
def test_a_second_description_can_contain_sizes(second: str, field: str) -> None:
    assert _map(["Nr.", "Beskrivelse", "Beskrivelse 2"], [["1", "Havebord", second]] * 2)["Beskrivelse 2"] == field


def test_repeated_headers_of_features_are_all_read() -> None:
    headers = ["SKU", "Key Product Features", "Key Product Features"]
    mapping = propose_column_mapping(headers, [["A-1", "Anti-tip kit", "Soft close"]], FeedSettings())
    assert [column.field for column in mapping.columns] == ["sku", "features", "features"]


def test_the_price_in_the_template_of_a_marketplace() -> None:
    headers = ["Seller SKU", "Product ID", "Product ID Type", "Parentage", "Variation Theme", "Your Price"]
    mapping = _map(headers, [["A-1", "710448100117", "UPC", "child", "Color", "289.99"]])
    assert (mapping["Product ID"], mapping["Your Price"]) == ("gtin", "price")
    assert _map(["SKU", "Your Price"], [["A-1", "289.99"]])["Your Price"] == "cost"


def test_definitions_of_columns_are_no_items() -> None:
    headers, notes = ["item_sku", "Seller SKU", "Enter the SKU.", "Required"], "Field Name\nLabel Name\nAccepted Values"
    mapping = propose_column_mapping(
        headers, [["item_name", "Title", "Enter the title.", "Required"]], FeedSettings(), notes=notes
    )
    assert mapping.missing == ("key",)


def test_rug_sizes_in_centimetres() -> None:
    headers = ["SKU", "Construction", "Pile Height (mm)", "Size (cm)"]
    assert _map(headers, [["A-1", "Hand Knotted", "9", "160x230"]])["Size (cm)"] == "rug.size_text"


def test_a_lead_time_in_words_for_stock_is_an_availability() -> None:
    rows = [["A-1", "9.00", "In stock"], ["A-2", "9.00", "3 weeks"]]
    _, offer = _read(["SKU", "Price", "Lead Time"], rows[0], rows)
    assert (offer["lead_time_days"], offer["availability"]) == (0, "in_stock")


@pytest.mark.parametrize(
    ("title", "dimensions"),
    [
        ("Eettafel Bologna rond Ø130 cm", {"diameter": 5118}),
        ("Eettafel Oslo 160x90 cm", {"width": 6299, "depth": 3543}),
        ("Divan base 90x190cm", {"width": 3543, "depth": 7480}),
    ],
)
def test_sizes_in_titles(title: str, dimensions: dict[str, int]) -> None:
    data, _ = _read(["SKU", "Title"], ["A-1", title])
    assert {name: length["hundredths_in"] for name, length in data["dimensions"].items()} == dimensions


def test_the_length_of_a_bed_is_its_depth() -> None:
    data, _ = _read(["kod", "nazwa", "szerokosc_cm", "dlugosc_cm"], ["A-1", "Łóżko tapicerowane Ava", "152", "215"])
    assert {name: length["given"]["value"] for name, length in data["dimensions"].items()} == {
        "width": 152,
        "depth": 215,
    }


def test_attributes_of_magento() -> None:
    attributes = "color=Natural Oak,material=Oak, Steel,country_of_manufacture=Poland,has_options=0"
    data, _ = _read(["sku", "name", "additional_attributes"], ["A-1", "Table", attributes])
    assert (data["colour"], data["materials"]) == ("Natural Oak", ["Oak", "Steel"])
