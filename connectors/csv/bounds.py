"""Checks that refuse workbooks which would fill memory: zip bombs, cells far apart, texts shown too often.

The effort of reading a worksheet is estimated from its XML while that is streamed, by the library's rules. The library
requires no well-formed XML: a row or a cell without a reference follows the one before it, and end tags advance the
position without a start tag. In doubt, the estimate is too high.
"""

import re
import zipfile
from array import array
from collections import deque
from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from pathlib import Path
from xml.parsers import expat

from connectors.csv.archives import inflated, opened
from connectors.sdk.context import MIB, Limits
from connectors.sdk.errors import BadData

# Number and length of the shared texts, which cells refer to by index, taken from their XML while it is streamed.


_PREFIX = rb"(?:[^\s<>/!?\"'=:]*:)?"
_TEXTS = re.compile(b"<" + _PREFIX + rb"sst[\s/>]")
_ENTRY = re.compile(b"<" + _PREFIX + rb"si[\s/>]")
_HELD = re.compile(b"<" + _PREFIX + rb"[tr][\s/>]")
_UNIQUE = re.compile(rb"""[\s"']uniqueCount\s*=\s*["']\s*\+?0*([0-9]{1,12})""")
_SHOWN = re.compile(rb"""<(?:[^\s<>/!?"'=:]*:)?(?:(c)[\s/>]|v(?:\s[^<>]*)?>([^<]*))|=\s*["'](s)["']""")


class SharedTexts:
    """Shared texts of a workbook, at most `most`; `longest` is in bytes of XML.

    Pieces end outside of tags.
    """

    def __init__(self, most: int) -> None:
        self.longest = 0
        self._most = most
        self._lengths = array("I")
        self._certain = True
        self._parts = 0
        self._found = False
        self._open = bytearray()

    def look(self, piece: bytes) -> None:
        """Process the next piece of a part. Raises BadData for more texts than a worksheet could show."""
        if not self._found:
            start = _TEXTS.search(piece) if b"sst" in piece else None
            if start is None:
                return
            self._found = True
            self._parts += 1
            piece = piece[start.start() :]
            # The reader allocates memory for the stated number before it reads a text.
            if max(map(int, _UNIQUE.findall(piece)), default=0) > self._most:
                raise BadData(f"the workbook states more than {self._most:,} texts; save it as CSV and send that")
        # A comment may contain what looks like a text, which makes the indices uncertain.
        self._certain = self._certain and b"<!" not in piece and self._parts == 1
        starts = [found.start() for found in _ENTRY.finditer(piece)]
        self._open += piece[: starts[0]] if starts else piece
        if starts:
            self._close()
            for start_at, end_at in pairwise(starts):
                self._note(piece[start_at:end_at])
            self._open = bytearray(piece[starts[-1] :])
        if len(self._lengths) > self._most:
            raise BadData(f"the workbook has more than {self._most:,} texts; save it as CSV and send that")

    def end(self) -> None:
        """Finish the current part."""
        self._close()
        self._found = False

    def _close(self) -> None:
        if self._open:
            self._note(bytes(self._open))
            self._open.clear()

    def _note(self, entry: bytes) -> None:
        """Count a text; an empty one has no index."""
        if entry.find(b"<t>") >= 0 or _HELD.search(entry):
            self._lengths.append(len(entry))
            self.longest = max(self.longest, len(entry))

    def shown_in(self, piece: bytes) -> int:
        """Return the total bytes of the texts that the cells in a piece show; in doubt, each shows the longest one."""
        size, shares, most = 0, False, len(self._lengths)
        certain = self._certain and b"<!" not in piece
        for cell, value, shared in _SHOWN.findall(piece):
            if cell:
                shares = False
            elif shared:
                shares = True
            elif shares:
                place = int(value) if value.isdigit() and len(value) < 10 else most
                size += self._lengths[place] if certain and place < most else self.longest
        return size


# Effort of reading a worksheet, estimated from its XML while that is streamed.


