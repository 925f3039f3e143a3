"""What goes wrong with a price list on its way from a maker to a retailer, done to the sound rows on purpose."""

from collections.abc import Iterator, Sequence
from typing import Final

from entrypoints.demo import lindgren_columns as col
from entrypoints.demo.lindgren_columns import Row

SPOILED: Final = (
    (12, col.WEIGHT, "approx. 85"),
    (33, col.DIMENSIONS, "refer to spec sheet"),
    (71, col.MSRP, "CALL"),
    (118, col.COST, "$4l2.00"),
    (164, col.EAST, "ask rep"),
    (171, col.ETA_WEST, "11/23"),
    (203, col.FREIGHT, "45"),
    (256, col.ETA_EAST, "mid spring"),
    (301, col.IMAGE_2, "file:///C:/Pictures/final/room shot 2.jpg"),
    (344, col.WEIGHT, "see carton"),
    (402, col.MSRP, "€ 449.00"),
    (455, col.LEAD, "ask"),
    (509, col.STATUS, "?? check w/ plant"),
    (560, col.ASSEMBLY, "partly"),
    (617, col.SHIP_LENGTH, "4 3/"),
    (663, col.DIMENSIONS, "58.5 x 18 x 33.25"),
    (702, col.MAP, "-12.00"),
    (745, col.WEST, "see note"),
    (1003, col.PROP_65, "pending"),
    (1120, col.WEIGHT, "1 4O.5"),
    (1201, col.RUG_SIZE, "5'3 x"),
    (1238, col.PILE, "plush"),
    (1266, col.CONSTRUCTION, "Heirloom"),
)
"""Row (from 0 among the sound ones), column, and what stands there instead."""

WRONG_CHECK_DIGITS: Final = (7, 88, 240, 391, 575, 808, 946, 1104, 1299)
FLOAT_CODES: Final = (150, 911)
PLACEHOLDERS: Final = (
    (25, col.FREIGHT, "TBD"),
    (95, col.MATERIALS, "N/A"),
    (310, col.WEIGHT, "0"),
    (333, col.MSRP, "TBD"),
    (470, col.UPC, "#N/A"),
    (640, col.ETA_EAST, "TBD"),
    (870, col.ORIGIN, "."),
)
OVERSOLD: Final = ((210, col.EAST, "-3"), (655, col.WEST, "Call"))
REPEATED: Final = 421
REPRICED: Final = 733
NAMELESS: Final = 998


def spoiled(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows as they arrive: some cells unreadable, one row twice, one twice with another price, one without a number."""
    cells = {(at, column): text for at, column, text in (*SPOILED, *PLACEHOLDERS, *OVERSOLD)}
    columns = sorted({column for _, column in cells})
    for at, sound in enumerate(rows):
        row = sound | {column: cells[at, column] for column in columns if (at, column) in cells}
        yield _with_odd_codes(at, row)
        if at == REPEATED:
            yield row
        if at == REPRICED:
            yield row | {col.COST: "$1,999.00"}
        if at == NAMELESS:
            yield row | {col.ITEM: "", col.HANDLE: "", col.UPC: "", col.NAME: "sample, do not ship"}


def _with_odd_codes(at: int, row: Row) -> Row:
    code = row.get(col.UPC, "")
    if not code:
        return row
    if at in WRONG_CHECK_DIGITS:
        return row | {col.UPC: code[:-1] + str((int(code[-1]) + 3) % 10)}
    if at in FLOAT_CODES:
        return row | {col.UPC: f"{code[0]}.{code[1:6]}E+12"}
    return row | {col.UPC: f"'{code}"} if row[col.COLLECTION] == "Brennholm" else row
