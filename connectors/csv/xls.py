"""Check of an XLS workbook's size by its records (MS-XLS), in the library's order."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from connectors.csv.bounds import DAMAGED
from connectors.sdk.context import MIB, Limits
from connectors.sdk.errors import BadData

# Chains of sectors in the container of old Office files; each sector is read once.


_CHAIN_END = 0xFFFFFFFE


class Sectors:
    """Sectors of a container, or of its mini stream; `ahead` is the number of bytes before the first."""

    def __init__(self, data: bytes, size: int, ahead: int | None = None) -> None:
        self._data = data
        self._size = size
        self._ahead = size if ahead is None else ahead

    def at(self, number: int) -> bytes:
        """Return one sector. Raises BadData if it does not exist."""
        start = self._ahead + number * self._size
        if start >= len(self._data):
            raise BadData(DAMAGED)
        return self._data[start : start + self._size]

    def chain(self, number: int, table: Sequence[int], most: int | None = None) -> bytes:
        """Return the sectors from this one to the end of their chain, or to `most` bytes. Raises BadData for a cycle."""
        found: list[bytes] = []
        seen: set[int] = set()
        remaining = len(self._data) if most is None else most
        while number != _CHAIN_END and remaining > 0:
            if number in seen or number >= len(table):
                raise BadData(DAMAGED)
            seen.add(number)
            found.append(self.at(number)[:remaining])
            remaining -= len(found[-1])
            number = table[number]
        return b"".join(found)

    def numbers(self, data: bytes) -> tuple[int, ...]:
        """Decode bytes as sector numbers."""
        return struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])


# Checks of the container of old Office files (MS-CFB) before it is opened: finite chains, plausible sizes.


_HEADER = 512
_SHIFTS = frozenset({9, 12})
_MOST_MINI_FAT = 256
_FREE = 0xFFFFFFFA
_ENTRY = 128
_MOST_ENTRIES = 4_096
_SMALL = 4_096
_LARGEST = 256 * MIB
_WORKBOOKS = ("Workbook", "Book", "WORKBOOK", "BOOK")


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    start: int
    size: int


def workbook_stream(path: Path) -> bytes:
    """Return the workbook stream of an XLS file. Raises BadData if the container is damaged or has none."""
    size = path.stat().st_size
    if size > _LARGEST:
        raise BadData(f"the workbook is larger than {_LARGEST // MIB} MiB; save it as XLSX or CSV and send that")
    data = path.read_bytes()
    if len(data) < _HEADER:
        raise BadData(DAMAGED)
    shift, mini_shift = struct.unpack_from("<HH", data, 30)
    fats, directory = struct.unpack_from("<II", data, 44)
    mini_start, mini_fats, difat = struct.unpack_from("<III", data, 60)
    count = size >> shift if shift in _SHIFTS else 0
    if mini_shift != 6 or not count or fats > count or mini_fats > min(count, _MOST_MINI_FAT):
        raise BadData(DAMAGED)
    sectors = Sectors(data, 1 << shift)
    fat = _table(sectors, _listed(sectors, data, difat), fats)
    entries = _entries(sectors.chain(directory, fat), shift)
    if not entries:
        raise BadData(DAMAGED)
    mini = sectors.chain(entries[0].start, fat, entries[0].size) if mini_fats else b""
    mini_fat = sectors.numbers(sectors.chain(mini_start, fat)) if mini_fats else ()
    for name in _WORKBOOKS:
        found = next((entry for entry in entries if entry.name == name), None)
        if found is not None and found.size < _SMALL:
            return Sectors(mini, 64, 0).chain(found.start, mini_fat, found.size)
        if found is not None:
            return sectors.chain(found.start, fat, found.size)
    raise BadData("this is an old Office document without a workbook; send the table as XLSX or CSV")


def _listed(sectors: Sectors, data: bytes, difat: int) -> list[int]:
    """Return the sectors of the allocation table: 109 in the header, others in a chain of lists."""
    found = list(struct.unpack_from("<109I", data, 76))
    seen: set[int] = set()
    while difat < _FREE:
        if difat in seen:
            raise BadData(DAMAGED)
        seen.add(difat)
        numbers = sectors.numbers(sectors.at(difat))
        if not numbers:
            raise BadData(DAMAGED)
        found.extend(numbers[:-1])
        difat = numbers[-1]
    return [number for number in found if number < _FREE]


def _table(sectors: Sectors, listed: list[int], stated: int) -> tuple[int, ...]:
    if len(listed) > max(stated, 1) + 109 or len(set(listed)) != len(listed):
        raise BadData(DAMAGED)
    return sectors.numbers(b"".join(sectors.at(number) for number in listed))


def _entries(directory: bytes, shift: int) -> list[_Entry]:
    if len(directory) > _MOST_ENTRIES * _ENTRY:
        raise BadData(DAMAGED)
    found = []
    for at in range(0, len(directory) - _ENTRY + 1, _ENTRY):
        name = directory[at : at + 64].decode("utf-16-le", errors="replace").split("\0", 1)[0]
        start, low, high = struct.unpack_from("<III", directory, at + 116)
        found.append(_Entry(name, start, low if shift == 9 else low | high << 32))
    return found


_SHEET, _BEGIN, _END, _LOCKED = 0x0085, 0x0809, 0x000A, 0x002F
_DIMENSIONS = 0x0200
_MANY = 0x00BD
_CELLS = frozenset({0x0006, 0x0201, 0x0203, 0x0204, 0x00D6, 0x0205, 0x027E, 0x00FD, _MANY})
_MOST_SHEETS = 1_000
_MOST_RECORDS = 30_000_000


def inspect_old(path: Path, limits: Limits) -> None:
    """Check the workbook and its worksheets. Raises BadData if reading it would take too much.

    The library reads all worksheets at once, so their cells are added up.
    """
    stream = workbook_stream(path)
    remaining, records = limits.sheet_cells, 0
    for place in _sheets(stream):
        cells, count = _span(stream, place, limits.sheet_cells)
        remaining -= cells
        records += count
        if remaining < 0 or records > _MOST_RECORDS:
            fault = (
                f"the worksheets span more than {limits.sheet_cells:,} cells; so many are read from a workbook at most"
            )
            raise BadData(f"{fault}: save it as CSV and send that")


def _sheets(stream: bytes) -> list[int]:
    """Return the offsets of the worksheets, by the records of the workbook's globals."""
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
    """Return a worksheet's cells (rows times columns, or its stated size if larger) and its number of records."""
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
    """Return the cells that a worksheet states, computed in 32 bits like the library."""
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
    """Yield each record's kind, content offset and size. Raises BadData for a record that exceeds the stream."""
    if at > len(stream):
        raise BadData(DAMAGED)
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        at += 4
        if at + size > len(stream):
            raise BadData(DAMAGED)
        yield kind, at, size
        at += size
