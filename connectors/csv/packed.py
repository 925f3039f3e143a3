"""Unpacks a data file that was sent packed: gzip, or a zip archive that holds one file beside what systems add."""

import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipInfo

from connectors.csv.archives import inflated, opened
from connectors.sdk.context import MIB, Limits
from connectors.sdk.errors import BadData

_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_RATIO = 1_000
_RATIO_FROM = 64 * MIB
_CHUNK = 256 * 1024
_CUT_OFF = "the gzip archive is damaged or cut off"
_LITTER = ("__macosx/", ".ds_store", "thumbs.db", "desktop.ini")
_OFFICE = ("[content_types].xml", "mimetype")
_MOST_LAYERS = 2


@contextmanager
def plain(path: Path, limits: Limits, layers: int = _MOST_LAYERS) -> Iterator[Path]:
    """The data file itself: `path`, or a temporary file of what is packed in it, at most two layers deep. Raises BadData."""
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
    """What is packed in the file, in pieces; None when it is no archive, or a workbook, which is one by its make."""
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


def _is_data(entry: ZipInfo) -> bool:
    """Whether an entry is somebody's file: no folder, nothing that a system adds, nothing empty."""
    name = entry.filename.replace("\\", "/").lower()
    last = name.rsplit("/", 1)[-1]
    return bool(last) and not last.startswith(".") and not any(litter in name for litter in _LITTER)


def _only(path: Path, entries: list[ZipInfo], limits: Limits) -> Iterator[bytes]:
    if not entries:
        raise BadData("the zip archive holds no file")
    if len(entries) > 1:
        names = ", ".join(repr(entry.filename[-60:]) for entry in entries[:3])
        raise BadData(f"the zip archive holds {len(entries)} files ({names}, …); send one data file in it")
    with path.open("rb") as file:
        yield from inflated(file, entries[0], limits.unpacked_bytes)


def _gunzipped(path: Path, limits: Limits) -> Iterator[bytes]:
    """The members of a gzip file, one after the other. What is stated of sizes is not believed."""
    read = out = 0
    with path.open("rb") as file:
        inflate = zlib.decompressobj(31)
        while data := file.read(_CHUNK):
            read += len(data)
            while data:
                if inflate.eof:
                    if not data.strip(b"\0"):
                        data = b""
                        break
                    inflate = zlib.decompressobj(31)
                piece, data = _step(inflate, data)
                out += len(piece)
                if out > limits.unpacked_bytes or (out > _RATIO_FROM and out > read * _RATIO):
                    raise BadData("the gzip archive unpacks to far more than is read")
                yield piece
    if not inflate.eof:
        raise BadData(_CUT_OFF)


def _step(inflate: "zlib._Decompress", data: bytes) -> tuple[bytes, bytes]:
    """The next piece, bounded, and what of the data is left."""
    try:
        piece = inflate.decompress(data, _CHUNK)
    except zlib.error:
        raise BadData(_CUT_OFF) from None
    return piece, inflate.unused_data if inflate.eof else inflate.unconsumed_tail
