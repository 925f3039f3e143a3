"""Data files in mailed archives, within limits of number, size and ratio."""

import io
import zipfile
import zlib
from collections.abc import Iterator

from adapters.mime.texts import plain_name
from domain.mail.contents import ContentKind, kind_of
from domain.mail.model import AttachmentNote, File

MOST_ENTRIES = 1000
"""Maximum entries of an archive."""
MOST_UNPACKED = 64 * 1024 * 1024
"""Bytes that the archives of one message may unpack to together."""
_DIRECTORY = 1024 * 1024
_RATIO = 250
_RATIO_FROM = 8 * 1024 * 1024
_CHUNK = 256 * 1024
_WINDOW = 31  # zlib: gzip headers
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError, RuntimeError)


class Room:
    """Remaining bytes that a message's archives may unpack to."""

    def __init__(self, left: int = MOST_UNPACKED) -> None:
        self.left = left


class _TooLarge(Exception):
    """Archive above the remaining size, or above the ratio of a legitimate file."""


def unpacked(name: str, content: bytes, kind: ContentKind, room: Room) -> Iterator[File]:
    """Yield the files in an archive; a file that cannot be unpacked has a note instead of content."""
    try:
        yield from _of_gzip(name, content, room) if kind == ContentKind.GZIP else _of_zip(name, content, room)
    except _TooLarge:
        yield File(name, len(content), note=AttachmentNote.TOO_LARGE)
    except _DAMAGED:
        yield File(name, len(content), note=AttachmentNote.DAMAGED)


def _of_gzip(name: str, content: bytes, room: Room) -> Iterator[File]:
    inflate = zlib.decompressobj(_WINDOW)
    out = _inflated(inflate, content, room)
    if not inflate.eof or inflate.unused_data.strip(b"\x00"):
        raise zlib.error  # a truncated member, or a second one
    yield _file((name[:-3] if name.lower().endswith(".gz") else name) or name, out)


def _inflated(inflate: "zlib._Decompress", data: bytes, room: Room) -> bytes:
    out, whole = bytearray(), len(data)
    while data:
        piece = inflate.decompress(data, _CHUNK)
        out += piece
        room.left -= len(piece)
        if room.left < 0 or (len(out) > _RATIO_FROM and len(out) > whole * _RATIO):
            raise _TooLarge
        data = inflate.unconsumed_tail
        if not piece and not data:
            break
    return bytes(out)


def _of_zip(name: str, content: bytes, room: Room) -> Iterator[File]:
    entries = _entries(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        found = archive.infolist()
        if entries > MOST_ENTRIES or len(found) > MOST_ENTRIES:
            raise _TooLarge
        names = [entry.filename.lower() for entry in found]
        if "[content_types].xml" in names or "mimetype" in names:
            yield _office(name, content, names)
            return
        for entry in found:
            if entry.is_dir() or _is_litter(entry.filename):
                continue
            yield _entry(archive, entry, room)


def _entries(content: bytes) -> int:
    """Return the number of entries without reading the directory."""
    at = content.rfind(b"PK\x05\x06")
    if at < 0 or len(content) - at < 22:
        raise zipfile.BadZipFile
    if int.from_bytes(content[at + 12 : at + 16], "little") > _DIRECTORY:
        raise _TooLarge
    return int.from_bytes(content[at + 10 : at + 12], "little")


def _office(name: str, content: bytes, names: list[str]) -> File:
    """Return a workbook as one file, whose reader unpacks it; other Office documents contain no data."""
    sheets = any(inner.startswith("xl/") for inner in names) or (
        "mimetype" in names and b"opendocument.spreadsheet" in content[:200]
    )
    if sheets:
        return File(name, len(content), content)
    return File(name, len(content), note=AttachmentNote.NOT_DATA)


def _is_litter(name: str) -> bool:
    """Return whether an entry is a file that operating systems add."""
    parts = name.replace("\\", "/").split("/")
    return "__MACOSX" in parts or parts[-1].startswith("._") or parts[-1] in (".DS_Store", "Thumbs.db", "desktop.ini")


def _entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, room: Room) -> File:
    name = plain_name(entry.filename) or "unnamed"
    if entry.flag_bits & 0x1:
        return File(name, entry.file_size, note=AttachmentNote.ENCRYPTED)
    out = bytearray()
    try:
        with archive.open(entry) as stream:
            while piece := stream.read(_CHUNK):
                out += piece
                room.left -= len(piece)
                if room.left < 0 or (len(out) > _RATIO_FROM and len(out) > entry.compress_size * _RATIO):
                    return File(name, entry.file_size, note=AttachmentNote.TOO_LARGE)
    except _DAMAGED:
        return File(name, entry.file_size, note=AttachmentNote.DAMAGED)
    return _file(name, bytes(out))


def _file(name: str, content: bytes) -> File:
    """Return an unpacked file by its content. An archive in an archive is a workbook, or is not unpacked."""
    kind = kind_of(content)
    if kind == ContentKind.ZIP:
        return _inner(name, content)
    if kind == ContentKind.GZIP:
        return File(name, len(content), note=AttachmentNote.NOT_DATA)
    if isinstance(kind, AttachmentNote):
        return File(name, len(content), note=kind)
    return File(name, len(content), content)


def _inner(name: str, content: bytes) -> File:
    try:
        _entries(content)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [inner.lower() for inner in archive.namelist()[:MOST_ENTRIES]]
    except (_TooLarge, *_DAMAGED):
        return File(name, len(content), note=AttachmentNote.DAMAGED)
    return _office(name, content, names)
