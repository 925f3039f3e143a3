"""Check of the number of cells of an XLS workbook (MS-XLS) before the spreadsheet library opens the workbook."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from connectors.csv.bounds import DAMAGED_WORKBOOK
from connectors.sdk.context import MIB, Limits
from connectors.sdk.errors import BadData

# Chains of sectors in a compound file, the container of old Office files (MS-CFB).


_END_OF_CHAIN = 0xFFFFFFFE


class Sectors:
    """Sectors of a compound file or of the file's mini stream.

    Args:
        data: Bytes of the file or the mini stream.
        size: Size of a sector in bytes.
        header_bytes: Number of bytes before the first sector; None for the size of a sector.
    """

    def __init__(self, data: bytes, size: int, header_bytes: int | None = None) -> None:
        self._data = data
        self._size = size
        self._ahead = size if header_bytes is None else header_bytes

    def read_sector(self, number: int) -> bytes:
        """Return the bytes of the sector with this number. Raises BadData if the sector does not exist."""
        start = self._ahead + number * self._size
        if start >= len(self._data):
            raise BadData(DAMAGED_WORKBOOK)
        return self._data[start : start + self._size]

    def read_chain(self, first_sector: int, next_by_sector: Sequence[int], max_bytes: int | None = None) -> bytes:
        """Return the bytes of a chain of sectors. Raises BadData for a chain with a cycle.

        Args:
            first_sector: Number of the first sector.
            next_by_sector: Allocation table: the number of the sector that follows each sector of the chain.
            max_bytes: Maximum number of bytes to return; None for the whole chain.
        """
        found: list[bytes] = []
        seen: set[int] = set()
        remaining = len(self._data) if max_bytes is None else max_bytes
        while first_sector != _END_OF_CHAIN and remaining > 0:
            if first_sector in seen or first_sector >= len(next_by_sector):
                raise BadData(DAMAGED_WORKBOOK)
            seen.add(first_sector)
            found.append(self.read_sector(first_sector)[:remaining])
            remaining -= len(found[-1])
            first_sector = next_by_sector[first_sector]
        return b"".join(found)

    def decode_numbers(self, data: bytes) -> tuple[int, ...]:
        """Return the sector numbers in the bytes of a sector, four bytes each."""
        return struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])


# Extraction of the workbook from the compound file, with checks for finite chains and plausible sizes.


_HEADER_BYTES = 512
_SECTOR_SHIFTS = frozenset({9, 12})
_MAX_MINI_FAT_SECTORS = 256
_FREE_SECTOR = 0xFFFFFFFA
_ENTRY_BYTES = 128
_MAX_ENTRIES = 4_096
_MINI_STREAM_BYTES = 4_096
_MAX_STREAM_BYTES = 256 * MIB
_WORKBOOK_NAMES = ("Workbook", "Book", "WORKBOOK", "BOOK")


@dataclass(frozen=True, slots=True)
class _DirectoryEntry:
    """Entry of a compound file's directory.

    Attributes:
        name: Name of the stream.
        start: Number of the first sector, in the mini stream if `size` is less than _MINI_STREAM_BYTES.
        size: Size of the stream in bytes.
    """

    name: str
    start: int
    size: int


def read_workbook_stream(path: Path) -> bytes:
    """Return the bytes of the workbook in an XLS file. Raises BadData for a damaged file or one without workbook."""
    size = path.stat().st_size
    if size > _MAX_STREAM_BYTES:
        raise BadData(
            f"the workbook is larger than {_MAX_STREAM_BYTES // MIB} MiB; save it as XLSX or CSV and send that file"
        )
    data = path.read_bytes()
    if len(data) < _HEADER_BYTES:
        raise BadData(DAMAGED_WORKBOOK)
    shift, mini_shift = struct.unpack_from("<HH", data, 30)
    fats, directory = struct.unpack_from("<II", data, 44)
    mini_start, mini_fats, difat = struct.unpack_from("<III", data, 60)
    count = size >> shift if shift in _SECTOR_SHIFTS else 0
    if mini_shift != 6 or not count or fats > count or mini_fats > min(count, _MAX_MINI_FAT_SECTORS):
        raise BadData(DAMAGED_WORKBOOK)
    sectors = Sectors(data, 1 << shift)
    fat = _read_fat(sectors, _list_fat_sectors(sectors, data, difat), fats)
    entries = _read_entries(sectors.read_chain(directory, fat), shift)
    if not entries:
        raise BadData(DAMAGED_WORKBOOK)
    mini = sectors.read_chain(entries[0].start, fat, entries[0].size) if mini_fats else b""
    mini_fat = sectors.decode_numbers(sectors.read_chain(mini_start, fat)) if mini_fats else ()
    for name in _WORKBOOK_NAMES:
        found = next((entry for entry in entries if entry.name == name), None)
        if found is not None and found.size < _MINI_STREAM_BYTES:
            return Sectors(mini, 64, 0).read_chain(found.start, mini_fat, found.size)
        if found is not None:
            return sectors.read_chain(found.start, fat, found.size)
    raise BadData("the file is an old Office document without a workbook; send the table as XLSX or CSV")


def _list_fat_sectors(sectors: Sectors, data: bytes, difat_sector: int) -> list[int]:
    """Return the numbers of the sectors that contain the allocation table.

    The file's header lists the first 109. A chain of further sectors (DIFAT), which starts at the sector number
    `difat_sector`, lists the others.
    """
    found = list(struct.unpack_from("<109I", data, 76))
    seen: set[int] = set()
    while difat_sector < _FREE_SECTOR:
        if difat_sector in seen:
            raise BadData(DAMAGED_WORKBOOK)
        seen.add(difat_sector)
        numbers = sectors.decode_numbers(sectors.read_sector(difat_sector))
        if not numbers:
            raise BadData(DAMAGED_WORKBOOK)
        found.extend(numbers[:-1])
        difat_sector = numbers[-1]
    return [number for number in found if number < _FREE_SECTOR]


def _read_fat(sectors: Sectors, fat_sectors: list[int], stated_count: int) -> tuple[int, ...]:
    if len(fat_sectors) > max(stated_count, 1) + 109 or len(set(fat_sectors)) != len(fat_sectors):
        raise BadData(DAMAGED_WORKBOOK)
    return sectors.decode_numbers(b"".join(sectors.read_sector(number) for number in fat_sectors))


def _read_entries(directory: bytes, shift: int) -> list[_DirectoryEntry]:
    if len(directory) > _MAX_ENTRIES * _ENTRY_BYTES:
        raise BadData(DAMAGED_WORKBOOK)
    found = []
    for at in range(0, len(directory) - _ENTRY_BYTES + 1, _ENTRY_BYTES):
        name = directory[at : at + 64].decode("utf-16-le", errors="replace").split("\0", 1)[0]
        start, low, high = struct.unpack_from("<III", directory, at + 116)
        found.append(_DirectoryEntry(name, start, low if shift == 9 else low | high << 32))
    return found


_SHEET_RECORD, _BEGIN_RECORD, _END_RECORD, _ENCRYPTION_RECORD = 0x0085, 0x0809, 0x000A, 0x002F
_DIMENSIONS_RECORD = 0x0200
_MULTIPLE_CELLS_RECORD = 0x00BD
_CELL_RECORDS = frozenset({0x0006, 0x0201, 0x0203, 0x0204, 0x00D6, 0x0205, 0x027E, 0x00FD, _MULTIPLE_CELLS_RECORD})
_MAX_SHEETS = 1_000
_MAX_RECORDS = 30_000_000


def check_xls(path: Path, limits: Limits) -> None:
    """Check an XLS workbook before it is opened. Raises BadData if it would take too much memory or time to read."""
    # The library reads all worksheets at once, so their cells are added up.
    stream = read_workbook_stream(path)
    remaining, records = limits.sheet_cells, 0
    for offset in _find_sheet_offsets(stream):
        cells, count = _measure_sheet(stream, offset, limits.sheet_cells)
        remaining -= cells
        records += count
        if remaining < 0 or records > _MAX_RECORDS:
            fault = f"the worksheets span more than {limits.sheet_cells:,} cells or {_MAX_RECORDS:,} records"
            raise BadData(f"{fault}; save the table as CSV and send that file")


def _find_sheet_offsets(stream: bytes) -> list[int]:
    """Return the offsets of the worksheets in the workbook stream, as its first records state them.

    Raises BadData if the workbook is encrypted or has more than _MAX_SHEETS worksheets.
    """
    found = []
    for kind, at, size in _iterate_records(stream, 0):
        if kind == _ENCRYPTION_RECORD and size >= 2 and stream[at : at + 2] != b"\0\0":
            raise BadData("the file is password-protected; send it without a password")
        if kind == _SHEET_RECORD and size >= 4:
            found.append(struct.unpack_from("<I", stream, at)[0])
        if kind == _END_RECORD:
            break
    if len(found) > _MAX_SHEETS:
        raise BadData(
            f"the workbook has more than {_MAX_SHEETS:,} worksheets; save the table as CSV and send that file"
        )
    return found


def _measure_sheet(stream: bytes, offset: int, max_cells: int) -> tuple[int, int]:
    """Return the number of cells of a worksheet, and the number of its records.

    The number of cells is rows times columns, or the number that the worksheet states if that is larger.

    Args:
        stream: The workbook stream.
        offset: Offset of the worksheet in the stream.
        max_cells: Number of cells above which the rest of the worksheet is not read.
    """
    rows = columns = stated = depth = count = 0
    begun = False
    for kind, at, size in _iterate_records(stream, offset):
        count += 1
        if kind == _BEGIN_RECORD:
            depth += begun
            begun = True
        elif kind == _END_RECORD:
            if not depth:
                break
            depth -= 1
        elif depth:
            continue
        elif kind == _DIMENSIONS_RECORD:
            stated += _read_stated_cells(stream[at : at + size])
        elif kind in _CELL_RECORDS and size >= 4:
            row, column = struct.unpack_from("<HH", stream, at)
            if kind == _MULTIPLE_CELLS_RECORD:
                column = max(column, struct.unpack_from("<H", stream, at + size - 2)[0])
            rows, columns = max(rows, row + 1), max(columns, column + 1)
        if rows * columns > max_cells or stated > max_cells:
            break
    return max(rows * columns, stated), count


def _read_stated_cells(data: bytes) -> int:
    """Return the number of cells from a worksheet's Dimensions record, computed in 32 bits as in the library."""
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


def _iterate_records(stream: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """Yield the kind, the offset of the content and the size of each record from the offset `at`.

    Raises BadData for a record that extends beyond the stream.
    """
    if at > len(stream):
        raise BadData(DAMAGED_WORKBOOK)
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        at += 4
        if at + size > len(stream):
            raise BadData(DAMAGED_WORKBOOK)
        yield kind, at, size
        at += size