_START = re.compile(b"<" + _PREFIX + rb"sheetData[\s/>]")
_CELL = re.compile(b"<" + _PREFIX + rb"c[\s/>]")
_PLAIN_CELL = re.compile(rb'<c r="([A-Z]{1,3}[0-9]{1,7})"(?: (?:[st]|[cv]m|ph)="[^"<>]*")*/?>')
_REFERENCE = re.compile(rb"""[\s"']r\s*=\s*["']\s*([A-Za-z]+[0-9]+)""")
_STEP = re.compile(rb"<(/?)" + _PREFIX + rb"(row|c)(?=[\s/>])([^<>]*)(>?)")
_ROW = re.compile(rb"row(?=[\s/>])([^<>]*)(>?)")
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = re.compile(rb"[0-9]+")
_ATTRIBUTE = re.compile(rb"""\s*([^\s=<>"']+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_MERGED = re.compile(b"<" + _PREFIX + rb"mergeCell[\s/>]")
_MOST_MERGED = 100_000
_FEWEST_ROWS = 1_000
_FARTHEST = 10**9
_ODD = "a worksheet is written in a way that no spreadsheet program uses; save it anew and send that"


class Worksheet:
    """Rectangle around a worksheet's cells, counted from A1; minimal for a part that is no worksheet.

    `shared` counts cells that may show a shared text. Pieces end outside of tags.
    """

    def __init__(self) -> None:
        self.shared = 0
        self._found = False
        self._columns: set[bytes] = set()
        self._rows = _FEWEST_ROWS
        self._row = 0
        self._loose = 0
        self._widest = 0
        self._merged = 0
        self._hidden = False

    def look(self, piece: bytes) -> None:
        """Process the next piece. Raises BadData for XML that no spreadsheet program writes."""
        if not self._found:
            start = _START.search(piece) if b"sheetData" in piece else None
            if start is None:
                return
            self._found = True
            piece = piece[start.start() :]
        if piece.rfind(b"<") > piece.rfind(b">"):
            raise BadData(_ODD)
        self._hidden = self._hidden or b"<!" in piece
        plain = _PLAIN_CELL.findall(piece)
        if len(plain) == _cells_in(piece):
            self._refer(plain)
            self._walk_rows(piece)
        else:
            self._refer(_REFERENCE.findall(piece))
            self._walk(piece)
        self.shared += piece.count(b'"s"') + piece.count(b"'s'")
        self._merge(piece)

    def _refer(self, references: list[bytes]) -> None:
        """Extend the rectangle by references such as `AB12`."""
        if references:
            listed = b" ".join(references)
            self._columns.update(listed.translate(None, b"0123456789").upper().split())
            self._rows = max(self._rows, *map(_line, set(listed.translate(None, _LETTERS).split())))

    def _walk_rows(self, piece: bytes) -> None:
        """Track the rows only, if every cell has a reference."""
        for found in _ROW.finditer(piece):
            start = found.start()
            before = piece[start - 1 : start]
            if before == b":":
                before = piece[piece.rfind(b"<", 0, start) :][:2][-1:]
            if before == b"/":
                self._next_row()
            elif before == b"<" or piece[start - 1 : start] == b":":
                self._row_begins(found[1], found[2])

    def _walk(self, piece: bytes) -> None:
        """Track the rows and the cells."""
        for ending, name, attributes, closed in _STEP.findall(piece):
            if name == b"row":
                if ending:
                    self._next_row()
                else:
                    self._row_begins(attributes, closed)
            elif not closed:
                raise BadData(_ODD)
            elif not ending and not _references(attributes):
                self._loose_cell()

    def _row_begins(self, attributes: bytes, closed: bytes) -> None:
        if not closed:
            raise BadData(_ODD)
        # Never decreased: a row in a comment, or one out of order, must not reduce the count.
        self._row = max([self._row, *(line - 1 for line in _references(attributes))])
        if attributes.endswith(b"/"):
            self._next_row()

    def _next_row(self) -> None:
        self._row += 1
        if not self._hidden:
            self._loose = 0

    def _loose_cell(self) -> None:
        """Count a cell without a reference, which follows the one before it."""
        self._loose += 1
        self._widest = max(self._widest, self._loose)
        self._rows = max(self._rows, self._row + 1)

    def _merge(self, piece: bytes) -> None:
        if b"mergeCell" in piece:
            self._merged += len(_MERGED.findall(piece))
        if self._merged > _MOST_MERGED:
            raise BadData(f"a worksheet has more than {_MOST_MERGED:,} merged areas; save it as CSV and send that")

    @property
    def cells(self) -> int:
        """Number of rows times columns, counted from A1."""
        return self._rows * (max(map(_number, self._columns), default=0) + self._widest)


def _cells_in(piece: bytes) -> int:
    """Return how many cells begin in a piece, in any notation."""
    plain = piece.count(b"<c ")
    if b":c" in piece or piece.count(b"<c") != plain:
        return len(_CELL.findall(piece))
    return plain


def _references(attributes: bytes) -> list[int]:
    """Return the rows that a tag's attributes refer to. Raises BadData for ambiguous attributes."""
    if not attributes or attributes.isspace():
        return []
    if _ATTRIBUTE.sub(b"", attributes).strip(b" \t\r\n/"):
        raise BadData(_ODD)
    given = [one or other for name, one, other in _ATTRIBUTE.findall(attributes) if name == b"r"]
    return [_line(found[0]) for value in given if (found := _DIGITS.search(value))]


def _line(digits: bytes) -> int:
    return int(digits) if len(digits) < 10 else _FARTHEST


def _number(letters: bytes) -> int:
    """Return the number of a column by its letters."""
    if len(letters) > 6:
        return _FARTHEST
    return reduce(lambda number, letter: number * 26 + letter - 64, letters, 0)


# Effort of reading a binary (XLSB) or OpenDocument (ODS) workbook, checked before it is opened.


DAMAGED = "the workbook is damaged: it cannot be read"
_BINARY_ROW = 0
_CELLS = range(1, 12)
_SHEET = 145
"""Kinds of records in a binary worksheet (MS-XLSB 2.3.1): a row, a cell of some type, and where the rows begin."""
_ODS_TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0 "
_ODS_CELLS = frozenset({f"{_ODS_TABLE}table-cell", f"{_ODS_TABLE}covered-table-cell"})
_LONGEST_XML_TAG = MIB


def inspect_binary(path: Path, limits: Limits) -> None:
    """Check the records of every part of an XLSB workbook. Raises BadData if reading it would take too much."""
    for entry, pieces in _parts(path, limits):
        if entry.filename.lower().endswith(".bin"):
            _refuse(_span(pieces), limits)
        deque(pieces, maxlen=0)


def inspect_open(path: Path, limits: Limits) -> None:
    """Check the cells of an ODS workbook, each counted as often as it is repeated. Raises BadData."""
    for entry, pieces in _parts(path, limits):
        if entry.filename.lower() == "content.xml":
            _OpenSheets(limits).walk(pieces)
        deque(pieces, maxlen=0)


def _parts(path: Path, limits: Limits) -> Iterator[tuple[zipfile.ZipInfo, Iterator[bytes]]]:
    """Yield the parts with their unpacked bytes; together at most `limits.unpacked_bytes`."""
    remaining = limits.unpacked_bytes

    def counted(pieces: Iterator[bytes]) -> Iterator[bytes]:
        nonlocal remaining
        for piece in pieces:
            remaining -= len(piece)
            yield piece

    with path.open("rb") as file, opened(path) as archive:
        for entry in archive.infolist():
            yield entry, counted(inflated(file, entry, remaining))


def _refuse(cells: int, limits: Limits) -> None:
    if cells > limits.sheet_cells:
        fault = f"a worksheet spans {cells:,} cells; at most {limits.sheet_cells:,} are read from a workbook"
        raise BadData(f"{fault}: save it as CSV and send that")


def _span(pieces: Iterator[bytes]) -> int:
    """Return rows times columns of a binary worksheet; 0 for any other part."""
    rows = columns = 0
    sheet = False
    for kind, start in _records(pieces):
        if kind == _SHEET:
            sheet = True
        elif kind == _BINARY_ROW and len(start) == 4:
            rows = max(rows, int.from_bytes(start, "little") + 1)
        elif kind in _CELLS and len(start) == 4:
            columns = max(columns, int.from_bytes(start, "little") + 1)
    return rows * columns if sheet else 0


def _records(pieces: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each record's kind and its first four bytes."""
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
    """Return a record's kind and size (bytes of seven bits each), and the start of its content."""
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
    """Parser handlers that count the rows and cells of an ODS workbook's content.

    The library expands repeated cells and rows, but blank ones only if a filled one follows.
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
        """Process the whole content. Raises BadData."""
        size = 0
        try:
            for piece in pieces:
                size += len(piece)
                self._parser.Parse(piece, False)
                if size - self._parser.CurrentByteIndex > _LONGEST_XML_TAG:
                    raise BadData(DAMAGED)
            self._parser.Parse(b"", True)
        except (expat.ExpatError, LookupError, ValueError):
            raise BadData(DAMAGED) from None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in _ODS_CELLS:
            self._cell_repeats = _repeats(attributes, "number-columns-repeated")
            self._in_cell = True
            # A value may be in an attribute only.
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
    """Return how often a row or cell is repeated. Raises ValueError for an invalid number."""
    count = int(attributes.get(f"{_ODS_TABLE}{name}", "1")[:10])
    if count < 1:
        raise ValueError(name)
    return count


def _no_doctype(*_: object) -> None:
    raise BadData("the workbook declares a document type, which is not supported; save it again and send that")


_LONGEST_TAG = 2 * MIB


def inspect(path: Path, limits: Limits) -> None:
    """Unpack every part once without keeping it. Raises BadData if reading the workbook would take too much.

    Every part is checked, as the workbook itself may declare any of them a worksheet. A worksheet's cells count as the
    rectangle around them, as the library allocates that. A shared text counts for each cell that shows it.
    """
    texts = SharedTexts(limits.sheet_cells)
    most_shared = 0
    for _, pieces in _parts(path, limits):
        sheet = Worksheet()
        for piece in _whole(pieces):
            sheet.look(piece)
            texts.look(piece)
        texts.end()
        _refuse(sheet.cells, limits)
        most_shared = max(most_shared, sheet.shared)
    if most_shared * texts.longest <= limits.unpacked_bytes:
        return
    for _, pieces in _parts(path, limits):
        remaining = limits.unpacked_bytes
        for piece in _whole(pieces):
            remaining -= texts.shown_in(piece)
            if remaining < 0:
                fault = "the texts of a worksheet's cells are too long taken together"
                raise BadData(f"{fault}; save it as CSV and send that")


def _whole(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in pieces that end outside of tags, unless a tag is longer than 2 MiB."""
    held = b""
    for piece in pieces:
        text = held + piece
        cut = text.rfind(b"<")
        if cut < 0 or text.find(b">", cut) >= 0 or len(text) - cut > _LONGEST_TAG:
            cut = len(text)
        held = text[cut:]
        if cut:
            yield text[:cut]
    if held:
        yield held
