"""Columns that each describe one variant of a row: fabric groups, sizes and beds."""

from collections.abc import Sequence
from typing import Any

import pytest

from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.ingestion.model import FeedSettings
from domain.ingestion.normalisation import normalise_rows
from domain.kernel.problems import Problem

Variants = list[tuple[str, dict[str, str], list[dict[str, Any]]]]


def _read(headers: Sequence[str], row: list[Any], notes: str = "", **settings: Any) -> tuple[Variants, list[Problem]]:
    given = FeedSettings(**{"currency": "eur", **settings})
    plan = ReadPlan(propose_column_mapping(headers, [row], given, notes=notes), given)
    product, problems = normalise_rows(str(plan.read_product_key(row)), [(2, row)], plan)
    variants = [
        (variant.key, variant.data.get("axes", {}), [dict[str, Any](offer.data) for offer in variant.offers])
        for variant in product.variants
    ]
    return variants, problems


def test_fabric_groups_are_variants() -> None:
    headers = ["Artikel-Nr.", "Bezeichnung", "EK netto PG 1", "EK netto PG 2", "EK netto PG 3"]
    variants, problems = _read(headers, ["V-1", "Sofa Alma", "899,00", "", "1099,00"])
    assert variants == [
        ("V-1 / 1", {"PG": "1"}, [{"currency": "eur", "cost": 89900}]),
        ("V-1 / 3", {"PG": "3"}, [{"currency": "eur", "cost": 109900}]),
    ]
    assert not problems


@pytest.mark.parametrize(
    ("first", "second", "axis"),
    [
        ("Stoffgruppe A", "Stoffgruppe B", "Stoffgruppe"),
        ("Price Group 1", "Price Group 2", "Price Group"),
        ("MSRP Leather 10", "MSRP Leather 20", "Leather"),
        ("Cat. A", "Cat. B", "Cat"),
        ("120x180", "160 x 230 cm", "Size"),
        ("2'6\" x 8'", "5' x 8'", "Size"),
        ("Price Twin", "Price Queen", "Size"),
    ],
)
def test_headers_of_options(first: str, second: str, axis: str) -> None:
    variants, _ = _read(["SKU", "Name", first, second], ["V-1", "Alma", "10.00", "20.00"])
    assert [list(axes) for _, axes, _ in variants] == [[axis], [axis]]
    prices = [offer.get("price") or offer.get("msrp") for _, _, (offer,) in variants]
    assert prices == [1000, 2000]


def test_sizes_in_a_stock_report_are_quantities() -> None:
    variants, _ = _read(["SKU", "Name", "120x180", "160x230"], ["R-1", "Rug Atlas", "4", "0"], stream="stock")
    assert [(key, offer["quantity"]) for key, _, (offer,) in variants] == [("R-1 / 120x180", 4), ("R-1 / 160x230", 0)]


@pytest.mark.parametrize(
    "headers",
    [
        ["SKU", "Name", "Price 1", "Price 2"],
        ["SKU", "Name", "Fabric 1", "Fabric 2"],
        ["SKU", "Name", "Group 1", "Price"],
        ["SKU", "Name", "Image 1", "Image 2"],
        ["SKU", "Name", "Customer Group 1", "Customer Group 2"],
    ],
)
def test_other_numbered_columns_are_no_options(headers: list[str]) -> None:
    text = "Linen" if "Fabric 1" in headers else "12.00"
    variants, _ = _read(headers, ["V-1", "Sofa", text, text])
    assert [key for key, _, _ in variants] == ["V-1"]


def test_rows_with_few_options() -> None:
    """A fault of a column without an option is reported once, and a row without amounts has no option."""
    headers, settings = ["SKU", "Name", "Width (cm)", "Price Twin", "Price Queen"], FeedSettings(currency="eur")
    plan = ReadPlan(propose_column_mapping(headers, [["B-1", "Bed", "95", "10.00", "20.00"]], settings), settings)
    _, problems = normalise_rows("B-2", [(3, ["B-2", "Bed", "wide", "10.00", "20.00"])], plan)
    assert [(problem.line, problem.column) for problem in problems] == [(3, "Width (cm)")]
    product, _ = normalise_rows("B-3", [(4, ["B-3", "Bed", "95", "", ""])], plan)
    assert [(variant.key, variant.data.get("axes")) for variant in product.variants] == [("B-3", None)]


