"""Unpacking of zip and gzip archives in chunks, with limits that protect against zip bombs and damaged archives."""

import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from connectors.sdk.context import MIB, Limits
from connectors.sdk.errors import BadData

_MAX_ENTRIES = 5_000
_MAX_DIRECTORY_BYTES = MIB
"""Maximum size of an archive's directory: enough for 5,000 entries with names of 150 characters."""
_MAX_COMMENT_BYTES = 0xFFFF
_END_SIGNATURE = b"PK\x05\x06"
_END_SIZE = 22
_END_64_SIGNATURE = b"PK\x06\x06"
_END_64_SIZE = 56
_LOCATOR_SIGNATURE = b"PK\x06\x07"
_LOCATOR_SIZE = 20
_MAX_RATIO = 250
_RATIO_FROM = 8 * MIB
_CHUNK = 256 * 1024
_LOCAL_HEADER_BYTES = 30
_STORED, _DEFLATED = 0, 8
_DAMAGED = "the workbook is damaged: it cannot be unpacked"


def open_archive(path: Path) -> zipfile.ZipFile:
    """Open a zip archive.

    Raises BadData if its directory is damaged, or larger than _MAX_ENTRIES or _MAX_DIRECTORY_BYTES.
    """
    with path.open("rb") as file:
        _check_directory(file)
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        raise BadData(_DAMAGED) from None


def _check_directory(file: BinaryIO) -> None:
    """Raise BadData unless a directory of permitted size lies directly before the archive's end record."""
    # Readers disagree on archives that have several such records, or bytes between them: one may check entries that
    # another never opens.
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_SIZE - _MAX_COMMENT_BYTES - _LOCATOR_SIZE))
    tail = file.read()
    at = tail.rfind(_END_SIGNATURE)
    if at < 0 or len(tail) - at < _END_SIZE:
        raise BadData(_DAMAGED)
    end = tail[at : at + _END_SIZE]
    entries, length, start = (int.from_bytes(end[a:b], "little") for a, b in ((10, 12), (12, 16), (16, 20)))
    directory_end = size - len(tail) + at
    if int.from_bytes(end[20:22], "little") != len(tail) - at - _END_SIZE:
        raise BadData(_DAMAGED)
    if tail[max(0, at - _LOCATOR_SIZE) : at].startswith(_LOCATOR_SIGNATURE):
        narrow = (entries, length, start)
        entries, length, start, directory_end = _read_zip64_end(file, directory_end)
        full = ((1 << 16) - 1, (1 << 32) - 1, (1 << 32) - 1)
        wide = (entries, length, start)
        if any(value not in permitted for value, *permitted in zip(narrow, full, wide, strict=True)):
            raise BadData(_DAMAGED)
    if entries > _MAX_ENTRIES or length > _MAX_DIRECTORY_BYTES:
        raise BadData(f"the workbook or zip archive has more than {_MAX_ENTRIES:,} parts; send the table as CSV")
    if start + length != directory_end:
        raise BadData(_DAMAGED)


def _read_zip64_end(file: BinaryIO, end: int) -> tuple[int, int, int, int]:
    """Return the position of the archive's directory according to the zip64 end record.

    Args:
        file: The archive.
        end: Offset of the ordinary end record, which follows the zip64 end record.

    Returns:
        The directory's number of entries, length in bytes and offset, and the offset of the zip64 end record, at which
        the directory must end.
    """
    record_start = end - _LOCATOR_SIZE - _END_64_SIZE
    file.seek(max(0, record_start))
    record = file.read(_END_64_SIZE)
    if record_start < 0 or not record.startswith(_END_64_SIGNATURE):
        raise BadData(_DAMAGED)
    entries, length, start = (int.from_bytes(record[a:b], "little") for a, b in ((32, 40), (40, 48), (48, 56)))
    return entries, length, start, record_start


def inflate_entry(file: BinaryIO, entry: zipfile.ZipInfo, max_bytes: int) -> Iterator[bytes]:
    """Yield the unpacked bytes of an archive's entry in chunks.

    Raises BadData if they are more than `max_bytes` bytes, or if the compression ratio is too high.
    """
    # The sizes stated in the archive are not trusted; the unpacked bytes are counted.
    if entry.flag_bits & 0x1:
        raise BadData("the file is password-protected; send it without a password")
    if entry.compress_type not in {_STORED, _DEFLATED}:
        raise BadData("the compression method is not supported; save the table as XLSX or CSV and send that file")
    out = read = 0
    for packed, chunk in _inflate_chunks(file, entry):
        read += packed
        out += len(chunk)
        if out > max_bytes:
            raise BadData("the unpacked file is too large; if it is a workbook, save it as CSV and send that file")
        if out > _RATIO_FROM and out > read * _MAX_RATIO:
            raise BadData(
                "the compression ratio is too high, as in a zip bomb; save the table as CSV and send that file"
            )
        yield chunk


