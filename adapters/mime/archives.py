"""Unpacking of the files in archives attached to email, with limits of number, size and compression ratio."""

import io
import zipfile
import zlib
from collections.abc import Iterator

from adapters.mime.texts import clean_filename
from domain.mail.contents import ContentKind, detect_kind
from domain.mail.model import AttachmentNote, ParsedAttachment

MAX_ENTRIES = 1000
"""Maximum number of entries of an archive."""
MAX_UNPACKED_BYTES = 64 * 1024 * 1024
"""Maximum number of bytes to which all archives of one message together unpack."""
_MAX_DIRECTORY_BYTES = 1024 * 1024
_MAX_RATIO = 250
_RATIO_FROM = 8 * 1024 * 1024
_CHUNK = 256 * 1024
_GZIP_WINDOW_BITS = 31  # zlib: gzip headers
_ARCHIVE_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError, RuntimeError)


class UnpackBudget:
    """Number of bytes that may still be unpacked from the archives of one message; unpacking reduces `bytes_left`."""

    def __init__(self, left: int = MAX_UNPACKED_BYTES) -> None:
        self.bytes_left = left


class _TooLarge(Exception):
    """Error for an archive that has too many bytes or entries, or a higher compression ratio than legitimate files."""


def unpack_archive(name: str, content: bytes, kind: ContentKind, budget: UnpackBudget) -> Iterator[ParsedAttachment]:
    """Yield the files in an archive. A file that cannot be unpacked has a note with the reason, and no content.

    `budget` limits the unpacked bytes of all archives of the message.
    """
    try:
        yield from (
            _unpack_gzip(name, content, budget) if kind == ContentKind.GZIP else _unpack_zip(name, content, budget)
        )
    except _TooLarge:
        yield ParsedAttachment(name, len(content), note=AttachmentNote.TOO_LARGE)
    except _ARCHIVE_ERRORS:
        yield ParsedAttachment(name, len(content), note=AttachmentNote.DAMAGED)


def _unpack_gzip(name: str, content: bytes, budget: UnpackBudget) -> Iterator[ParsedAttachment]:
    inflate = zlib.decompressobj(_GZIP_WINDOW_BITS)
    out = _inflate(inflate, content, budget)
    if not inflate.eof or inflate.unused_data.strip(b"\x00"):
        raise zlib.error  # a truncated member, or a second one
    yield _build_file((name[:-3] if name.lower().endswith(".gz") else name) or name, out)


def _inflate(inflate: "zlib._Decompress", data: bytes, budget: UnpackBudget) -> bytes:
    out, packed_size = bytearray(), len(data)
    while data:
        chunk = inflate.decompress(data, _CHUNK)
        out += chunk
        budget.bytes_left -= len(chunk)
        if budget.bytes_left < 0 or (len(out) > _RATIO_FROM and len(out) > packed_size * _MAX_RATIO):
            raise _TooLarge
        data = inflate.unconsumed_tail
        if not chunk and not data:
            break
    return bytes(out)


def _unpack_zip(name: str, content: bytes, budget: UnpackBudget) -> Iterator[ParsedAttachment]:
    entries = _count_entries(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        found = archive.infolist()
        if entries > MAX_ENTRIES or len(found) > MAX_ENTRIES:
            raise _TooLarge
        names = [entry.filename.lower() for entry in found]
        if "[content_types].xml" in names or "mimetype" in names:
            yield _read_office_file(name, content, names)
            return
        for entry in found:
            if entry.is_dir() or _is_system_file(entry.filename):
                continue
            yield _unpack_entry(archive, entry, budget)


def _count_entries(content: bytes) -> int:
    """Return the number of entries that a zip archive's end record states, without reading the directory."""
    at = content.rfind(b"PK\x05\x06")
    if at < 0 or len(content) - at < 22:
        raise zipfile.BadZipFile
    if int.from_bytes(content[at + 12 : at + 16], "little") > _MAX_DIRECTORY_BYTES:
        raise _TooLarge
    return int.from_bytes(content[at + 10 : at + 12], "little")


def _read_office_file(name: str, content: bytes, names: list[str]) -> ParsedAttachment:
    """Return an Office file: a workbook as it is, another document with a note instead of its content."""
    is_workbook = any(inner.startswith("xl/") for inner in names) or (
        "mimetype" in names and b"opendocument.spreadsheet" in content[:200]
    )
    if is_workbook:
        return ParsedAttachment(name, len(content), content)
    return ParsedAttachment(name, len(content), note=AttachmentNote.NOT_DATA)


def _is_system_file(name: str) -> bool:
    """Return whether an entry of this name is a file that operating systems add to archives."""
    parts = name.replace("\\", "/").split("/")
    return "__MACOSX" in parts or parts[-1].startswith("._") or parts[-1] in (".DS_Store", "Thumbs.db", "desktop.ini")


def _unpack_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, budget: UnpackBudget) -> ParsedAttachment:
    name = clean_filename(entry.filename) or "unnamed"
    if entry.flag_bits & 0x1:
        return ParsedAttachment(name, entry.file_size, note=AttachmentNote.ENCRYPTED)
    out = bytearray()
    try:
        with archive.open(entry) as stream:
            while chunk := stream.read(_CHUNK):
                out += chunk
                budget.bytes_left -= len(chunk)
                if budget.bytes_left < 0 or (len(out) > _RATIO_FROM and len(out) > entry.compress_size * _MAX_RATIO):
                    return ParsedAttachment(name, entry.file_size, note=AttachmentNote.TOO_LARGE)
    except _ARCHIVE_ERRORS:
        return ParsedAttachment(name, entry.file_size, note=AttachmentNote.DAMAGED)
    return _build_file(name, bytes(out))


def _build_file(name: str, content: bytes) -> ParsedAttachment:
    """Return an unpacked file; other archives, and files that are not data files, have a note instead of content."""
    kind = detect_kind(content)
    if kind == ContentKind.ZIP:
        return _build_nested_archive(name, content)
    if kind == ContentKind.GZIP:
        return ParsedAttachment(name, len(content), note=AttachmentNote.NOT_DATA)
    if isinstance(kind, AttachmentNote):
        return ParsedAttachment(name, len(content), note=kind)
    return ParsedAttachment(name, len(content), content)


def _build_nested_archive(name: str, content: bytes) -> ParsedAttachment:
    try:
        _count_entries(content)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [inner.lower() for inner in archive.namelist()[:MAX_ENTRIES]]
    except (_TooLarge, *_ARCHIVE_ERRORS):
        return ParsedAttachment(name, len(content), note=AttachmentNote.DAMAGED)
    return _read_office_file(name, content, names)
