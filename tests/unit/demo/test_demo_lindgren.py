"""Lindgren & Falk's sheets: realistic flaws, and the expected result of reading them."""

import csv
from collections import Counter
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest

from connectors.csv.connector import SPEC as CSV
from entrypoints.demo.feeds import read_feed

MASTER, STOCK = read_feed("item-master.csv"), read_feed("stock.csv")
HEADERS, *BODY = list(csv.reader(StringIO(MASTER.decode("utf-8-sig"))))[4:]
COLUMNS = {name: [row[place] for row in BODY] for place, name in enumerate(HEADERS)}
ITEMS = set(filter(None, COLUMNS["Item #"]))


def get_inches(variant: Any, side: str) -> float:
    return float(variant.data["dimensions"][side]["hundredths_in"]) / 100


@pytest.fixture(scope="module")
def item_master(parse_feed: Callable[..., Any]) -> Any:
    return parse_feed(CSV, MASTER, {"format": "csv", "currency": "usd"})


def test_the_sheet_contains_realistic_flaws() -> None:
    assert MASTER.startswith(b"\xef\xbb\xbfLINDGREN & FALK")
    assert b"\r\n" in MASTER
    assert not any(BODY[-1])
    assert "20+" in COLUMNS["EAST"]
    assert any(";" in text for text in COLUMNS["Features"])
    dimensions = COLUMNS["Product Dimension (Inch)"]
    assert all(any(part in text for text in dimensions) for part in (" 1/2", "-1/2", "SEAT HT"))
    assert any(text.startswith("2027-") for text in COLUMNS["ETA WEST"])
    assert any(text.startswith("'952") for text in COLUMNS["UPC / EAN"])
    assert any("E+12" in text for text in COLUMNS["UPC / EAN"])
    assert "CafÃ© au Lait" in COLUMNS["Finish"]
    assert {"Single Item", "Set", "Part"} <= set(COLUMNS["Single Item, Set or Part"])
    assert [count for count in Counter(filter(None, COLUMNS["Item #"])).values() if count > 1] == [2, 2]


def test_items_are_read(item_master: Any) -> None:
    assert (
        item_master.rows == len(ITEMS) + 3
    )  # one duplicate row, one duplicate with another price, one row without an item number
    assert len(item_master.products) == len(set(filter(None, COLUMNS["Handle"]))) == 457
    assert len(item_master.variants) == len(ITEMS) == 1407
    assert len(item_master.keyless) == 1
    unmapped = {column.column for column in item_master.mapping.unmapped}
    assert unmapped == {"Single Item, Set or Part", "Cu.Ft.", "Style Group"}


def test_beds_sofas_and_sets_are_read(item_master: Any) -> None:
    bed = item_master.variant("LF-AP210-UO-EK")
    assert bed.data["axes"] == {"Size": "E.King", "Finish": "Umber Oak"}
    assert (get_inches(bed, "width"), get_inches(bed, "depth"), get_inches(bed, "height")) == (80.5, 86, 54)
    sofa = item_master.variant("LF-AD700-FLX")
    assert (get_inches(sofa, "width"), get_inches(sofa, "seat_height"), get_inches(sofa, "seat_depth")) == (
        86.25,
        19,
        22.5,
    )
    assert sofa.data["colour"] == "Flax"
    parts = item_master.variant("LF-BH390-5PC-UO").data["components"]
    assert parts == [{"sku": "LF-BH300-UO", "quantity": 1}, {"sku": "LF-BH320-UO", "quantity": 4}]
    assert item_master.variant("LF-MS430-CL").data["finish"] == "Café au Lait"


def test_rugs_are_read(item_master: Any) -> None:
    rug = item_master.variant("LF-RDOVR-IVO-5376")
    assert (get_inches(rug, "width"), get_inches(rug, "depth")) == (63, 90)
    assert rug.data["rug"]["construction"] == "hand_knotted"
    assert rug.data["rug"]["nominal"] == "5' x 8'"
    assert get_inches(item_master.variant("LF-RDOVR-IVO-67RD"), "diameter") == 79


def test_prices_and_stock_of_both_warehouses_are_read(item_master: Any) -> None:
    offers = {offer.location: offer.data for offer in item_master.variant("LF-BH320-UO").offers}
    assert offers["EAST"] == {
        "quantity": 3,
        "availability": "low_stock",
        "incoming": [{"eta": "2027-02-01"}],
        "currency": "usd",
        "cost": 10100,
        "msrp": 21900,
        "lead_time_days": 5,
    }
    assert offers["WEST"]["quantity"] == 20
    assert all(offer["cost"] < offer["msrp"] for offer in offers.values())


def test_each_flaw_is_reported_as_a_problem(item_master: Any) -> None:
    kinds = Counter(problem.problem for problem in item_master.problems)
    assert kinds["bad_check_digit"] >= 5
    assert kinds["unreadable"] >= 15
    assert kinds["conflict"] >= 2
    assert kinds["out_of_range"] == 4  # including a negative quantity and a sofa of 1 lb
    assert kinds["unsafe_url"] == 1
    assert all(problem.line and problem.line > 5 for problem in item_master.problems)


def test_the_stock_sheet_is_read(parse_feed: Callable[..., Any]) -> None:
    stock = parse_feed(CSV, STOCK, {"currency": "usd"}, stream="stock")
    assert len(set(stock.products) - ITEMS) == 2
    assert not stock.problems
    offers = {offer.location: offer.data for offer in stock.products["LF-BH320-UO"].variants[0].offers}
    assert offers["EAST"]["quantity"] == 3
    assert offers["EAST"]["incoming"][0]["eta"] == "2027-02-01"
    assert offers["WEST"]["quantity"] >= 20
