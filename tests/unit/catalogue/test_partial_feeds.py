"""A complete file without columns of an earlier file leaves the fields of these columns unchanged."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.catalogue.model import Offer, Product, ProductStatus, Stream
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.statements import ProductStatement, merge_statements
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.ingestion.model import FeedSettings
from domain.ingestion.normalisation import normalise_rows
from domain.runs.usecases.removal_limit import select_offers_kept_by_catalogue
from tests.support import builders

SOURCE = builders.source()
NOW = datetime(2026, 5, 1, tzinfo=UTC)
Table = tuple[str, Sequence[Sequence[Any]]]
FULL: Table = (
    "SKU|Product Name|Brand|Colour|Price|Qty|Lead Time (days)|Status|Carton 1 Width (in)|Carton 1 Weight (lb)|Carton 2 Weight (lb)",
    [["OAK-1", "Oak stool", "Fjord", "Oak", "79.00", "12", "14", "Active", "16", "25", "9"]],
)


class SourceCatalogue:
    """Products of one source after its complete files were imported."""

    def __init__(self) -> None:
        self.products: dict[str, Product] = {}
        self.reconciler: CatalogueReconciler | None = None
        self.statements: list[ProductStatement] = []

    def import_sheets(self, *tables: Table) -> "SourceCatalogue":
        """Read the sheets of a file and apply their statements to the products."""
        stated: dict[str, ProductStatement] = {}
        grouped = True
        for headers, rows in tables:
            names = tuple(headers.split("|"))
            mapping = propose_column_mapping(
                names, [["" if cell is None else str(cell) for cell in row] for row in rows], SETTINGS
            )
            plan = ReadPlan(mapping, SETTINGS, none_means_absent=True)
            grouped &= plan.has_product_column
            groups: dict[str, list[Any]] = {}
            for line, row in enumerate(rows, start=2):
                groups.setdefault(str(plan.read_product_key(row)), []).append((line, list(row)))
            for key, lines in groups.items():
                statement, _ = normalise_rows(key, lines, plan)
                stated[key] = merge_statements(stated[key], statement) if key in stated else statement
        self.statements = list(stated.values())
        self.reconciler = CatalogueReconciler(
            SOURCE,
            "run_1",
            Stream.CATALOGUE,
            NOW,
            True,
            dict(self.products),
            stated.__contains__,
            has_product_keys=grouped,
        )
        for statement in self.statements:
            product = self.reconciler.apply_product(statement)
            self.products[product.key] = product
        for key in self.products.keys() - stated.keys():
            self.reconciler.withdraw_absent_product(self.products[key])
        return self

    def offers(self, key: str = "OAK-1") -> dict[str, Offer]:
        return {offer.location: offer for one in self.products[key].variants for offer in one.offers}

    def variant(self, key: str = "OAK-1") -> Mapping[str, Any]:
        return self.products[key].variants[0].data


SETTINGS = FeedSettings(currency="usd")


@pytest.fixture
def catalogue() -> SourceCatalogue:
    return SourceCatalogue().import_sheets(FULL)


@pytest.mark.parametrize(
    "table",
    [
        ("SKU|Product Name", [["OAK-1", "Oak stool II"]]),
        ("SKU|Product Name|Image 1", [["OAK-1", "Oak stool", "https://x.example/1.jpg"]]),
        ("SKU|Product Name|Carton 1 Weight (lb)", [["OAK-1", "Oak stool", "26"]]),
        ("SKU|Product Name|Price", [["OAK-1", "Oak stool", "81.00"]]),
        ("SKU|Price", [["OAK-1", "81.00"]]),
    ],
)
def test_a_file_without_stock_columns_withdraws_nothing(catalogue: SourceCatalogue, table: Table) -> None:
    catalogue.import_sheets(table)
    (offer,) = catalogue.offers().values()
    assert (offer.data["quantity"], offer.data["lead_time_days"], offer.withdrawn_at) == (12, 14, None)
    assert offer.data["price"] == (8100 if "Price" in table[0] else 7900)
    held = frozenset({("OAK-1", "default"), ("OAK-1", "NJ"), ("OAK-2", "default")})
    assert select_offers_kept_by_catalogue(held, catalogue.statements) == held - {("OAK-2", "default")}


def test_a_price_without_a_location_applies_to_every_location() -> None:
    catalogue = SourceCatalogue().import_sheets(
        ("SKU|Product Name|Price|Qty NJ|Qty CA", [["OAK-1", "Oak stool", "79.00", "4", "5"]])
    )
    assert set(catalogue.offers()) == {"NJ", "CA"}
    catalogue.import_sheets(("SKU|Product Name|Price", [["OAK-1", "Oak stool", "81.00"]]))
    found = {
        place: (one.data["price"], one.data["quantity"], one.withdrawn_at) for place, one in catalogue.offers().items()
    }
    assert found == {"NJ": (8100, 4, None), "CA": (8100, 5, None)}
    catalogue.import_sheets(("SKU|Product Name|Price|Qty NJ", [["OAK-1", "Oak stool", "82.00", "3"]]))
    assert (catalogue.offers()["CA"].withdrawn_at, catalogue.offers()["NJ"].data["price"]) == (NOW, 8200)


GROUPED: Table = (
    "Parent SKU|SKU|Product Name|Color|Price|Qty",
    [["OAK", "OAK-R", "Oak stool", "Red", "79.00", "4"], ["OAK", "OAK-B", "Oak stool", "Blue", "79.00", "4"]],
)


def test_an_item_of_another_title_becomes_a_product() -> None:
    catalogue = (
        SourceCatalogue()
        .import_sheets(GROUPED)
        .import_sheets(("SKU|Product Name|Price", [["OAK-R", "Beech stool", "81.00"]]))
    )
    assert {key: product.data["title"] for key, product in catalogue.products.items()} == {
        "OAK": "Oak stool",
        "OAK-R": "Beech stool",
    }


def test_products_with_keys_of_former_variants_withdraw_the_variants() -> None:
    rows = [["OAK-R", "OAK-R-S", "Oak stool, small", "Red", "79.00", "4"]]
    catalogue = SourceCatalogue().import_sheets(GROUPED).import_sheets((GROUPED[0], rows))
    assert all(offer.withdrawn_at == NOW for offer in catalogue.offers("OAK").values())


@pytest.mark.parametrize(
    "table", [("SKU|Price", [["OAK-R", "81.00"]]), ("SKU|Product Name|Price", [["OAK-R", "Oak stool", "81.00"]])]
)
def test_variants_keep_their_product_in_a_file_without_products(table: Table) -> None:
    catalogue = SourceCatalogue().import_sheets(GROUPED).import_sheets(table)
    (product,) = catalogue.products.values()
    assert {one.key: one.offers[0].data["price"] for one in product.variants} == {"OAK-R": 8100, "OAK-B": 7900}
    assert product.data["title"] == "Oak stool"
    withdrawn = {one.key: one.offers[0].withdrawn_at for one in product.variants}
    assert withdrawn == {"OAK-R": None, "OAK-B": NOW}, "the complete file lists one of its variants"
    assert catalogue.reconciler is not None
    assert catalogue.reconciler.products_with_listed_variants == {"OAK"}


@pytest.mark.parametrize("later", ["SKU|Price", "SKU|Product Name|Price|Qty"])
def test_an_item_stays_discontinued_without_a_status_column(later: str) -> None:
    catalogue = SourceCatalogue().import_sheets((FULL[0], [[*FULL[1][0][:7], "Discontinued", *FULL[1][0][8:]]]))
    assert catalogue.products["OAK-1"].status == ProductStatus.DISCONTINUED
    row = {"SKU": "OAK-1", "Price": "80", "Product Name": "Oak stool", "Qty": "3"}
    catalogue.import_sheets((later, [[row[name] for name in later.split("|")]]))
    assert (
        catalogue.products["OAK-1"].status
        == catalogue.products["OAK-1"].variants[0].status
        == ProductStatus.DISCONTINUED
    )
    catalogue.import_sheets(FULL)
    assert catalogue.products["OAK-1"].status == ProductStatus.ACTIVE


def test_an_item_with_a_discontinued_availability_returns_with_another_availability() -> None:
    headers = "SKU|Product Name|Price|Availability"
    catalogue = SourceCatalogue().import_sheets((headers, [["OAK-1", "Oak stool", "79", "Discontinued"]]))
    assert catalogue.products["OAK-1"].status == ProductStatus.DISCONTINUED
    catalogue.import_sheets((headers, [["OAK-1", "Oak stool", "79", "In stock"]]))
    assert catalogue.products["OAK-1"].status == ProductStatus.ACTIVE


def test_an_absent_product_becomes_active_when_it_is_listed_again(catalogue: SourceCatalogue) -> None:
    catalogue.products["OAK-1"].status = ProductStatus.PROBABLY_DISCONTINUED
    catalogue.import_sheets(("SKU|Product Name", [["OAK-1", "Oak stool II"]]))
    assert catalogue.products["OAK-1"].status == ProductStatus.ACTIVE


def test_sheets_complete_each_other_field_by_field() -> None:
    catalogue = SourceCatalogue().import_sheets(
        ("SKU|Product Name|Price|Width (in)", [["OAK-1", "Oak stool", "79.00", "14"]]),
        ("SKU|Product Name|Qty|Lead Time (days)|Seat Height (in)", [["OAK-1", "Oak stool", "5", "14", "18"]]),
    )
    (offer,) = catalogue.offers().values()
    assert {name: offer.data[name] for name in ("price", "quantity", "lead_time_days")} == {
        "price": 7900, "quantity": 5, "lead_time_days": 14,
    }  # fmt: skip
    assert set(catalogue.variant()["dimensions"]) == {"width", "seat_height"}


def test_prices_of_one_sheet_apply_to_locations_of_another_sheet() -> None:
    catalogue = SourceCatalogue().import_sheets(
        ("SKU|Product Name|Price", [["OAK-1", "Oak stool", "79.00"]]),
        ("SKU|Product Name|Qty NJ|Qty CA", [["OAK-1", "Oak stool", "5", "6"]]),
    )
    found = {place: (one.data["price"], one.data["quantity"]) for place, one in catalogue.offers().items()}
    assert found == {"NJ": (7900, 5), "CA": (7900, 6)}


def test_an_absent_cell_keeps_a_value_and_a_blank_cell_removes_it(catalogue: SourceCatalogue) -> None:
    headers = "SKU|Product Name|Brand|Colour|Price"
    catalogue.import_sheets((headers, [["OAK-1", "Oak stool", None, None, "80"]]))
    assert (catalogue.products["OAK-1"].data["brand"], catalogue.variant()["colour"]) == ("Fjord", "Oak")
    catalogue.import_sheets((headers, [["OAK-1", "Oak stool", "", "", "80"]]))
    assert "brand" not in catalogue.products["OAK-1"].data
    assert "colour" not in catalogue.variant()


def test_cartons_keep_measures_and_numbers_without_columns(catalogue: SourceCatalogue) -> None:
    before = catalogue.variant()["cartons"]
    catalogue.import_sheets(("SKU|Product Name|Carton 1 Weight (lb)", [["OAK-1", "Oak stool", "26"]]))
    first, second = catalogue.variant()["cartons"]
    assert (first["width"], second) == (before[0]["width"], before[1])
    assert first["weight"]["given"]["value"] in (26, "26")
    catalogue.import_sheets(("SKU|Product Name|Carton 1 Weight (lb)", [["OAK-1", "Oak stool", ""]]))
    assert [carton.keys() for carton in catalogue.variant()["cartons"]] == [{"width", "count"}, {"weight", "count"}]


OWN_KEY: Table = (
    "Parent SKU|SKU|Product Name|Color|Price|Qty",
    [["OAK", "OAK", "Oak stool", "Red", "79", "4"], ["OAK", "OAK-B", "Oak stool", "Blue", "79", "5"]],
)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_price_list_keeps_stock_if_a_product_has_the_key_of_its_variant(order: tuple[int, int]) -> None:
    rows = [["OAK", "81"], ["OAK-B", "82"]]
    catalogue = SourceCatalogue().import_sheets(OWN_KEY)
    for _ in range(2):
        catalogue.import_sheets(("SKU|Price", [rows[at] for at in order]))
        found = {one.key: one.offers[0] for one in catalogue.products["OAK"].variants}
        assert {key: (one.data["price"], one.data["quantity"], one.withdrawn_at) for key, one in found.items()} == {
            "OAK": (8100, 4, None),
            "OAK-B": (8200, 5, None),
        }
    assert catalogue.reconciler is not None
    assert catalogue.reconciler.events == []


def test_items_of_an_ungrouped_sheet_are_kept_with_a_grouped_sheet() -> None:
    elm = (GROUPED[0], [["ELM", "ELM-R", "Elm stool", "Red", "60", "1"]])
    catalogue = (
        SourceCatalogue().import_sheets(GROUPED).import_sheets(elm, ("SKU|Price", [["OAK-R", "81"], ["OAK-B", "81"]]))
    )
    found = {one.key: one.offers[0] for one in catalogue.products["OAK"].variants}
    assert {(one.data["price"], one.data["quantity"], one.withdrawn_at) for one in found.values()} == {(8100, 4, None)}


def test_a_general_price_also_applies_to_the_default_location() -> None:
    catalogue = SourceCatalogue().import_sheets(
        ("SKU|Product Name|Price|Qty NJ|Qty CA", [["OAK-1", "Oak stool", "79", "4", "5"]])
    )
    catalogue.import_sheets(
        ("SKU|Product Name|Warehouse|Price|Qty", [["OAK-1", "Oak", w, "79", "9"] for w in ("NJ", "CA", "")])
    )
    catalogue.import_sheets(("SKU|Product Name|Price", [["OAK-1", "Oak stool", "85"]]))
    assert {place: one.data["price"] for place, one in catalogue.offers().items()} == {
        "NJ": 8500,
        "CA": 8500,
        "default": 8500,
    }


def test_general_prices_do_not_mix_with_prices_in_another_currency() -> None:
    headers = "SKU|Product Name|Warehouse|Currency|Price|MSRP|Compare At Price"
    both = [["A", "Oak", "NJ", "EUR", "70", "", ""], ["A", "Oak", "CA", "USD", "79", "", ""]]
    catalogue = SourceCatalogue().import_sheets((headers, both))
    catalogue.import_sheets(
        (headers, [["A", "Oak", "", "USD", "79", "99", "110"], ["A", "Oak", "NJ", "EUR", "70", "", ""]])
    )
    assert {name: catalogue.offers("A")["NJ"].data.get(name) for name in ("currency", "price", "msrp", "compare_at")} == {
        "currency": "eur", "price": 7000, "msrp": None, "compare_at": None,
    }  # fmt: skip


def test_absent_cells_neither_withdraw_nor_reactivate() -> None:
    headers = "SKU|Product Name|Price|Qty NJ|Qty CA|Status"
    catalogue = SourceCatalogue().import_sheets((headers, [["A", "Oak", "79", "4", "5", "Discontinued"]]))
    catalogue.import_sheets((headers, [["A", "Oak", None, None, None, None]]))
    catalogue.import_sheets((headers, [["A", "Oak", "80", "3", None, None]]))
    found = {place: (one.data["quantity"], one.withdrawn_at) for place, one in catalogue.offers("A").items()}
    assert found == {"NJ": (3, None), "CA": (5, None)}
    assert catalogue.products["A"].status == ProductStatus.DISCONTINUED


def test_a_blank_cell_applies_to_the_location_of_its_row() -> None:
    headers = "SKU|Product Name|Warehouse|Price|MSRP|Qty"
    catalogue = SourceCatalogue().import_sheets(
        (headers, [["A", "Oak", place, "79", "99", "4"] for place in ("NJ", "CA")])
    )
    catalogue.import_sheets((headers, [["A", "Oak", "NJ", "79", "99", "4"], ["A", "Oak", "CA", "79", "", ""]]))
    assert {place: (one.data.get("msrp"), one.data.get("quantity")) for place, one in catalogue.offers("A").items()} == {
        "NJ": (9900, 4), "CA": (None, None),
    }  # fmt: skip


def test_a_blank_price_is_removed_without_the_stock() -> None:
    catalogue = SourceCatalogue().import_sheets(
        ("SKU|Product Name|Price|Sale Price|Qty", [["A", "Oak", "100", "80", "3"]])
    )
    catalogue.import_sheets(("SKU|Sale Price", [["A", ""]]))
    (offer,) = catalogue.offers("A").values()
    assert "compare_at" not in offer.data
    assert offer.data["quantity"] == 3


def test_a_withdrawn_location_does_not_reactivate_a_discontinued_item() -> None:
    headers = "SKU|Product Name|Status|Price|Qty NJ|Qty CA"
    catalogue = SourceCatalogue().import_sheets((headers, [["A", "Oak", "Active", "79", "1", "2"]]))
    catalogue.import_sheets((headers.rpartition("|")[0], [["A", "Oak", "Discontinued", "79", "1"]]))
    catalogue.import_sheets(("SKU|Product Name|Price|Qty NJ", [["A", "Oak", "79", "3"]]))
    assert catalogue.products["A"].status == ProductStatus.DISCONTINUED


def test_a_status_of_only_the_product_is_kept() -> None:
    headers = "Parent SKU|SKU|Product Name|Color|Price|Status"
    rows = [["OAK", "", "Oak stool", "", "", "Discontinued"], ["OAK", "OAK-R", "Oak stool", "Red", "79", ""]]
    catalogue = SourceCatalogue().import_sheets((headers, rows))
    before = catalogue.products["OAK"].status
    catalogue.import_sheets(("Parent SKU|SKU|Price", [["OAK", "OAK-R", "80"]]))
    assert catalogue.products["OAK"].status == before


def test_variants_change_only_their_own_fields() -> None:
    catalogue = SourceCatalogue().import_sheets(GROUPED)
    table: Table = (
        "SKU|Product Name|Tags|Price",
        [["OAK-R", "Oak stool", "red", "80"], ["OAK-B", "Oak stool", "blue", "80"]],
    )
    catalogue.import_sheets(table).import_sheets(table)
    assert catalogue.reconciler is not None
    assert catalogue.reconciler.events == []


def test_cartons_merge_by_their_number() -> None:
    names = "SKU|Product Name|Carton 1 Width (in)|Carton 2 Width (in)|Carton 3 Width (in)"
    catalogue = SourceCatalogue().import_sheets((names, [["A", "Oak", "10", "20", "30"]]))
    weights = "SKU|Product Name|Carton 1 Weight (lb)|Carton 2 Weight (lb)|Carton 3 Weight (lb)"
    catalogue.import_sheets((weights, [["A", "Oak", "1", "", "3"]]))
    catalogue.import_sheets(("SKU|Product Name|Carton 2 Weight (lb)", [["A", "Oak", "2"]]))
    catalogue.import_sheets((weights, [["A", "Oak", None, None, "4"]]))
    found = [
        (box["width"]["hundredths_in"], box["weight"]["hundredths_lb"]) for box in catalogue.variant("A")["cartons"]
    ]
    assert found == [(1000, 100), (2000, 200), (3000, 400)]


def test_cartons_of_two_sheets_are_joined() -> None:
    catalogue = SourceCatalogue().import_sheets(
        ("SKU|Product Name|Carton 1 Width (in)", [["A", "Oak", "10"]]),
        ("SKU|Product Name|Carton 1 Weight (lb)|Carton 2 Weight (lb)", [["A", "Oak", "1", "2"]]),
    )
    assert [box.keys() - {"count"} for box in catalogue.variant("A")["cartons"]] == [{"width", "weight"}, {"weight"}]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_sheet_with_complete_cartons_fills_absent_cells_of_another_sheet(order: tuple[int, int]) -> None:
    sheets: tuple[Table, Table] = (
        ("SKU|Product Name|Carton 1 Weight (lb)", [["A", "Oak", None]]),
        ("SKU|Product Name|Packages", [["A", "Oak", "10 x 20 x 30 in, 40 lb"]]),
    )
    catalogue = SourceCatalogue().import_sheets(("SKU|Product Name|Carton 1 Width (in)", [["A", "Oak", "9"]]))
    catalogue.import_sheets(*(sheets[at] for at in order))
    (box,) = catalogue.variant("A")["cartons"]
    assert box["width"]["hundredths_in"] == 1000


def test_the_removal_limit_ignores_offers_kept_by_a_general_price() -> None:
    headers = "SKU|Product Name|Price|Qty NJ|Qty CA"
    catalogue = (
        SourceCatalogue()
        .import_sheets((headers, [["A", "Oak", "79", "4", "5"]]))
        .import_sheets((headers, [["A", "Oak", "81", "", ""]]))
    )
    held = frozenset({("A", "NJ"), ("A", "CA")})
    assert select_offers_kept_by_catalogue(held, catalogue.statements) == held
    assert all(offer.withdrawn_at is None for offer in catalogue.offers("A").values())
