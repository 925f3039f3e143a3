"""Lindgren & Falk's sheets: messy as such sheets are, and read as they are meant."""

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


def inches(variant: Any, side: str) -> float:
    return float(variant.data["dimensions"][side]["hundredths_in"]) / 100


@pytest.fixture(scope="module")
def master(state: Callable[..., Any]) -> Any:
    return state(CSV, MASTER, {"format": "csv", "currency": "usd"})


def test_layout_and_oddities() -> None:
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


def test_reads_as_meant(master: Any) -> None:
    assert master.rows == len(ITEMS) + 3  # one row comes twice, one twice with another price, one without a number
    assert len(master.products) == len(set(filter(None, COLUMNS["Handle"]))) == 457
    assert len(master.variants) == len(ITEMS) == 1407
    assert len(master.keyless) == 1
    unmapped = {column.column for column in master.mapping.unmapped}
    assert unmapped == {"Single Item, Set or Part", "Cu.Ft.", "Style Group"}


def test_beds_sofas_and_sets(master: Any) -> None:
    bed = master.variant("LF-AP210-UO-EK")
    assert bed.data["axes"] == {"Size": "E.King", "Finish": "Umber Oak"}
    assert (inches(bed, "width"), inches(bed, "depth"), inches(bed, "height")) == (80.5, 86, 54)
    sofa = master.variant("LF-AD700-FLX")
    assert (inches(sofa, "width"), inches(sofa, "seat_height"), inches(sofa, "seat_depth")) == (86.25, 19, 22.5)
    assert sofa.data["colour"] == "Flax"
    parts = master.variant("LF-BH390-5PC-UO").data["components"]
    assert parts == [{"sku": "LF-BH300-UO", "quantity": 1}, {"sku": "LF-BH320-UO", "quantity": 4}]
    assert master.variant("LF-MS430-CL").data["finish"] == "Café au Lait"


def test_rugs(master: Any) -> None:
    rug = master.variant("LF-RDOVR-IVO-5376")
    assert (inches(rug, "width"), inches(rug, "depth")) == (63, 90)
    assert rug.data["rug"]["construction"] == "hand_knotted"
    assert rug.data["rug"]["nominal"] == "5' x 8'"
    assert inches(master.variant("LF-RDOVR-IVO-67RD"), "diameter") == 79


def test_prices_and_stock_of_both_warehouses(master: Any) -> None:
    offers = {offer.location: offer.data for offer in master.variant("LF-BH320-UO").offers}
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


def test_each_flaw_is_reported_as_a_problem(master: Any) -> None:
    kinds = Counter(problem.problem for problem in master.problems)
    assert kinds["bad_check_digit"] >= 5
    assert kinds["unreadable"] >= 15
    assert kinds["conflict"] >= 2
    assert kinds["out_of_range"] == 3  # one of them a quantity below zero
    assert kinds["unsafe_url"] == 1
    assert all(problem.line and problem.line > 5 for problem in master.problems)


def test_stock_sheet(state: Callable[..., Any]) -> None:
    stock = state(CSV, STOCK, {"currency": "usd"}, stream="stock")
    assert len(set(stock.products) - ITEMS) == 2
    assert not stock.problems
    offers = {offer.location: offer.data for offer in stock.products["LF-BH320-UO"].variants[0].offers}
    assert offers["EAST"]["quantity"] == 3
    assert offers["EAST"]["incoming"][0]["eta"] == "2027-02-01"
    assert offers["WEST"]["quantity"] >= 20
