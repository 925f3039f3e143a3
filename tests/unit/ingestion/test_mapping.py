"""Proposed mappings of headers to fields."""

import pytest

from domain.ingestion.mapping.columns import complete_settings
from domain.ingestion.mapping.proposal import map_declared_fields, propose_column_mapping
from domain.ingestion.model import FeedSettings, HeaderMapping
from domain.ingestion.vocabulary.fields import is_field
from domain.ingestion.vocabulary.header_meanings import count_known_headers, find_header_meanings


def _get_fields(mapping: HeaderMapping) -> dict[str, str]:
    return {column.column: column.field for column in mapping.columns}


def _get_reasons(mapping: HeaderMapping) -> dict[str, str]:
    return {column.column: column.reason for column in mapping.unmapped}


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ("UPC Code", "gtin"),
        ("\ufeffSKU*", "sku"),
        ("Item #", "sku"),
        ("Discontinued \nDate", "ignore"),
        ("Depth  (inches)", "dimensions.depth"),
        ("quantityOnHand", "quantity"),
        ("wholesale_price", "cost"),
        ("g:price", "price"),
        ("variants.0.price", "price"),
        ("product.title", "title"),
        ("dimensions.width.value", "dimensions.width"),
        ("Acme UPC Code", "gtin"),
        ("Mattress Width", "ignore"),
        ("Seat Width", "ignore"),
        ("Seat Height", "dimensions.seat_height"),
        ("Carton Height (Box 2)", "cartons.1.height"),
        ("Shipping Weight (Box 1)", "cartons.0.weight"),
        ("Bullet Point 3", "features"),
        ("Option2 Value", "option_value.1"),
        ("ETA for Inbound Shipment 2", "incoming.1.eta"),
        ("Ancho", "dimensions.width"),
        ("Breite (cm)", "dimensions.width"),
        ("EK netto", "cost"),
        ("MAP Price (Sale Price)", "map"),
        ("Shipping Cost", "ignore"),
        ("Harmonized Code", "ignore"),
        ("Flux capacitance", None),
    ],
)
def test_headers_have_meanings(header: str, field: str | None) -> None:
    found = find_header_meanings(header)
    assert (found[0].field if found else None) == field


def test_units_and_orders_in_headers_become_settings() -> None:
    headers = ["SKU", "Width (inches)", "Size - Cm", "Weight (LB)", "Maße (BxHxT)", "Price EUR", "Variant Grams"]
    settings = {
        column.column: dict(column.settings) for column in propose_column_mapping(headers, [], FeedSettings()).columns
    }
    assert settings["Width (inches)"] == {"unit": "in"}
    assert settings["Weight (LB)"] == {"unit": "lb"}
    assert settings["Price EUR"] == {"currency": "eur"}
    assert settings["Variant Grams"]["unit"] == "g"
    assert settings["Maße (BxHxT)"]["order"] == "bht"


def test_the_same_header_twice_is_mapped_once() -> None:
    mapping = propose_column_mapping(["SKU", "MSRP", "MSRP", "Feature 1", "Feature 2"], [], FeedSettings())
    assert [(c.position, c.field) for c in mapping.columns] == [
        (0, "sku"),
        (1, "msrp"),
        (3, "features"),
        (4, "features"),
    ]
    assert _get_reasons(mapping) == {"MSRP": "ambiguous"}


def test_price_codes_choose_among_price_columns() -> None:
    headers = ["Item", "Description", "East", "West"]
    samples = [["A-1", "Oak table, round", "100.00", "120.00"]]
    assert _get_fields(propose_column_mapping(headers, samples, FeedSettings(currency="usd")))["East"] == "cost"
    chosen = propose_column_mapping(headers, samples, FeedSettings(currency="usd", price_code="west"))
    assert _get_fields(chosen)["West"] == "cost"
    other = next(column for column in chosen.columns if column.column == "East")
    assert (other.field, other.settings["alternative"]) == ("cost", "yes")


def test_a_title_is_found_among_weaker_columns() -> None:
    assert (
        _get_fields(
            propose_column_mapping(["ITEM NUMBER", "DESCRIPTION"], [["A-1", "Queen Bed, Ash"]], FeedSettings())
        )["DESCRIPTION"]
        == "title"
    )
    headers = ["SKU", "Name", "Short Description", "Description"]
    mapped = _get_fields(propose_column_mapping(headers, [["A-1", "NORD", "Chest, Gray", "A chest."]], FeedSettings()))
    assert (mapped["Name"], mapped["Short Description"], mapped["Description"]) == (
        "collection",
        "title",
        "description",
    )


