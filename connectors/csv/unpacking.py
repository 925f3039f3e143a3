"""Refuses workbooks that would fill memory, before anything opens them: zip bombs and cells set far apart."""

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from connectors.sdk.context import MIB, Limits
from connectors.sdk.errors import BadData

_ENTRIES = 5_000
_RATIO = 250
_RATIO_FROM = 8 * MIB
_CHUNK = 256 * 1024
_OVERLAP = 40
_LOCAL_HEADER = 30
_COLUMN = re.compile(rb"""\sr\s*=\s*["']\s*([A-Za-z]{1,3})\d""")
_ROW = re.compile(rb"""\sr\s*=\s*["']\s*[A-Za-z]{1,3}(\d{4,})""")
_STORED, _DEFLATED = 0, 8


def inspect(path: Path, limits: Limits) -> None:
    """Unpack every entry once without keeping it. Raises BadData when the whole is too large, or its ratio is.

    Sizes that the archive states of itself are not believed; what really comes out is counted. A worksheet's cells
    count as the rectangle around them, because that is what reading one takes.
    """
    left = limits.unpacked_bytes
    with path.open("rb") as file, _archive(path) as archive:
        entries = archive.infolist()
        if len(entries) > _ENTRIES:
            raise BadData(f"the workbook has {len(entries)} parts; at most {_ENTRIES} are read")
        for entry in entries:
            left -= _size(file, entry, left, limits)


def _size(file: BinaryIO, entry: zipfile.ZipInfo, room: int, limits: Limits) -> int:
    """How many bytes an entry unpacks to. Raises BadData."""
    sheet = _Sheet()
    size = 0
    for piece in _inflated(file, entry, room):
        size += len(piece)
        if "worksheets/" in entry.filename.lower():
            sheet.look(piece)
    if sheet.cells > limits.sheet_cells:
        fault = f"a worksheet spans {sheet.cells:,} cells; at most {limits.sheet_cells:,} are read from a workbook"
        raise BadData(f"{fault}: save it as CSV and send that")
    return size


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        raise BadData("the workbook is damaged: it cannot be unpacked") from None


def _inflated(file: BinaryIO, entry: zipfile.ZipInfo, room: int) -> Iterator[bytes]:
    """What an entry unpacks to, in pieces. Raises BadData once that is more than `room` bytes or the ratio allows."""
    if entry.flag_bits & 0x1:
        raise BadData("the workbook is locked with a password; save it without one and send that")
    if entry.compress_type not in {_STORED, _DEFLATED}:
        raise BadData("the workbook is packed in a way that is not read; save it anew as XLSX and send that")
    out = read = 0
    for packed, piece in _pieces(file, entry):
        read += packed
        out += len(piece)
        if out > room:
            raise BadData("the workbook is too large once unpacked; save it as CSV and send that")
        if out > _RATIO_FROM and out > read * _RATIO:
            raise BadData("the workbook unpacks to far more than it holds (a zip bomb); it is not opened")
        yield piece


def _pieces(file: BinaryIO, entry: zipfile.ZipInfo) -> Iterator[tuple[int, bytes]]:
    """Pairs of bytes read and what they unpack to, each piece bounded."""
    file.seek(max(entry.header_offset, 0))
    header = file.read(_LOCAL_HEADER)
    if len(header) < _LOCAL_HEADER or not header.startswith(b"PK\x03\x04"):
        raise BadData("the workbook is damaged: it cannot be unpacked")
    file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
    left = entry.compress_size
    inflate = zlib.decompressobj(-15) if entry.compress_type == _DEFLATED else None
    while left > 0 and (data := file.read(min(_CHUNK, left))):
        left -= len(data)
        if inflate is None:
            yield len(data), data
            continue
        yield from _unpack(inflate, data)


def _unpack(inflate: "zlib._Decompress", data: bytes) -> Iterator[tuple[int, bytes]]:
    read = len(data)
    while data:
        try:
            piece = inflate.decompress(data, _CHUNK)
        except zlib.error:
            raise BadData("the workbook is damaged: it cannot be unpacked") from None
        yield read, piece
        read = 0
        data = inflate.unconsumed_tail


class _Sheet:
    """The rectangle around a worksheet's cells, seen while its XML passes by."""

    def __init__(self) -> None:
        self._columns: set[bytes] = set()
        self._rows = 1_000
        self._tail = b""

    def look(self, piece: bytes) -> None:
        """Take in the next piece of XML."""
        text = self._tail + piece
        self._columns.update(_COLUMN.findall(text))
        if found := _ROW.findall(text):
            self._rows = max(self._rows, *map(int, found))
        self._tail = text[-_OVERLAP:]

    @property
    def cells(self) -> int:
        """Rows times columns, counted from the first cell A1."""
        return self._rows * max((_number(letters) for letters in self._columns), default=0)


def _number(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - 64
    return number
