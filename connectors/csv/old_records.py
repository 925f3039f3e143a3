"""Judges what reading an XLS workbook would take, by its records (MS-XLS), as the library walks them."""

import struct
from collections.abc import Iterator
from pathlib import Path

from connectors.csv.compound import workbook_stream
from connectors.csv.sectors import DAMAGED
from connectors.sdk.context import Limits
from connectors.sdk.errors import BadData

_SHEET, _BEGIN, _END, _LOCKED = 0x0085, 0x0809, 0x000A, 0x002F
_DIMENSIONS = 0x0200
_MANY = 0x00BD
_CELLS = frozenset({0x0006, 0x0201, 0x0203, 0x0204, 0x00D6, 0x0205, 0x027E, 0x00FD, _MANY})
_MOST_SHEETS = 1_000
_MOST_RECORDS = 30_000_000


def inspect_old(path: Path, limits: Limits) -> None:
    """Walk the workbook and its worksheets. Raises BadData when reading it would take too much.

    All worksheets are read at once, so that what they span counts together.
    """
    stream = workbook_stream(path)
    left, walked = limits.sheet_cells, 0
    for place in _sheets(stream):
        cells, count = _span(stream, place, limits.sheet_cells)
        left -= cells
        walked += count
        if left < 0 or walked > _MOST_RECORDS:
            fault = (
                f"the worksheets span more than {limits.sheet_cells:,} cells; so many are read from a workbook at most"
            )
            raise BadData(f"{fault}: save it as CSV and send that")


def _sheets(stream: bytes) -> list[int]:
    """Where the worksheets begin, by the records at the beginning."""
    found = []
    for kind, at, size in _records(stream, 0):
        if kind == _LOCKED and size >= 2 and stream[at : at + 2] != b"\0\0":
            raise BadData("the workbook is locked with a password; save it without one and send that")
        if kind == _SHEET and size >= 4:
            found.append(struct.unpack_from("<I", stream, at)[0])
        if kind == _END:
            break
    if len(found) > _MOST_SHEETS:
        raise BadData(f"the workbook has more than {_MOST_SHEETS:,} worksheets")
    return found


def _span(stream: bytes, place: int, most: int) -> tuple[int, int]:
    """Rows times columns of the worksheet at a place, or what it says of itself where that is more; and its records."""
    rows = columns = stated = depth = count = 0
    begun = False
    for kind, at, size in _records(stream, place):
        count += 1
        if kind == _BEGIN:
            depth += begun
            begun = True
        elif kind == _END:
            if not depth:
                break
            depth -= 1
        elif depth:
            continue
        elif kind == _DIMENSIONS:
            stated += _stated(stream[at : at + size])
        elif kind in _CELLS and size >= 4:
            row, column = struct.unpack_from("<HH", stream, at)
            if kind == _MANY:
                column = max(column, struct.unpack_from("<H", stream, at + size - 2)[0])
            rows, columns = max(rows, row + 1), max(columns, column + 1)
        if rows * columns > most or stated > most:
            break
    return max(rows * columns, stated), count


def _stated(data: bytes) -> int:
    """The cells that a worksheet says it spans, reckoned in 32 bits as the library does it."""
    if len(data) == 10:
        first, last, left, right = struct.unpack_from("<4H", data)
    elif len(data) == 14:
        first, last, left, right = struct.unpack_from("<IIHH", data)
    else:
        return 0
    if left > 0xFF or right < left:
        left = 0
    if not last or not right:
        return 1
    return int(last - first & 0xFFFFFFFF) * int(right - left & 0xFFFFFFFF)


def _records(stream: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """Each record's kind, where its content begins and its size. Raises BadData for one that goes beyond the stream."""
    if at > len(stream):
        raise BadData(DAMAGED)
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        at += 4
        if at + size > len(stream):
            raise BadData(DAMAGED)
        yield kind, at, size
        at += size
