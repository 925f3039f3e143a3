"""Judges what reading a binary (XLSB) or OpenDocument (ODS) workbook would take, before anything opens it."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from connectors.csv.archives import inflated, opened
from connectors.sdk.context import MIB, Limits
from connectors.sdk.errors import BadData

_DAMAGED = "the workbook is damaged: it cannot be read"
_ROW = 0
_CELLS = range(1, 12)
_SHEET = 145
"""Kinds of records in a binary worksheet (MS-XLSB 2.3.1): a row, a cell of some type, and where the rows begin."""
_ODS_TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0 "
_ODS_CELLS = frozenset({f"{_ODS_TABLE}table-cell", f"{_ODS_TABLE}covered-table-cell"})
_LONGEST_TAG = MIB


def inspect_binary(path: Path, limits: Limits) -> None:
    """Walk the records of every part of an XLSB workbook. Raises BadData when reading it would take too much."""
    for entry, pieces in _parts(path, limits):
        if entry.filename.lower().endswith(".bin"):
            _refuse(_span(pieces), limits)
        else:
            for _ in pieces:
                pass


def inspect_open(path: Path, limits: Limits) -> None:
    """Walk the cells of an ODS workbook, each counted as often as it says it is repeated. Raises BadData."""
    for entry, pieces in _parts(path, limits):
        if entry.filename.lower() == "content.xml":
            _OpenSheets(limits).walk(pieces)
        else:
            for _ in pieces:
                pass


def _parts(path: Path, limits: Limits) -> Iterator[tuple[zipfile.ZipInfo, Iterator[bytes]]]:
    """The parts with what they unpack to; together at most `limits.unpacked_bytes`."""
    left = limits.unpacked_bytes

    def counted(pieces: Iterator[bytes]) -> Iterator[bytes]:
        nonlocal left
        for piece in pieces:
            left -= len(piece)
            yield piece

    with path.open("rb") as file, opened(path) as archive:
        for entry in archive.infolist():
            yield entry, counted(inflated(file, entry, left))


def _refuse(cells: int, limits: Limits) -> None:
    if cells > limits.sheet_cells:
        fault = f"a worksheet spans {cells:,} cells; at most {limits.sheet_cells:,} are read from a workbook"
        raise BadData(f"{fault}: save it as CSV and send that")


def _span(pieces: Iterator[bytes]) -> int:
    """Rows times columns of a binary worksheet; 0 for any other part."""
    rows = columns = 0
    sheet = False
    for kind, start in _records(pieces):
        if kind == _SHEET:
            sheet = True
        elif kind == _ROW and len(start) == 4:
            rows = max(rows, int.from_bytes(start, "little") + 1)
        elif kind in _CELLS and len(start) == 4:
            columns = max(columns, int.from_bytes(start, "little") + 1)
    return rows * columns if sheet else 0


def _records(pieces: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """Each record's kind and its first four bytes; what follows is passed over."""
    held, skip = b"", 0
    for piece in pieces:
        held, at = held + piece[skip:], 0
        skip = max(0, skip - len(piece))
        while len(held) - at >= 10:
            kind, size, begin = _head(held, at)
            yield kind, held[begin : begin + min(size, 4)]
            at = begin + size
        if at > len(held):
            skip += at - len(held)
        held = held[at:]
    while held:
        kind, size, begin = _head(held + b"\0" * 8, 0)
        yield kind, held[begin : begin + min(size, 4)]
        held = held[begin + size :]


def _head(data: bytes, at: int) -> tuple[int, int, int]:
    """A record's kind and size, each in bytes of seven bits, and where its content begins."""
    kind, at = data[at] & 0x7F | (data[at + 1] & 0x7F) << 7 if data[at] & 0x80 else data[at], at + 1 + (data[at] >> 7)
    size = 0
    for place in range(4):
        byte = data[at]
        at += 1
        size |= (byte & 0x7F) << 7 * place
        if not byte & 0x80:
            break
    return kind, size, at


class _OpenSheets:
    """Follows the rows and cells of an ODS workbook's content.

    A repeated cell and a repeated row are spelled out by who reads them, blank ones only where something follows.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._text_left = limits.unpacked_bytes
        self._rows = self._row = self._wide = self._column = self._last = 0
        self._row_repeats = self._cell_repeats = 1
        self._in_cell = False
        self._text = 0
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = _no_doctype

    def walk(self, pieces: Iterator[bytes]) -> None:
        """Take in the whole content. Raises BadData."""
        read = 0
        try:
            for piece in pieces:
                read += len(piece)
                self._parser.Parse(piece, False)
                if read - self._parser.CurrentByteIndex > _LONGEST_TAG:
                    raise BadData(_DAMAGED)
            self._parser.Parse(b"", True)
        except (expat.ExpatError, LookupError, ValueError):
            raise BadData(_DAMAGED) from None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in _ODS_CELLS:
            self._cell_repeats = _repeats(attributes, "number-columns-repeated")
            self._in_cell = True
            # A value may stand in an attribute alone.
            self._text = sum(map(len, attributes.values())) if len(attributes) > 1 else 0
        elif tag == f"{_ODS_TABLE}table-row":
            self._row_repeats = _repeats(attributes, "number-rows-repeated")
            self._column = self._last = 0
        elif tag == f"{_ODS_TABLE}table":
            self._rows = self._row = self._wide = 0

    def _characters(self, text: str) -> None:
        if self._in_cell:
            self._text += len(text)

    def _end(self, tag: str) -> None:
        if tag in _ODS_CELLS:
            self._in_cell = False
            self._column += self._cell_repeats
            if self._text:
                self._last = self._column
                self._text_left -= self._text * self._cell_repeats * self._row_repeats
        elif tag == f"{_ODS_TABLE}table-row":
            self._row += self._row_repeats
            if self._last:
                self._rows, self._wide = self._row, max(self._wide, self._last)
            _refuse(self._rows * self._wide, self._limits)
            if self._text_left < 0:
                raise BadData("the texts of the cells are too long taken together; save it as CSV and send that")


def _repeats(attributes: dict[str, str], name: str) -> int:
    """How often a row or cell stands there. Raises ValueError for what is no number of spreadsheets."""
    count = int(attributes.get(f"{_ODS_TABLE}{name}", "1")[:10])
    if count < 1:
        raise ValueError(name)
    return count


def _no_doctype(*_: object) -> None:
    raise BadData("the workbook declares a document type, which is not read; save it anew and send that")