def _inflate_chunks(file: BinaryIO, entry: zipfile.ZipInfo) -> Iterator[tuple[int, bytes]]:
    """Yield pairs of the number of packed bytes read and a chunk of unpacked bytes, of at most 256 KiB."""
    file.seek(max(entry.header_offset, 0))
    header = file.read(_LOCAL_HEADER_BYTES)
    if len(header) < _LOCAL_HEADER_BYTES or not header.startswith(b"PK\x03\x04"):
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
            chunk = inflate.decompress(data, _CHUNK)
        except zlib.error:
            raise BadData(_DAMAGED) from None
        yield read, chunk
        read = 0
        data = inflate.unconsumed_tail


# Unpacking of a data file: gzip, or a zip archive with one file, apart from files that operating systems add.


_GZIP_SIGNATURE = b"\x1f\x8b"
_ZIP_SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")
_GZIP_RATIO = 1_000
_GZIP_RATIO_FROM = 64 * MIB
_GZIP_CHUNK = 256 * 1024
_DAMAGED_GZIP = "the gzip archive is damaged or incomplete"
_SYSTEM_FILES = ("__macosx/", ".ds_store", "thumbs.db", "desktop.ini")
_WORKBOOK_PARTS = ("[content_types].xml", "mimetype")
_MAX_LAYERS = 2


@contextmanager
def open_unpacked(path: Path, limits: Limits, max_levels: int = _MAX_LAYERS) -> Iterator[Path]:
    """Yield the path of a data file: `path` or, if that is an archive, a temporary file with the unpacked content.

    Archives inside archives are unpacked up to `max_levels` levels. Raises BadData.
    """
    chunks = _unpack_data_file(path, limits) if max_levels else None
    if chunks is None:
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="joinery-unpacked-") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        with open_unpacked(Path(file.name), limits, max_levels - 1) as inner:
            yield inner


def _unpack_data_file(path: Path, limits: Limits) -> Iterator[bytes] | None:
    """Return the unpacked content of an archive in chunks; None if the file is a workbook or no archive."""
    with path.open("rb") as file:
        head = file.read(4)
    if head.startswith(_GZIP_SIGNATURE):
        return _unpack_gzip(path, limits)
    if not head.startswith(_ZIP_SIGNATURES):
        return None
    with open_archive(path) as archive:
        entries = archive.infolist()
    if any(entry.filename.lower() in _WORKBOOK_PARTS for entry in entries):
        return None
    return _unpack_only_entry(path, [entry for entry in entries if _is_data_file(entry)], limits)


def _is_data_file(entry: zipfile.ZipInfo) -> bool:
    """Return whether an entry may be the data file: not a folder, a hidden file or a file that the system adds."""
    name = entry.filename.replace("\\", "/").lower()
    last = name.rsplit("/", 1)[-1]
    return bool(last) and not last.startswith(".") and not any(system_name in name for system_name in _SYSTEM_FILES)


def _unpack_only_entry(path: Path, entries: list[zipfile.ZipInfo], limits: Limits) -> Iterator[bytes]:
    if not entries:
        raise BadData("the zip archive contains no file")
    if len(entries) > 1:
        names = ", ".join(repr(entry.filename[-60:]) for entry in entries[:3])
        raise BadData(f"the zip archive contains {len(entries)} files ({names}, …); send an archive with one data file")
    with path.open("rb") as file:
        yield from inflate_entry(file, entries[0], limits.unpacked_bytes)


def _unpack_gzip(path: Path, limits: Limits) -> Iterator[bytes]:
    """Yield the unpacked content of a gzip file, which may have several members. Raises BadData if it is too large."""
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
                    chunk = inflate.decompress(data, _GZIP_CHUNK)
                except zlib.error:
                    raise BadData(_DAMAGED_GZIP) from None
                data = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
                out += len(chunk)
                if out > limits.unpacked_bytes or (out > _GZIP_RATIO_FROM and out > read * _GZIP_RATIO):
                    raise BadData(
                        f"the unpacked gzip archive is larger than {limits.unpacked_bytes // MIB} MiB, or its compression ratio is too high"
                    )
                yield chunk
    if not inflate.eof:
        raise BadData(_DAMAGED_GZIP)