def test_options_of_two_axes_with_equal_values() -> None:
    headers = ["SKU", "Name", "PG 1", "PG 2", "Leather 1", "Leather 3"]
    variants, _ = _read(headers, ["V-1", "Sofa", "10.00", "20.00", "30.00", "40.00"])
    assert [(key, axes, offer["price"]) for key, axes, (offer,) in variants] == [
        ("V-1 / PG 1", {"PG": "1"}, 1000),
        ("V-1 / 2", {"PG": "2"}, 2000),
        ("V-1 / Leather 1", {"Leather": "1"}, 3000),
        ("V-1 / 3", {"Leather": "3"}, 4000),
    ]


def test_price_of_an_option_precedes_the_price_of_the_row() -> None:
    variants, _ = _read(["SKU", "Name", "Price", "Price Twin", "Price Queen"], ["B-1", "Bed", "7.00", "10.00", "20.00"])
    assert [(key, offer["price"]) for key, _, (offer,) in variants] == [("B-1 / Twin", 1000), ("B-1 / Queen", 2000)]


@pytest.mark.parametrize("headers", [("Twin (lb)", "Queen (lb)"), ("Fabric 1 (m)", "Fabric 2 (m)")])
def test_measures_of_options_are_no_prices(headers: tuple[str, str]) -> None:
    variants, _ = _read(["SKU", "Name", *headers], ["B-1", "Bed", "80", "90"])
    assert [offers for _, _, offers in variants] == [[]]


@pytest.mark.parametrize(
    "headers",
    [
        ("Price 160x230", "Price 200x290", "Stock 160 x 230", "Stock 200×290"),
        ("PG A", "PG B", "Stock pg a", "Stock pg b"),
    ],
)
def test_spellings_of_one_option(headers: tuple[str, ...]) -> None:
    variants, _ = _read(["SKU", "Name", *headers], ["R-1", "Rug", "10.00", "20.00", "3", "4"])
    assert [(offer["price"], offer["quantity"]) for _, _, (offer,) in variants] == [(1000, 3), (2000, 4)]


def test_flags_of_options_are_no_prices() -> None:
    variants, _ = _read(["SKU", "Name", "Twin", "Queen"], ["B-1", "Bed", "1", "0"])
    assert [(key, offers) for key, _, offers in variants] == [("B-1", [])]


@pytest.mark.parametrize("words", [("",), ("Price", "MSRP", "Cost")])
def test_number_of_options_is_bounded(words: tuple[str, ...]) -> None:
    """Each row is read once for each option."""
    headers = [f"{words[at % len(words)]} {100 + at}x200" for at in range(500)]
    variants, _ = _read(["SKU", "Name", *headers], ["R-1", "Rug", *["10.00"] * len(headers)])
    assert len(variants) <= 200


@pytest.mark.parametrize(("title", "field"), [("Händlerpreisliste Herbst 2026", "cost"), ("Preisliste 2026", "price")])
def test_the_title_of_a_table_determines_the_field_of_the_amounts(title: str, field: str) -> None:
    variants, _ = _read(["Artikel-Nr.", "Bezeichnung", "PG 1", "PG 2"], ["V-1", "Sofa", "899,00", "950,00"], title)
    assert [offers[0][field] for _, _, offers in variants] == [89900, 95000]


def test_a_quantity_of_the_whole_row_is_the_stock_of_no_option() -> None:
    headers = ["SKU", "Name", "Stock", "PG 1", "PG 2"]
    mapping = propose_column_mapping(headers, [["V-1", "Sofa", "7", "899", "950"]], FeedSettings("eur"))
    assert [(one.column, one.reason) for one in mapping.unmapped] == [("Stock", "ambiguous")]


def test_a_price_code_selects_one_option_as_the_price_of_the_row() -> None:
    headers = ["Codice", "Articolo", "Giacenza", "Cat. A €", "Cat. B €", "Cat. C €"]
    variants, _ = _read(headers, ["V-1", "Divano", "3", "690", "745", "810"], price_code="Cat. B")
    (_, axes, (offer,)) = variants[0]
    assert (len(variants), axes, offer["price"], offer["quantity"]) == (1, {}, 74500, 3)


def test_words_before_the_axis_name_the_field_and_remarks_are_no_obstacle() -> None:
    headers = [
        "Art.-Nr.",
        "Bezeichnung",
        *(f"EK netto nach Stoffgruppe {name}" for name in ("PG 10", "PG 20", "Leder 70")),
    ]
    given = FeedSettings("eur")
    rows = [[f"V-{number}", "Sofa", "498", "539", "912"] for number in range(5)] + [
        ["V-9", "Sofa", "498", "539", "auf Anfrage"]
    ]
    fields = [
        (column.field, column.settings.get("option")) for column in propose_column_mapping(headers, rows, given).columns
    ]
    assert fields[2:] == [("cost", "10"), ("cost", "20"), ("cost", "70")]
