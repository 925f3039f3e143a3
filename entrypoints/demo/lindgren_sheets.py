"""Lindgren & Falk's two files as bytes: the item master under its title rows, and the stock sheet for each warehouse."""

import csv
from collections.abc import Iterable, Sequence
from functools import cache
from io import StringIO
from typing import Final

from entrypoints.demo import lindgren_columns as col
from entrypoints.demo.chance import number
from entrypoints.demo.lindgren_catalogue import sound_rows
from entrypoints.demo.lindgren_flaws import spoiled
from entrypoints.demo.lindgren_items import arrival_of, stock_of

TITLE_ROWS: Final = (
    ("LINDGREN & FALK  |  Makers of furniture",),
    ("Dealer item master and price list; Spring 2027; confidential",),
    ("Prices in US dollars, FOB warehouse. * Wholesale is per piece, also where two ship in one carton.",),
    (),
)
WAREHOUSES: Final = ("EAST", "WEST")
STOCK_COLUMNS: Final = ("Item #", "EAST", "On Order EAST", "ETA EAST", "WEST", "On Order WEST", "ETA WEST")
_NOT_IN_MASTER: Final = ("LF-XX999-UO", "LF-AP211-UO-Q")
_BLANK_ROWS: Final = 12


@cache
def item_master() -> bytes:
    """The item master: header on row 5, a byte order mark, Windows line ends, blank formatted rows at the end."""
    body = ([row.get(column, "") for column in col.COLUMNS] for row in spoiled(sound_rows()))
    blank = [[""] * len(col.COLUMNS)] * _BLANK_ROWS
    return _bytes((*TITLE_ROWS, col.COLUMNS, *body, *blank))


@cache
def stock_sheet() -> bytes:
    """The stock sheet: exact quantities at both warehouses, what is on order, and when it arrives."""
    items = [row[col.ITEM] for row in sound_rows() if row[col.KIND] != "Set"]
    body = [_stock_row(item) for item in (*items, *_NOT_IN_MASTER)]
    return _bytes((("STOCK AS OF MONDAY; subject to prior sale",), (), STOCK_COLUMNS, *body))


def _stock_row(item: str) -> list[str]:
    row = [item]
    for warehouse in WAREHOUSES:
        arrival = arrival_of(item, warehouse)
        ordered = str(10 + number(50, "ordered", item, warehouse)) if arrival else ""
        row += [str(stock_of(item, warehouse)), ordered, arrival]
    return row


def _bytes(rows: Iterable[Sequence[str]]) -> bytes:
    text = StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return b"\xef\xbb\xbf" + text.getvalue().encode()