def test_warehouse_columns_have_locations() -> None:
    headers = ["Item", "NJ", "CA", "ETA NJ", "ETA CA", "Total"]
    samples = [["A-1", "20+", "", "", "01/24/2027", "20"], ["A-2", "Call", "0", "", "", ""]]
    mapping = propose_column_mapping(headers, samples, FeedSettings(stream="stock"))
    found = {column.column: (column.field, column.settings.get("location")) for column in mapping.columns}
    assert found["NJ"] == ("quantity", "NJ")
    assert found["ETA CA"] == ("incoming.0.eta", "CA")
    assert _get_reasons(mapping)["Total"] == "ignored"


def test_quantities_have_the_location_of_their_header() -> None:
    mapping = propose_column_mapping(
        ["SKU", "Qty Dallas", "Qty Reno", "On Order Reno"], [["A-1", "3", "9", "5"]], FeedSettings(stream="stock")
    )
    found = [(column.field, column.settings.get("location")) for column in mapping.columns]
    assert found == [("sku", None), ("quantity", "Dallas"), ("quantity", "Reno"), ("incoming.0.quantity", "Reno")]


def test_measures_are_not_warehouses() -> None:
    mapping = propose_column_mapping(
        ["SKU", "Width", "Weight", "Qty"], [["A-1", "30", "12", "4"]], FeedSettings(stream="stock", currency="usd")
    )
    assert _get_fields(mapping) == {"SKU": "sku", "Width": "dimensions.width", "Weight": "weight", "Qty": "quantity"}


def test_samples_determine_units_decimal_marks_and_orders() -> None:
    headers = ["SKU", "Depth", "Price", "ETA", "Qty"]
    samples = [["A-1", "23.5 in", "12,50", "01/24/2027", "1"], ["A-2", "27.8", "13,00", "03/04/2027", "2"]]
    settings = {
        column.column: dict(column.settings)
        for column in propose_column_mapping(headers, samples, FeedSettings(currency="eur")).columns
    }
    assert settings["Depth"] == {"unit": "in", "unit_by": "column"}
    assert settings["Price"] == {"decimal": "comma"}
    assert settings["ETA"] == {"order": "mdy"}


def test_the_market_of_the_currency_proposes_a_unit() -> None:
    samples = [["A-1", "30"]]
    assert (
        propose_column_mapping(["SKU", "Width"], samples, FeedSettings(currency="usd")).columns[1].settings["unit_by"]
        == "market"
    )
    assert "unit" not in propose_column_mapping(["SKU", "Width"], samples, FeedSettings()).columns[1].settings


def test_missing_required_columns_are_listed() -> None:
    assert propose_column_mapping(["Color", "Price"], [], FeedSettings()).missing == ("key",)
    assert propose_column_mapping(["Title", "Price"], [], FeedSettings()).missing == ()
    assert propose_column_mapping(["SKU", "Color"], [], FeedSettings(stream="stock")).missing == ("stock",)


def test_declared_fields_have_settings() -> None:
    mapping = map_declared_fields(["a", "b", "c", "d"], ["sku", "weight@unit=g", "quantity@location=NJ", None])
    assert [(c.field, dict(c.settings)) for c in mapping.columns] == [
        ("sku", {}),
        ("weight", {"unit": "g"}),
        ("quantity", {"location": "NJ"}),
    ]
    assert _get_reasons(mapping) == {"d": "ignored"}


def test_valid_field_names_are_recognised() -> None:
    known = [
        "sku",
        "axes.Size",
        "cartons.3.weight",
        "incoming.0.eta",
        "compliance.sturdy_act",
        "rug.shape",
        "option_name.1",
    ]
    assert all(map(is_field, known))
    assert not any(map(is_field, ["", "axes.", "cartons.0.colour", "compliance.odd", "price.usd", "incoming.x.eta"]))


def test_header_rows_are_recognised_by_their_words() -> None:
    assert count_known_headers(["SKU", "Title", "Price", "Width (in)"]) == 4
    assert count_known_headers(["Stock list as of today", "", ""]) == 0


def test_the_same_input_gives_the_same_mapping() -> None:
    headers = ["Handle", "Title", "Option1 Name", "Option1 Value", "Variant SKU", "Variant Price", "Image Src"]
    assert propose_column_mapping(headers, [], FeedSettings()) == propose_column_mapping(headers, [], FeedSettings())


@pytest.mark.parametrize(
    ("notes", "settings"),
    [
        ("Preisliste 2026\nAlle Preise in EUR, Maße in cm", {"currency": "eur", "length_unit": "cm"}),
        ("Acme Inc. PRICES USD, weights in lbs, sofas from 84 in", {"currency": "usd", "weight_unit": "lb"}),
        ("1 EUR = 1.08 USD; inches (cm)", {}),
        ("Oak table 200 cm", {}),
    ],
)
def test_the_text_above_a_table_states_settings(notes: str, settings: dict[str, str]) -> None:
    assert complete_settings(FeedSettings(), notes) == FeedSettings(**settings)
    assert complete_settings(FeedSettings("gbp"), notes).currency == "gbp", "a setting of the source is kept"
