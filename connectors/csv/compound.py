"""Looks into the container of old Office files (MS-CFB) before anything opens it: chains that end, sizes that are there."""

import struct
from dataclasses import dataclass
from pathlib import Path

from connectors.csv.sectors import DAMAGED, Sectors
from connectors.sdk.context import MIB
from connectors.sdk.errors import BadData

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
    """The stream of an XLS file that is its workbook. Raises BadData where the container is damaged or holds none."""
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
    """The sectors that hold the table of chains: 109 in the header, further ones in a chain of lists."""
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
