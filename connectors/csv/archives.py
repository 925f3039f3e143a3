"""Access to zip archives: the directory's size is checked before it is read, and entries are unpacked in pieces."""

import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from connectors.sdk.context import MIB, Limits
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
    """Open the archive and read its directory. Raises BadData if that is damaged or larger than any workbook's."""
    with path.open("rb") as file:
        _judge_directory(file)
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        raise BadData(_DAMAGED) from None


def _judge_directory(file: BinaryIO) -> None:
    """Raise BadData unless one directory of bounded size directly precedes the end record.

    Readers disagree on archives that have several such records, or bytes between them: one may check entries that
    another never opens.
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
    """Return count, length, start and required end of the directory, by the zip64 end record."""
    place = end - _LOCATOR_SIZE - _END_64_SIZE
    file.seek(max(0, place))
    record = file.read(_END_64_SIZE)
    if place < 0 or not record.startswith(_END_64):
        raise BadData(_DAMAGED)
    entries, length, start = (int.from_bytes(record[a:b], "little") for a, b in ((32, 40), (40, 48), (48, 56)))
    return entries, length, start, place


def inflated(file: BinaryIO, entry: zipfile.ZipInfo, room: int) -> Iterator[bytes]:
    """Yield the unpacked bytes of an entry. Raises BadData above `room` bytes or the permitted ratio.

    The sizes stated in the archive are not trusted; the unpacked bytes are counted.
    """
    if entry.flag_bits & 0x1:
        raise BadData("the workbook is locked with a password; save it without one and send that")
    if entry.compress_type not in {_STORED, _DEFLATED}:
        raise BadData("the workbook is compressed by an unsupported method; save it again as XLSX and send that")
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
    """Yield pairs of the number of bytes read and their unpacked bytes, each piece bounded."""
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


# Unpacking of a data file: gzip, or a zip archive with one file, apart from files that operating systems add.


_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_GZIP_RATIO = 1_000
_GZIP_RATIO_FROM = 64 * MIB
_GZIP_CHUNK = 256 * 1024
_CUT_OFF = "the gzip archive is damaged or cut off"
_LITTER = ("__macosx/", ".ds_store", "thumbs.db", "desktop.ini")
_OFFICE = ("[content_types].xml", "mimetype")
_MOST_LAYERS = 2


@contextmanager
def plain(path: Path, limits: Limits, layers: int = _MOST_LAYERS) -> Iterator[Path]:
    """Yield the data file: `path`, or a temporary file with its unpacked content, at most two layers deep.

    Raises BadData.
    """
    pieces = _packed(path, limits) if layers else None
    if pieces is None:
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="joinery-unpacked-") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        with plain(Path(file.name), limits, layers - 1) as inner:
            yield inner


def _packed(path: Path, limits: Limits) -> Iterator[bytes] | None:
    """Return the packed content in pieces, or None for a file that is no archive, or is a workbook."""
    with path.open("rb") as file:
        head = file.read(4)
    if head.startswith(_GZIP):
        return _gunzipped(path, limits)
    if not head.startswith(_ZIP):
        return None
    with opened(path) as archive:
        entries = archive.infolist()
    if any(entry.filename.lower() in _OFFICE for entry in entries):
        return None
    return _only(path, [entry for entry in entries if _is_data(entry)], limits)


def _is_data(entry: zipfile.ZipInfo) -> bool:
    """Return whether an entry is data: no folder, no hidden file, no file that an operating system adds."""
    name = entry.filename.replace("\\", "/").lower()
    last = name.rsplit("/", 1)[-1]
    return bool(last) and not last.startswith(".") and not any(litter in name for litter in _LITTER)


def _only(path: Path, entries: list[zipfile.ZipInfo], limits: Limits) -> Iterator[bytes]:
    if not entries:
        raise BadData("the zip archive holds no file")
    if len(entries) > 1:
        names = ", ".join(repr(entry.filename[-60:]) for entry in entries[:3])
        raise BadData(f"the zip archive holds {len(entries)} files ({names}, …); send one data file in it")
    with path.open("rb") as file:
        yield from inflated(file, entries[0], limits.unpacked_bytes)


def _gunzipped(path: Path, limits: Limits) -> Iterator[bytes]:
    """Yield the unpacked members of a gzip file. Stated sizes are not trusted."""
    read = out = 0
    with path.open("rb") as file:
        inflate = zlib.decompressobj(31)
        while data := file.read(_GZIP_CHUNK):
            read += len(data)
            while data:
                if inflate.eof:
                    if not data.strip(b"\0"):
                        data = b""
                        break
                    inflate = zlib.decompressobj(31)
                try:
                    piece = inflate.decompress(data, _GZIP_CHUNK)
                except zlib.error:
                    raise BadData(_CUT_OFF) from None
                data = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
                out += len(piece)
                if out > limits.unpacked_bytes or (out > _GZIP_RATIO_FROM and out > read * _GZIP_RATIO):
                    raise BadData("the gzip archive unpacks to far more than is read")
                yield piece
    if not inflate.eof:
        raise BadData(_CUT_OFF)
