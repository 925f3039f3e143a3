"""Opens zip archives: their directory is judged by its size before anything reads it, and what they hold is unpacked in pieces."""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from connectors.sdk.context import MIB
from connectors.sdk.errors import BadData

_MOST_PARTS = 5_000
_DIRECTORY = MIB
"""Bytes of a directory: room for 5,000 parts with names of 150 characters."""
_LONGEST_COMMENT = 0xFFFF
_END = b"PK\x05\x06"
_END_SIZE = 22
_END_64 = b"PK\x06\x06"
_END_64_SIZE = 56
_LOCATOR = b"PK\x06\x07"
_LOCATOR_SIZE = 20
_RATIO = 250
_RATIO_FROM = 8 * MIB
_CHUNK = 256 * 1024
_LOCAL_HEADER = 30
_STORED, _DEFLATED = 0, 8
_DAMAGED = "the workbook is damaged: it cannot be unpacked"


def opened(path: Path) -> zipfile.ZipFile:
    """The archive, its directory read. Raises BadData when that is damaged or larger than any workbook's."""
    with path.open("rb") as file:
        _judge_directory(file)
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        raise BadData(_DAMAGED) from None


def _judge_directory(file: BinaryIO) -> None:
    """Raise BadData unless one directory, of a bounded size, stands right before the record that ends the archive.

    Readers disagree on archives that have several such records, or bytes between: one may look at the parts that
    another then never opens.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_SIZE - _LONGEST_COMMENT - _LOCATOR_SIZE))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_SIZE:
        raise BadData(_DAMAGED)
    end = tail[at : at + _END_SIZE]
    entries, length, start = (int.from_bytes(end[a:b], "little") for a, b in ((10, 12), (12, 16), (16, 20)))
    place = size - len(tail) + at
    if int.from_bytes(end[20:22], "little") != len(tail) - at - _END_SIZE:
        raise BadData(_DAMAGED)
    if tail[max(0, at - _LOCATOR_SIZE) : at].startswith(_LOCATOR):
        narrow = (entries, length, start)
        entries, length, start, place = _wide(file, place)
        full = ((1 << 16) - 1, (1 << 32) - 1, (1 << 32) - 1)
        if any(few not in (most, wide) for few, most, wide in zip(narrow, full, (entries, length, start), strict=True)):
            raise BadData(_DAMAGED)
    if entries > _MOST_PARTS or length > _DIRECTORY:
        raise BadData(f"the workbook has {max(entries, _MOST_PARTS + 1)} parts or more; at most {_MOST_PARTS} are read")
    if start + length != place:
        raise BadData(_DAMAGED)


def _wide(file: BinaryIO, end: int) -> tuple[int, int, int, int]:
    """Parts, length and start of the directory, and where it has to end, by the record of large archives (zip64)."""
    place = end - _LOCATOR_SIZE - _END_64_SIZE
    file.seek(max(0, place))
    record = file.read(_END_64_SIZE)
    if place < 0 or not record.startswith(_END_64):
        raise BadData(_DAMAGED)
    entries, length, start = (int.from_bytes(record[a:b], "little") for a, b in ((32, 40), (40, 48), (48, 56)))
    return entries, length, start, place


def inflated(file: BinaryIO, entry: zipfile.ZipInfo, room: int) -> Iterator[bytes]:
    """What an entry unpacks to, in pieces. Raises BadData once that is more than `room` bytes or the ratio allows.

    Sizes that the archive states of itself are not believed; what really comes out is counted.
    """
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
        raise BadData(_DAMAGED)
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
            raise BadData(_DAMAGED) from None
        yield read, piece
        read = 0
        data = inflate.unconsumed_tail
