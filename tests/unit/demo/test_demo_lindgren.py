"""Lindgren & Falk's sheets: the same at every start, messy as such sheets are, and read as they are meant."""

import csv
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from io import StringIO
from typing import Any

import pytest

from connectors.csv.connector import SPEC as CSV
from entrypoints.demo import lindgren_columns as col
from entrypoints.demo.lindgren_catalogue import sound_rows
from entrypoints.demo.lindgren_sheets import NAMELESS, PLACEHOLDERS, REPEATED, SPOILED, WRONG_CHECK_DIGITS
from entrypoints.demo.lindgren_sheets import item_master, stock_sheet


def cells_of(sheet: bytes) -> list[list[str]]:
    return list(csv.reader(StringIO(sheet.decode("utf-8-sig"))))


def inches(variant: Any, side: str) -> float:
    return float(variant.data["dimensions"][side]["hundredths_in"]) / 100


@pytest.fixture(scope="module")
def master(state: Callable[..., Any]) -> Any:
    return state(CSV, item_master(), {"format": "csv", "currency": "usd"})


def test_same_in_another_process() -> None:
    code = (
        "from entrypoints.demo.lindgren_sheets import *; from hashlib import sha256;"
        "print(sha256(item_master() + stock_sheet()).hexdigest())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert other == sha256(item_master() + stock_sheet()).hexdigest()


def test_size_and_layout() -> None:
    rows = sound_rows()
    assert len({row[col.HANDLE] for row in rows}) >= 350
    assert len({row[col.ITEM] for row in rows}) == len(rows)
    cells = cells_of(item_master())
    assert cells[4] == list(col.COLUMNS)
    assert not any(cells[-1])
    assert item_master().startswith(b"\xef\xbb\xbfLINDGREN & FALK")
    assert b"\r\n" in item_master()


def test_promised_oddities() -> None:
    cells = cells_of(item_master())
    at = {name: place for place, name in enumerate(col.COLUMNS)}
    body = cells[5:]
    columns = {name: [row[place] for row in body] for name, place in at.items()}
    assert "20+" in columns[col.EAST]
    assert any(";" in text for text in columns[col.FEATURES])
    assert any(" 1/2" in text for text in columns[col.DIMENSIONS])
    assert any("-1/2" in text for text in columns[col.DIMENSIONS])
    assert any("SEAT HT" in text for text in columns[col.DIMENSIONS])
    assert any(text.startswith("2027-") for text in columns[col.ETA_WEST])
    assert any(text.startswith("'952") for text in columns[col.UPC])
    assert any("E+12" in text for text in columns[col.UPC])
    assert "CafÃ© au Lait" in columns[col.FINISH]
    assert {"Single Item", "Set", "Part"} <= set(columns[col.KIND])
    twice = [item for item, count in Counter(columns[col.ITEM]).items() if item and count == 2]
    assert sound_rows()[REPEATED][col.ITEM] in twice
    assert len(twice) == 2


def test_every_flaw_changes_a_cell() -> None:
    rows = sound_rows()
    for at, column, text in (*SPOILED, *PLACEHOLDERS):
        assert rows[at].get(column, "") != text, (at, column)
    for at, column, _ in SPOILED:
        if column in (col.RUG_SIZE, col.PILE, col.CONSTRUCTION):
            assert rows[at][col.CATEGORY] == "Rugs", at


def test_reads_as_meant(master: Any) -> None:
    rows = sound_rows()
    assert master.rows == len(rows) + 3
    assert len(master.products) == len({row[col.HANDLE] for row in rows})
    assert len(master.variants) == len(rows)
    assert len(master.keyless) == 1
    assert master.keyless[0] > NAMELESS
    assert {column.column for column in master.mapping.unmapped} == {col.KIND, col.CUBE, col.GROUP}


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


def test_problems_tell_each_flaw(master: Any) -> None:
    kinds = Counter(problem.problem for problem in master.problems)
    coded = [at for at in WRONG_CHECK_DIGITS if sound_rows()[at][col.UPC]]
    assert kinds["bad_check_digit"] == len(coded) >= 5
    assert kinds["unreadable"] >= 15
    assert kinds["conflict"] >= 2
    assert kinds["out_of_range"] == 3  # one of them a quantity below zero
    assert kinds["unsafe_url"] == 1
    assert all(problem.line and problem.line > 5 for problem in master.problems)


def test_stock_sheet(state: Callable[..., Any]) -> None:
    stock = state(CSV, stock_sheet(), {"currency": "usd"}, stream="stock")
    known = {row[col.ITEM] for row in sound_rows()}
    assert len(set(stock.products) - known) == 2
    assert not stock.problems
    offers = {offer.location: offer.data for offer in stock.products["LF-BH320-UO"].variants[0].offers}
    assert offers["EAST"]["quantity"] == 3
    assert offers["EAST"]["incoming"][0]["eta"] == "2027-02-01"
    assert offers["WEST"]["quantity"] >= 20
