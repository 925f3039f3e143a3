"""Lindgren & Falk's two files as bytes: the item master, with what goes wrong on its way, and the stock sheet."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from io import StringIO
from typing import Final

from entrypoints.demo import lindgren_columns as col
from entrypoints.demo.chance import number
from entrypoints.demo.lindgren_catalogue import sound_rows
from entrypoints.demo.lindgren_columns import Row
from entrypoints.demo.lindgren_items import DATA, arrival_of, stock_of

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
_FLAWS: Final = DATA["flaws"]
SPOILED: Final = _FLAWS["spoiled"]
"""Row (from 0 among the sound ones), column, and what stands there instead."""
PLACEHOLDERS: Final = _FLAWS["placeholders"]
WRONG_CHECK_DIGITS: Final = _FLAWS["wrong_check_digits"]
REPEATED: Final = _FLAWS["repeated"]
NAMELESS: Final = _FLAWS["nameless"]


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


def spoiled(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows as they arrive: some cells unreadable, one row twice, one twice with another price, one without a number."""
    cells = {(at, column): text for at, column, text in (*SPOILED, *PLACEHOLDERS, *_FLAWS["oversold"])}
    columns = sorted({column for _, column in cells})
    for at, sound in enumerate(rows):
        row = sound | {column: cells[at, column] for column in columns if (at, column) in cells}
        yield _with_odd_codes(at, row)
        if at == REPEATED:
            yield row
        if at == _FLAWS["repriced"]:
            yield row | {col.COST: "$1,999.00"}
        if at == NAMELESS:
            yield row | {col.ITEM: "", col.HANDLE: "", col.UPC: "", col.NAME: "sample, do not ship"}


def _with_odd_codes(at: int, row: Row) -> Row:
    code = row.get(col.UPC, "")
    if not code:
        return row
    if at in WRONG_CHECK_DIGITS:
        return row | {col.UPC: code[:-1] + str((int(code[-1]) + 3) % 10)}
    if at in _FLAWS["float_codes"]:
        return row | {col.UPC: f"{code[0]}.{code[1:6]}E+12"}
    return row | {col.UPC: f"'{code}"} if row[col.COLLECTION] == "Brennholm" else row
