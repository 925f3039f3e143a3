"""A complete file that lacks columns of an earlier one leaves alone what it does not state."""

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


class Shop:
    """The products of a source, after complete files."""

    def __init__(self) -> None:
        self.products: dict[str, Product] = {}
        self.last: CatalogueReconciler | None = None
        self.statements: list[ProductStatement] = []

    def take(self, *tables: Table) -> "Shop":
        """Read the sheets of a file, and bring the products to what they state."""
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
        self.last = CatalogueReconciler(
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
            product = self.last.apply_product(statement)
            self.products[product.key] = product
        for key in self.products.keys() - stated.keys():
            self.last.withdraw_absent_product(self.products[key])
        return self

    def offers(self, key: str = "OAK-1") -> dict[str, Offer]:
        return {offer.location: offer for one in self.products[key].variants for offer in one.offers}

    def variant(self, key: str = "OAK-1") -> Mapping[str, Any]:
        return self.products[key].variants[0].data


SETTINGS = FeedSettings(currency="usd")


@pytest.fixture
def shop() -> Shop:
    return Shop().take(FULL)


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
def test_a_file_without_stock_columns_withdraws_nothing(shop: Shop, table: Table) -> None:
    shop.take(table)
    (offer,) = shop.offers().values()
    assert (offer.data["quantity"], offer.data["lead_time_days"], offer.withdrawn_at) == (12, 14, None)
    assert offer.data["price"] == (8100 if "Price" in table[0] else 7900)
    held = frozenset({("OAK-1", "default"), ("OAK-1", "NJ"), ("OAK-2", "default")})
    assert select_offers_kept_by_catalogue(held, shop.statements) == held - {("OAK-2", "default")}


def test_a_price_without_a_location_holds_at_every_location() -> None:
    shop = Shop().take(("SKU|Product Name|Price|Qty NJ|Qty CA", [["OAK-1", "Oak stool", "79.00", "4", "5"]]))
    assert set(shop.offers()) == {"NJ", "CA"}
    shop.take(("SKU|Product Name|Price", [["OAK-1", "Oak stool", "81.00"]]))
    found = {place: (one.data["price"], one.data["quantity"], one.withdrawn_at) for place, one in shop.offers().items()}
    assert found == {"NJ": (8100, 4, None), "CA": (8100, 5, None)}
    shop.take(("SKU|Product Name|Price|Qty NJ", [["OAK-1", "Oak stool", "82.00", "3"]]))
    assert (shop.offers()["CA"].withdrawn_at, shop.offers()["NJ"].data["price"]) == (NOW, 8200)


GROUPED: Table = (
    "Parent SKU|SKU|Product Name|Color|Price|Qty",
    [["OAK", "OAK-R", "Oak stool", "Red", "79.00", "4"], ["OAK", "OAK-B", "Oak stool", "Blue", "79.00", "4"]],
)


def test_an_item_of_another_title_becomes_a_product() -> None:
    shop = Shop().take(GROUPED).take(("SKU|Product Name|Price", [["OAK-R", "Beech stool", "81.00"]]))
    assert {key: product.data["title"] for key, product in shop.products.items()} == {
        "OAK": "Oak stool",
        "OAK-R": "Beech stool",
    }


def test_a_feed_whose_products_have_the_keys_of_former_variants_withdraws_those() -> None:
    rows = [["OAK-R", "OAK-R-S", "Oak stool, small", "Red", "79.00", "4"]]
    shop = Shop().take(GROUPED).take((GROUPED[0], rows))
    assert all(offer.withdrawn_at == NOW for offer in shop.offers("OAK").values())


@pytest.mark.parametrize(
    "table", [("SKU|Price", [["OAK-R", "81.00"]]), ("SKU|Product Name|Price", [["OAK-R", "Oak stool", "81.00"]])]
)
def test_variants_stay_with_their_product_in_a_file_that_names_none(table: Table) -> None:
    shop = Shop().take(GROUPED).take(table)
    (product,) = shop.products.values()
    assert {one.key: one.offers[0].data["price"] for one in product.variants} == {"OAK-R": 8100, "OAK-B": 7900}
    assert product.data["title"] == "Oak stool"
    withdrawn = {one.key: one.offers[0].withdrawn_at for one in product.variants}
    assert withdrawn == {"OAK-R": None, "OAK-B": NOW}, "the complete file names one of them"
    assert shop.last is not None
    assert shop.last.products_with_listed_variants == {"OAK"}


@pytest.mark.parametrize("later", ["SKU|Price", "SKU|Product Name|Price|Qty"])
def test_a_discontinued_item_stays_so_without_a_column_of_the_status(later: str) -> None:
    shop = Shop().take((FULL[0], [[*FULL[1][0][:7], "Discontinued", *FULL[1][0][8:]]]))
    assert shop.products["OAK-1"].status == ProductStatus.DISCONTINUED
    row = {"SKU": "OAK-1", "Price": "80", "Product Name": "Oak stool", "Qty": "3"}
    shop.take((later, [[row[name] for name in later.split("|")]]))
    assert shop.products["OAK-1"].status == shop.products["OAK-1"].variants[0].status == ProductStatus.DISCONTINUED
    shop.take(FULL)
    assert shop.products["OAK-1"].status == ProductStatus.ACTIVE


def test_an_item_with_a_discontinued_availability_returns_with_another_availability() -> None:
    headers = "SKU|Product Name|Price|Availability"
    shop = Shop().take((headers, [["OAK-1", "Oak stool", "79", "Discontinued"]]))
    assert shop.products["OAK-1"].status == ProductStatus.DISCONTINUED
    shop.take((headers, [["OAK-1", "Oak stool", "79", "In stock"]]))
    assert shop.products["OAK-1"].status == ProductStatus.ACTIVE


def test_an_absent_product_is_active_once_it_is_stated_again(shop: Shop) -> None:
    shop.products["OAK-1"].status = ProductStatus.PROBABLY_DISCONTINUED
    shop.take(("SKU|Product Name", [["OAK-1", "Oak stool II"]]))
    assert shop.products["OAK-1"].status == ProductStatus.ACTIVE


def test_sheets_complete_each_other_field_by_field() -> None:
    shop = Shop().take(
        ("SKU|Product Name|Price|Width (in)", [["OAK-1", "Oak stool", "79.00", "14"]]),
        ("SKU|Product Name|Qty|Lead Time (days)|Seat Height (in)", [["OAK-1", "Oak stool", "5", "14", "18"]]),
    )
    (offer,) = shop.offers().values()
    assert {name: offer.data[name] for name in ("price", "quantity", "lead_time_days")} == {
        "price": 7900, "quantity": 5, "lead_time_days": 14,
    }  # fmt: skip
    assert set(shop.variant()["dimensions"]) == {"width", "seat_height"}


def test_prices_of_one_sheet_hold_at_the_locations_of_another() -> None:
    shop = Shop().take(
        ("SKU|Product Name|Price", [["OAK-1", "Oak stool", "79.00"]]),
        ("SKU|Product Name|Qty NJ|Qty CA", [["OAK-1", "Oak stool", "5", "6"]]),
    )
    found = {place: (one.data["price"], one.data["quantity"]) for place, one in shop.offers().items()}
    assert found == {"NJ": (7900, 5), "CA": (7900, 6)}


def test_an_absent_cell_keeps_and_a_blank_one_removes(shop: Shop) -> None:
    headers = "SKU|Product Name|Brand|Colour|Price"
    shop.take((headers, [["OAK-1", "Oak stool", None, None, "80"]]))
    assert (shop.products["OAK-1"].data["brand"], shop.variant()["colour"]) == ("Fjord", "Oak")
    shop.take((headers, [["OAK-1", "Oak stool", "", "", "80"]]))
    assert "brand" not in shop.products["OAK-1"].data
    assert "colour" not in shop.variant()


def test_cartons_keep_parts_and_numbers_without_a_column(shop: Shop) -> None:
    before = shop.variant()["cartons"]
    shop.take(("SKU|Product Name|Carton 1 Weight (lb)", [["OAK-1", "Oak stool", "26"]]))
    first, second = shop.variant()["cartons"]
    assert (first["width"], second) == (before[0]["width"], before[1])
    assert first["weight"]["given"]["value"] in (26, "26")
    shop.take(("SKU|Product Name|Carton 1 Weight (lb)", [["OAK-1", "Oak stool", ""]]))
    assert [carton.keys() for carton in shop.variant()["cartons"]] == [{"width", "count"}, {"weight", "count"}]


OWN_KEY: Table = (
    "Parent SKU|SKU|Product Name|Color|Price|Qty",
    [["OAK", "OAK", "Oak stool", "Red", "79", "4"], ["OAK", "OAK-B", "Oak stool", "Blue", "79", "5"]],
)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_price_list_keeps_the_stock_of_variants_of_a_product_with_the_key_of_one(order: tuple[int, int]) -> None:
    rows = [["OAK", "81"], ["OAK-B", "82"]]
    shop = Shop().take(OWN_KEY)
    for _ in range(2):
        shop.take(("SKU|Price", [rows[at] for at in order]))
        found = {one.key: one.offers[0] for one in shop.products["OAK"].variants}
        assert {key: (one.data["price"], one.data["quantity"], one.withdrawn_at) for key, one in found.items()} == {
            "OAK": (8100, 4, None),
            "OAK-B": (8200, 5, None),
        }
    assert shop.last is not None
    assert shop.last.events == []


def test_items_of_an_ungrouped_sheet_next_to_a_grouped_one_are_kept() -> None:
    elm = (GROUPED[0], [["ELM", "ELM-R", "Elm stool", "Red", "60", "1"]])
    shop = Shop().take(GROUPED).take(elm, ("SKU|Price", [["OAK-R", "81"], ["OAK-B", "81"]]))
    found = {one.key: one.offers[0] for one in shop.products["OAK"].variants}
    assert {(one.data["price"], one.data["quantity"], one.withdrawn_at) for one in found.values()} == {(8100, 4, None)}


def test_a_general_price_holds_at_the_default_location_too() -> None:
    shop = Shop().take(("SKU|Product Name|Price|Qty NJ|Qty CA", [["OAK-1", "Oak stool", "79", "4", "5"]]))
    shop.take(("SKU|Product Name|Warehouse|Price|Qty", [["OAK-1", "Oak", w, "79", "9"] for w in ("NJ", "CA", "")]))
    shop.take(("SKU|Product Name|Price", [["OAK-1", "Oak stool", "85"]]))
    assert {place: one.data["price"] for place, one in shop.offers().items()} == {
        "NJ": 8500,
        "CA": 8500,
        "default": 8500,
    }


def test_general_prices_do_not_mix_with_those_of_another_currency() -> None:
    headers = "SKU|Product Name|Warehouse|Currency|Price|MSRP|Compare At Price"
    both = [["A", "Oak", "NJ", "EUR", "70", "", ""], ["A", "Oak", "CA", "USD", "79", "", ""]]
    shop = Shop().take((headers, both))
    shop.take((headers, [["A", "Oak", "", "USD", "79", "99", "110"], ["A", "Oak", "NJ", "EUR", "70", "", ""]]))
    assert {name: shop.offers("A")["NJ"].data.get(name) for name in ("currency", "price", "msrp", "compare_at")} == {
        "currency": "eur", "price": 7000, "msrp": None, "compare_at": None,
    }  # fmt: skip


def test_absent_cells_withdraw_and_revive_nothing() -> None:
    headers = "SKU|Product Name|Price|Qty NJ|Qty CA|Status"
    shop = Shop().take((headers, [["A", "Oak", "79", "4", "5", "Discontinued"]]))
    shop.take((headers, [["A", "Oak", None, None, None, None]]))
    shop.take((headers, [["A", "Oak", "80", "3", None, None]]))
    found = {place: (one.data["quantity"], one.withdrawn_at) for place, one in shop.offers("A").items()}
    assert found == {"NJ": (3, None), "CA": (5, None)}
    assert shop.products["A"].status == ProductStatus.DISCONTINUED


def test_a_blank_cell_holds_for_the_location_of_its_row() -> None:
    headers = "SKU|Product Name|Warehouse|Price|MSRP|Qty"
    shop = Shop().take((headers, [["A", "Oak", place, "79", "99", "4"] for place in ("NJ", "CA")]))
    shop.take((headers, [["A", "Oak", "NJ", "79", "99", "4"], ["A", "Oak", "CA", "79", "", ""]]))
    assert {place: (one.data.get("msrp"), one.data.get("quantity")) for place, one in shop.offers("A").items()} == {
        "NJ": (9900, 4), "CA": (None, None),
    }  # fmt: skip


def test_a_blank_price_alone_is_removed() -> None:
    shop = Shop().take(("SKU|Product Name|Price|Sale Price|Qty", [["A", "Oak", "100", "80", "3"]]))
    shop.take(("SKU|Sale Price", [["A", ""]]))
    (offer,) = shop.offers("A").values()
    assert "compare_at" not in offer.data
    assert offer.data["quantity"] == 3


def test_a_withdrawn_location_revives_no_discontinued_item() -> None:
    headers = "SKU|Product Name|Status|Price|Qty NJ|Qty CA"
    shop = Shop().take((headers, [["A", "Oak", "Active", "79", "1", "2"]]))
    shop.take((headers.rpartition("|")[0], [["A", "Oak", "Discontinued", "79", "1"]]))
    shop.take(("SKU|Product Name|Price|Qty NJ", [["A", "Oak", "79", "3"]]))
    assert shop.products["A"].status == ProductStatus.DISCONTINUED


def test_a_status_of_the_product_alone_stays() -> None:
    headers = "Parent SKU|SKU|Product Name|Color|Price|Status"
    rows = [["OAK", "", "Oak stool", "", "", "Discontinued"], ["OAK", "OAK-R", "Oak stool", "Red", "79", ""]]
    shop = Shop().take((headers, rows))
    before = shop.products["OAK"].status
    shop.take(("Parent SKU|SKU|Price", [["OAK", "OAK-R", "80"]]))
    assert shop.products["OAK"].status == before


def test_variants_of_a_product_change_fields_of_their_own_alone() -> None:
    shop = Shop().take(GROUPED)
    table: Table = (
        "SKU|Product Name|Tags|Price",
        [["OAK-R", "Oak stool", "red", "80"], ["OAK-B", "Oak stool", "blue", "80"]],
    )
    shop.take(table).take(table)
    assert shop.last is not None
    assert shop.last.events == []


def test_cartons_merge_by_their_number() -> None:
    names = "SKU|Product Name|Carton 1 Width (in)|Carton 2 Width (in)|Carton 3 Width (in)"
    shop = Shop().take((names, [["A", "Oak", "10", "20", "30"]]))
    weights = "SKU|Product Name|Carton 1 Weight (lb)|Carton 2 Weight (lb)|Carton 3 Weight (lb)"
    shop.take((weights, [["A", "Oak", "1", "", "3"]]))
    shop.take(("SKU|Product Name|Carton 2 Weight (lb)", [["A", "Oak", "2"]]))
    shop.take((weights, [["A", "Oak", None, None, "4"]]))
    found = [(box["width"]["hundredths_in"], box["weight"]["hundredths_lb"]) for box in shop.variant("A")["cartons"]]
    assert found == [(1000, 100), (2000, 200), (3000, 400)]


def test_cartons_of_two_sheets_are_joined() -> None:
    shop = Shop().take(
        ("SKU|Product Name|Carton 1 Width (in)", [["A", "Oak", "10"]]),
        ("SKU|Product Name|Carton 1 Weight (lb)|Carton 2 Weight (lb)", [["A", "Oak", "1", "2"]]),
    )
    assert [box.keys() - {"count"} for box in shop.variant("A")["cartons"]] == [{"width", "weight"}, {"weight"}]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_sheet_that_lists_whole_cartons_completes_one_with_absent_cells_of_them(order: tuple[int, int]) -> None:
    sheets: tuple[Table, Table] = (
        ("SKU|Product Name|Carton 1 Weight (lb)", [["A", "Oak", None]]),
        ("SKU|Product Name|Packages", [["A", "Oak", "10 x 20 x 30 in, 40 lb"]]),
    )
    shop = Shop().take(("SKU|Product Name|Carton 1 Width (in)", [["A", "Oak", "9"]]))
    shop.take(*(sheets[at] for at in order))
    (box,) = shop.variant("A")["cartons"]
    assert box["width"]["hundredths_in"] == 1000


def test_the_shrink_guard_counts_no_offers_that_a_general_price_keeps() -> None:
    headers = "SKU|Product Name|Price|Qty NJ|Qty CA"
    shop = Shop().take((headers, [["A", "Oak", "79", "4", "5"]])).take((headers, [["A", "Oak", "81", "", ""]]))
    held = frozenset({("A", "NJ"), ("A", "CA")})
    assert select_offers_kept_by_catalogue(held, shop.statements) == held
    assert all(offer.withdrawn_at is None for offer in shop.offers("A").values())
